"""Weights that are cut off bytes come back as they were, whatever becomes of the model around them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from onnx import ModelProto, TensorProto

from reducelower import ConversionError, convert_version, expand
from reducelower.errors import UnreadableModelError
from reducelower.model.weights import cut_off
from tests.model.weighty import beside, four_bits, inside, looked_up, removed, weight, with_weights

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
            convert_version(model.SerializeToString(), target)
        assert str(found.value) == str(refused)
    else:
        assert ModelProto.FromString(convert_version(model.SerializeToString(), target)) == expected


def test_an_expansion_is_the_same_as_with_weights() -> None:
    model = beside()
    assert ModelProto.FromString(expand(model.SerializeToString())) == expand(model)


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
    assert odd in convert_version(changed, 13)


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
        convert_version(data[:-cut], 13)


def test_a_weight_that_changed_is_not_put_back() -> None:
    model = removed()
    weights = cut_off(model.SerializeToString())
    assert weights is not None
    light = ModelProto.FromString(weights.light)
    light.graph.initializer[0].data_type = TensorProto.DOUBLE
    assert weights.put_back(light.SerializeToString()) is None
