"""STFT where the target has none, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import parser

import reducelower
from tests.adapters.models import assert_same, floats, one, refusal, run

SIGNAL = floats(2, 20)
STEP, LENGTH = 3, 7
WINDOW = np.hanning(LENGTH).astype(np.float32)


def _spectrum(signal: np.ndarray, window: np.ndarray | float, *, onesided: bool) -> np.ndarray:
    starts = range(0, signal.shape[1] - LENGTH + 1, STEP)
    frames = np.stack([signal[:, start : start + LENGTH] * window for start in starts], axis=1)
    found = np.fft.rfft(frames) if onesided else np.fft.fft(frames)
    return np.stack([found.real, found.imag], axis=-1)


def test_both_sides_of_a_complex_signal() -> None:
    data = floats(1, 20, 2)
    constants = {"step": np.array(STEP), "window": WINDOW}
    made = one("STFT", {"x": data}, 17, constants=constants, onesided=0)
    expected = _spectrum(data[..., 0] + 1j * data[..., 1], WINDOW, onesided=False)
    assert_same(made, {"x": data}, 16, expected.astype(np.float32))


def test_a_single_frame_is_as_long_as_the_signal() -> None:
    data = SIGNAL[..., None]
    made = parser.parse_model(
        """
        <ir_version: 8, opset_import: ["": 17]> g (float[2, 20, 1] x) => (float[a, b, c, d] y)
        <int64 step = {3}> { y = STFT (x, step) }
        """
    )
    found = np.fft.rfft(SIGNAL)[:, None]
    (result,) = run(reducelower.convert_version(made, 16), {"x": data})  # onnxruntime does not run the source
    np.testing.assert_allclose(result, np.stack([found.real, found.imag], axis=-1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", [16, 9])
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_frames_of_a_signal_of_unknown_length_are_transformed(dtype: Any, parts: int, target: int) -> None:
    data = floats(2, 20, parts).astype(dtype)
    constants = {"step": np.array(STEP), "window": WINDOW.astype(dtype)}
    made = one("STFT", {"x": data}, 17, constants=constants, onesided=int(parts == 1))
    for place in (0, 1):
        made.graph.input[0].type.tensor_type.shape.dim[place].dim_param = f"n{place}"
    made.graph.output[0].type.tensor_type.ClearField("shape")
    signal = data[..., 0] + 1j * data[..., 1] if parts == 2 else data[..., 0]
    expected = _spectrum(signal, WINDOW, onesided=parts == 1)
    result = reducelower.convert_version(made, target)
    np.testing.assert_allclose(run(result, {"x": data})[0], expected, rtol=1e-5, atol=1e-5)


def test_a_window_may_be_computed() -> None:
    feeds = {"x": SIGNAL[..., None], "window": WINDOW}
    made = one("STFT", feeds, 17, constants={"step": np.array(STEP)}, inputs=["x", "step", "window"])
    made.graph.output[0].type.tensor_type.shape.dim[2].Clear()  # inference takes it for all frequencies
    assert_same(made, feeds, 16, _spectrum(SIGNAL, WINDOW, onesided=True).astype(np.float32))


def test_frames_of_unknown_length_are_refused() -> None:
    data = SIGNAL[..., None]
    made = one("STFT", {"x": data, "l": np.array(7)}, 17, constants={"s": np.array(STEP)}, inputs=["x", "s", "", "l"])
    assert "the length of the frames" in refusal(made, 16)


@pytest.mark.parametrize("target", [16, 13, 9])
@pytest.mark.parametrize("known_length", [None, 5, 9])
@pytest.mark.parametrize(("inverse", "onesided", "parts"), [(0, 0, 1), (0, 0, 2), (0, 1, 1), (1, 0, 2), (1, 1, 2)])
def test_an_axis_of_unknown_length_is_transformed(
    inverse: int, onesided: int, parts: int, known_length: int | None, target: int
) -> None:
    data = floats(2, 7, 3, parts)
    constants = {} if known_length is None else {"l": np.array(known_length)}
    made = one("DFT", {"x": data}, 17, constants=constants, ranked=["x"], inverse=inverse, onesided=onesided, axis=1)
    made.graph.input[0].type.tensor_type.shape.dim[3].dim_value = parts
    made.graph.output[0].type.tensor_type.ClearField("shape")
    signal = data[..., 0] + (1j * data[..., 1] if parts == 2 else 0)
    transform = {(0, 0): np.fft.fft, (0, 1): np.fft.rfft, (1, 0): np.fft.ifft, (1, 1): np.fft.irfft}[inverse, onesided]
    found = transform(signal, known_length, axis=1)
    expected = found[..., None] if inverse and onesided else np.stack([found.real, found.imag], axis=-1)
    (result,) = run(reducelower.convert_version(made, target), {"x": data})
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


def test_a_long_axis_of_unknown_length_loses_no_digits() -> None:
    """The product of place and frequency is far beyond the whole numbers of float32."""
    data = np.random.default_rng(1).normal(size=(1, 6000, 1)).astype(np.float32)
    made = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[1,n,1] x) => (float[1,m,2] y) { y = DFT<onesided=1>(x) }'
    )
    found = np.fft.rfft(data[..., 0].astype(np.float64))
    (result,) = run(reducelower.convert_version(made, 16), {"x": data})
    np.testing.assert_allclose(result, np.stack([found.real, found.imag], axis=-1), atol=2e-3)
