"""Constants that went with what was computed from them, and that a node rewritten after that needs."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

import reducelower

TEXT = """<ir_version: 8, opset_import: ["": 17]>
g (float[N] a, float[N] b) => (float[4] mask, bool[N] same) {
  start = Constant<value = int64 {0}>()
  end = Constant<value = int64 {4}>()
  step = Constant<value = int64 {1}>()
  two = Constant<value = int64 {2}>()
  low = Constant<value = float[1] {-inf}>()
  high = Constant<value = float[1] {0}>()
  row = Range(start, end, step)
  is_low = Less(row, two)
  picked = Where(is_low, low, high)
  mask = CastLike(picked, a)
  same = Equal(a, b)
}"""


@pytest.mark.parametrize("opset", [7, 8])
def test_a_node_that_is_rewritten_last_reads_no_constant_that_went(opset: int) -> None:
    """Equal takes floats since opset 11; its zero was that of a mask, which is now a constant itself."""
    made = reducelower.convert_version(parser.parse_model(TEXT), opset)
    onnx.checker.check_model(made, full_check=True)
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    a = np.array([0, 1, np.nan, -1], dtype=np.float32)
    b = np.array([0, 2, np.nan, -1], dtype=np.float32)
    mask, same = session.run(None, {"a": a, "b": b})
    np.testing.assert_array_equal(mask, np.array([-np.inf, -np.inf, 0, 0], dtype=np.float32))
    np.testing.assert_array_equal(same, a == b)
