"""Names and versions as people type them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from reducelower import Target, check, load_runtime
from reducelower.runtimes import TargetError, shipped_names
from reducelower.runtimes.reading import aliases
from tests.runtimes.test_shipped import reduction

TYPED = tomllib.loads(Path(__file__).with_name("names.toml").read_text("utf-8"))


@pytest.mark.parametrize("written", TYPED["names"])
def test_a_runtime_goes_by_the_names_of_its_packages(written: str) -> None:
    assert load_runtime(written).name == TYPED["names"][written]


@pytest.mark.parametrize("name", ["hailo", "vitis", "stm32", "executorch", "armnn", "openvno", "tensorr"])
def test_an_unknown_name_gets_no_other_runtime_suggested(name: str) -> None:
    with pytest.raises(TargetError) as caught:
        load_runtime(name)
    assert "did you mean" not in str(caught.value)
    assert "`reducelower probe` measures any other runtime" in str(caught.value)
    assert all(known in str(caught.value) for known in shipped_names())


def test_every_name_means_a_target_that_there_is() -> None:
    assert set(aliases().values()) <= set(shipped_names())
    assert not set(aliases()) & set(shipped_names())


@pytest.mark.parametrize("written", TYPED["versions"])
def test_any_version_of_a_runtime_is_taken(written: str) -> None:
    found = load_runtime(written)
    assert [found.version, found.note] == TYPED["versions"][written]


def test_between_two_versions_the_facts_of_both_are_true() -> None:
    sides = [load_runtime(f"opencv@{version}") for version in ("4.14", "5.0.0")]
    found = load_runtime("opencv@4.20")
    assert set(found.facts) == {*sides[0].facts, *sides[1].facts}


def test_an_outcome_says_that_a_version_was_not_measured() -> None:
    plan = check(reduction("ReduceSum", 13), target=Target(runtime=load_runtime("opencv@4.12")))
    assert plan.notes[0] == "opencv 4.12 was not measured; facts of 4.10 and 4.14."


def test_an_alias_is_spelled_in_any_case_and_with_either_dash() -> None:
    assert load_runtime(" Opencv_Contrib_Python ").name == "opencv"
