"""Where a converted model differs from its source, it computes what recorded rewrites say, and nothing else does."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper

from reducelower import Target, legalize
from reducelower.legalization.memo import forget
from reducelower.plan import Plan
from reducelower.types import Inference
from reducelower.verification import verify_regions
from reducelower.verification.regions.align import align
from reducelower.verification.regions.claims import Claim
from reducelower.verification.running.source import inlined
from tests.models import model
from tools.verification.faults import plant


def claims(source: ModelProto, result: ModelProto, plan: Plan | None) -> list[Claim]:
    inferences = Inference(source), Inference(result)
    return align(source, result, plan, inferences=inferences).claims


def closes(source: ModelProto, result: ModelProto, plan: Plan) -> bool:
    return all(claim.entry is not None for claim in claims(source, result, plan))


def test_what_a_conversion_leaves_out_is_no_counterpart_of_what_it_adds() -> None:
    """Of two nodes of one kind without a namesake, the order says nothing."""
    source = model(
        "g (float[2, 3] z, float[N, 4] d, int64[K, 1] i) => (float[2, 3] r, float[K, 4] y) "
        "<int64[2] none = {0, 0}> { s = Shape (z)  r = Slice (z, none, s)  y = GatherND (d, i) }"
    )
    made = legalize(source, Target(9))
    gone, new = (
        {node.output[0] for node in each.graph.node if node.op_type == "Shape"} for each in (source, made.model)
    )
    assert gone.isdisjoint(new)
    assert len(gone) == len(new)
    pairs = [pair for claim in claims(source, made.model, made.plan) for pair in claim.pairs]
    assert {left for left, right in pairs if left == right} == {"r", "y"} == {left for left, _ in pairs}


def test_what_an_earlier_run_learned_is_recorded_too() -> None:
    source = model("g (float[N, 4] x) => (float[N, 1] y) { a = ReduceL2 <axes = [1]> (x)  y = Neg (a) }", 17)
    forget()
    plans = [legalize(source, Target(18)).plan for _ in range(2)]
    first, second = (plan.steps[0].applied or () for plan in plans)
    assert [(each.graph, each.index) for each in first] == [(each.graph, each.index) for each in second] != []


def test_a_rewrite_of_what_stood_there_before_other_changes_is_none_of_this_node() -> None:
    text = "g (float[N, 4] x) => (float[N, 1] y) { %s a = ReduceL2 <axes = [1]> (x) y = Neg (a) }"
    before, source = model(text % "", 17), model(text % "b = ReduceL2 <axes = [1]> (x)", 17)
    result = legalize(source, Target(18)).model
    found = claims(source, result, legalize(before, Target(18)).plan)
    assert {left: claim.entry for claim in found for left, _ in claim.pairs}.get("b") is None


def test_rewrites_inside_of_branches_are_seen() -> None:
    source = model(
        "g (bool k, float[N, 4] x) => (float[N, 1] y) { y = If (k) "
        "<then_branch = t () => (float[N, 1] p) { p = ReduceSum <axes = [1]> (x) }, "
        "else_branch = e () => (float[N, 1] q) { q = ReduceMax <axes = [1]> (x) }> }",
        12,
    )
    made = legalize(source, Target(18))
    assert closes(source, made.model, made.plan)


def test_rewrites_inside_of_functions_are_seen() -> None:
    source = model(
        "g (float[N, 4] x) => (float[N, 1] y) { y = local.f (x) }",
        12,
        functions='<domain: "local", opset_import: ["": 12]> f (a) => (b) { b = ReduceSum <axes = [1]> (a) }',
    )
    made = legalize(source, Target(18))
    assert closes(inlined(source), made.model, made.plan)


@pytest.mark.parametrize("fault", ["operands exchanged", "keepdims", "function of one value"])
def test_a_fault_in_the_result_is_seen(fault: str) -> None:
    source = model(
        "g (float[N, 4] x, float[N, 1] z) => (float[N, 1] y) "
        "{ a = ReduceSum <axes = [1], keepdims = 1> (x)  b = Sub (a, z)  y = Exp (b) }",
        12,
    )
    made = legalize(source, Target(18))
    faulty, where = plant(made.model, fault, 0)
    assert where
    assert closes(source, made.model, made.plan)
    assert not closes(source, faulty, made.plan)


def test_a_wrong_rewrite_that_rests_on_contents_is_different_outside_of_functions() -> None:
    """Only what a function is given is unknown to it: in the main graph, what computes the contents stands beside."""
    source = model(
        "g (float[N, 4] x) => (float[A, B, C] y) <int64[1] one = {1}> "
        "{ s = Shape (x)  t = Concat <axis = 0> (s, one)  y = Reshape <allowzero = 1> (x, t) }",
        15,
    )
    made = legalize(source, Target(13))
    right, wrong = (numpy_helper.from_array(np.array(sizes)).raw_data for sizes in ([0, 4, 1], [0, 2, 2]))
    entries = [each.entry for each in made.plan.steps[0].applied or () if each.entry is not None]
    tensors = [*made.model.graph.initializer]
    for entry in entries:
        tensors += entry.added.values()
    planted = [tensor for tensor in tensors if tensor.raw_data == right]
    for tensor in planted:
        tensor.raw_data = wrong
    assert len(planted) > 1
    found = verify_regions(source, made.model, made.plan).findings
    assert [item.status for item in found if item.op_type == "Reshape"] == ["different"]
