"""What is the same node for two versions of its operator: no region where the page says the same, else one for all."""

from __future__ import annotations

import pytest

from reducelower import convert_version
from reducelower.verification import verify
from reducelower.verification.numbering import meaning

from .models import model

QUANTIZED = (
    "g (float[N, 8] x) => (float[N, 8] y) <float s = {0.05}, float t = {0.5}, uint8 z = {128}, uint8 u = {3}> "
    "{ a = QuantizeLinear (x, s, z)  b = DequantizeLinear (a, s, z)  c = Tanh (b)  "
    "d = QuantizeLinear (c, t, u)  y = DequantizeLinear (d, t, u) }"
)


@pytest.mark.parametrize(
    ("op_type", "older", "newer"),
    [("Conv", 11, 22), ("Reshape", 14, 21), ("Gemm", 11, 13), ("Loop", 13, 16), ("Constant", 12, 21), ("Max", 8, 13)],
)
def test_versions_that_differ_in_types_and_layout_mean_the_same(op_type: str, older: int, newer: int) -> None:
    assert meaning(op_type, newer) == meaning(op_type, older)


@pytest.mark.parametrize(
    ("op_type", "older", "newer"),
    [
        ("Softmax", 12, 13),
        ("BatchNormalization", 13, 14),
        ("Cast", 18, 19),
        ("Flatten", 10, 11),
        ("Resize", 10, 11),
        ("AveragePool", 21, 22),
        ("Upsample", 8, 9),
        ("Reshape", 13, 14),
        ("GroupNormalization", 18, 21),
    ],
)
def test_versions_of_which_the_page_says_something_else_do_not(op_type: str, older: int, newer: int) -> None:
    assert meaning(op_type, newer) != meaning(op_type, older)


def test_an_operator_without_a_schema_means_something_else_at_every_version() -> None:
    assert meaning("Solve", 1, "com.example") != meaning("Solve", 2, "com.example")


def test_quantizers_with_scales_of_their_own_are_one_region() -> None:
    given = model(QUANTIZED, 13)
    found = verify(given, convert_version(given, 19))
    assert found.verdict == "equivalent"
    assert {site.op_type: len(site.nodes) for site in found.sites} == {"QuantizeLinear": 2, "DequantizeLinear": 2}


@pytest.mark.parametrize(
    ("right", "wrong"), [("t = {0.5}", "t = {0.55}"), ("(d, t, u)", "(d, t, z)"), ("(c, t, u)", "(c, s, u)")]
)
def test_a_constant_that_changed_with_the_version_is_seen(right: str, wrong: str) -> None:
    found = verify(model(QUANTIZED, 13), model(QUANTIZED.replace(right, wrong), 19))
    assert found.verdict == "different"


def test_a_version_that_means_something_else_is_seen() -> None:
    text = "g (float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax <axis = 1> (x) }"
    assert verify(model(text, 12), model(text, 13)).verdict == "different"
