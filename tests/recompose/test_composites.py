"""Normalizations and activations put together again: every way to write them, and what only looks like them."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, checker, helper

import reducelower
from reducelower.recompose import raise_with_plan
from reducelower.recompose.expressions import Form, forms_of, written_operators
from tests.models import model, operators, yields
from tools.spelled import Written, choices, right, values

FORMS = [form for op_type in written_operators() for form in forms_of(op_type) if not form.is_reduction]
DATA = Path(__file__).parents[1] / "data" / "normalizations"


def ran(made: ModelProto, data: np.ndarray) -> np.ndarray:
    return yields(made, {made.graph.input[0].name: data})[0]


def axes_of(form: Form) -> tuple[int, ...]:
    return (2,) if form.op_type == "GroupNormalization" else (-1,)


@pytest.mark.parametrize("form", FORMS, ids=[f"{form.op_type}-{number}" for number, form in enumerate(FORMS)])
def test_every_way_to_write_an_operator_becomes_the_operator(form: Form) -> None:
    axes = axes_of(form)
    for choice in choices(form, 12):
        written = Written(form, choice, values(form, axes))
        before = ran(written.model, written.inputs[form.inputs[0]])
        wanted = right(form, axes, written)
        np.testing.assert_allclose(before, wanted, rtol=1e-4, atol=2e-5)  # the form says what it means
        raised = raise_with_plan(written.model, ops=[form.op_type])
        checker.check_model(raised.model, full_check=True)
        kinds = Counter(node.op_type for node in raised.model.graph.node)
        assert kinds == {form.op_type: 1}, [node.op_type for node in written.model.graph.node]
        assert not raised.plan.notes
        found = ran(raised.model, written.inputs[form.inputs[0]])
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


# LayerNormalization as PyTorch writes it, and what is wrong with it


def layer(
    *,
    opset: int = 17,
    kind: str = "FLOAT",
    shape: Sequence[Any] = (2, 3, 4),
    axes: Sequence[int] = (-1,),
    other_axes: Sequence[int] | None = None,
    scale: Sequence[int] = (4,),
    bias: Sequence[int] = (4,),
    epsilon: Any = 1e-5,
    keepdims: int = 1,
    outputs: Sequence[str] = ("y",),
    exponent: float = 2.0,
    stabilized: str = "Add (variance, epsilon)",
    root: str = "Sqrt (stabilized)",
) -> ModelProto:
    numpy_kind = helper.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(kind))
    random = np.random.default_rng(0)
    named, kept = f"axes = {list(axes)}", f"axes = {list(other_axes or axes)}, keepdims = {keepdims}"
    results = ", ".join(f"{kind.lower()}[] {name}" for name in outputs)
    given = model(
        f"""({kind.lower()}[{", ".join(map(str, shape))}] x) => ({results}) {{
        mean = ReduceMean <{named}> (x)  deviation = Sub (x, mean)  square = Pow (deviation, two)
        variance = ReduceMean <{kept}> (square)  stabilized = {stabilized}  root = {root}
        normalized = Div (deviation, root)  scaled = Mul (normalized, scale)  y = Add (scaled, bias) }}""",
        opset,
        two=np.array(exponent, numpy_kind),
        epsilon=np.array(epsilon, numpy_kind),
        scale=random.normal(1, 0.1, scale).astype(numpy_kind),
        bias=random.normal(0, 0.1, bias).astype(numpy_kind),
    )
    return onnx.shape_inference.infer_shapes(given)


def test_a_layer_normalization_takes_axis_epsilon_scale_and_bias() -> None:
    given = layer()
    raised = reducelower.raise_reductions(given)
    (node,) = raised.graph.node
    assert (node.op_type, list(node.input)) == ("LayerNormalization", ["x", "scale", "bias"])
    said = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    assert said == {"axis": -1, "epsilon": float(np.float32(1e-5))}
    assert {tensor.name for tensor in raised.graph.initializer} == {"scale", "bias"}


TABLES = tomllib.loads(Path(__file__).with_name("composites.toml").read_text("utf-8"))
ALIKE, DIFFERENT, PARTLY = TABLES["alike"], TABLES["different"], TABLES["partly"]


@pytest.mark.parametrize("what", ALIKE)
def test_a_layer_normalization_with(what: str) -> None:
    given = layer(**ALIKE[what])
    raised = reducelower.raise_reductions(given)
    assert operators(raised) == ["LayerNormalization"]
    x = np.random.default_rng(1).normal(size=(2, 3, 4))
    x = x.astype(helper.tensor_dtype_to_np_dtype(given.graph.input[0].type.tensor_type.elem_type))
    np.testing.assert_allclose(ran(raised, x), ran(given, x), rtol=1e-5 if x.dtype == np.float32 else 4e-3, atol=4e-3)


@pytest.mark.parametrize("what", DIFFERENT)
def test_no_layer_normalization_with(what: str) -> None:
    given = layer(**DIFFERENT[what])
    assert reducelower.raise_reductions(given, ops=["LayerNormalization"]) == given


@pytest.mark.parametrize("what", PARTLY)
def test_a_layer_normalization_without_a_scale_that_does_not_fit(what: str) -> None:
    given = layer(**PARTLY[what])
    raised = reducelower.raise_reductions(given)
    checker.check_model(raised, full_check=True)
    assert operators(raised) in (["LayerNormalization", "Mul", "Add"], ["LayerNormalization", "Add"])
    x = np.random.default_rng(1).normal(size=(2, 3, 4)).astype(np.float32)
    np.testing.assert_allclose(ran(raised, x), ran(given, x), rtol=1e-5, atol=1e-5)


def test_the_opset_version_that_has_the_operator_is_named() -> None:
    given = layer(opset=13)
    raised = raise_with_plan(given, ops=["LayerNormalization"])
    assert raised.model == given
    (note,) = raised.plan.notes
    assert "convert --opset 17 --raise" in note


@pytest.mark.parametrize("count", [3.0, 0.25])
def test_a_sum_over_another_number_is_no_mean(count: float) -> None:
    form = forms_of("RMSNormalization")[0]
    inputs = values(form, (-1,))
    for choice in choices(form, 3):
        written = Written(form, choice, {**inputs, "count": np.array(count, np.float32), "share": np.array(4, "f")})
        if written.used & {"count", "share"}:
            raised = raise_with_plan(written.model, ops=["RMSNormalization"])
            assert raised.model == written.model


def test_a_number_of_elements_that_adds_a_dimension_is_left() -> None:
    form = forms_of("RMSNormalization")[0]
    inputs = values(form, (-1,))
    wide = {name: inputs[name].reshape((1,) * 4) for name in ("count", "share")}
    written = [Written(form, choice, {**inputs, **wide}) for choice in choices(form, 4)]
    for each in (each for each in written if each.used & {"count", "share"}):
        each.model.graph.output[0].type.tensor_type.shape.dim.add(dim_value=4)
        raised = raise_with_plan(each.model, ops=["RMSNormalization"])
        assert raised.model == each.model


def test_another_power_does_not_even_look_like_it() -> None:
    given = layer(exponent=3.0)
    raised = raise_with_plan(given, ops=["LayerNormalization"])
    assert raised.model == given
    assert not raised.plan.notes


@pytest.mark.parametrize("shifted_above", [True, False])
def test_exponentials_of_two_kinds_are_no_softmax(shifted_above: bool) -> None:
    """Less their maximum above the line and as they are below it, or the other way round."""
    last = "s = ReduceSum (f, a)  y = Div (e, s)" if shifted_above else "s = ReduceSum (e, a)  y = Div (f, s)"
    given = model(
        "(float[2, 3] x) => (float[2, 3] y) <int64[1] a = {-1}> "
        f"{{ m = ReduceMax (x, a)  d = Sub (x, m)  e = Exp (d)  f = Exp (x)  {last} }}"
    )
    assert reducelower.raise_reductions(given, ops=["Softmax"]) == given


ERF = "d = Div (x, root)  e = Erf (d)  s = Add (e, one)  m = Mul (x, s)  y = Mul (m, half)"
TANH = (
    "c = Pow (x, three)  q = Mul (c, share)  i = Add (x, q)  w = Mul (i, factor)  t = Tanh (w)  s = Add (t, one)  "
    "m = Mul (x, s)  y = Mul (m, half)"
)


@pytest.mark.parametrize(
    ("kind", "body", "root", "folded"),
    [
        ("float", ERF, "1.41421354", True),
        ("double", ERF, "1.4142135623730951", True),
        # The operator takes the root of two in double, and the digits of a float differ from it in the ninth.
        ("double", ERF, "1.4142135381698608", False),
        ("float", TANH, "1", True),
        # Its constants are floats, whatever the data.
        ("double", TANH, "1", False),
    ],
)
def test_a_gelu_of_doubles_has_to_have_its_digits(kind: str, body: str, root: str, folded: bool) -> None:
    numbers = {"root": root, "one": 1, "half": 0.5, "three": 3, "share": 0.044715, "factor": 0.7978845608028654}
    held = ", ".join(f"{kind} {name} = {{{value}}}" for name, value in numbers.items())
    raised = reducelower.raise_reductions(model(f"({kind}[N] x) => ({kind}[N] y) <{held}> {{ {body} }}", 20, 9))
    assert ("Gelu" in [node.op_type for node in raised.graph.node]) == folded


ODD = {"x": "⟦0⟧", "mean": "⟦c0⟧", "deviation": "⟦1⟧", "square": "⟦b0⟧", "scale": "⟦c1⟧", "bias": "it's", "y": '"'}


@pytest.mark.parametrize("odd", [{}, ODD], ids=["plain names", "odd names"])
def test_names_may_look_like_blanks(odd: dict[str, str]) -> None:
    given = layer(scale=(1, 1, 4), bias=(1, 4))
    for node in given.graph.node:
        node.input[:] = [odd.get(name, name) for name in node.input]
        node.output[:] = [odd.get(name, name) for name in node.output]
    for values_of in (given.graph.input, given.graph.output, given.graph.initializer, given.graph.value_info):
        for value in values_of:
            value.name = odd.get(value.name, value.name)
    raised = reducelower.raise_reductions(given)
    checker.check_model(raised, full_check=True)
    assert operators(raised) == ["LayerNormalization"]
    x = np.random.default_rng(1).normal(size=(2, 3, 4)).astype(np.float32)
    np.testing.assert_allclose(ran(raised, x), ran(given, x), rtol=1e-5, atol=1e-5)


def test_only_named_operators_are_raised() -> None:
    given = layer()
    assert reducelower.raise_reductions(given, ops=["RMSNormalization"]) == given


# What exporters write, stored

STORED: dict[str, dict[str, int]] = TABLES["stored"]


@pytest.mark.parametrize("name", STORED)
def test_what_an_exporter_spelled_out_is_put_together(name: str) -> None:
    given = reducelower.convert_version(onnx.load(DATA / f"{name}.onnx"), 23)
    raised = raise_with_plan(given)
    checker.check_model(raised.model, full_check=True)
    assert Counter(site.op_type for site in raised.plan.sites) == STORED[name]
    x = np.random.default_rng(0).normal(size=(2, 4, 16)).astype(np.float16 if "16" in name else np.float32)
    np.testing.assert_allclose(ran(raised.model, x), ran(given, x), atol=2e-5 if x.dtype == np.float32 else 8e-3)
    again = reducelower.expand(raised.model, ops=["LayerNormalization", "RMSNormalization"], rules="stable")
    checker.check_model(again, full_check=True)
    np.testing.assert_allclose(ran(again, x), ran(given, x), atol=2e-5 if x.dtype == np.float32 else 8e-3)
