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


def test_for_mnn_the_last_states_of_an_lstm_get_names() -> None:
    body = "{ y = LSTM <hidden_size = 5> (x, w, r) z = Abs (y) }"
    source = model(body, "float[3,1,2,5] z", "float[3,2,4] x", 14)
    weights = {"w": np.ones((1, 20, 4), np.float32), "r": np.ones((1, 20, 5), np.float32)}
    source.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in weights.items())
    made = legalize(source, Target(14, runtime=load_runtime("mnn"))).model
    assert [len(node.output) for node in made.graph.node] == [3, 1]
    x = np.ones((3, 2, 4), np.float32)
    np.testing.assert_array_equal(run(made, x=x), run(source, x=x))
