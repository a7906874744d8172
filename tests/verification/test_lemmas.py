"""Rewrites are settled each once: what is right is proved or tested, and what is wrong is left to be looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, helper

from reducelower import Target, legalize, verify
from reducelower.api import Legalized
from reducelower.types import Inference
from reducelower.verification import SiteVerification
from reducelower.verification.checking.cache import forget
from reducelower.verification.checking.checker import Checker
from reducelower.verification.checking.sites import of_rewrites
from reducelower.verification.regions.align import align
from reducelower.verification.running.clock import Clock
from reducelower.verification.running.conditions import under
from tests.models import model

from .clocks import Looked

Change = Callable[[NodeProto], object]

NORMALIZED = (
    "g (float[N, 3, 4] x, float[4] s, float[4] b) => (float[N, 3, 4] y) "
    "{ y = LayerNormalization <axis = -1> (x, s, b) }"
)
SUMMED = "g (float[N, 3, 4] x) => (float[N, 1, 4] y) { y = ReduceSum <axes = [1]> (x) }"
SPLIT = "g (float[N, 4] x) => (float[N, 2] y, float[N, 2] z) { y, z = Split <axis = 1, num_outputs = 2> (x) }"
RESHAPED = "g (float[N, 4] x, int64[2] s) => (float[A, B] y) { y = Reshape <allowzero = 1> (x, s) }"
GELU = "g (float[N, 4] x) => (float[N, 4] y) { y = Gelu (x) }"


def findings(source: ModelProto, made: Legalized, clock: Clock | None = None) -> list[SiteVerification]:
    """What comes of the lemmas of a conversion, with ordinary values for the inputs of the model."""
    rng = np.random.default_rng(0)
    values = {}
    for value in source.graph.input:
        dims = [dim.dim_value or 2 for dim in value.type.tensor_type.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        values[value.name] = np.array([4, 2]) if value.name == "s" and dims == [2] else rng.standard_normal(dims)
        values[value.name] = values[value.name].astype(dtype)
    checker = Checker(values=lambda names: {name: values[name] for name in names})
    inferences = Inference(source), Inference(made.model)
    found = align(source, made.model, made.plan, inferences=inferences)
    assert all(claim.is_same or claim.entry is not None for claim in found.claims)
    with under(clock=clock or Clock(None)):
        return [finding for finding, _ in of_rewrites(found.claims, checker)]


def with_fault(made: Legalized, op_type: str, change: Change, at: int) -> Legalized:
    """A conversion of one node, with a fault in the rewrite and in the model, in one of the nodes of an operator."""
    ((step,), (each,)) = made.plan.steps, made.plan.steps[0].applied or ()
    assert each.entry is not None
    model = ModelProto.FromString(made.model.SerializeToString())
    nodes = [NodeProto.FromString(node.SerializeToString()) for node in each.entry.nodes]
    for held in (model.graph.node, nodes):
        change([node for node in held if node.op_type == op_type][at])
    wrong = replace(each, entry=replace(each.entry, nodes=nodes))
    return replace(made, model=model, plan=replace(made.plan, steps=(replace(step, applied=[wrong]),)))


def renamed(op_type: str) -> Change:
    return lambda node: setattr(node, "op_type", op_type)


def without_attributes(node: NodeProto) -> None:
    del node.attribute[:]


def the_other_way(node: NodeProto) -> None:
    node.input[:] = list(node.input)[::-1]


def outputs_exchanged(node: NodeProto) -> None:
    node.output[:] = list(node.output)[::-1]


@pytest.mark.parametrize(
    ("body", "source", "target"),
    [(NORMALIZED, 17, 13), (SUMMED, 12, 18), (SPLIT, 18, 13), (RESHAPED, 18, 13), (GELU, 20, 13)],
)
def test_right_rewrites_are_settled(body: str, source: int, target: int) -> None:
    given = model(body, source)
    assert [item.ok for item in findings(given, legalize(given, Target(target)))] == [True]


@pytest.mark.parametrize(
    ("body", "source", "target", "op_type", "change", "at"),
    [
        (NORMALIZED, 17, 13, "Sqrt", renamed("Abs"), 0),
        (NORMALIZED, 17, 13, "Sub", the_other_way, 0),
        (NORMALIZED, 17, 13, "ReduceMean", without_attributes, 0),
        (NORMALIZED, 17, 13, "ReduceMean", renamed("ReduceMax"), 1),
        (SUMMED, 12, 18, "ReduceSum", renamed("ReduceMean"), 0),
        (SPLIT, 18, 13, "Split", outputs_exchanged, 0),
        (SPLIT, 18, 13, "Split", without_attributes, 0),
        (GELU, 20, 13, "Erf", renamed("Tanh"), 0),
    ],
)
def test_wrong_rewrites_are_not(body: str, source: int, target: int, op_type: str, change: Change, at: int) -> None:
    given = model(body, source)
    assert findings(given, made := legalize(given, Target(target)))
    assert not findings(given, with_fault(made, op_type, change, at))


def test_rewrites_that_are_alike_are_one_whatever_their_sizes() -> None:
    given = model(
        "g (float[N, 3, 4] x) => (float[N, 1, 1] y) "
        "{ a = ReduceSum <axes = [1]> (x)  b = ReduceSum <axes = [1]> (a)  y = ReduceSum <axes = [2]> (b) }",
        12,
    )
    made = legalize(given, Target(18))
    (one, other) = sorted(verify(given, made.model, plan=made.plan).sites, key=lambda site: len(site.nodes))
    assert (len(one.nodes), len(other.nodes)) == (1, 2)


def test_what_is_proved_and_what_is_tested_is_counted() -> None:
    given = model("g (float[N, 3, 4] x) => (float[N, 1, 4] y) { a = Abs (x)  y = ReduceSum <axes = [1]> (a) }", 12)
    made = legalize(given, Target(18))
    found = verify(given, made.model, plan=made.plan)
    assert (found.proved + found.tested, found.tested) == (1, 1)
    assert f"1 tested on {found.sets} sets of values" in [line.text for line in found.lines][-1]


@pytest.mark.parametrize("rows", ["3", "N"])
def test_a_rewrite_is_tried_at_other_sizes_than_the_model_states_of_its_result(rows: str) -> None:
    given = model(
        f"g (float[{rows}, 4] x) => (float[{rows}, 1] y) <int64[1] a = {{1}}> {{ y = ReduceLogSumExp (x, a) }}"
    )
    made = legalize(given, Target(without={"ReduceLogSumExp"}), rules="spec")
    (found,) = verify(given, made.model, plan=made.plan).sites
    assert (found.status, found.cases > 30) == ("loses range", True)


def test_a_result_that_is_not_what_the_rewrites_make_is_looked_at_by_regions() -> None:
    given = model(SUMMED, 12)
    made = legalize(given, Target(18))
    wrong = ModelProto.FromString(made.model.SerializeToString())
    wrong.graph.node[0].op_type = "ReduceMax"
    found = verify(given, wrong, plan=made.plan)
    assert found.verdict == "different"
    assert [site.status for site in found.sites] == ["different"]


def test_what_held_as_far_as_the_source_does_is_not_run_again_and_told_with_the_names_of_its_model() -> None:
    forget()
    told = {}
    for name in ("x", "hidden"):
        source = model(NORMALIZED.replace("] x,", f"] {name},").replace("(x,", f"({name},"), 18)
        clock = Looked(None)
        (found,) = findings(source, legalize(source, Target(13)), clock=clock)
        assert found.status == "overflow"
        assert found.example_inputs.startswith(f"{name} = [[[")
        told[name] = replace(found, example_inputs=""), found.example_inputs[len(name) :][:300], clock.gone
    assert told["x"][:2] == told["hidden"][:2]
    assert told["x"][2] > 30
    assert told["hidden"][2] == 1
