"""Regions that are alike but for sizes are one check, which is tried on the sizes of each."""

from __future__ import annotations

import pytest
from onnx import ModelProto, TensorProto, helper

from reducelower import convert_version
from reducelower.verification import verify
from tests.models import model

SIZES = (40, 60)


def side_by_side(body: str, sizes: tuple[int, ...] = SIZES, constants: str = "") -> str:
    """A graph with the same nodes several times, each on an input of its own size."""
    inputs = ", ".join(f"float[2, {size}] x{at}" for at, size in enumerate(sizes))
    outputs = ", ".join(f"float[A{at}, B{at}] y{at}" for at in range(len(sizes)))
    nodes = "  ".join(body.replace("#", str(at)) for at in range(len(sizes)))
    return f"g ({inputs}) => ({outputs}) <{constants}> {{ {nodes} }}"


AXIS = "int64[1] s = {0}, int64[1] e = {50}"


@pytest.mark.parametrize("sizes", [SIZES, (60, 40), (7, 40, 60)])
def test_one_that_differs_at_its_own_size_is_seen_beside_one_that_does_not(sizes: tuple[int, ...]) -> None:
    """A slice to 50 takes all of 40, and not all of 60."""
    whole, cut = "y# = Softmax (x#)", "c# = Slice (x#, s, e, a)  y# = Softmax (c#)"
    one, other = (model(side_by_side(body, sizes, AXIS)) for body in (whole, cut))
    found = verify(one, other)
    assert found.verdict == "different"
    assert any(not site.ok for site in found.sites)


def normalizing(sizes: tuple[int, ...]) -> ModelProto:
    given = model(side_by_side("y# = LayerNormalization (x#, w#)", sizes), 17)
    for at, size in enumerate(sizes):
        given.graph.input.append(helper.make_tensor_value_info(f"w{at}", TensorProto.FLOAT, [size]))
    return given


def test_the_nodes_of_all_are_covered_by_one_check_that_says_what_is_said_of_each() -> None:
    sizes = (8, 16, 32)
    together = verify(normalizing(sizes), convert_version(normalizing(sizes), 13))
    apart = [verify(normalizing((size,)), convert_version(normalizing((size,)), 13)) for size in sizes]
    assert {found.verdict for found in (together, *apart)} == {"equivalent"}
    (site,) = together.sites
    assert {(site.op_type, site.status) for found in apart for site in found.sites} == {(site.op_type, site.status)}
    assert len(site.nodes) == sum(len(site.nodes) for found in apart for site in found.sites) == len(sizes)
