"""Sparse initializers and constants are values as dense ones are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from onnx import ModelProto, helper, numpy_helper

from reducelower.difference import difference
from reducelower.verification import verify
from tests.models import model


def sparse(values: Sequence[float], places: Sequence[int], size: int = 4) -> ModelProto:
    """The product of rows with a sparse vector."""
    held = numpy_helper.from_array(np.array(values, np.float32), "s")
    at = numpy_helper.from_array(np.array(places, np.int64), "places")
    made = product(size)
    made.graph.sparse_initializer.append(helper.make_sparse_tensor(held, at, [size]))
    return made


def dense(*values: float) -> ModelProto:
    made = product(len(values))
    made.graph.initializer.append(numpy_helper.from_array(np.array(values, np.float32), "s"))
    return made


def of_constant(values: Sequence[float], places: Sequence[int]) -> ModelProto:
    """The same with a Constant node."""
    made = sparse(values, places)
    (held,) = made.graph.sparse_initializer
    made.graph.node.insert(0, helper.make_node("Constant", [], ["s"], sparse_value=held))
    del made.graph.sparse_initializer[:]
    return made


def product(size: int) -> ModelProto:
    return model(f"(float[2,{size}] x) => (float[2,{size}] y) {{ y = Mul (x, s) }}")


SAME = {
    "itself": sparse([1, 2], [0, 2]),
    "stated in another order": sparse([2, 1], [2, 0]),
    "with a zero that is stated": sparse([1, 0, 2], [0, 1, 2]),
    "dense": dense(1, 0, 2, 0),
    "a constant": of_constant([1, 2], [0, 2]),
}
OTHER = {
    "a value": sparse([1, 3], [0, 2]),
    "a place": sparse([1, 2], [0, 3]),
    "dense": dense(1, 0, 3, 0),
    "a constant": of_constant([1, 3], [0, 2]),
}


@pytest.mark.parametrize("other", SAME)
def test_the_same_values_are_the_same(other: str) -> None:
    given = sparse([1, 2], [0, 2])
    assert verify(given, SAME[other]).verdict == verify(SAME[other], given).verdict == "equivalent"
    assert difference(given, SAME[other]).changes == ()


@pytest.mark.parametrize(("other", "values"), [("a value", 2), ("a place", 4), ("dense", 2), ("a constant", 2)])
def test_what_differs_is_told_by_the_values_of_the_model(other: str, values: int) -> None:
    given = sparse([1, 2], [0, 2])
    found = verify(given, OTHER[other])
    assert found.verdict == "different"
    assert all(f"{values} of 8 values differ" in site.reason for site in found.sites)
    said = "\n".join(line.text for line in difference(given, OTHER[other]).lines)
    assert f"{values // 2} of 4 values differ" in said


def looked_up(value: float) -> ModelProto:
    """Elements of a sparse vector that is too large to be made dense, only to look at it."""
    made = model("(int64[3] i) => (float[3] y) { y = Gather (s, i) }")
    made.graph.sparse_initializer.extend(sparse([1, value], [0, 2], (1 << 24) + 1).graph.sparse_initializer)
    return made


def test_what_is_too_large_to_be_made_dense_is_the_same_on_both_sides_or_not_shown() -> None:
    assert verify(looked_up(2), looked_up(2)).verdict == "equivalent"
    found = verify(looked_up(2), looked_up(3))
    assert found.verdict != "equivalent"
    assert "the weight 's' is sparse, and too large to be made dense" in [site.reason for site in found.sites]
