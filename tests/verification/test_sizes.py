"""Sizes that regions ask for: rows that are as long as a product, paddings of every side, letters of an Einsum.

And what rests on sizes alone: values without elements, shapes that are declared.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper, parser

from reducelower import Target, convert_version
from reducelower.api import legalize
from reducelower.verification import verify, verify_regions
from reducelower.verification.feeding.roles import Role

from .models import model

RESHAPED = "g (float[B, L, H, D] x) => (float[a, b, c] y) <int64[3] s = {%s}> { %s }"
REST = (
    "g (float[N, M] x) => (float[a, b] y) <int64[1] s = {%d}, int64[1] e = {4}, int64[2] last = {-1, 2}> "
    "{ n = Shape (x)  rest = Slice (n, s, e)  k = Concat <axis = 0> (rest, last)  y = Reshape (x, k) }"
)
CUT = "g (float[N, 4] x) => (float[M, 4] y) <int64[1] s = {0}, int64[1] e = {%d}> { y = Slice (x, s, e) }"
LONGER = (
    "g (float[N] x) => (float[N] y) <int64[1] k = {%d}> { n = Shape (x)  c = Greater (n, k)  m = Squeeze (c)  "
    "y = If (m) <then_branch = t () => (float[N] p) { p = Neg (x) }, "
    "else_branch = e () => (float[N] q) { q = Abs (x) }> }"
)
PADDED = "g (float[A, B, C] x, int64[n] p) => (float[d, e, f] y) { y = Pad (x, p) }"
MULTIPLIED = "g (float[A, B, C, D] x, float[E, F, 2, 6] w) => (float[a, b, c, d] y) { y = %s (w, x) }"


@pytest.mark.parametrize("shape", ["0, 0, 16", "0, 0, 13", "-1, 12, 0"])
def test_dimensions_are_fed_of_which_the_product_is_what_a_reshape_asks_for(shape: str) -> None:
    before, after = "u = Neg (x)  y = Reshape (u, s)", "u = Reshape (x, s)  y = Neg (u)"
    (site,) = verify_regions(model(RESHAPED % (shape, before)), model(RESHAPED % (shape, after))).findings
    assert site.status == "equal"
    assert site.values


@pytest.mark.parametrize(("start", "verdict"), [(2, "equivalent"), (1, "different")])
def test_what_never_has_elements_is_seen_whole(start: int, verdict: str) -> None:
    before, after = model(REST % 2, 11), model(REST % start, 13)
    assert verify(before, after, dims={"N": 2, "M": 4}).verdict == verdict


def test_paddings_of_unknown_number_are_fed_for_every_side() -> None:
    (site,) = verify_regions(model(PADDED, 13), model(PADDED, 18)).findings
    assert site.status == "equal"
    assert site.values


def test_a_letter_of_an_einsum_is_one_size() -> None:
    before = model(MULTIPLIED % 'Einsum <equation = "bnij, bnjk -> bnik">')
    (site,) = verify_regions(before, model(MULTIPLIED % "MatMul")).findings
    assert site.status == "equal"


def test_a_letter_of_an_einsum_is_one_size_where_no_shape_is_known() -> None:
    text = "g (float[2, 3] x, float[T] t, int64[2] s) => (float[A, B] y) { w = Reshape (t, s)  y = %s }"
    sides = [model(text % f'Einsum <equation = "{terms}"> (x, w)') for terms in ("ij,jk->ik", "ij,kj->ik")]
    assert verify(sides[0], model(text % "MatMul (x, w)")).sites[0].status == "equal"
    assert verify(*sides).sites[0].status == "different"


def test_matrices_are_fed_of_which_a_grid_takes_as_many() -> None:
    text = """<ir_version: 9, opset_import: ["" : 20, "local" : 1]>
    g (float[A, B, C] x) => (float[2, H, W, 2] y) { y = local.F (x) }
    <domain: "local", opset_import: ["" : 20]>
    F (x) => (y) { s = Constant <value = int64[4] {2, 1, 2, 3}> () y = AffineGrid (x, s) }"""
    before = parser.parse_model(text)
    after = convert_version(before, 17)
    (site,) = verify(before, after).sites
    assert (site.status, site.cases > 5) == ("equal", True)
    grid = next(item for node in after.functions[0].node for item in node.attribute if item.name == "value").t
    grid.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(grid) * np.float32(1.01)))
    assert verify(before, after).sites[0].status == "different"


def test_sizes_of_a_grid_that_are_fed_are_for_as_many_matrices() -> None:
    before = model("g (float[2, 2, 3] t, int64[4] s) => (float[A, H, W, B] y) { y = AffineGrid (t, s) }", 20)
    (site,) = verify_regions(before, convert_version(before, 17)).findings
    assert (site.status, site.cases > 5) == ("equal", True)


def test_what_is_computed_from_declared_sizes_is_no_input() -> None:
    """The paddings are computed from a shape, in many steps, and stand as an attribute in the converted model."""
    steps = "  ".join(f"m{at} = Mod (q{at}, k)  q{at + 1} = Sub (k, m{at})" for at in range(4))
    given = model(
        "g (float[1, 36, 3] x) => (float[a, b, c, d] y) <int64[1] i = {1}, int64 k = {4}, int64[1] one = {1}, "
        "int64[1] six = {6}, int64[1] last = {-1}, int64[1] none = {0}, int64[6] z = {0, 0, 0, 0, 0, 0}> "
        "{ n = Shape (x)  q0 = Gather (n, i)  h = Div (q0, six)  s = Concat <axis = 0> (one, h, six, last)  "
        f"r = Reshape (x, s)  {steps}  p = Concat <axis = 0> (z, q4, none)  y = Pad (r, p) }}",
        17,
    )
    made = legalize(given, Target(10))
    assert verify(given, made.model, plan=made.plan).verdict == "equivalent"


def test_what_holds_at_the_declared_size_of_one_place_alone_is_seen_at_another() -> None:
    cut = "s = Slice (a, zero, four)  t = Slice (b, zero, four)  y = Neg (s)  z = Neg (t)"
    text = (
        "g (float[4] x, float[6] w) => (float[A] y, float[B] z) <int64[1] zero = {0}, int64[1] four = {4}> "
        "{ a = Abs (x)  b = Abs (w)  %s }"
    )
    found = verify_regions(model(text % "y = Neg (a)  z = Neg (b)"), model(text % cut)).findings
    assert any(site.status == "different" for site in found)


def test_a_size_that_only_one_side_asks_for_is_fed() -> None:
    assert verify(model(LONGER % 5_000), model(LONGER % 5_001)).verdict == "different"


def test_ends_beyond_every_size_are_one() -> None:
    assert verify(model(CUT % (2**31 - 1)), model(CUT % (2**63 - 1))).verdict == "equivalent"


def test_ends_along_a_known_size_need_no_larger_one() -> None:
    known = CUT.replace("float[N, 4] x", "float[9, N] x").replace("float[M, 4] y", "float[A, B] y")
    assert verify(model(known % 5_000_000), model(known % 6_000_000)).verdict == "equivalent"


@pytest.mark.parametrize(("weight", "verdict"), [(1, "equivalent"), (2, "different")])
def test_no_sizes_are_fed_that_the_stated_shape_of_the_result_rules_out(weight: float, verdict: str) -> None:
    head = "g (float[1, 3, 4] x, int64[3] s) => (float[1, 3, 2] z)"
    resize = 'Resize <mode = "linear", coordinate_transformation_mode = "align_corners"> (x, , , s)'
    before = model(f"{head} <float[1, 3, 2] y> {{ y = {resize} z = Neg (y) }}", opset=13)
    weights = f"float[4, 2] w = {{1, 0, 0, 0, 0, 0, 0, {weight}}}"
    after = model(f"{head} <{weights}> {{ y = MatMul (x, w) z = Neg (y) }}", opset=10)
    feeds = {"x": np.arange(12, dtype=np.float32).reshape(1, 3, 4), "s": np.array([1, 3, 2])}
    assert verify(before, after, inputs=feeds).verdict == verdict


@pytest.mark.parametrize("target", [7, 12])
def test_sizes_of_a_split_make_up_its_axis(target: int) -> None:
    source = model("g (float[4, 5] x, int64[2] s) => (float[a, b] y) { y, z = Split <axis = -1> (x, s) }")
    found = verify(source, convert_version(source, target))
    assert found.verdict == "equivalent", str(found)
    text = "g (float[4, 5] x, int64[2] s) => (float[a, b] y) { %s }"
    fixed = "p = Abs (s)  n, m = Split <axis = 0, num_outputs = 2> (p)  y, z = Split <axis = 1> (x, p)"
    assert verify(source, model(text % fixed)).verdict == "equivalent"
    swapped = (
        "n, m = Split <axis = 0, num_outputs = 2> (s)  p = Concat <axis = 0> (m, n)  y, z = Split <axis = 1> (x, p)"
    )
    assert verify(source, model(text % swapped)).verdict == "different"


@pytest.mark.parametrize(("shape", "count"), [((2,), 5), ((3,), 7), ((1,), 4), ((2,), 0), ((4,), 2)])
def test_parts_are_sizes_that_make_up_the_length(shape: tuple[int, ...], count: int) -> None:
    role, rng = Role("parts", "x", -1), np.random.default_rng(0)
    drawn = [role.values((3, count), shape, rng) for _ in range(20)]
    assert all(
        parts is not None and parts.shape == shape and parts.sum() == count and parts.min() >= 0 for parts in drawn
    )


def test_a_type_that_holds_the_declared_sizes_is_right() -> None:
    text = "g (float[5, 3] x) => (int64[2] y) { n = Shape (x)  %s }"
    cast = "f = Cast <to = 10> (n)  y = Cast <to = 7> (f)"
    assert verify(model(text % "y = Identity (n)"), model(text % cast)).verdict == "equivalent"


AVERAGED = (
    "g (bool c, float[64, 64] x) => (float[64, 1] y) <int64[1] a = {{1}}, float n = {{{}}}> {{ y = If (c) "
    "<then_branch = t () => (float[64, 1] p) {{ e = Exp (x)  {} }}, "
    "else_branch = e () => (float[64, 1] q) {{ q = ReduceMax (x, a) }}> }}"
)


@pytest.mark.parametrize(("count", "verdict"), [(64, "equivalent"), (63, "different")])
def test_what_rests_on_declared_sizes_is_fed_at_these(count: int, verdict: str) -> None:
    """In a branch, no run of the model shows sizes, and those that are declared are made smaller at first."""
    before = model(AVERAGED.format(count, "p = ReduceMean (e, a)"))
    after = model(AVERAGED.format(count, "s = ReduceSum (e, a)  p = Div (s, n)"))
    assert verify(before, after).verdict == verdict
