"""Nodes are found by what they yield, however many values each yields."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from reducelower.types.graphs import Graph


@pytest.mark.parametrize(
    "kinds",
    [(1,), (1, 2), (1, 1, 3), (2, 40), (1, 0), (0, 2), (1, -1), (1, 2, -1, 0)],
    ids=lambda kinds: ",".join(map(str, kinds)),
)
def test_every_value_is_found_where_it_is_yielded(kinds: tuple[int, ...]) -> None:
    """A kind is how many values a node yields; of -1 the first one is left out."""
    drawn = np.random.default_rng(3).choice(kinds, 200)
    nodes = []
    for at, kind in enumerate(map(int, drawn)):
        outputs = ["", f"{at}_1"] if kind < 0 else [f"{at}_{place}" for place in range(kind)]
        nodes.append(helper.make_node("Relu" if kind == 1 else "Split", ["x"], outputs))
    found = Graph(helper.make_graph(nodes, "g", [], []), None)
    assert found.positions == {name: at for at, node in enumerate(nodes) for name in node.output if name}
