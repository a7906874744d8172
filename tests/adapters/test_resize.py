"""Resize and Upsample mean the same in every opset they are carried to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, checker, helper, parser

import reducelower
from reducelower import ConversionError
from tests.adapters.single import converted, model_of, yields

RANDOM = np.random.default_rng(3)
DATA = RANDOM.normal(size=(1, 2, 4, 6)).astype(np.float32)
NONE = np.zeros(0, np.float32)


def by_scales(height: float, width: float, *, opset: int, data: np.ndarray = DATA, **attributes: Any) -> ModelProto:
    scales = np.array([1, 1, height, width], np.float32)
    shape = [int(size * scale) for size, scale in zip(data.shape, scales, strict=True)]
    inputs = {"x": data, "roi": NONE, "scales": scales} if opset > 10 else {"x": data, "scales": scales}
    return model_of(
        "Upsample" if opset < 10 else "Resize",
        inputs,
        opset=opset,
        constants=[name for name in inputs if name != "x"],
        outputs={"y": (TensorProto.FLOAT, shape)},
        **attributes,
    )


def by_sizes(height: int, width: int, *, opset: int, **attributes: Any) -> ModelProto:
    inputs: dict[str, np.ndarray] = {"x": DATA, "_roi": NONE, "_scales": NONE, "sizes": np.array([1, 2, height, width])}
    return model_of(
        "Resize",
        inputs,
        opset=opset,
        constants=["sizes"],
        outputs={"y": (TensorProto.FLOAT, [1, 2, height, width])},
        **attributes,
    )


@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize("data", [np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32)])
def test_nothing_is_made_of_data_without_elements(data: np.ndarray, mode: str) -> None:
    scales = np.array([0.5, 2], np.float32)
    after = np.floor(data.shape * scales).astype(int)
    model = model_of(
        "Resize",
        {"x": data, "_roi": NONE, "scales": scales},
        opset=21,
        constants=["scales"],
        outputs={"y": (TensorProto.FLOAT, after.tolist())},
        mode=mode,
        coordinate_transformation_mode="half_pixel_symmetric",
    )
    for target in (17, 9):
        (result,) = yields(converted(model, target), {"x": data})
        assert result.shape == tuple(after)


def test_data_without_elements_have_no_aspect_ratio_to_keep() -> None:
    model = parser.parse_model("""
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[0,0] x) => (float[0,0] y) <int64[2] s = {3, 4}> {
        y = Resize <mode = "linear", keep_aspect_ratio_policy = "not_larger"> (x, "", "", s)
    }
    """)
    with pytest.raises(ConversionError, match="aspect ratio of data of no size"):
        reducelower.convert_version(model, 17)


@pytest.mark.parametrize("opset", [9, 10])
@pytest.mark.parametrize("target", [11, 13, 18, 21])
def test_old_linear_upsampling_stays_asymmetric(opset: int, target: int) -> None:
    model = by_scales(2, 2, opset=opset, mode="linear")
    before = by_scales(2, 2, opset=13, mode="linear", coordinate_transformation_mode="asymmetric")
    expected = yields(before, {"x": DATA})[0]
    np.testing.assert_allclose(yields(converted(model, target), {"x": DATA})[0], expected, rtol=1e-6)


def test_a_scale_that_floats_round_down_loses_no_element() -> None:
    # 7 / 5 is a little less than that in float32, and a size times it is rounded down.
    data = np.arange(10, dtype=np.float32).reshape(2, 5)
    inputs = {"x": data, "_roi": NONE, "_scales": NONE, "sizes": np.array([7])}
    shapes = {"x": ["n", 5]}
    model = model_of(
        "Resize", inputs, opset=18, constants=["sizes"], shapes=shapes, outputs={"y": (TensorProto.FLOAT, ["n", 7])},
        axes=[1], mode="nearest", keep_aspect_ratio_policy="not_larger",
    )  # fmt: skip
    places = np.ceil((np.arange(7) + 0.5) * 5 / 7 - 1).astype(int)  # half_pixel, halves rounded down
    for target in (17, 13, 11):
        np.testing.assert_array_equal(yields(converted(model, target), {"x": data})[0], data[:, places])


def test_antialiasing_does_nothing_where_the_nearest_is_taken() -> None:
    plain, marked = (by_sizes(2, 3, opset=18, mode="nearest", **more) for more in ({}, {"antialias": 1}))
    np.testing.assert_array_equal(yields(converted(marked, 17), {"x": DATA})[0], yields(plain, {"x": DATA})[0])


@pytest.mark.parametrize(("rounding", "is_done"), [("round_prefer_floor", True), ("floor", False)])
def test_symmetric_sizes_of_some_axes_known_at_run_time_only(rounding: str, is_done: bool) -> None:
    inputs = {"x": DATA, "_roi": NONE, "_scales": NONE, "sizes": np.array([3, 2])}
    model = model_of(
        "Resize",
        inputs,
        opset=19,
        constants=["sizes"],
        outputs={"y": (TensorProto.FLOAT, ["n", 2, 3, 2])},
        shapes={"x": ["n", 2, "h", "w"]},
        axes=[2, 3],
        mode="nearest",
        nearest_mode=rounding,
        coordinate_transformation_mode="half_pixel_symmetric",
    )
    if is_done:
        np.testing.assert_array_equal(yields(converted(model, 13), inputs)[0], yields(model, inputs)[0])
    else:
        with pytest.raises(ConversionError, match="half_pixel_symmetric"):
            reducelower.convert_version(model, 13)


def test_tf_half_pixel_goes_by_another_name_since_13() -> None:
    model = by_scales(
        2, 2, opset=11, mode="nearest", coordinate_transformation_mode="tf_half_pixel_for_nn", nearest_mode="floor"
    )
    result = converted(model, 13)
    assert b"tf_half_pixel" not in result.SerializeToString()
    np.testing.assert_array_equal(yields(result, {"x": DATA})[0], yields(model, {"x": DATA})[0])


def of_unknown_size(
    height: int, width: int, *, as_scales: bool, **attributes: Any
) -> tuple[ModelProto, dict[str, Any]]:
    """A Resize whose data has a rank and no sizes, and whose sizes or scales are an input."""
    wanted = np.array([1, 1, height / 4, width / 6], np.float32) if as_scales else np.array([1, 2, height, width])
    inputs: dict[str, np.ndarray] = {"x": DATA, "_roi": NONE, "s": wanted}
    if not as_scales:
        inputs = {"x": DATA, "_roi": NONE, "_scales": NONE, "s": wanted}
    shape = ["n", "c", "h", "w"]
    outputs = {"y": (TensorProto.FLOAT, ["n2", "c2", "h2", "w2"])}
    model = model_of("Resize", inputs, opset=19, outputs=outputs, shapes={"x": shape}, **attributes)
    return model, {"x": DATA, "s": wanted}


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_sizes_without_names_are_not_taken_for_the_same(mode: str) -> None:
    model, feeds = of_unknown_size(8, 9, as_scales=False, mode=mode, coordinate_transformation_mode="half_pixel")
    for value in (model.graph.input[0], model.graph.output[0]):
        for dim in value.type.tensor_type.shape.dim:
            dim.Clear()
    expected = yields(model, feeds)[0]
    np.testing.assert_allclose(yields(converted(model, 10), feeds)[0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("mode", "rounding", "is_done"),
    [
        ("cubic", "floor", False),
        ("linear", "floor", False),
        ("nearest", "ceil", False),
        ("nearest", "round_prefer_ceil", False),
        ("nearest", "floor", True),
        ("nearest", "round_prefer_floor", True),
    ],
)
def test_an_axis_that_may_keep_its_size_is_not_shifted(mode: str, rounding: str, is_done: bool) -> None:
    x = RANDOM.normal(size=(1, 1, 4, 4)).astype(np.float32)
    inputs: dict[str, np.ndarray] = {"x": x, "roi": NONE, "scales": NONE, "s": np.array([1, 1, 7, 4])}
    model = model_of(
        "Resize",
        inputs,
        opset=11,
        constants=["roi", "scales"],
        outputs={"y": (TensorProto.FLOAT, ["n2", "c2", "h2", "w2"])},
        shapes={"x": ["n", "c", "h", "w"]},
        mode=mode,
        nearest_mode=rounding,
        coordinate_transformation_mode="tf_half_pixel_for_nn",
    )
    feeds = {"x": x, "s": inputs["s"]}
    if is_done:
        np.testing.assert_array_equal(yields(converted(model, 10), feeds)[0], yields(model, feeds)[0])
    else:
        with pytest.raises(ConversionError, match="tf_half_pixel_for_nn and sizes"):
            reducelower.convert_version(model, 10)


@pytest.mark.parametrize("mode", ["cubic", "linear"])
def test_known_scales_say_which_axes_keep_a_size_that_is_not_known(mode: str) -> None:
    x = RANDOM.normal(size=(1, 1, 4, 4)).astype(np.float32)
    model = model_of(
        "Resize",
        {"x": x, "roi": NONE, "scales": np.array([1, 1, 2, 1], np.float32)},
        opset=11,
        constants=["roi", "scales"],
        outputs={"y": (TensorProto.FLOAT, ["n2", "c2", "h2", "w2"])},
        shapes={"x": ["n", "c", "h", "w"]},
        mode=mode,
        coordinate_transformation_mode="tf_half_pixel_for_nn",
    )
    expected = yields(model, {"x": x})[0]
    np.testing.assert_allclose(yields(converted(model, 10), {"x": x})[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float16])
def test_the_nearest_of_any_type_is_taken_at_run_time(dtype: Any, rounding: str) -> None:
    data = (DATA * 100).astype(dtype)
    sizes = np.array([1, 2, 7, 4])
    inputs: dict[str, np.ndarray] = {"x": data, "_roi": NONE, "_scales": NONE, "s": sizes}
    outputs = {"y": (model_type(dtype), ["n2", "c2", "h2", "w2"])}
    model = model_of(
        "Resize", inputs, opset=13, outputs=outputs, shapes={"x": ["n", "c", "h", "w"]}, nearest_mode=rounding,
        coordinate_transformation_mode="asymmetric",
    )  # fmt: skip
    rounded = {"floor": np.floor, "ceil": np.ceil, "round_prefer_floor": lambda x: np.ceil(x - np.float32(0.5)),
               "round_prefer_ceil": lambda x: np.floor(x + np.float32(0.5))}[rounding]  # fmt: skip
    places = [
        np.clip(rounded(np.arange(after, dtype=np.float32) / np.float32(after / before)), 0, before - 1).astype(int)
        for before, after in ((4, 7), (6, 4))
    ]
    expected = data[:, :, places[0]][:, :, :, places[1]]
    np.testing.assert_array_equal(yields(converted(model, 9), {"x": data, "s": sizes})[0], expected)


def model_type(dtype: Any) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def test_scales_at_run_time_do_not_tell_which_way_to_round() -> None:
    model = parser.parse_model(
        """<ir_version: 5, opset_import: ["" : 10]>
        g (float[1,1,5,2] x, float[4] s) => (float[a,b,c,d] y) { y = Resize(x, s) }"""
    )
    with pytest.raises(reducelower.ConversionError, match="whether it enlarges or reduces"):
        reducelower.convert_version(model, 9)


def test_strings_that_may_be_empty_are_reshaped() -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 13]>
        g (string[m,n] x, int64[1] axes) => (string[a,b,c] y) { y = Unsqueeze(x, axes) }"""
    )
    older = reducelower.convert_version(model, 11)
    checker.check_model(older, full_check=True)


@pytest.mark.parametrize("target", [13, 9])
def test_scales_that_a_function_is_given_beside_sizes_are_without_elements(target: int) -> None:
    model = parser.parse_model(
        """
        <ir_version: 8, opset_import: ["": 12, "local": 1]>
        g (float[1, 2, 4, 6] x) => (float[1, 2, 6, 9] y) <float[0] none = {}> { y = local.f (x, none, none) }
        <domain: "local", opset_import: ["": 12]>
        f (x, r, s) => (y) { z = Constant <value_ints = [1, 2, 6, 9]> ()  y = Resize <mode = "linear"> (x, r, s, z) }
        """
    )
    (expected,), (result,) = yields(model, {"x": DATA}), yields(converted(model, target), {"x": DATA})
    np.testing.assert_allclose(result, expected, rtol=1e-6)
