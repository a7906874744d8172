"""Einsum below opset 12."""

from __future__ import annotations

from tests.adapters.models import floats, one, refusal


def test_a_sum_over_an_ellipsis_is_refused() -> None:
    feeds = {"x": floats(2, 3)}
    made = one("Einsum", feeds, 13, equation="...i->...i")
    made.graph.node[0].attribute[0].s = b"...i->i"
    assert "sums over an ellipsis" in refusal(made, 11)
