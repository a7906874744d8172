"""The conformance suite: operators, opset versions and depth; the same on every machine."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

from onnx import helper

from reducelower.conformance.case import Case
from reducelower.conformance.part_cases import PARTS, part_cases
from reducelower.conformance.reduce_cases import Depth, reduce_cases
from reducelower.model.schemas import REDUCTIONS, latest_opset

__all__ = ["OLDEST", "newest_official_opset", "suite"]

OLDEST = 7
"""The oldest opset version that today's runtimes claim to read."""

# The Reduce operators changed at 11, 13 and 18 (all of them) and at 12 and 20 (Max and Min). A runtime may still have
# an importer for each version in between; the plain form shows that.
_DEPTHS: dict[int, Depth] = {11: "thorough", 13: "thorough", 18: "thorough", 9: "brief", 17: "brief", 20: "brief"}

_PART_OPSETS = (11, 13, 18, 20)


@cache
def newest_official_opset() -> int:
    """The newest opset version of a released onnx, as far as the installed one knows."""
    released = max(int(row[2]) for row in helper.VERSION_TABLE)
    return min(released, latest_opset())


def suite(operators: Collection[str] | None = None) -> list[Case]:
    """Every case of some operators (by default all), in the order in which they run."""
    wanted = frozenset((*REDUCTIONS, *PARTS) if operators is None else operators)
    cases: list[Case] = []
    for opset in range(OLDEST, newest_official_opset() + 1):
        for operator in REDUCTIONS:
            if operator in wanted:
                cases += reduce_cases(operator, opset, _DEPTHS.get(opset, "plain"))
    for opset in _PART_OPSETS:
        for operator in PARTS:
            if operator in wanted:
                cases += part_cases(operator, opset)
    return cases
