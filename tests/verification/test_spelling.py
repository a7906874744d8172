"""The default domain may also be written ``ai.onnx``, and models of which it is said so are verified like others."""

from __future__ import annotations

import numpy as np
import pytest

from reducelower.api import legalize
from reducelower.options import Target
from reducelower.types import Inference
from reducelower.verification import verify
from reducelower.verification.regions.align import align
from reducelower.verification.regions.cut import cut
from reducelower.verification.regions.pairs import small_models
from reducelower.verification.regions.places import Place
from tests.models import model

from .planned import rewrite

AXES = {
    "constant": "k = Constant <value = int64[1] {1}> ()",
    "computed": "c = Constant <value = int64[1] {-1}> ()  k = Neg (c)",
}


def spelled(axes: str, op_type: str, kind: str = "float") -> str:
    text = f"{axes}  y = {op_type} (x, k)"
    for name in ("Constant", "Neg", op_type):
        text = text.replace(f"= {name} ", f"= ai.onnx.{name} ")
    return f"g ({kind}[2, 3] x) => ({kind}[2, 1] y) {{ {text} }}"


@pytest.mark.parametrize("axes", AXES.values(), ids=AXES)
@pytest.mark.parametrize(
    ("op_type", "kind", "opset"), [("ReduceMax", "float", 16), ("ReduceSum", "uint32", 12)], ids=["float", "uint32"]
)
def test_a_right_conversion_is_equivalent(axes: str, op_type: str, kind: str, opset: int) -> None:
    before = model(spelled(axes, op_type, kind))
    assert {node.domain for node in before.graph.node} == {"ai.onnx"}
    result = legalize(before, Target(opset))
    found = verify(before, result.model, plan=result.plan)
    assert (found.equivalent, found.ran) == (True, True), str(found)
    assert {site.status for site in found.sites} == {"equal"}


@pytest.mark.parametrize("imported", ["", "ai.onnx"])
def test_the_reference_evaluator_runs_it(imported: str) -> None:
    before = model(spelled(AXES["constant"], "ReduceMax"))
    before.opset_import[0].domain = imported
    kept = before.SerializeToString()
    found = verify(before, before, runtimes=("reference",))
    assert (found.equivalent, found.ran, found.runtime) == (True, True, "reference"), str(found)
    assert before.SerializeToString() == kept


def test_the_value_of_a_constant_is_known() -> None:
    given = model(spelled(AXES["constant"], "ReduceMax"))
    value = Place(given, Inference(given)).constant("k")
    assert isinstance(value, np.ndarray)
    assert value.tolist() == [1]


def test_a_rewrite_may_spell_it_otherwise() -> None:
    """uint32 runs in the reference evaluator, whose sums of squares are wider than declared."""
    found = rewrite(
        "y = ai.onnx.ReduceSumSquare <axes = [1]> (x)",
        "y = ReduceSumSquare (x, axes)",
        kind="uint32",
        opsets=(13, 18),
        constants=("", "int64[1] axes = {1}"),
    ).finding()
    assert (found.status, found.runtime) == ("equal", "reference"), found


def test_a_small_model_with_functions_imports_every_domain_once() -> None:
    before = model("g (float[N] x) => (float[N] y) { y = Abs (x) }")
    own = """<domain: "local", opset_import: ["": 18]> own (x) => (y) { y = Abs (x) }"""
    after = model("g (float[N] x) => (float[N] y) { y = local.own (x) }", functions=own)
    after.opset_import[0].domain = "ai.onnx"
    inferences = Inference(before), Inference(after)
    (claim,) = align(before, after, None, inferences=inferences).claims
    _, small = small_models(cut(claim))
    assert sorted(item.domain for item in small.opset_import) == ["", "local"]


def test_values_of_one_name_and_two_element_types_are_two_values() -> None:
    graph = "g (bool[N] b, float[N] x, float[N] s) => (float[N] y)"
    before = model(f"{graph} {{ p = Cast <to = 1> (b)  y = Add (x, p) }}")
    after = model(f"{graph} {{ p = Not (b)  y = Where (p, x, s) }}")
    claims = align(before, after, None, inferences=(Inference(before), Inference(after))).claims
    assert [claim.pairs for claim in claims] == [[("y", "y")]]
