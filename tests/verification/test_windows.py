"""Windows over data that is too small for them leave values without elements, which some kernels do not survive."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from reducelower.verification import verify
from reducelower.verification.feeding.shapes import has_empty_window, is_ruled_out
from tests.models import model

POOLED = """g (float[1, 2, H, W] x) => (float[a, b, c] y)
<int64[3] s = {0, 2, -1}, float[2] scale = {1, 1}, float[2] bias = {0, 0}>
{ m = MaxPool <kernel_shape = [3, 3]> (x) r = Reshape (m, s) y = InstanceNormalization (r, scale, bias) }"""


@pytest.mark.parametrize(("size", "expected"), [(1, True), (2, True), (3, False), (5, False)])
def test_a_window_needs_as_much_as_it_is_large(size: int, expected: bool) -> None:
    assert has_empty_window(model(POOLED), {"x": np.zeros((1, 2, size, size), np.float32)}) is expected


def test_a_model_without_windows_is_not_looked_into() -> None:
    given = model("g (float[N] x) => (float[N] y) { y = Neg (x) }")
    assert not has_empty_window(given, {"x": np.zeros(0, np.float32)})


def test_parts_without_elements_that_no_window_left_are_no_reason() -> None:
    """As of a roll by nothing, which exporters write as two slices that are put together."""
    given = model(
        "g (float[1, 2, 6, 6] x) => (float[a, b, c, d] y) <int64[1] z = {0}, int64[1] e = {6}, int64[1] k = {2}> "
        "{ m = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x)  p = Slice (m, z, z, k)  "
        "q = Slice (m, z, e, k)  y = Concat <axis = 2> (q, p) }"
    )
    assert not has_empty_window(given, {"x": np.zeros((1, 2, 6, 6), np.float32)})
    assert verify(given, given).verdict == "equivalent"


REVERSED = """g (float[] x, int64[n] lengths) => (float[] y) {
    y = ReverseSequence <batch_axis = 0, time_axis = 1> (x, lengths) }"""


@pytest.mark.parametrize(("rank", "expected"), [(1, True), (2, False), (3, False)])
def test_ranks_that_a_kernel_does_not_survive_are_ruled_out(rank: int, expected: bool) -> None:
    feeds = {"x": np.zeros((2,) * rank, np.float32), "lengths": np.ones(2, np.int64)}
    assert is_ruled_out(model(REVERSED), feeds) is expected


OTHERS = {
    POOLED: POOLED.replace("InstanceNormalization (", "InstanceNormalization <epsilon = 0.5> ("),
    REVERSED: REVERSED.replace("y = ", "z = Neg (x) y = ").replace("> (x", "> (z"),
}


@pytest.mark.parametrize("text", OTHERS, ids=["a normalization behind a window", "a sequence of unknown rank"])
def test_what_a_kernel_does_not_survive_is_verified(text: str) -> None:
    code = f"""
from reducelower.verification import verify
from tests.models import model
given, other = model({text!r}), model({OTHERS[text]!r})
assert verify(given, given).verdict == "equivalent"
assert verify(given, other).verdict == "different"
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
