"""Rewrites are settled each once: what is right is proved or tested, and what is wrong is left to be looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, helper

from reducelower import Target, legalize, verify
from reducelower.api import Legalized
from reducelower.model.rewrites import Applied, Entry
from reducelower.verification import SiteVerification
from reducelower.verification.checking.remembered import Checker, forget
from reducelower.verification.lemmas.lemma import lemmas_of
from reducelower.verification.lemmas.proof import settle
from reducelower.verification.lemmas.substitution import substituted
from reducelower.verification.running.clock import Clock

from .clocks import Looked
from .models import model

Change = Callable[[NodeProto], object]

NORMALIZED = (
    "g (float[N, 3, 4] x, float[4] s, float[4] b) => (float[N, 3, 4] y) "
    "{ y = LayerNormalization <axis = -1> (x, s, b) }"
)
SUMMED = "g (float[N, 3, 4] x) => (float[N, 1, 4] y) { y = ReduceSum <axes = [1]> (x) }"
SPLIT = "g (float[N, 4] x) => (float[N, 2] y, float[N, 2] z) { y, z = Split <axis = 1, num_outputs = 2> (x) }"
RESHAPED = "g (float[N, 4] x, int64[2] s) => (float[A, B] y) { y = Reshape <allowzero = 1> (x, s) }"
GELU = "g (float[N, 4] x) => (float[N, 4] y) { y = Gelu (x) }"


def findings(
    source: ModelProto, made: Legalized, applied: list[Applied] | None = None, clock: Clock | None = None
) -> list[SiteVerification]:
    """What comes of the lemmas of a conversion, with ordinary values for the inputs of the model."""
    goal = made.plan.target.opset
    assert goal is not None
    rewrites = list(made.plan.steps[0].applied or ()) if applied is None else applied
    lemmas = lemmas_of(source, rewrites, substituted(source, rewrites, goal).stayed, goal)
    rng = np.random.default_rng(0)
    values = {}
    for value in source.graph.input:
        dims = [dim.dim_value or 2 for dim in value.type.tensor_type.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        values[value.name] = np.array([4, 2]) if value.name == "s" and dims == [2] else rng.standard_normal(dims)
        values[value.name] = values[value.name].astype(dtype)
    checker = Checker(clock=clock or Clock(None), values=lambda names: {name: values[name] for name in names})
    return settle(lemmas, source, checker, None)[0]


def changed(made: Legalized, change: Callable[[Entry], Entry]) -> list[Applied]:
    return [replace(each, entry=change(each.entry)) for each in made.plan.steps[0].applied or () if each.entry]


def on(op_type: str, change: Change, at: int = 0) -> Callable[[Entry], Entry]:
    """A fault in one of the nodes of an operator."""

    def faulty(entry: Entry) -> Entry:
        nodes = [NodeProto.FromString(node.SerializeToString()) for node in entry.nodes]
        change([node for node in nodes if node.op_type == op_type][at])
        return replace(entry, nodes=nodes)

    return faulty


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
    ("body", "source", "target", "fault"),
    [
        (NORMALIZED, 17, 13, on("Sqrt", renamed("Abs"))),
        (NORMALIZED, 17, 13, on("Sub", the_other_way)),
        (NORMALIZED, 17, 13, on("ReduceMean", without_attributes)),
        (NORMALIZED, 17, 13, on("ReduceMean", renamed("ReduceMax"), 1)),
        (SUMMED, 12, 18, on("ReduceSum", renamed("ReduceMean"))),
        (SPLIT, 18, 13, on("Split", outputs_exchanged)),
        (SPLIT, 18, 13, on("Split", without_attributes)),
        (GELU, 20, 13, on("Erf", renamed("Tanh"))),
    ],
)
def test_wrong_rewrites_are_not(body: str, source: int, target: int, fault: Callable[[Entry], Entry]) -> None:
    given = model(body, source)
    assert findings(given, made := legalize(given, Target(target)))
    assert not findings(given, made, changed(made, fault))


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
    assert f"1 tested on {found.coverage.sets} sets of values" in [line.text for line in found.lines][-1]


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
