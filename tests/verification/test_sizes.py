"""Sizes that regions ask for: rows that are as long as a product, paddings of every side, letters of an Einsum.

And what rests on sizes alone: values without elements, shapes that are declared.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from reducelower import convert_version
from reducelower.verification import verify, verify_regions
from reducelower.verification.feeding.roles import Role
from tests.models import model

RESHAPED = "g (float[B, L, H, D] x) => (float[a, b, c] y) <int64[3] s = {%s}> { %s }"
PADDED = "g (float[A, B, C] x, int64[n] p) => (float[d, e, f] y) { y = Pad (x, p) }"


@pytest.mark.parametrize("shape", ["0, 0, 16", "0, 0, 13", "-1, 12, 0"])
def test_dimensions_are_fed_of_which_the_product_is_what_a_reshape_asks_for(shape: str) -> None:
    before, after = "u = Neg (x)  y = Reshape (u, s)", "u = Reshape (x, s)  y = Neg (u)"
    (site,) = verify_regions(model(RESHAPED % (shape, before)), model(RESHAPED % (shape, after))).findings
    assert site.status == "equal"
    assert site.values


def test_paddings_of_unknown_number_are_fed_for_every_side() -> None:
    (site,) = verify_regions(model(PADDED, 13), model(PADDED, 18)).findings
    assert site.status == "equal"
    assert site.values


def test_matrices_are_fed_of_which_a_grid_takes_as_many() -> None:
    text = "g (float[2, 2, 3] x) => (float[2, H, W, 2] y) { s = Constant <value = int64[4] {2, 1, 2, 3}> () %s }"
    before = model(text % "y = AffineGrid (x, s)", 20)
    after = convert_version(before, 17)
    (site,) = verify(before, after).sites
    assert (site.status, site.cases > 5) == ("equal", True)
    last = after.graph.node[-1]
    last.output[0] = "almost"
    after.graph.node.extend(
        parser.parse_graph("g () => () { k = Constant <value_float = 1.01> () y = Mul (almost, k) }").node
    )
    assert verify(before, after).sites[0].status == "different"


def test_sizes_of_a_grid_that_are_fed_are_for_as_many_matrices() -> None:
    before = model("g (float[2, 2, 3] t, int64[4] s) => (float[A, H, W, B] y) { y = AffineGrid (t, s) }", 20)
    (site,) = verify_regions(before, convert_version(before, 17)).findings
    assert (site.status, site.cases > 5) == ("equal", True)


def test_what_holds_at_the_declared_size_of_one_place_alone_is_seen_at_another() -> None:
    cut = "s = Slice (a, zero, four)  t = Slice (b, zero, four)  y = Neg (s)  z = Neg (t)"
    text = (
        "g (float[4] x, float[6] w) => (float[A] y, float[B] z) <int64[1] zero = {0}, int64[1] four = {4}> "
        "{ a = Abs (x)  b = Abs (w)  %s }"
    )
    found = verify_regions(model(text % "y = Neg (a)  z = Neg (b)"), model(text % cut)).findings
    assert any(site.status == "different" for site in found)


def quantized(zero_point: int) -> int:
    """On how many sets of values a QuantizeLinear of this zero point and its form below 10 were run."""
    text = "g (float[A, B] x) => (int8[A, B] y) <float s = {0.05}, int8 z = {%d}> { y = QuantizeLinear (x, s, z) }"
    before = model(text % zero_point, 13)
    (site,) = verify_regions(before, convert_version(before, 9)).findings
    assert site.status == "equal"
    return site.cases


def test_a_zero_point_is_no_size_that_data_may_have() -> None:
    assert quantized(100) == quantized(0)


def test_values_beside_steps_come_at_many_elements_and_not_at_every_size() -> None:
    assert 30 < quantized(0) < 80


@pytest.mark.parametrize(
    "graph",
    [
        "g (float[A, 6] x) => (float[A, 2] y) <int64[1] s = {1}, int64[1] e = {3}> { y = Slice (x, s, e, s) }",
        "g (float[A, 6] x) => (float[A, 8] y) <int64[4] p = {0, 1, 0, 1}> { y = Pad (x, p) }",
    ],
)
def test_what_moves_elements_is_run_on_few_kinds_of_values(graph: str) -> None:
    before = model(graph, 13)
    (site,) = verify_regions(before, convert_version(before, 9)).findings
    assert (site.status, 5 < site.cases < 20) == ("equal", True), site


@pytest.mark.parametrize(("shape", "count"), [((2,), 5), ((3,), 7), ((1,), 4), ((2,), 0), ((4,), 2)])
def test_parts_are_sizes_that_make_up_the_length(shape: tuple[int, ...], count: int) -> None:
    role, rng = Role("parts", "x", -1), np.random.default_rng(0)
    drawn = [role.values((3, count), shape, rng) for _ in range(20)]
    assert all(
        parts is not None and parts.shape == shape and parts.sum() == count and parts.min() >= 0 for parts in drawn
    )


def test_a_share_is_more_than_none_and_less_than_all() -> None:
    shares = Role("share", "x").values((2, 3), (50,), np.random.default_rng(0))
    assert shares is not None
    assert ((shares > 0) & (shares < 1)).all()
