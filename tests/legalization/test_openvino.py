"""Three reductions that OpenVINO gets silently wrong at opset 13 come out right when expanded or taken to opset 18."""

from __future__ import annotations

import io

import numpy as np
import pytest
from onnx import ModelProto

import reducelower
from tests.legalization.models import Case, sample

openvino = pytest.importorskip("openvino")

WRONG = ("ReduceL1", "ReduceLogSum", "ReduceLogSumExp")


def run(model: ModelProto, data: np.ndarray) -> np.ndarray:
    core = openvino.Core()
    read = core.read_model(io.BytesIO(model.SerializeToString()))
    compiled = core.compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return np.asarray(compiled([data])[0])


@pytest.mark.parametrize("book", ["spec", "stable"])
@pytest.mark.parametrize("op_type", WRONG)
def test_expanded_at_opset_13(op_type: str, book: str) -> None:
    case = Case(op_type, 13, "one", 1)
    data = sample(np.float32)
    result = run(reducelower.expand(case.model(), rules=book), data)
    np.testing.assert_allclose(result, case.expected(data), rtol=1e-5)


@pytest.mark.parametrize("op_type", WRONG)
def test_converted_to_opset_18(op_type: str) -> None:
    case = Case(op_type, 13, "one", 1)
    data = sample(np.float32)
    result = run(reducelower.convert_version(case.model(), 18), data)
    np.testing.assert_allclose(result, case.expected(data), rtol=1e-5)
