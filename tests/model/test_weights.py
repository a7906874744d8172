"""Weights that are cut off bytes come back as they were, whatever becomes of the model around them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

from reducelower import ConversionError, convert_bytes, convert_version, expand, expand_bytes
from reducelower.errors import UnreadableModelError
from reducelower.model.weights import cut_off


def with_weights(text: str, *tensors: TensorProto, functions: str = "", opset: int = 18) -> ModelProto:
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}, "local" : 1]> {text} {functions}')
    for place, tensor in enumerate(tensors):
        model.graph.initializer.insert(place, tensor)
    return model


def weight(name: str, *shape: int, dtype: type = np.float32) -> TensorProto:
    return numpy_helper.from_array(np.random.default_rng(11).normal(size=shape).astype(dtype), name)


def removed() -> ModelProto:
    """One weight is read by what remains; axes and the sizes of a shape come and go."""
    return with_weights(
        "g (float[2,64] x) => (float[2,1] y) <int64[1] one = {1}> { z = MatMul (x, w)  y = ReduceL2 (z, one) }",
        weight("w", 64, 128),
    )


def looked_up() -> ModelProto:
    """Axes that are looked up in a table, which is as large as a weight."""
    table = np.zeros(4000, np.int64)
    table[1500] = 1
    return with_weights(
        "g (float[2,3,4] x) => (float[2,4] y) <int64[1] i = {1500}> "
        "{ axes = Gather (table, i)  y = ReduceSum <keepdims = 0> (x, axes) }",
        numpy_helper.from_array(table, "table"),
    )


def four_bits() -> ModelProto:
    """Weights of a type that the target does not have, so that they change."""
    values = np.random.default_rng(11).integers(-8, 8, 256 * 256)
    return with_weights(
        "g (float[2,256] x) => (float[2,256] y) <float s = {0.5}> { d = DequantizeLinear (w, s)  y = MatMul (x, d) }",
        helper.make_tensor("w", TensorProto.INT4, [256, 256], values),
        opset=21,
    )


def beside() -> ModelProto:
    """A function, metadata and quantization annotations, and weights with texts of their own."""
    tensor = weight("w", 64, 80)
    tensor.doc_string = "trained"
    tensor.metadata_props.add(key="layer", value="1")
    model = with_weights(
        "g (float[2,64] x) => (float[2,1] y) <int64[1] one = {1}> "
        "{ v = local.twice (x)  z = MatMul (v, w)  y = ReduceLogSumExp (z, one) }",
        tensor,
        functions='<opset_import: ["" : 18], domain: "local"> twice (a) => (b) { b = Add (a, a) }',
    )
    model.metadata_props.add(key="k", value="v")
    annotation = model.graph.quantization_annotation.add(tensor_name="z")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="w")
    return model


def inside() -> ModelProto:
    """Weights of the main graph that branches read, and weights of their own."""
    model = with_weights(
        "g (bool c, float[2,64] x) => (float[2,1] y) <int64[1] one = {1}> { h = If (c) "
        "<then_branch = t () => (float[2,64] p) { p = MatMul (x, w) }, else_branch = e () => (float[2,64] q) "
        "{ q = Identity (x) }>  y = ReduceMean (h, one) }",
        weight("w", 64, 64),
        weight("unread", 5000),
    )
    model.graph.node[0].attribute[0].g.initializer.append(weight("own", 100))
    return model


MODELS = [removed, looked_up, four_bits, beside, inside]


@pytest.mark.parametrize("make", MODELS)
def test_what_is_cut_off_comes_back(make: Callable[[], ModelProto]) -> None:
    model = make()
    data = model.SerializeToString()
    weights = cut_off(data)
    assert weights is not None
    assert len(weights.light) < 4096 < len(data)
    assert weights.put_back(weights.light) == data
    for tensor in model.graph.initializer:
        found = weights.tensor(tensor.name)
        assert found is None or found == tensor


@pytest.mark.parametrize("target", [9, 11, 13, 17, 22])
@pytest.mark.parametrize("make", MODELS)
def test_a_conversion_is_the_same_as_with_weights(make: Callable[[], ModelProto], target: int) -> None:
    model = make()
    try:
        expected = convert_version(model, target)
    except ConversionError as refused:
        with pytest.raises(ConversionError) as found:
            convert_bytes(model.SerializeToString(), target)
        assert str(found.value) == str(refused)
    else:
        assert ModelProto.FromString(convert_bytes(model.SerializeToString(), target)) == expected


def test_an_expansion_is_the_same_as_with_weights() -> None:
    model = beside()
    assert ModelProto.FromString(expand_bytes(model.SerializeToString())) == expand(model)


def test_weights_stay_the_very_bytes_they_were() -> None:
    model = removed()
    tensor = model.graph.initializer[0]
    usual = tensor.SerializeToString()
    values = TensorProto(raw_data=tensor.raw_data).SerializeToString()
    tensor.ClearField("raw_data")
    odd = values + tensor.SerializeToString()  # the values first, as protobuf does not write them
    assert odd != usual
    data = removed().SerializeToString()
    changed = data.replace(usual, odd)
    assert ModelProto.FromString(changed) == ModelProto.FromString(data)
    assert odd in convert_bytes(changed, 13)


def test_what_cannot_be_told_apart_is_not_cut_off() -> None:
    twice = removed()
    twice.graph.initializer.append(weight("w", 64, 128))
    assert cut_off(twice.SerializeToString()) is None
    outside = removed()
    tensor = outside.graph.initializer[0]
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights")
    assert cut_off(outside.SerializeToString()) is None
    small = with_weights("g (float[3] x) => (float[3] y) { y = Abs (x) }")
    assert cut_off(small.SerializeToString()) is None


@pytest.mark.parametrize("cut", [1, 100, 20_000])
def test_bytes_that_end_early_are_no_model(cut: int) -> None:
    data = removed().SerializeToString()
    with pytest.raises(UnreadableModelError):
        convert_bytes(data[:-cut], 13)


def test_a_weight_that_changed_is_not_put_back() -> None:
    model = removed()
    weights = cut_off(model.SerializeToString())
    assert weights is not None
    light = ModelProto.FromString(weights.light)
    light.graph.initializer[0].data_type = TensorProto.DOUBLE
    assert weights.put_back(light.SerializeToString()) is None
