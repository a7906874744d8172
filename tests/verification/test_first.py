"""Where two models differ, how far; and what a default session does not load."""

from __future__ import annotations

import numpy as np

from reducelower import Target, legalize
from reducelower.verification import verify
from tests.models import model

LAYERS = """g (float[2, 3] x) => (float[2, 3] y)
<float[3, 3] w = {{1, 2, 3, 4, 5, 6, 7, 8, 9}}, float[3, 3] v = {{0, 1, 0, {weight}, 0, 1, 1, 0, 0}}>
{{ a = Sin (x)  b = MatMul (a, w)  c = Cos (b)  d = MatMul (c, v)  e = Tanh (d)  y = Neg (e) }}"""
INPUTS = {"x": np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)}


def test_the_largest_error_and_where_it_is_are_named() -> None:
    sides = (model(LAYERS.format(weight=weight)) for weight in (1, 2))
    found = verify(*sides, inputs=INPUTS)
    hidden = np.cos(np.sin(INPUTS["x"]) @ np.arange(1, 10, dtype=np.float32).reshape(3, 3))
    row = int(np.abs(hidden[:, 1]).argmax())  # the weight is that of the second input and the first output
    assert found.first is not None
    assert f"the largest error is {np.abs(hidden[row, 1]):.3g} at [{row}, 0]: " in found.first.reason


def test_models_that_are_equal_have_no_first_difference() -> None:
    given = model(LAYERS.format(weight=1))
    assert verify(given, given).first is None


QUANTIZED = """g (float[1, 3] x) => (float[3] y) <float s = {0.1}, int8 z = {0}, int64[1] a = {0}>
{ q = QuantizeLinear (x, s, z)  d = DequantizeLinear (q, s, z)  y = Squeeze (d, a) }"""


def test_a_result_that_onnxruntime_does_not_load_by_default_is_told() -> None:
    """Its optimizations move the quantizers across Squeeze, and forget the type of the zero point (1.32)."""
    made = legalize(model(QUANTIZED, 13), Target(21))
    found = verify(model(QUANTIZED, 13), made.model, plan=made.plan)
    assert found.verdict == "equivalent"
    assert any("only without graph optimizations" in note for note in found.notes)
    same = verify(model(QUANTIZED, 13), model(QUANTIZED, 13))
    assert not any("graph optimizations" in note for note in same.notes)
