"""BatchNormalization keeps its meaning while training is told from inference in three ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

import reducelower
from reducelower import ConversionError
from tests.adapters.single import converted, model_of, yields

RANDOM = np.random.default_rng(2)
DATA = RANDOM.normal(size=(2, 3, 4, 5)).astype(np.float32)
PARAMETERS = {name: RANDOM.random(3).astype(np.float32) + 0.5 for name in ("scale", "bias", "mean", "variance")}
INPUTS = {"x": DATA, **PARAMETERS}
CHANNEL = (3, 1, 1)
SHAPE = {"y": (TensorProto.FLOAT, DATA.shape)}


def normalized(mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    scaled = (DATA - mean.reshape(CHANNEL)) / np.sqrt(variance.reshape(CHANNEL) + 1e-5)
    return scaled * PARAMETERS["scale"].reshape(CHANNEL) + PARAMETERS["bias"].reshape(CHANNEL)


INFERRED = normalized(PARAMETERS["mean"], PARAMETERS["variance"])
BATCH_MEAN, BATCH_VARIANCE = DATA.mean(axis=(0, 2, 3)), DATA.var(axis=(0, 2, 3))
TRAINED = normalized(BATCH_MEAN, BATCH_VARIANCE)


def batch_norm(opset: int, outputs: Any = None, **attributes: Any) -> ModelProto:
    return model_of("BatchNormalization", INPUTS, opset=opset, outputs=outputs or SHAPE, **attributes)


@pytest.mark.parametrize("target", [7, 13, 18])
@pytest.mark.parametrize(("is_test", "expected"), [(1, INFERRED), (0, TRAINED)])
def test_is_test_is_heeded_on_the_way_up(is_test: int, expected: np.ndarray, target: int) -> None:
    model = batch_norm(6, ir_version=3, is_test=is_test)
    np.testing.assert_allclose(yields(converted(model, target), INPUTS)[0], expected, rtol=1e-4, atol=1e-5)


def test_several_outputs_become_training_mode() -> None:
    outputs = {**SHAPE, "running_mean": (TensorProto.FLOAT, [3]), "running_variance": (TensorProto.FLOAT, [3])}
    result = converted(batch_norm(9, outputs), 15)
    assert [attribute.i for attribute in result.graph.node[0].attribute if attribute.name == "training_mode"] == [1]


def test_saved_statistics_that_are_read_are_refused() -> None:
    statistics = {
        name: (TensorProto.FLOAT, [3]) for name in ("running_mean", "running_variance", "saved_mean", "saved_variance")
    }
    with pytest.raises(ConversionError, match="saved_mean"):
        reducelower.convert_version(batch_norm(9, {**SHAPE, **statistics}), 15)


def test_parameters_per_element_are_flattened() -> None:
    inputs = {"x": DATA, **{name: RANDOM.random(DATA.shape[1:]).astype(np.float32) + 0.5 for name in PARAMETERS}}
    model = model_of("BatchNormalization", inputs, opset=7, outputs=SHAPE, ir_version=3, spatial=0)
    expected = (DATA - inputs["mean"]) / np.sqrt(inputs["variance"] + 1e-5) * inputs["scale"] + inputs["bias"]
    np.testing.assert_allclose(yields(converted(model, 13), inputs)[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", [9, 13, 15])
@pytest.mark.parametrize("shape", [(0, 2, 0, 2), (2, 3, 4, 5)])
def test_parameters_per_element_of_data_of_unknown_shape(shape: tuple[int, ...], target: int) -> None:
    data = RANDOM.normal(size=shape).astype(np.float32)
    inputs = {"x": data, **{name: RANDOM.random(shape[1:]).astype(np.float32) + 0.5 for name in PARAMETERS}}
    shapes = {"x": ["n", "c", "h", "w"]}
    outputs = {"y": (TensorProto.FLOAT, ["n", "c", "h", "w"])}
    model = model_of("BatchNormalization", inputs, opset=7, outputs=outputs, shapes=shapes, ir_version=3, spatial=0)
    expected = (data - inputs["mean"]) / np.sqrt(inputs["variance"] + 1e-5) * inputs["scale"] + inputs["bias"]
    np.testing.assert_allclose(yields(converted(model, target), inputs)[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", [14, 13, 9])
def test_half_data_with_float_parameters_is_normalized_in_float(target: int) -> None:
    inputs = {**INPUTS, "x": DATA.astype(np.float16)}
    outputs = {"y": (TensorProto.FLOAT16, DATA.shape)}
    model = model_of("BatchNormalization", inputs, opset=15, outputs=outputs)
    result = yields(converted(model, target), inputs)[0]
    assert result.dtype == np.float16
    np.testing.assert_allclose(result, INFERRED, rtol=2e-3, atol=2e-3)


def test_statistics_of_half_data_are_taken_in_float() -> None:
    data = (DATA * 200).astype(np.float16)  # whose squares are beyond what halves hold
    inputs = {"x": data, **{name: PARAMETERS[name].astype(np.float16) for name in ("scale", "bias")}}
    inputs |= {name: PARAMETERS[name] for name in ("mean", "variance")}
    outputs = {"y": (TensorProto.FLOAT16, DATA.shape), "m": (TensorProto.FLOAT, [3]), "v": (TensorProto.FLOAT, [3])}
    model = model_of("BatchNormalization", inputs, opset=14, outputs=outputs, training_mode=1, momentum=0.5)
    wide = data.astype(np.float64)
    _, mean, variance = yields(converted(model, 13), inputs)
    np.testing.assert_allclose(mean, (inputs["mean"] + wide.mean(axis=(0, 2, 3))) / 2, rtol=1e-5)
    np.testing.assert_allclose(variance, (inputs["variance"] + wide.var(axis=(0, 2, 3))) / 2, rtol=1e-5)


@pytest.mark.parametrize("target", [14, 13])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_training_with_wider_parameters_yields_the_type_of_the_data(dtype: Any, target: int) -> None:
    parameters = {name: PARAMETERS[name].astype(dtype) for name in ("scale", "bias")}
    inputs = {**INPUTS, "x": DATA.astype(np.float16), **parameters}
    outputs = {"y": (TensorProto.FLOAT16, DATA.shape)}
    result = converted(model_of("BatchNormalization", inputs, opset=15, outputs=outputs, training_mode=1), target)
    np.testing.assert_allclose(yields(result, inputs)[0], TRAINED, atol=1e-2)


def test_statistics_of_doubles_move_by_a_momentum_of_single_precision() -> None:
    """Attributes are floats, and so are their defaults: 0.9 and 1e-5 to seven digits."""
    inputs = {name: value.astype(np.float64) for name, value in INPUTS.items()}
    outputs: Any = {name: (TensorProto.DOUBLE, shape) for name, shape in (("y", DATA.shape), ("m", [3]), ("v", [3]))}
    model = model_of("BatchNormalization", inputs, opset=14, outputs=outputs, training_mode=1)
    data, momentum = inputs["x"], float(np.float32(0.9))
    _, mean, variance = yields(converted(model, 11), inputs)
    of_batch = data.mean(axis=(0, 2, 3)), data.var(axis=(0, 2, 3))
    np.testing.assert_allclose(mean, inputs["mean"] * momentum + of_batch[0] * (1 - momentum), rtol=1e-13)
    np.testing.assert_allclose(variance, inputs["variance"] * momentum + of_batch[1] * (1 - momentum), rtol=1e-13)
