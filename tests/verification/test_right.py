"""Conversions that are right, and were called different: of shapes that names tell, and of empty data."""

from __future__ import annotations

from reducelower import Target, legalize
from reducelower.verification import verify

from .models import model

NAMED = """g (float[s, 20, 4] x, int64[s, t] ids) => (float[a, b, c, d] y) <int64[1] one = {1}>
{
    rows = Shape <start = 0, end = 1> (x)
    length = Shape <start = 1, end = 2> (ids)
    shape = Concat <axis = 0> (rows, one, length, length)
    floats = Cast <to = 1> (ids)
    left = Unsqueeze (floats, one)
    down = Transpose <perm = [0, 2, 1]> (left)
    table = MatMul (down, left)
    [viewed] y = Reshape <allowzero = 1> (table, shape)
}"""


def test_a_shape_made_of_sizes_that_have_names_is_fed_with_what_it_is_of() -> None:
    """The plain Reshape keeps the size that the shape names, and is right of no other shape."""
    given = model(NAMED, 18)
    made = legalize(given, Target(13))
    found = verify(given, made.model, plan=made.plan)
    assert found.verdict == "equivalent", str(found)


EMPTY = """g (int64[s, t] ids) => (int64[a, b] y) <int64[1] rest = {-1}>
{
    length = Shape <start = 1, end = 2> (ids)
    shape = Concat <axis = 0> (rest, length)
    y = Reshape <allowzero = 1> (ids, shape)
}"""


def test_inputs_that_the_page_of_an_operator_rules_out_show_nothing() -> None:
    """Nothing is to be inferred beside a zero that stands for itself; onnxruntime takes one for it."""
    given = model(EMPTY, 18)
    made = legalize(given, Target(13))
    found = verify(given, made.model, plan=made.plan)
    assert found.verdict == "equivalent", str(found)


FLAT = """g (float[s, t, 4] x) => (float[a, b, c] y)
<int64[2] rows = {-1, 4}, int64[1] last = {4}, float[4, 4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2}>
{
    count = Shape <start = 0, end = 1> (x)
    length = Shape <start = 1, end = 2> (x)
    flat = Reshape <allowzero = 1> (x, rows)
    product = MatMul (flat, w)
    shape = Concat <axis = 0> (count, length, last)
    y = Reshape <allowzero = 1> (product, shape)
}"""


def test_sizes_of_zero_that_the_source_does_not_take_are_not_fed_to_its_parts() -> None:
    given = model(FLAT, 18)
    made = legalize(given, Target(13))
    found = verify(given, made.model, plan=made.plan)
    assert found.verdict == "equivalent", str(found)
