"""Operators other than reductions that a runtime gets wrong are written otherwise, with the same numbers."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, checker, helper, numpy_helper, parser

from reducelower import ConversionError, Target, check, legalize, load_runtime
from tests.runtimes.toaster import runtime

X = np.array([[1.5, -2.25, np.inf, -0.5], [2.0, np.nan, -1.0, -0.0], [0.25, -3.5, -np.inf, 1.25]], np.float32)
Y = np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4) ** 2
ROW = np.array([-1.0, -2.25, np.inf, np.nan], np.float32)
BROADCASTS = "operators = ['Where']\nis = 'wrong'\nwhen = { broadcast = true }"


def fact(op_type: str, when: str = "") -> str:
    return f"operators = ['{op_type}']\nis = 'wrong'{when and f'{chr(10)}when = {{ {when} }}'}"


def model(body: str, outputs: str, inputs: str = "float[3,4] x", opset: int = 13) -> ModelProto:
    text = f'<ir_version: 8, opset_import: ["" : {opset}]> g ({inputs}) => ({outputs}) {body}'
    return parser.parse_model(text)


def fitted(source: ModelProto, *facts: str) -> ModelProto:
    found = legalize(source, Target(runtime=runtime(*facts))).model
    checker.check_model(found, full_check=True)
    return found


def run(made: ModelProto, **inputs: np.ndarray) -> np.ndarray:
    return onnxruntime.InferenceSession(made.SerializeToString()).run(None, inputs)[0]


def operators(made: ModelProto) -> list[str]:
    return [node.op_type for node in made.graph.node]


@pytest.mark.parametrize(
    ("op_type", "other", "compare"),
    [
        ("Less", "Greater", np.less),
        ("Greater", "Less", np.greater),
        ("LessOrEqual", "GreaterOrEqual", np.less_equal),
        ("GreaterOrEqual", "LessOrEqual", np.greater_equal),
    ],
)
def test_a_comparison_becomes_the_other_one_of_its_operands_swapped(
    op_type: str, other: str, compare: np.ufunc
) -> None:
    source = model(f"{{ z = {op_type} (x, y) }}", "bool[3,4] z", "float[3,4] x, float[4] y")
    made = fitted(source, fact(op_type))
    assert operators(made) == [other]
    np.testing.assert_array_equal(run(made, x=X, y=ROW), compare(X, ROW))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("float[3,4] y", "float[4] x", ["Not", "Where"]),
        ("float[1,4] y", "float[4] x", ["Expand", "Expand", "Where"]),
        ("float[3,4] y", "float[3,4] x", ["Where"]),
        ("float[3,4] y", "float[1] x", ["Where"]),
        ("float[3,4] y", "float x", ["Where"]),
    ],
)
def test_where_whose_last_operand_is_spread(first: str, second: str, expected: list[str]) -> None:
    source = model("{ z = Where (c, y, x) }", "float[3,4] z", f"bool[3,4] c, {first}, {second}")
    made = fitted(source, BROADCASTS)
    assert operators(made) == expected
    shapes = [[dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in source.graph.input[1:]]
    one, other = (np.resize(values, shape) for values, shape in zip((X, ROW), shapes, strict=True))
    np.testing.assert_array_equal(run(made, c=X > 0, y=one, x=other), np.where(X > 0, one, other))


def test_sizes_that_nothing_tells_are_taken_for_equal() -> None:
    source = model("{ z = Where (c, y, x) }", "float[n,4] z", "bool[n,4] c, float[n,4] y, float[n,4] x")
    assert operators(fitted(source, BROADCASTS)) == ["Where"]


@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize("op_type", ["Squeeze", "Unsqueeze"])
def test_dimensions_of_size_one_come_and_go_by_reshape(op_type: str, opset: int) -> None:
    one = "axes" if opset == 13 else ""
    given = "<int64[1] axes = {1}>" if one else ""
    call = f"{op_type} (x, axes)" if one else f"{op_type} <axes = [1]> (x)"
    before, after = ("n, 1, 4", "n, 4") if op_type == "Squeeze" else ("n, 4", "n, 1, 4")
    source = model(f"{given} {{ z = {call} }}", f"float[{after}] z", f"float[{before}] x", opset)
    made = fitted(source, fact(op_type))
    assert (operators(made), [tensor.name for tensor in made.graph.initializer]) != ([op_type], ["axes"])
    data = X.reshape([3 if dim == "n" else int(dim) for dim in before.split(", ")])
    np.testing.assert_array_equal(run(made, x=data), X.reshape([3 if d == "n" else int(d) for d in after.split(", ")]))
    assert operators(made) == ["Reshape"]


def test_several_sizes_known_at_run_time_only_are_no_reshape() -> None:
    source = model("{ z = Squeeze <axes = [1]> (x) }", "float[n, m] z", "float[n, 1, m] x", 11)
    with pytest.raises(ConversionError, match="its result is wrong: Fact 1"):
        fitted(source, fact("Squeeze"))


def test_a_scalar_is_expanded_by_a_product_with_ones() -> None:
    source = model("<int64[2] shape = {2, 3}> { z = Expand (x, shape) }", "float[2, 3] z", "float x")
    made = fitted(source, fact("Expand", "rank = '0'"))
    assert operators(made) == ["Mul"]
    np.testing.assert_array_equal(run(made, x=np.array(-0.0, np.float32)), np.full((2, 3), -0.0, np.float32))
    wide = model("<int64[2] shape = {512, 512}> { z = Expand (x, shape) }", "float[512, 512] z", "float x")
    assert "Expand" not in operators(fitted(wide, fact("Expand", "rank = '0'")))


@pytest.mark.parametrize(("indices", "axis"), [([2, 0], 0), ([-1, 1, -4], 1), ([0], 1)])
def test_what_few_indices_name_is_cut_out(indices: list[int], axis: int) -> None:
    listed = ", ".join(map(str, indices))
    source = model(f"<int64[{len(indices)}] i = {{{listed}}}> {{ z = Gather <axis = {axis}> (x, i) }}", "float[a, b] z")
    made = fitted(source, fact("Gather", "rank_second = '1-', data = ['fed', 'dynamic']"))
    assert set(operators(made)) == {"Slice", "Concat"}
    np.testing.assert_array_equal(run(made, x=X), np.take(X, indices, axis))


def test_rows_of_a_table_are_still_gathered() -> None:
    source = model("<float[2, 3] table = {1, 2, 3, 4, 5, 6}> { z = Gather (table, i) }", "float[2, 3] z", "int64[2] i")
    assert operators(fitted(source, fact("Gather", "rank_second = '1-', data = ['fed', 'dynamic']"))) == ["Gather"]


def test_a_copy_is_negated_twice() -> None:
    made = fitted(model("{ z = Identity (x) }", "float[3, 4] z"), fact("Identity"))
    assert operators(made) == ["Neg", "Neg"]
    assert run(made, x=X).tobytes() == X.tobytes()


@pytest.mark.parametrize(("shape", "is_told"), [("", True), ("[1]", False), ("[a]", False)])
def test_outputs_that_come_in_another_shape_are_told(shape: str, is_told: bool) -> None:
    told = "operators = ['*']\nis = 'misshapen'\nwhen = { rank_out = '0' }"
    plan = check(model("{ z = Abs (x) }", f"float{shape} z", f"float{shape} x"), target=Target(runtime=runtime(told)))
    assert not plan.refusals
    assert not plan.sites
    assert bool(plan.unmended) == is_told
    assert all(says.startswith("on toaster 1.0: ") for says in plan.unmended)


AFTER_MUL = "element_types = ['float'], output_types = ['int64'], after = ['Mul']"


def test_a_cast_of_a_product_is_set_apart_from_it() -> None:
    values = np.array([[0.9, -1.9, 2.5, -0.2]] * 3, np.float32)
    source = model("<float two = {2}> { m = Mul (x, two) z = Cast <to = 7> (m) }", "int64[3,4] z")
    made = fitted(source, fact("Cast", AFTER_MUL))
    assert operators(made) == ["Mul", "Identity", "Cast"]
    np.testing.assert_array_equal(run(made, x=values), np.trunc(values * 2).astype(np.int64))
    alone = model("{ a = Abs (x) z = Cast <to = 7> (a) }", "int64[3,4] z")
    assert operators(fitted(alone, fact("Cast", AFTER_MUL))) == ["Abs", "Cast"]


@pytest.mark.parametrize(("first", "expected"), [("Div", ["Div", "Identity", "Erf"]), ("Mul", ["Mul", "Erf"])])
def test_for_opencv_no_gelu_is_put_together_that_crashes(first: str, expected: list[str]) -> None:
    body = f"{{ a = {first} (x, root) b = Erf (a) c = Add (b, one) d = Mul (half, c) y = Mul (x, d) }}"
    constants = "<float root = {1.4142135}, float one = {1}, float half = {0.5}>"
    source = model(f"{constants} {body}", "float[3,4] y", "float[3,4] x", 18)
    made = legalize(source, Target(runtime=load_runtime("opencv"))).model
    assert operators(made) == [*expected, "Add", "Mul", "Mul"]
    np.testing.assert_array_equal(run(made, x=X), run(source, x=X))


@pytest.mark.parametrize(("constant", "expected"), [("float[4] w = {1, 2, 3, 4}", ["Sub"]), ("", ["Reshape", "Sub"])])
def test_for_opencv_4_a_vector_that_is_not_constant_gets_the_rank_of_the_result(
    constant: str, expected: list[str]
) -> None:
    inputs = "float[3,4] x" if constant else "float[3,4] x, float[4] w"
    source = model(f"{f'<{constant}>' if constant else ''} {{ y = Sub (w, x) }}", "float[3,4] y", inputs, 18)
    assert operators(legalize(source, Target(runtime=load_runtime("opencv@4.14"))).model) == expected


def test_a_cast_to_bool_is_a_comparison_with_zero() -> None:
    source = model("{ z = Cast <to = 9> (x) }", "bool[3,4] z")
    made = fitted(source, fact("Cast", "output_types = ['bool']"))
    assert operators(made) == ["Equal", "Not"]
    np.testing.assert_array_equal(run(made, x=X), X.astype(bool))


@pytest.mark.parametrize(
    ("body", "others", "expected"),
    [
        ("<int64[3,1] i = {-1, 0, -4}> { z = GatherElements <axis = 1> (x, i) }", "", X[range(3), [3, 0, 0]][:, None]),
        ("<int64[2,2] i = {-1, -2, 0, 3}> { z = GatherND (x, i) }", "", X[[2, 0], [2, 3]]),
        ("<int64[3,1] i = {-1, 0, -4}> { z = ScatterElements <axis = 1> (x, i, u) }", "float[3,1] u", None),
        ("<int64[1,1] i = {-1}> { z = ScatterND (x, i, u) }", "float[1,4] u", None),
    ],
)
def test_constant_indices_are_counted_from_the_front(body: str, others: str, expected: np.ndarray | None) -> None:
    shape = "[3,4]" if expected is None else str(list(expected.shape))
    source = model(body, f"float{shape} z", ", ".join(filter(None, ["float[3,4] x", others])))
    made = fitted(source, fact(source.graph.node[0].op_type, "negative_indices = true"))
    assert operators(made) == operators(source)
    (indices,) = [numpy_helper.to_array(each) for each in made.graph.initializer]
    assert (indices >= 0).all()
    if expected is None:
        updates = np.full((3, 1) if "Elements" in body else (1, 4), 7, np.float32)
        expected = X.copy()
        expected[([0, 1, 2], [3, 0, 0]) if "Elements" in body else 2] = 7
        np.testing.assert_array_equal(run(made, x=X, u=updates), expected)
    else:
        np.testing.assert_array_equal(run(made, x=X), expected)


def test_attributes_that_say_what_is_so_by_default_are_left_out() -> None:
    body = '<int64[1,4] i = {2, 0, 1, 1}> { z = ScatterElements <reduction = "none", axis = 0> (x, i, u) }'
    source = model(body, "float[3,4] z", "float[3,4] x, float[1,4] u", opset=16)
    made = fitted(source, fact("ScatterElements", "attributes = ['reduction']"))
    assert not made.graph.node[0].attribute


RESIZED = "{{ z = Resize <mode = '{}'{}> (x,, s) }}".replace("'", '"')


@pytest.mark.parametrize(
    ("mode", "more", "scales", "is_affected"),
    [
        ("cubic", "", "1.5, 1.5", True),
        ("cubic", ', coordinate_transformation_mode = "half_pixel"', "1.5, 1.5", True),
        ("cubic", ', coordinate_transformation_mode = "align_corners"', "1.5, 1.5", False),
        ("linear", "", "1.5, 1.5", False),
        ("cubic", "", "2, 1.25", False),
    ],
)
def test_attributes_are_met_as_stated_and_by_default(mode: str, more: str, scales: str, is_affected: bool) -> None:
    inputs = f"<float[2] s = {{{scales}}}> "
    source = model(inputs + RESIZED.format(mode, more), "float[a,b] z", "float[3,4] x")
    half_pixel = "attributes = ['mode=cubic', 'coordinate_transformation_mode=half_pixel'], uneven = true"
    made = fitted(source, fact("Resize", half_pixel))
    assert ("Resize" not in operators(made)) == is_affected
    np.testing.assert_allclose(run(made, x=Y), run(source, x=Y), rtol=1e-5, atol=1e-5)


def test_a_region_of_interest_is_not_taken_for_scales() -> None:
    body = "<float[4] roi = {0.1, 0.1, 0.9, 0.9}, int64[2] to = {5, 7}> { z = Resize (x, roi,, to) }"
    source = model(body, "float[5,7] z", "float[3,4] x")
    assert operators(fitted(source, fact("Resize", "uneven = true"))) == ["Resize"]


@pytest.mark.parametrize(("reads", "is_told"), [("float[3,2] v", False), ("float[3,2] v, int64[3,2] i", True)])
def test_what_only_the_second_output_suffers_is_told_where_it_is_read(reads: str, is_told: bool) -> None:
    source = model("<int64[1] k = {2}> { v, i = TopK (x, k) }", reads)
    ties = "operators = ['TopK']\nis = 'overflows'\nwhen = { second_read = true }"
    plan = check(source, target=Target(runtime=runtime(ties)))
    assert not plan.refusals
    assert bool(plan.unmended) == is_told


@pytest.mark.parametrize(("sizes", "is_affected"), [("3,4", True), ("a,4", False)])
def test_only_data_of_known_sizes_may_be_affected(sizes: str, is_affected: bool) -> None:
    source = model("{ z = ReduceL1 <axes = [1]> (x) }", "float[b,1] z", f"float[{sizes}] x")
    assert (operators(fitted(source, fact("ReduceL1", "sizes_known = true"))) != ["ReduceL1"]) == is_affected


@pytest.mark.parametrize(
    ("shape", "depth", "is_affected"), [("[2,1]", "1", True), ("[2,2]", "1", False), ("[a,b]", "1-", False)]
)
def test_how_many_indices_name_a_place(shape: str, depth: str, is_affected: bool) -> None:
    updates = "float[2,4]" if shape == "[2,1]" else "float[2]"
    source = model("{ z = ScatterND (x, i, u) }", "float[3,4] z", f"float[3,4] x, int64{shape} i, {updates} u")
    plan = check(source, target=Target(runtime=runtime(fact("ScatterND", f"index_depth = '{depth}'"))))
    assert bool(plan.sites or plan.refusals) == is_affected


@pytest.mark.parametrize("axes", [(1, 2, 4), (0, 2, 3), (0, 1, 2, 3)])
@pytest.mark.parametrize("op_type", ["ReduceMean", "ReduceL2", "ReduceMax"])
def test_several_axes_are_reduced_one_after_the_other(op_type: str, axes: tuple[int, ...]) -> None:
    data = np.random.default_rng(0).standard_normal((2, 3, 2, 3, 2)).astype(np.float32)
    out = ",".join("1" if axis in axes else str(size) for axis, size in enumerate(data.shape))
    source = model(f"{{ z = {op_type} <axes = {list(axes)}> (x) }}", f"float[{out}] z", "float[2,3,2,3,2] x")
    many = "operators = ['Reduce*']\nis = 'wrong'\nwhen = { axes_count = '3-', all_axes = false, rank = '5-' }"
    made = fitted(source, many)
    assert sum(name.startswith("Reduce") for name in operators(made)) >= len(axes)
    wide = data.astype(np.float64)
    expected = {
        "ReduceMean": wide.mean(axes, keepdims=True),
        "ReduceMax": wide.max(axes, keepdims=True),
        "ReduceL2": np.sqrt(np.square(wide).sum(axes, keepdims=True)),
    }
    np.testing.assert_allclose(run(made, x=data), expected[op_type], rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("count", [2, 65])
@pytest.mark.parametrize(
    ("reduction", "put"), [("add", np.add), ("mul", np.multiply), ("max", np.maximum), ("min", np.minimum)]
)
def test_few_indices_are_scattered_one_after_the_other(reduction: str, put: np.ufunc, count: int) -> None:
    source = model(
        f'{{ z = ScatterElements <axis = 1, reduction = "{reduction}"> (x, i, u) }}',
        "float[3,4] z",
        f"float[3,4] x, int64[2,{count}] i, float[2,{count}] u",
        opset=18,
    )
    reduced = fact("ScatterElements", f"attributes = ['reduction={reduction}']")
    if count > 64:
        assert "Scan" in operators(fitted(source, reduced))
        return
    indices, updates = np.array([[1, 1], [3, -1]]), np.array([[5, -2], [0.5, 3]], np.float32)
    expected = X.copy()
    put.at(expected, ([[0], [1]], indices), updates)
    np.testing.assert_array_equal(run(fitted(source, reduced), x=X, i=indices, u=updates), expected)


@pytest.mark.parametrize(
    ("of_data", "of_indices", "is_told"),
    [("5", "2", True), ("5", "k", False), ("n", "2", False), ("n", "k", False), ("n,4", "2,k", False)],
)
def test_indices_are_scattered_one_after_the_other_where_all_sizes_are_known(
    of_data: str, of_indices: str, is_told: bool
) -> None:
    source = model(
        '{ z = ScatterElements <reduction = "add"> (x, i, u) }',
        f"float[{of_data}] z",
        f"float[{of_data}] x, int64[{of_indices}] i, float[{of_indices}] u",
        opset=18,
    )
    target = Target(runtime=runtime(fact("ScatterElements", "attributes = ['reduction=add']")))
    assert ("Slice" in operators(legalize(source, target).model)) == is_told


@pytest.mark.parametrize("shape", [(3, 1), (1, 3, 1)])
def test_few_rows_are_scattered_one_after_the_other(shape: tuple[int, ...]) -> None:
    sizes = ",".join(map(str, shape))
    updates = np.arange(12, dtype=np.float32).reshape(*shape[:-1], 4)
    source = model(
        '{ z = ScatterND <reduction = "add"> (x, i, u) }',
        "float[3,4] z",
        f"float[3,4] x, int64[{sizes}] i, float[{','.join(map(str, updates.shape))}] u",
        opset=18,
    )
    made = fitted(source, fact("ScatterND", "attributes = ['reduction=add']"))
    expected = X.copy()
    np.add.at(expected, [2, 0, 2], updates.reshape(3, 4))
    np.testing.assert_array_equal(run(made, x=X, i=np.array([2, 0, 2]).reshape(shape), u=updates), expected)


@pytest.mark.parametrize("keepdims", [0, 1])
def test_negative_infinity_is_told_apart_from_the_largest_value(keepdims: int) -> None:
    data = np.array([[-np.inf, -np.inf], [-np.inf, 2], [np.finfo(np.float32).min, -np.inf]], np.float32)
    sizes = "3,1" if keepdims else "3"
    source = model(
        f"{{ a = Cast <to = 1> (x) z = ReduceMax <axes = [1], keepdims = {keepdims}> (a) }}",
        f"float[{sizes}] z",
        "float[3,2] x",
    )
    made = fitted(source, fact("ReduceMax", "after = ['Cast']"))
    assert "Less" in operators(made)
    np.testing.assert_array_equal(run(made, x=data), data.max(1, keepdims=bool(keepdims)))


@pytest.mark.parametrize(
    ("inputs", "body", "expected"),
    [
        ("float[3,4] x, float[4] y", "z = Sub (x, y)", ["Reshape", "Sub"]),
        ("float[3,4] x, float[4] y", "z = Sub (y, x)", ["Reshape", "Sub"]),
        ("float[3,4] x, float[4] y", "b = Abs (y) z = Pow (x, b)", ["Abs", "Reshape", "Pow"]),
        ("float[3,4] x, float[4] y", "c = Less (x, y) z = Where (c, x, y)", ["Less", "Reshape", "Where"]),
        ("float[3,4] x, float[1] y", "z = Sub (x, y)", ["Sub"]),
        ("float[3,4] x, float[1,4] y", "z = Sub (x, y)", ["Sub"]),
        ("float[3,4] x, float[4] y", "z = Add (y, y)", ["Add"]),
    ],
)
def test_vectors_are_given_the_rank_of_the_result(inputs: str, body: str, expected: list[str]) -> None:
    source = model(f"{{ {body} }}", "float[4] z" if "(y, y)" in body else "float[3,4] z", inputs)
    made = fitted(source, *(fact(op_type, "vector = true") for op_type in ("Sub", "Pow", "Where", "Add")))
    assert operators(made) == expected
    shape = [dim.dim_value for dim in source.graph.input[1].type.tensor_type.shape.dim]
    values = {"x": np.abs(X), "y": np.resize(np.abs(ROW), shape)}
    np.testing.assert_array_equal(run(made, **values), run(source, **values))


def attention(outputs: str, **attributes: int) -> ModelProto:
    stated = f"<{', '.join(f'{name} = {value}' for name, value in attributes.items())}>" if attributes else ""
    return parser.parse_model(
        '<ir_version: 11, opset_import: ["": 23]> g (float[2,3,4,8] q, float[2,3,4,8] k, float[2,3,4,8] v) => '
        f"(float[2,3,4,8] y{', float[2,3,4,4] p' if 'p' in outputs else ''}) "
        f"{{ {outputs} = Attention {stated} (q, k, v) }}"
    )


@pytest.mark.parametrize(
    ("outputs", "attributes", "is_taken"),
    [
        ("y", {}, True),
        ("y", {"qk_matmul_output_mode": 0}, True),
        ("y", {"qk_matmul_output_mode": 1}, False),
        ("y, a, b, p", {}, False),
    ],
)
def test_for_tract_a_default_that_is_stated_is_no_use_of_an_attribute(
    outputs: str, attributes: dict[str, int], is_taken: bool
) -> None:
    found = check(attention(outputs, **attributes), target=Target(23, runtime=load_runtime("tract")))
    assert found.changes_nothing == is_taken


def recurrence(operator: str, outputs: str, **attributes: object) -> ModelProto:
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[operator]
    sides = 2 if attributes.get("direction") == "bidirectional" else 1
    weights = [np.ones((sides, gates * 5, width), np.float32) for width in (4, 5)]
    node = helper.make_node(operator, ["x", "w", "r"], outputs.split(" "), hidden_size=5, **attributes)
    kept = next(filter(None, outputs.split(" ")))
    shape = [3, sides, 2, 5] if kept == "y" else [sides, 2, 5]
    graph = helper.make_graph(
        [node, helper.make_node("Abs", [kept], ["z"])],
        "g",
        [helper.make_tensor_value_info("x", 1, [3, 2, 4])],
        [helper.make_tensor_value_info("z", 1, shape)],
        [numpy_helper.from_array(value, name) for name, value in zip("wr", weights, strict=True)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)


@pytest.mark.parametrize(
    ("operator", "outputs", "attributes", "is_taken"),
    [
        ("RNN", "y h", {"direction": "bidirectional"}, True),
        ("LSTM", "y h c", {"direction": "bidirectional"}, True),
        ("GRU", "y h", {"direction": "bidirectional", "linear_before_reset": 1}, True),
        ("GRU", "y h", {}, False),
        ("RNN", " h", {"direction": "bidirectional"}, False),
    ],
)
def test_for_mnn_recurrences_of_both_directions_stay_where_every_step_is_read(
    operator: str, outputs: str, attributes: dict[str, object], is_taken: bool
) -> None:
    found = check(recurrence(operator, outputs, **attributes), target=Target(14, runtime=load_runtime("mnn")))
    assert found.changes_nothing == is_taken


def test_for_mnn_the_last_states_of_an_lstm_get_names() -> None:
    source = recurrence("LSTM", "y")
    made = legalize(source, Target(14, runtime=load_runtime("mnn"))).model
    assert [len(node.output) for node in made.graph.node] == [3, 1]
    x = np.ones((3, 2, 4), np.float32)
    np.testing.assert_array_equal(run(made, x=x), run(source, x=x))


@pytest.mark.parametrize(("operator", "size"), [("Conv", 6), ("ConvTranspose", 10)])
def test_for_mnn_an_identity_yields_what_has_one_spatial_dimension(operator: str, size: int) -> None:
    weights = "<float[3,3,3] w = {" + ", ".join(["1"] * 27) + "}>"
    source = model(f"{weights} {{ y = {operator} (x, w) }}", f"float[1,3,{size}] y", "float[1,3,8] x", 14)
    made = legalize(source, Target(14, runtime=load_runtime("mnn"))).model
    assert operators(made) == [operator, "Identity"]
    x = np.arange(24, dtype=np.float32).reshape(1, 3, 8)
    np.testing.assert_array_equal(run(made, x=x), run(source, x=x))
