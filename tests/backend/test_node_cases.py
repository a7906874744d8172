"""onnx's own node test cases, converted to other opset versions, yield what the operators' pages say or are refused."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache

import pytest
from onnx import defs

import reducelower
from tools.node_cases import Case, cases, convert, runs_as_expected

pytestmark = pytest.mark.xdist_group("onnx's cases")

CHUNKS = 24
TARGETS = (21, 18, 17, 15, 13, 11, 9)
MANY = 4
ANOTHER = ("_expanded", "_with_constants")


def targets_of(case: Case) -> set[int]:
    """The oldest target, and the first one below each boundary of an operator of the case."""
    operators = sorted({node.op_type for node in case.model.graph.node})
    first: dict[tuple[int, ...], int] = {}
    for target in TARGETS:
        first.setdefault(tuple(_version(op_type, target) for op_type in operators), target)
    return {*first.values(), TARGETS[-1]} - {case.opset}


@cache
def chosen() -> list[tuple[Case, list[int]]]:
    """The cases and their targets: where an operator has many cases, one of these goes to each but the oldest one.

    Cases that say another one with constants, or by the function body of the operator, take turns in all targets.
    """
    found, met = [], defaultdict[tuple[str, str], set[int]](set)
    many = {op_type for op_type, count in Counter(case.operator for case in cases()).items() if count > MANY}
    for case in cases():
        targets = sorted(targets_of(case), reverse=True)
        kind = next((suffix for suffix in ANOTHER if suffix in case.name), "")
        always = [] if kind else [targets.pop()]
        if targets and (kind or case.operator in many):
            taken = met[case.operator, kind]
            targets = [target for target in targets if target not in taken][:1]
            taken.update(targets)
        found.append((case, [*targets, *always]))
    return found


@cache
def _version(op_type: str, opset: int) -> int:
    """The version of an operator that is in force, 0 where there is none."""
    try:
        return int(defs.get_schema(op_type, opset, "").since_version)
    except defs.SchemaError:
        return 0


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_converted_cases_yield_what_is_expected_or_are_refused(chunk: int) -> None:
    found = [convert(case, target) for case, targets in chosen()[chunk::CHUNKS] for target in targets]
    bad = [each for each in found if each.state in ("wrong", "invalid", "crash") and runs_as_expected(each.case)]
    assert not bad, "\n".join(
        f"{one.state}: {one.case.name} {one.case.opset} -> {one.target}: {one.reason}" for one in bad
    )


@pytest.mark.opset(23)
def test_what_onnxruntime_breaks_itself_is_not_held_against_a_conversion() -> None:
    # onnxruntime 1.30 puts casts into what float16 attention is expressed by, and finds fault with their types.
    case = next(case for case in cases() if case.name == "test_attention_4d_fp16")
    made = reducelower.legalize(case.model, reducelower.Target(21))
    found = reducelower.verify(case.model, made.model, plan=made.plan)
    assert found.ran
    assert found.equivalent, found
