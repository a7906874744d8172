"""Operators other than reductions that a runtime gets wrong are written otherwise, with the same numbers."""

from __future__ import annotations

import numpy as np
import onnxruntime
from onnx import ModelProto, checker, numpy_helper, parser

from reducelower import Target, legalize, load_runtime
from tests.runtimes.toaster import runtime


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


def test_what_counts_indices_from_the_end_is_written_otherwise() -> None:
    source = model("<int64[1,1] i = {-1}> { z = GatherND (x, i) }", "float[1,4] z")
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(run(fitted(source, fact("GatherND", "negative_indices = true")), x=x), x[2:])


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
