"""ConvInteger, QLinearConv, QLinearMatMul, ReverseSequence and DFT where the target has none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reducelower
from tests.adapters.models import assert_same, floats, one, run

RANDOM = np.random.default_rng(2)


def summed(data: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """A convolution of whole numbers without padding, groups or strides."""
    windows = np.lib.stride_tricks.sliding_window_view(data.astype(np.int64), weights.shape[2:], axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, weights.astype(np.int64))


@pytest.mark.parametrize("channels", [3, 40, 500])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_integers_are_convolved_exactly(dtype: Any, channels: int) -> None:
    data = RANDOM.integers(0, 256, (1, channels, 5, 6)).astype(np.uint8)
    weights = RANDOM.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, (2, channels, 3, 3)).astype(dtype)
    weights[0], data[0, :, :3, :3] = np.iinfo(dtype).max, 255
    zero = {"z": np.array(3, np.uint8), "v": np.array(-7 if dtype is np.int8 else 7, dtype)}
    made = one("ConvInteger", {"x": data}, 10, constants={"w": weights, **zero})
    expected = summed(data.astype(np.int64) - 3, weights.astype(np.int64) - int(zero["v"]))
    assert_same(made, {"x": data}, 9, expected.astype(np.int32))


@pytest.mark.parametrize(
    "attributes", [{"pads": [1, 0, 2, 1]}, {"strides": [2, 1]}, {"group": 2}, {"dilations": [2, 1]}]
)
def test_integers_are_convolved_as_asked(attributes: Any) -> None:
    data = RANDOM.integers(0, 256, (1, 4, 6, 7)).astype(np.uint8)
    weights = RANDOM.integers(0, 256, (2, 4 // attributes.get("group", 1), 3, 3)).astype(np.uint8)
    constants = {"w": weights, "z": np.array(9, np.uint8)}
    made = one("ConvInteger", {"x": data}, 10, constants=constants, **attributes)
    assert_same(made, {"x": data}, 9, run(made, {"x": data})[0])


@pytest.mark.parametrize("per_channel", [True, False])
def test_a_quantized_convolution_is_exact(per_channel: bool) -> None:
    data = RANDOM.integers(0, 256, (1, 3, 5, 6)).astype(np.uint8)
    weights = RANDOM.integers(-128, 128, (2, 3, 3, 3)).astype(np.int8)
    scales = np.array([0.01, 0.3], np.float32) if per_channel else np.array(0.02, np.float32)
    zeros = np.zeros(2, np.int8) if per_channel else np.array(0, np.int8)
    bias = np.array([1000, -2000], np.int32)
    constants = {
        "xs": np.array(0.05, np.float32), "xz": np.array(120, np.uint8), "w": weights, "ws": scales, "wz": zeros,
        "ys": np.array(0.9, np.float32), "yz": np.array(10, np.uint8), "b": bias,
    }  # fmt: skip
    made = one("QLinearConv", {"x": data}, 10, constants=constants)
    factor = constants["xs"] * scales / constants["ys"]
    total = summed(data.astype(np.int64) - 120, weights) + bias[:, None, None]
    wanted = np.rint(total.astype(np.float32) * factor.reshape(-1, 1, 1)) + 10
    assert_same(made, {"x": data}, 9, np.clip(wanted, 0, 255).astype(np.uint8))


@pytest.mark.parametrize("along", ["everything", "columns", "rows"])
def test_a_quantized_product_is_exact(along: str) -> None:
    left = RANDOM.integers(0, 256, (2, 4, 6) if along != "rows" else (4, 6)).astype(np.uint8)
    right = RANDOM.integers(0, 256, (6, 5)).astype(np.uint8)
    row_scales, row_zeros = np.array([0.05, 0.02, 0.1, 0.3], np.float32), np.array([120, 3, 99, 200], np.uint8)
    scales, zeros = np.array([0.1, 0.2, 0.05, 0.01, 0.4], np.float32), np.array([7, 0, 128, 255, 31], np.uint8)
    rows = slice(None) if along == "rows" else 0
    columns = slice(None) if along == "columns" else 0
    constants = {
        "ls": row_scales[rows], "lz": row_zeros[rows], "r": right, "rs": scales[columns], "rz": zeros[columns],
        "ys": np.float32(1.5), "yz": np.uint8(100),
    }  # fmt: skip
    made = one("QLinearMatMul", {"x": left}, 10, constants={name: np.array(held) for name, held in constants.items()})
    column = (-1, 1) if along == "rows" else ()
    row_zero = constants["lz"].astype(np.int64).reshape(column)
    total = (left.astype(np.int64) - row_zero) @ (right.astype(np.int64) - constants["rz"])
    factor = constants["ls"].reshape(column) * constants["rs"] / constants["ys"]
    expected = np.clip(np.rint(total.astype(np.float32) * factor) + 100, 0, 255).astype(np.uint8)
    assert_same(made, {"x": left}, 9, expected)


@pytest.mark.parametrize("time_axis", [0, 1])
@pytest.mark.parametrize("rank", [2, 3, 4])
def test_sequences_are_reversed_up_to_their_length(rank: int, time_axis: int) -> None:
    data = floats(4, 3, 2, 5)[tuple([slice(None)] * rank + [0] * (4 - rank))]
    lengths = np.array([3, 1, 2, 2] if time_axis else [4, 1, 3], np.int64)
    feeds = {"x": data, "n": lengths}
    made = one("ReverseSequence", feeds, 10, time_axis=time_axis, batch_axis=1 - time_axis)
    expected = data.copy()
    for row, length in enumerate(lengths):
        place = (row, slice(0, length)) if time_axis else (slice(0, length), row)
        expected[place] = np.flip(data[place], axis=0)
    assert_same(made, feeds, 9, expected)


@pytest.mark.parametrize("source", [17, 20])
@pytest.mark.parametrize("length", [None, 6, 12])
@pytest.mark.parametrize(("parts", "inverse", "onesided"), [(1, 0, 0), (1, 0, 1), (2, 0, 0), (2, 1, 0)])
def test_a_fourier_transform_is_a_product_with_known_matrices(
    parts: int, inverse: int, onesided: int, length: int | None, source: int
) -> None:
    data = floats(2, 9, 3, parts)
    constants = {} if length is None else {"n": np.array(length)}
    inputs = ["x", *constants] if source == 17 else ["x", "n" if constants else "", "a"]
    axis: dict[str, Any] = {"axis": 1} if source == 17 else {}
    held = constants if source == 17 else {**constants, "a": np.array(1)}
    made = one("DFT", {"x": data}, source, constants=held, inputs=inputs, inverse=inverse, onesided=onesided, **axis)
    signal = data[..., 0] + (1j * data[..., 1] if parts == 2 else 0)
    if onesided:
        spectrum = np.fft.rfft(signal.real, n=length, axis=1)
    else:
        spectrum = (np.fft.ifft if inverse else np.fft.fft)(signal, n=length, axis=1)
    expected = np.stack([spectrum.real, spectrum.imag], axis=-1)
    result = reducelower.convert_version(made, 13)
    np.testing.assert_allclose(run(result, {"x": data})[0], expected, rtol=1e-4, atol=1e-5)
