"""Functions that are copied in place of their calls, since what becomes of their nodes depends on the call."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from onnx import checker, helper, parser
from onnx.reference import ReferenceEvaluator

import reducelower
from tests.adapters.models import run


@pytest.mark.parametrize("opset", [7, 8, 9, 13])
def test_integers_that_a_call_hands_over_are_cast_where_constant_takes_none(opset: int) -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 6, "local" : 1]>
        g () => (int64[2] y) <int64[2] x0 = {4, 1}, int64 x1 = {9}> { y = local.F (x0, x1) }
        <domain: "local", opset_import: ["" : 6]>
        F <the_axis> (x0, x1) => (y) { y = Add <broadcast: int = 1, axis: int = @the_axis> (x0, x1) }"""
    )
    newer = reducelower.convert_version(model, opset)
    checker.check_model(newer, full_check=True)
    (found,) = ReferenceEvaluator(newer).run(None, {})
    np.testing.assert_array_equal(found, [13, 10])


def test_what_refers_to_an_attribute_is_of_the_type_of_the_attribute() -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 7, "local" : 1]>
        g (uint8[1,a,b,2] x) => (uint8[c,d,e,f] y) { y = local.F <the_scales: floats = [1.0, 1.0, 1.0, 3.0]> (x) }
        <domain: "local", opset_import: ["" : 7]>
        F <the_scales> (x) => (y) { y = Upsample <mode: string = "linear", scales: floats = @the_scales> (x) }"""
    )
    newer = reducelower.convert_version(model, 21)
    checker.check_model(newer, full_check=True)


@pytest.mark.parametrize("opset", [9, 11, 17])
def test_ranks_are_known_behind_calls_inside_of_functions(opset: int) -> None:
    """A function that hands on its attribute, called twice with sizes that differ."""
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18, "local" : 1]>
        g (float[a,b] x, float[c,b] w) => (float[a,b] y, float[c,b] v) {
            y = local.Outer <axis: int = 1> (x) v = local.Outer <axis: int = 1> (w)
        }
        <domain: "local", opset_import: ["" : 18, "local" : 1]>
        Outer <axis> (x) => (y) { c = local.Centred <axis: int = @axis> (x) y = Softmax <axis: int = @axis> (c) }
        <domain: "local", opset_import: ["" : 18]>
        Centred <axis> (x) => (y) {
            one = Constant <value = int64[1] {1}> () a = Constant <value_int: int = @axis> ()
            axes = Reshape (a, one) m = ReduceMean (x, axes) y = Sub (x, m)
        }"""
    )
    rng = np.random.default_rng(0)
    feeds = {"x": rng.normal(size=(2, 3)).astype(np.float32), "w": rng.normal(size=(4, 3)).astype(np.float32)}
    older = reducelower.convert_version(model, opset)
    checker.check_model(older, full_check=True)
    for found, given in zip(run(older, feeds), feeds.values(), strict=True):
        powers = np.exp(given - given.mean(1, keepdims=True))
        np.testing.assert_allclose(found, powers / powers.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("opset", [11, 17])
def test_the_part_of_a_shape_that_an_attribute_bounds_is_what_each_call_says(opset: int) -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18, "local" : 1]>
        g (float[1,2,3] x) => (float[1,2,1,3] y, float[1,2,1,1,3] z) {
            y = local.F <start: int = 1, end: int = 2> (x) z = local.F <start: int = 1, end: int = 3> (x)
        }
        <domain: "local", opset_import: ["" : 18]>
        F <start, end> (x) => (y) { s = Shape <start: int = @start, end: int = @end> (x) y = Unsqueeze (x, s) }"""
    )
    older = reducelower.convert_version(model, opset)
    checker.check_model(older, full_check=True)
    data = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
    assert [found.shape for found in run(older, {"x": data})] == [(1, 2, 1, 3), (1, 2, 1, 1, 3)]


@pytest.mark.parametrize("opset", [7, 9, 11, 13, 16, 20])
@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceL1", "ReduceMean"])
def test_axes_that_a_call_leaves_out_are_all(operator: str, opset: int) -> None:
    """The call hands on what it is called without, through another function and a branch."""
    model = parser.parse_model(
        f"""<ir_version: 9, opset_import: ["" : 18, "local" : 1]>
        g (float[2,3,4] x, bool b) => (float[1,1,1] y, float[2,1,4] z) <int64[1] k = {{1}}> {{
            y = local.G (x, "", b) z = local.G (x, k, b)
        }}
        <domain: "local", opset_import: ["" : 18]>
        F (x, axes) => (y) {{ y = {operator} (x, axes) }}
        <domain: "local", opset_import: ["" : 18, "local" : 1]>
        G (x, axes, b) => (y) {{
            y = If (b) <then_branch = t () => (o) {{ o = local.F (x, axes) }},
                        else_branch = e () => (p) {{ q = local.F (x, axes) p = Neg (q) }}>
        }}"""
    )
    made = reducelower.convert_version(model, opset)
    checker.check_model(made, full_check=True)
    data = np.linspace(-2, 3, 24, dtype=np.float32).reshape(2, 3, 4)
    reduce = {"ReduceMax": np.max, "ReduceL1": lambda x, **axes: np.abs(x).sum(**axes), "ReduceMean": np.mean}[operator]
    found = run(made, {"x": data, "b": np.array(False)})
    np.testing.assert_allclose(found[0], -reduce(data, axis=(0, 1, 2), keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(found[1], -reduce(data, axis=(1,), keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("opset", [16, 17])
def test_what_needs_no_call_to_be_rewritten_is_inlined_where_a_call_leaves_out_an_input(opset: int) -> None:
    """ReduceMax of computed axes reads them by other operators than the reduction, which take no input for none."""
    model = parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 18, "local" : 1]>
        g (float[2,3] x, int64[n] k) => (float[1,1] y, float[a,b] z) { y = local.F (x) z = local.F (x, k) }
        <domain: "local", opset_import: ["" : 18]>
        F (x, axes) => (y) { y = ReduceMax (x, axes) }"""
    )
    older = reducelower.convert_version(model, opset)
    checker.check_model(older, full_check=True)
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = run(older, {"x": data, "k": np.array([0], np.int64)})
    np.testing.assert_array_equal(found[0], [[5]])
    np.testing.assert_array_equal(found[1], [[3, 4, 5]])


def test_functions_that_nothing_rewrites_stay_where_a_call_leaves_out_an_input() -> None:
    model = parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 13, "local" : 1]>
        g (float[2,3] x) => (float[2,3] y) { y = local.F (x) }
        <domain: "local", opset_import: ["" : 13]>
        F (x, low) => (y) { y = Clip (x, low) }"""
    )
    newer = reducelower.convert_version(model, 18)
    assert [function.name for function in newer.functions] == ["F"]
    assert newer.functions[0].node == model.functions[0].node


def test_functions_that_call_each_other_are_inlined_together() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18, "f": 1]> g (float[2, 3] x) => (float[2, 1] y) '
        "{ y = f.Outer <axis = 1> (x) } "
        '<opset_import: ["": 18], domain: "f"> Inner <axis> (x) => (y) '
        "{ a = Constant <value_int: int = @axis> ()  d = Constant <value_ints = [0]> ()  b = Unsqueeze (a, d)  "
        "y = ReduceL1 (x, b) } "
        '<opset_import: ["": 18, "f": 1], domain: "f"> Outer <axis> (x) => (y) { y = f.Inner <axis: int = @axis> (x) }'
    )
    converted = reducelower.convert_version(model, 11)
    x = np.array([[1, -2, 3], [-4, 5, 6]], np.float32)
    np.testing.assert_array_equal(ReferenceEvaluator(converted).run(None, {"x": x})[0], [[6], [15]])


@pytest.mark.parametrize(
    ("source", "opset", "node", "expected"),
    [
        (18, 17, "y = ReduceL1 (x, a)", lambda x: np.abs(x).sum(1, keepdims=True)),
        (18, 11, "y = ReduceL1 (x, a)", lambda x: np.abs(x).sum(1, keepdims=True)),
        (13, 12, "y = Unsqueeze (x, a)", lambda x: np.expand_dims(x, 1)),
        (13, 11, "m = ReduceSum (x, a) y = Squeeze (m, a)", lambda x: x.sum(1)),
        (13, 9, "y, rest = Split <axis: int = 1> (x, a)", lambda x: x[:, :1]),
    ],
)
def test_a_tensor_that_a_call_gives_is_no_list_of_integers(
    source: int, opset: int, node: str, expected: Callable[..., object]
) -> None:
    """A Constant may refer to an attribute that is a tensor, and no other attribute may."""
    given = "int64[2] {1, 1}" if "Split" in node else "int64[1] {1}"
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : {source}, "local" : 1]>
        g (float[3,2,5] x) => (float[A,B,C] y) {{ y = local.F <given: tensor = {given}> (x) }}
        <domain: "local", opset_import: ["" : {source}]>
        F <given> (x) => (y) {{ a = Constant <value: tensor = @given> () {node} }}"""
    )
    value = model.graph.output[0].type.tensor_type
    value.shape.CopyFrom(helper.make_tensor_type_proto(1, expected(np.zeros((3, 2, 5))).shape).tensor_type.shape)  # type: ignore[attr-defined]
    checker.check_model(model, full_check=True)
    older = reducelower.convert_version(model, opset)
    checker.check_model(older, full_check=True)
    x = np.random.default_rng(0).normal(size=(3, 2, 5)).astype(np.float32)
    np.testing.assert_allclose(run(older, {"x": x})[0], expected(x), rtol=1e-6)
    assert reducelower.verify(model, older).equivalent


def test_the_plan_tells_of_the_nodes_beside_functions_that_are_inlined() -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18, "local" : 1]>
        g (float[2,3] x) => (float[2,1] z) <int64[1] a = {1}> {
            y = local.F <along: ints = [0]> (x) n = Neg (y) [last] z = ReduceMax (n, a)
        }
        <domain: "local", opset_import: ["" : 18]>
        F <along> (x) => (y) { b = Constant <value_ints: ints = @along> () m = ReduceMin (x, b) y = Sub (x, m) }"""
    )
    legal = reducelower.legalize(model, reducelower.Target(opset=13))
    assert not legal.model.functions
    assert [(site.graph, site.node, site.op_type, site.index) for site in legal.plan.sites] == [
        ("graph", "last", "ReduceMax", 2)
    ]
    assert [note for note in legal.plan.notes if "1 local function was copied in place of calls" in note]
    assert reducelower.verify(model, legal.model, plan=legal.plan).equivalent


@pytest.mark.parametrize(
    ("call", "opset"),
    [
        ("y = local.F <axes: ints = [1]> (x, x, x)", 13),
        ("y = local.F <axes: ints = [1]> (x, x, x)", 18),
        ("y = local.F (x)", 18),
    ],
)
def test_a_call_that_does_not_fit_its_function_is_refused(call: str, opset: int) -> None:
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : {opset}, "local" : 1]>
        g (float[2,3] x) => (float[2,1] y) {{ {call} }}
        <domain: "local", opset_import: ["" : 13]>
        F <axes> (x) => (y) {{ y = ReduceMax <axes: ints = @axes> (x) }}"""
    )
    with pytest.raises(reducelower.ConversionError):
        reducelower.convert_version(model, 20)
