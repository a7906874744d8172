"""A run goes on after a case that ends the process."""

from __future__ import annotations

import os

from tools.fuzz.processes import Result, survived


def whole(number: int) -> Result:
    if number in (1, 2):
        os._exit(1)
    return Result(number, "equal")


def source(number: int) -> Result:
    if number == 1:
        os._exit(1)
    return Result(number, "death")


def test_a_case_that_ends_the_process_is_a_finding_unless_its_source_does_so_alone() -> None:
    found = list(survived(whole, source, range(5)))
    assert [one.number for one in found] == [0, 1, 2, 3, 4]
    assert [one.kind for one in found] == ["equal", "source ends the process", "death", "equal", "equal"]
