"""Pad at 11, 18 and 19."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator

from tests.adapters.models import converted, floats, int64s, one

X = floats(2, 3, 4)
PADS = int64s(0, 1, 2, 3, 0, 1)
EXPECTED = ((0, 3), (1, 0), (2, 1))


@pytest.mark.parametrize("target", [12, 9, 8])
def test_complex_numbers_are_padded_where_pad_takes_none(target: int) -> None:
    made = one("Pad", {"x": X}, 13, constants={"p": PADS, "v": np.float32(1)})
    for tensor in (made.graph.input[0].type.tensor_type, made.graph.output[0].type.tensor_type):
        tensor.elem_type = TensorProto.COMPLEX64
    value = next(one for one in made.graph.initializer if one.name == "v")
    value.CopyFrom(numpy_helper.from_array(np.complex64(1 + 2j), "v"))
    feeds = {"x": (X + 1j * X).astype(np.complex64)}
    (result,) = ReferenceEvaluator(converted(made, target)).run(None, feeds)
    np.testing.assert_array_equal(result, np.pad(feeds["x"], EXPECTED, constant_values=1 + 2j))
