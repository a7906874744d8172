"""The facts of the measured targets against what was measured: each failure is explained, and next to nothing else.

So a fact that is dropped, or changed in where it holds, is missed here, on any machine and without the runtime.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from reducelower.conformance.case import Case
from reducelower.model.schemas import REDUCTIONS, all_operators
from reducelower.runtimes import Fact, Runtime, load_runtime
from tests.conformance.made import everything
from tests.runtimes.measured import RUNTIMES, failures

pytestmark = pytest.mark.xdist_group("the suite")

NOTHING_MENDS = {"tinygrad": {"ReduceLogSum"}}
"""Reductions that overflow and are no fact, because nothing mends them."""

GENERAL = {
    "jaxonnxruntime": {"ReduceMean"},  # of integers, also where it reduces nothing and so divides by one
    # no axes that reduce nothing, which pnnx alone does not read; ReduceProd over axes that others take for other ones
    "ncnn": {"ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceMean", "ReduceProd", "ReduceSum"},
    "mnn": {"Max", "Min"},  # of a single operand, which cases do not count
    "openvino": {"ReduceLogSumExp"},  # of integers, also where the fraction happens to be left out of the result
    "pnnx": {"ReduceLogSumExp", "ReduceProd"},  # an empty list of axes, and negative ones, whatever keepdims is
    "tinygrad": {"ReduceMean", "Size"},  # Size is right where it yields the output itself
    "onnxruntime": {"ReduceLogSumExp"},
    "onnxruntime@1.16": {"ReduceLogSumExp"},
    # of integers, also where it reduces nothing; over three axes, where the smallest value happens to be the same
    "opencv": {"ReduceMean", "ReduceMin"},
    # scalars, which come with a dimension only where they are computed from; omitted axes that reduce nothing
    "rknn": {"ReduceL2", "ReduceMax", "ReduceMean"},
    "tract": {"ReduceSum"},  # of float16, also where nothing is lost
}
"""Reductions of which a fact says a little more than was measured."""

_ARITHMETIC = "Add Div Equal Greater Less Max Min Mul Pow Sub"
_ELEMENTWISE = f"{_ARITHMETIC} Abs Cast GreaterOrEqual Identity LessOrEqual"

BESIDES = {
    "mnn": f"{_ARITHMETIC} Cast Clip Reshape",  # of int8; two types; of constants of 4 bits
    "ncnn": f"{_ELEMENTWISE} And IsInf IsNaN Not Or Size",  # met in what stands for reductions
    "onnx2torch": "Clip Split",  # wide integers, which are newer than its record, and products written out
    "onnxruntime": "Max Min Neg Pow ReduceLogSumExp ReduceMax ReduceMin Where",  # narrow; larger values; of no values
    "onnxruntime@1.16": f"{_ARITHMETIC} Neg Where",  # of narrow integers; met in products written out
    # after another node; of truth values; other attributes; over the first of several axes
    "opencv": "Cast Equal Mul Reduce* ReduceMax Reshape Shape",
    "openvino": "Expand ReduceMax ReduceMin Unsqueeze",  # of no values; of what is fed
    "pnnx": _ELEMENTWISE,  # met in what reduces nothing; with constants
    "qnn": "Abs Split",  # met in products written out
    "rknn": "If ReduceL2 Shape Size",  # met in what stands for it, at opset 7; see above
    "tinygrad": "Size",  # met in rules that count
    # In what axes of run time turn into; of no values; larger integers.
    "tract": "Equal If Mul ReduceL1 ReduceMax ReduceMean ReduceMin ReduceSumSquare Squeeze Unsqueeze",
    "tvm": "If",
}
"""Operators of which something else than the suite tells."""


@cache
def cases() -> tuple[Case, ...]:
    # Sizes of zero and opset versions beyond the newest that every runtime knows are about other things.
    return tuple(case for case in everything() if case.tag != "empty" and case.opset <= 20)


def facts(runtime: Runtime, case: Case) -> list[Fact]:
    # A node is refused where all that is left of a fact is what axes known at run time only would tell.
    unknown = [name for name in ("negative_axes", "axes_count", "all_axes") if getattr(case.features, name) is None]
    about = runtime.facts_about(case.operator, case.opset)
    left = ((fact, replace(fact.when, **dict.fromkeys(unknown)) if unknown else fact.when) for fact in about)
    return [fact for fact, when in left if when.matches(case.features)]


def is_known(table: dict[str, set[str]], runtime: str, case: Case) -> bool:
    return case.operator in table.get(runtime, ())


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_every_failure_is_explained(runtime: str) -> None:
    failed, known = failures(runtime), load_runtime(runtime)
    for case in cases():
        if case.name not in failed or case.opset not in known.reads:
            continue
        if case.tag and is_known(NOTHING_MENDS, runtime, case):
            continue
        if runtime in ("ncnn", "pnnx") and case.operator not in REDUCTIONS:
            continue  # pnnx crashes on most models of a single such node for being so small.
        if known.misshapes([case.features.rank_out]):
            continue
        found = [fact for fact in facts(known, case) if case.tag or fact.outcome != "overflows"]
        assert found, f"{failed[case.name]}: {case.name}"


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_hardly_anything_else_is_said(runtime: str) -> None:
    failed, known = failures(runtime), load_runtime(runtime)
    for case in cases():
        if case.name in failed or case.tag or case.opset not in known.reads or is_known(GENERAL, runtime, case):
            continue
        if case.features.element_types == "uint32" and case.features.noop == "1":
            continue  # Where nothing is reduced, Abs and the like leave unsigned numbers as they are.
        found = [fact.says for fact in facts(known, case) if fact.outcome != "overflows"]
        assert not found, f"{case.name}: {found}"


@pytest.mark.opset(28)  # An older onnx has fewer cases.
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_no_fact_is_idle(runtime: str) -> None:
    failed, known = failures(runtime), load_runtime(runtime)
    explained = {
        fact
        for case in everything()
        if case.name in failed and case.opset in known.reads
        for fact in facts(known, case)
    }
    # Operators that are in no replacement of a reduction were measured by tests/conformance/operators.py.
    others = set(BESIDES.get(runtime, "").split()) | (set(all_operators()) - {case.operator for case in everything()})
    told = [fact for fact in known.facts if fact.outcome != "misshapen"]
    idle = [fact.says for fact in told if fact not in explained and not fact.operators <= others]
    assert not idle
