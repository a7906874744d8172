"""Operators other than reductions that a runtime gets wrong are written otherwise, with the same numbers."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, checker, parser

from reducelower import ConversionError, Target, check, legalize
from tests.runtimes.toaster import runtime

X = np.array([[1.5, -2.25, np.inf, -0.5], [2.0, np.nan, -1.0, -0.0], [0.25, -3.5, -np.inf, 1.25]], np.float32)
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
    with pytest.raises(ConversionError, match="it is wrong: Fact 1"):
        fitted(source, fact("Squeeze"))


def test_a_scalar_is_expanded_by_a_product_with_ones() -> None:
    source = model("<int64[2] shape = {2, 3}> { z = Expand (x, shape) }", "float[2, 3] z", "float x")
    made = fitted(source, fact("Expand", "rank = '0'"))
    assert operators(made) == ["Mul"]
    np.testing.assert_array_equal(run(made, x=np.array(-0.0, np.float32)), np.full((2, 3), -0.0, np.float32))
    wide = model("<int64[2] shape = {512, 512}> { z = Expand (x, shape) }", "float[512, 512] z", "float x")
    with pytest.raises(ConversionError):
        fitted(wide, fact("Expand", "rank = '0'"))


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
    assert all(says.startswith("on toaster 1.0, ") for says in plan.unmended)
