"""Operators other than reductions that a runtime gets wrong are written otherwise, with the same numbers."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, checker, numpy_helper, parser

from reducelower import Target, legalize, load_runtime
from tests.runtimes.toaster import runtime

X = np.array([[1.5, -2.25, np.inf, -0.5], [2.0, np.nan, -1.0, -0.0], [0.25, -3.5, -np.inf, 1.25]], np.float32)


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


def test_a_copy_is_negated_twice() -> None:
    made = fitted(model("{ z = Identity (x) }", "float[3, 4] z"), fact("Identity"))
    assert operators(made) == ["Neg", "Neg"]
    assert run(made, x=X).tobytes() == X.tobytes()


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


def test_for_mnn_the_last_states_of_an_lstm_get_names() -> None:
    body = "{ y = LSTM <hidden_size = 5> (x, w, r) z = Abs (y) }"
    source = model(body, "float[3,1,2,5] z", "float[3,2,4] x", 14)
    weights = {"w": np.ones((1, 20, 4), np.float32), "r": np.ones((1, 20, 5), np.float32)}
    source.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in weights.items())
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
