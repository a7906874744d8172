"""Axes that are computed, dynamic, overridable or come into a function from outside."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, checker, helper, numpy_helper, parser

import reducelower
from reducelower import ConversionError
from tests.legalization.models import OPERATORS, operators_of, reduced, sample
from tests.legalization.running import run
from tests.pairwise import pairwise


def parse(text: str) -> ModelProto:
    model = parser.parse_model(text)
    checker.check_model(model, full_check=True)
    return model


COMPUTED = {
    "Identity": ("a = Identity (one)", [1]),
    "Cast": ("a = Cast <to = 7> (one_int32)", [1]),
    "Concat": ("a = Concat <axis = 0> (one, zero)", [1, 0]),
    "Range": ("a = Range (zero_scalar, two_scalar, one_scalar)", [0, 1]),
    "arithmetic": ("b = Add (one, one)  c = Mul (b, one)  a = Sub (c, one)", [1]),
    "Neg": ("a = Neg (one)", [-1]),
    "Unsqueeze": ("a = Unsqueeze (one_scalar, zero)", [1]),
    "Reshape": ("a = Reshape (one_scalar, one)", [1]),
    "Gather of Shape": ("s = Shape (x)  g = Gather <axis = 0> (s, zero)  a = Sub (g, one)", [1]),
    "Slice": ("b = Concat <axis = 0> (one, zero)  a = Slice (b, zero, one)", [1]),
    "Size": ("n = Size (x)  m = Reshape (n, one)  t = Sub (m, twenty_three)  a = Identity (t)", [1]),
    "rank": ("s = Shape (y0)  n = Shape (s)  a = Sub (n, one)", [2]),
}


def computed_model(op_type: str, how: str, *, opset: int = 18) -> ModelProto:
    return parse(
        f"""
        <ir_version: 8, opset_import: ["" : {opset}]>
        g (float[2, 3, 4] x, float[A, B, C] y0) => (float[P, Q, R] y, float[A, B, C] z)
        <int64[1] one = {{1}}, int64[1] zero = {{0}}, int32[1] one_int32 = {{1}}, int64 zero_scalar = {{0}},
         int64 one_scalar = {{1}}, int64 two_scalar = {{2}}, int64[1] twenty_three = {{23}}>
        {{
            {COMPUTED[how][0]}
            y = {op_type} (x, a)
            z = Identity (y0)
        }}
        """
    )


COMPUTED_AXES = pairwise(COMPUTED, ("ReduceSum", "ReduceMax", "ReduceL2"), (17, 13, 11, 9))


@pytest.mark.parametrize(("how", "op_type", "target"), COMPUTED_AXES)
def test_axes_computed_from_constants_are_constants(how: str, op_type: str, target: int) -> None:
    converted = reducelower.convert_version(computed_model(op_type, how), target)
    checker.check_model(converted, full_check=True)
    data = sample(np.float32)
    y, _ = run(converted, {"x": data, "y0": data})
    np.testing.assert_allclose(y, reduced(op_type, data, COMPUTED[how][1], None, None), rtol=1e-6)
    if op_type != "ReduceSum" or target < 13:
        assert operators_of(converted.graph) == {op_type, "Identity"}


def test_what_only_the_axes_were_computed_from_goes() -> None:
    model = parse(
        """
        <ir_version: 8, opset_import: ["" : 18]>
        g (float[2, 3] x) => (float[P, Q] y) <int64[1] one = {1}>
        { s = Shape (x)  n = Shape (s)  a = Sub (n, one)  y = ReduceMax (x, a) }
        """
    )
    converted = reducelower.convert_version(model, 13)
    assert [node.op_type for node in converted.graph.node] == ["ReduceMax"]
    assert not converted.graph.initializer


def test_a_producer_that_something_else_reads_stays() -> None:
    model = parse(
        """
        <ir_version: 8, opset_import: ["" : 18]>
        g (float[2, 3] x) => (float[P, Q] y, int64[1] z) <int64[1] one = {1}>
        { b = Neg (one)  a = Neg (b)  y = ReduceMax (x, a)  z = Identity (b) }
        """
    )
    converted = reducelower.convert_version(model, 13)
    assert [node.op_type for node in converted.graph.node] == ["Neg", "ReduceMax", "Identity"]
    assert [tensor.name for tensor in converted.graph.initializer] == ["one"]


def test_a_producer_the_target_does_not_have_may_go() -> None:
    model = computed_model("ReduceMax", "Range")
    assert "Range" not in operators_of(reducelower.convert_version(model, 9).graph)


def test_a_huge_range_is_not_computed() -> None:
    model = parse(
        """
        <ir_version: 8, opset_import: ["" : 18]>
        g (float[2, 3] x) => (float[P, Q] y) <int64 zero = {0}, int64 many = {1099511627776}, int64 one = {1}>
        { a = Range (zero, many, one)  y = ReduceMax (x, a) }
        """
    )
    converted = reducelower.convert_version(model, 13)
    assert "Range" in operators_of(converted.graph)


def test_axes_computed_in_an_outer_scope() -> None:
    model = parse(
        """
        <ir_version: 8, opset_import: ["" : 18]>
        g (float[2, 3] x, bool c) => (float[P, Q] y) <int64[1] one = {1}>
        {
            a = Neg (one)
            y = If (c) <
                then_branch = t () => (float[P, Q] p) { b = Abs (a)  p = ReduceMax (x, b) },
                else_branch = e () => (float[P, Q] q) { q = ReduceMin (x, a) }
            >
        }
        """
    )
    converted = reducelower.convert_version(model, 13)
    assert operators_of(converted.graph) == {"If", "ReduceMax", "ReduceMin"}
    data = sample(np.float32, (2, 3))
    (y,) = run(converted, {"x": data, "c": np.array(True)})
    np.testing.assert_array_equal(y, data.max(1, keepdims=True))


AXES = ([], [0], [1], [2], [-1], [0, 2], [2, 0], [-3, 1], [0, 1, 2])


def dynamic_model(
    op_type: str, opset: int, keepdims: int | None, noop: int | None, shape: str = "2, 3, 4"
) -> ModelProto:
    attributes = ", ".join(
        f"{name} = {value}"
        for name, value in (("keepdims", keepdims), ("noop_with_empty_axes", noop))
        if value is not None
    )
    model = parser.parse_model(
        f"""
        <ir_version: 8, opset_import: ["" : {opset}]>
        g (float[{shape}] x, int64[K] axes) => (float y)
        {{ y = {op_type} {f"<{attributes}>" if attributes else ""} (x, axes) }}
        """
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model


DYNAMIC_AXES = pairwise((18, 20, 21, 28), (17, 15, 13, 12, 11, 9), OPERATORS, (None, 0), (None, 1))


@pytest.mark.opset("source")
@pytest.mark.parametrize("source", [18, 20, 21, 28])
@pytest.mark.parametrize("target", [17, 15, 13, 12, 11, 9])
def test_dynamic_axes_keep_their_numbers(source: int, target: int) -> None:
    data = sample(np.float32)
    for op_type, keepdims, noop in [row[2:] for row in DYNAMIC_AXES if row[:2] == (source, target)]:
        converted = reducelower.convert_version(dynamic_model(op_type, source, keepdims, noop), target)
        for axes in AXES:
            (y,) = run(converted, {"x": data, "axes": np.array(axes, np.int64)})
            expected = reduced(op_type, data, axes, keepdims, noop)
            assert y.shape == expected.shape, (op_type, axes, keepdims, noop)
            np.testing.assert_allclose(y, expected, rtol=2e-6, err_msg=f"{op_type}, axes {axes}")


@pytest.mark.parametrize("noop", [None, 1])
@pytest.mark.parametrize(
    "op_type", ["ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceSumSquare"]
)
def test_composites_of_unknown_rank_stay_dynamic_where_reduce_sum_is(op_type: str, noop: int | None) -> None:
    model = dynamic_model(op_type, 18, None, noop)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    converted = reducelower.convert_version(model, 13, rules="spec")
    assert "If" not in operators_of(converted.graph)
    data = sample(np.float32)
    for axes in AXES:
        (y,) = run(converted, {"x": data, "axes": np.array(axes, np.int64)})
        np.testing.assert_allclose(y, reduced(op_type, data, axes, None, noop), rtol=2e-6)


@pytest.mark.parametrize("op_type", ["ReduceL2", "ReduceLogSum", "ReduceLogSumExp"])
def test_a_body_that_loses_range_is_written_only_where_it_was_asked_for(op_type: str) -> None:
    model = dynamic_model(op_type, 18, None, None)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(ConversionError, match="--rank x=3"):
        reducelower.convert_version(model, 13)
    assert reducelower.convert_version(model, 13, ranks={"x": 3}).opset_import[0].version == 13


def test_a_composite_of_known_rank_does_not_overflow_on_its_way() -> None:
    converted = reducelower.convert_version(dynamic_model("ReduceLogSumExp", 18, 0, None), 13)
    (y,) = run(converted, {"x": np.full((2, 3, 4), 1000, np.float32), "axes": np.array([0, 1, 2], np.int64)})
    np.testing.assert_allclose(y, 1000 + np.log(24), rtol=1e-6)


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceProd", "ReduceSum"])
@pytest.mark.parametrize("target", [13, 11])
def test_dynamic_axes_over_empty_dimensions(op_type: str, target: int) -> None:
    converted = reducelower.convert_version(dynamic_model(op_type, 18, 0, None, "A, B, C"), target)
    (y,) = run(converted, {"x": np.zeros((2, 0, 4), np.float32), "axes": np.array([1], np.int64)})
    of_nothing = {"ReduceMax": -np.inf, "ReduceProd": 1.0, "ReduceSum": 0.0}[op_type]
    assert y.tolist() == [[of_nothing] * 4] * 2


@pytest.mark.parametrize(("op_type", "of_nothing"), [("ReduceMax", False), ("ReduceMin", True)])
@pytest.mark.parametrize("target", [9, 10, 13])
def test_of_no_booleans_along_dynamic_axes_none_is_true_and_all_are(
    op_type: str, of_nothing: bool, target: int
) -> None:
    text = f"g (bool[2,0,4] x, int64[1] axes) => (bool[2,1,4] y) {{ y = {op_type} (x, axes) }}"
    model = parse('<ir_version: 8, opset_import: ["": 20]>' + text)
    converted = reducelower.convert_version(model, target)
    (y,) = run(converted, {"x": np.zeros((2, 0, 4), np.bool_), "axes": np.array([1], np.int64)})
    assert y.tolist() == [[[of_nothing] * 4]] * 2


def test_dynamic_axes_below_opset_9_are_refused() -> None:
    with pytest.raises(ConversionError, match="opset 9 at least"):
        reducelower.convert_version(dynamic_model("ReduceMax", 18, None, None), 8)


def test_dynamic_axes_of_unknown_rank_are_refused_and_the_rank_can_be_declared() -> None:
    model = dynamic_model("ReduceMax", 18, None, None)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(ConversionError, match="--rank x=3"):
        reducelower.convert_version(model, 13)
    converted = reducelower.convert_version(model, 13, ranks={"x": 3})
    data = sample(np.float32)
    (y,) = run(converted, {"x": data, "axes": np.array([1], np.int64)})
    np.testing.assert_array_equal(y, data.max(1, keepdims=True))


def overridable_model(ir_version: int) -> ModelProto:
    model = dynamic_model("ReduceMax", 18, None, None)
    model.ir_version = ir_version
    model.graph.initializer.append(numpy_helper.from_array(np.array([1], np.int64), "axes"))
    return model


def test_an_initializer_the_caller_may_override_is_dynamic() -> None:
    converted = reducelower.convert_version(overridable_model(8), 13)
    data = sample(np.float32)
    for axes in ([0], [2]):
        (y,) = run(converted, {"x": data, "axes": np.array(axes, np.int64)})
        np.testing.assert_array_equal(y, data.max(axes[0], keepdims=True))
    (y,) = run(converted, {"x": data})
    np.testing.assert_array_equal(y, data.max(1, keepdims=True))


def test_defaults_can_be_frozen_and_the_plan_says_so() -> None:
    model = overridable_model(8)
    converted = reducelower.convert_version(model, 13, freeze_defaults=True)
    assert operators_of(converted.graph) == {"ReduceMax"}
    assert [value.name for value in converted.graph.input] == ["x", "axes"]
    assert any("axes" in note for note in reducelower.check(model, 13, freeze_defaults=True).notes)


def test_every_initializer_of_ir_version_3_is_constant() -> None:
    converted = reducelower.convert_version(overridable_model(3), 13)
    assert operators_of(converted.graph) == {"ReduceMax"}


def test_sparse_initializers_are_no_constants_but_no_obstacle() -> None:
    model = dynamic_model("ReduceMax", 18, None, None)
    del model.graph.input[1]
    sparse = model.graph.sparse_initializer.add(dims=[1])
    sparse.values.CopyFrom(numpy_helper.from_array(np.array([1], np.int64), "axes"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.array([0], np.int64)))
    converted = reducelower.convert_version(model, 13)
    data = sample(np.float32)
    (y,) = run(converted, {"x": data})
    np.testing.assert_array_equal(y, data.max(1, keepdims=True))


@pytest.mark.parametrize("op_type", ["ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceSum"])
def test_dynamic_axes_inside_a_branch(op_type: str) -> None:
    model = parse(
        f"""
        <ir_version: 8, opset_import: ["" : 18]>
        g (float[2, 3] x, int64[K] axes, bool c) => (float[P, Q] y)
        {{
            y = If (c) <
                then_branch = t () => (float[P, Q] p) {{ p = {op_type} (x, axes) }},
                else_branch = e () => (float[P, Q] q) {{ q = Identity (x) }}
            >
        }}
        """
    )
    data = sample(np.float32, (2, 3))
    for target in (13, 11):
        converted = reducelower.convert_version(model, target)
        checker.check_model(converted, full_check=True)
        for axes in ([0], [-1], [0, 1], []):
            (y,) = run(converted, {"x": data, "c": np.array(True), "axes": np.array(axes, np.int64)})
            np.testing.assert_allclose(y, reduced(op_type, data, axes, None, None), rtol=2e-6)


def function_model(body: str, functions: str, *, opset: int = 18, values: str = "") -> ModelProto:
    return parse(
        f"""
        <ir_version: 10, opset_import: ["" : {opset}, "local" : 1]>
        g (float[2, 3, 4] x, bool c) => (float[P, Q, R] y, float[S, T, U] z)
        <int64[1] first = {{0}}, int64[1] last = {{-1}} {values}>
        {{ {body} }}
        {functions}
        """
    )


MAX_OF = """
    <domain: "local", opset_import: ["" : 18]>
    f (a, axes) => (b) { b = ReduceMax (a, axes) }
"""


def outputs(model: ModelProto, c: bool = True) -> list[np.ndarray]:
    return run(model, {"x": sample(np.float32), "c": np.array(c)})


def test_a_function_called_with_constant_axes_gets_a_copy_per_value() -> None:
    model = function_model("y = local.f (x, first)  z0 = local.f (x, last)  z = local.f (z0, last)", MAX_OF)
    converted = reducelower.convert_version(model, 13)
    checker.check_model(converted, full_check=True)
    data = sample(np.float32)
    y, z = outputs(converted)
    np.testing.assert_array_equal(y, data.max(0, keepdims=True))
    np.testing.assert_array_equal(z, data.max(-1, keepdims=True))
    assert "If" not in {node.op_type for function in converted.functions for node in function.node}
    assert {function.name for function in converted.functions}.isdisjoint({"f"})


def test_a_function_called_from_a_branch_and_from_a_function() -> None:
    model = function_model(
        """
        y = If (c) <
            then_branch = t () => (float[P, Q, R] p) { p = local.outer <which = [1]> (x) },
            else_branch = e () => (float[P, Q, R] q) { q = local.f (x, first) }
        >
        z = local.kept (x)
        """,
        MAX_OF
        + """
        <domain: "local", opset_import: ["" : 18, "local" : 1]>
        outer <which> (a) => (b) { axes = Constant <value_ints: ints = @which> ()  b = local.f (a, axes) }
        <domain: "local", opset_import: ["" : 18]>
        kept (a) => (b) { b = Relu (a) }
        """,
    )
    converted = reducelower.convert_version(model, 11)
    checker.check_model(converted, full_check=True)
    data = sample(np.float32)
    np.testing.assert_array_equal(outputs(converted, True)[0], data.max(1, keepdims=True))
    np.testing.assert_array_equal(outputs(converted, False)[0], data.max(0, keepdims=True))
    assert "kept" in {function.name for function in converted.functions}


def test_whether_a_function_reduces_nothing_is_told_by_its_calls() -> None:
    functions = """
        <domain: "local", opset_import: ["" : 18]>
        f <noop: int = 1> (a) => (b) { b = ReduceL1 <noop_with_empty_axes: int = @noop> (a) }
    """
    model = function_model("y = local.f <noop = 0> (x)  z = local.f (x)", functions)
    converted = reducelower.convert_version(model, 13)
    checker.check_model(converted, full_check=True)
    data = sample(np.float32)
    y, z = outputs(converted)
    np.testing.assert_allclose(y, np.abs(data).sum(keepdims=True), rtol=1e-6)
    np.testing.assert_array_equal(z, np.abs(data))


def test_axes_that_a_call_leaves_out_stay_out() -> None:
    functions = """
        <domain: "local", opset_import: ["" : 11]>
        f <which> (a) => (b) { b = ReduceMax <axes: ints = @which> (a) }
        <domain: "local", opset_import: ["" : 11, "local" : 1]>
        g <which> (a) => (b) { b = local.f <which: ints = @which> (a) }
    """
    model = function_model("y = local.g (x)  z = local.g <which = [1]> (x)", functions, opset=11)
    converted = reducelower.convert_version(model, 18)
    checker.check_model(converted, full_check=True)
    data = sample(np.float32)
    y, z = outputs(converted)
    np.testing.assert_array_equal(y, data.max(keepdims=True))
    np.testing.assert_array_equal(z, data.max(1, keepdims=True))


def test_a_function_is_converted_for_each_element_type_it_is_called_with() -> None:
    model = function_model(
        """
        y = local.f (x, first)
        big = Greater (x, one)
        any = local.f (big, first)
        z = Cast <to = 1> (any)
        """,
        MAX_OF.replace('"" : 18', '"" : 20'),
        opset=20,
        values=", float one = {1.0}",
    )
    converted = reducelower.convert_version(model, 13)
    checker.check_model(converted, full_check=True)
    data = sample(np.float32)
    y, z = outputs(converted)
    np.testing.assert_array_equal(y, data.max(0, keepdims=True))
    np.testing.assert_array_equal(z, (data > 1).max(0, keepdims=True).astype(np.float32))


def test_an_in_place_conversion_copies_functions_as_well() -> None:
    model = function_model("y = local.f (x, first)  z = local.f (x, last)", MAX_OF)
    expected = reducelower.convert_version(model, 13)
    reducelower.convert_version(model, 13, in_place=True)
    assert model == expected
    assert reducelower.check(function_model("y = local.f (x, first)  z = local.f (x, last)", MAX_OF), 13).refusals == ()


def test_a_function_of_an_older_opset_than_the_model() -> None:
    # The checker refuses such a model, onnxruntime runs it.
    functions = """
        <domain: "local", opset_import: ["" : 18]>
        f (a) => (b) { b = ReduceMax (a) }
    """
    model = function_model("y = local.f (x)  z = ReduceMax (x, last)", functions)
    model.functions[0].opset_import[0].version = 13
    model.functions[0].node[0].attribute.append(helper.make_attribute("axes", [0]))
    for target in (11, 13, 18, 21):
        y, z = outputs(reducelower.convert_version(model, target))
        data = sample(np.float32)
        np.testing.assert_array_equal(y, data.max(0, keepdims=True))
        np.testing.assert_array_equal(z, data.max(-1, keepdims=True))


def test_the_plan_says_what_dynamic_axes_cost() -> None:
    (site,) = reducelower.check(dynamic_model("ReduceMax", 18, None, None), 13).sites
    assert site.rule == "axes known at run time: 3 conditional reductions"
    (site,) = reducelower.check(dynamic_model("ReduceL1", 18, None, None), 13).sites
    assert site.rule == "stable/ReduceL1, for axes known at run time"


@pytest.mark.parametrize(
    ("computed", "expected"),
    [
        ("s = Shape (x)  g = Gather <axis = 0> (s, one)  a = Sub (g, two)", [1]),
        ("s = Shape <start = 1> (x)  g = Slice (s, zero, one)  a = Sub (g, two)", [1]),
        ("s = Shape (x)  c = Concat <axis = 0> (s, one)  g = Gather <axis = 0> (c, last)  a = Identity (g)", [1]),
    ],
)
def test_known_sizes_count_though_others_are_not_known(computed: str, expected: list[int]) -> None:
    model = parse(
        f"""
        <ir_version: 8, opset_import: ["" : 18]>
        g (float[N, 3, M] x) => (float[P, Q, R] y)
        <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] last = {{-1}}>
        {{ {computed}  y = ReduceMax (x, a) }}
        """
    )
    converted = reducelower.convert_version(model, 13)
    assert operators_of(converted.graph) == {"ReduceMax"}
    data = sample(np.float32)
    (y,) = run(converted, {"x": data})
    np.testing.assert_array_equal(y, data.max(expected[0], keepdims=True))


def test_a_size_that_is_not_known_is_no_constant() -> None:
    model = parse(
        """
        <ir_version: 8, opset_import: ["" : 18]>
        g (float[2, N, 4] x) => (float[P, Q, R] y) <int64[1] one = {1}, int64[1] three = {3}>
        { s = Shape (x)  g = Gather <axis = 0> (s, one)  b = Sub (g, three)  a = Abs (b)  y = ReduceMax (x, a) }
        """
    )
    converted = reducelower.convert_version(model, 13)
    for size in (2, 3, 4, 5):
        data = sample(np.float32, (2, size, 4))
        (y,) = run(converted, {"x": data})
        np.testing.assert_array_equal(y, data.max(abs(size - 3), keepdims=True))


def test_types_behind_operators_of_machine_learning_are_known() -> None:
    model = parser.parse_model(
        """
        <ir_version: 8, opset_import: ["" : 20, "ai.onnx.ml" : 3]>
        g (float[N, 2] x, uint8[2] u) => (float[N, 2] y, uint8[2] v)
        {
            a = ai.onnx.ml.Imputer <imputed_value_floats = [0.0, 0.0], replaced_value_float = 9.0> (x)
            y = Add (a, a)
            v = Identity (u)
        }
        """
    )
    converted = reducelower.convert_version(model, 13)
    checker.check_model(converted, full_check=True)


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceL2"])
def test_branches_that_are_written_state_their_rank(op_type: str) -> None:
    """OpenCV 5 ends on one of unknown rank."""
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[2, n, 3] x, int64[k] a) => (float[p, q, r] y)
        {{ y = {op_type} (x, a) }}"""
    )
    made = reducelower.convert_version(model, 13)
    branches = [attribute.g for node in made.graph.node for attribute in node.attribute if attribute.HasField("g")]
    assert branches
    for branch in branches:
        assert [len(value.type.tensor_type.shape.dim) for value in branch.output] == [3]
