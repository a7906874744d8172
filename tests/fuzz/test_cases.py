"""A few hundred random cases, and what holds of how they are drawn."""

from __future__ import annotations

import contextlib

import numpy as np
import onnx.checker
import pytest

from reducelower.model.graph import all_nodes
from reducelower.model.schemas import REDUCTIONS, opset_of
from tools.fuzz.drawing import NotDrawableError
from tools.fuzz.generating import generate, node_case, operator_versions
from tools.fuzz.graphs import random_graphs
from tools.fuzz.judging import FINDINGS, judge
from tools.fuzz.nodes import DrawnNode, draw_node
from tools.fuzz.processes import results
from tools.fuzz.versions import measured


@measured
# A few: that every rewrite is right, `test_rewrites` says.
@pytest.mark.parametrize(("kind", "seed", "count"), [("nodes", 1001, 45), ("graphs", 1001, 4)])
def test_no_case_is_converted_wrongly(kind: str, seed: int, count: int) -> None:
    found = list(results(kind, seed, 0, count, shrinks=False))
    assert len(found) == count
    assert [f"{one.kind}: {one.name}: {one.detail}\n{one.text}" for one in found if one.kind in FINDINGS] == []
    assert sum(one.kind == "equal" for one in found) > count // 3


@measured
@pytest.mark.parametrize("op_type", REDUCTIONS)
def test_no_reduction_is_converted_wrongly(op_type: str) -> None:
    kinds = []
    for number, opset in enumerate((9, 12, 17, 18, 22)):
        case = node_case(np.random.default_rng(number), op_type, opset, str(number))
        verdict = judge(case)
        assert not verdict.is_finding, f"{verdict.kind}: {case.name}: {verdict.detail}"
        kinds.append(verdict.kind)
    assert kinds.count("equal") > 2


def first_drawn(rng: np.random.Generator, op_type: str, opset: int) -> DrawnNode | None:
    for _ in range(50):
        with contextlib.suppress(NotDrawableError):
            return draw_node(rng, op_type, opset)
    return None


@measured
@pytest.mark.parametrize("first", range(0, len(operator_versions()), 100))
def test_a_node_of_every_version_of_every_operator_is_drawn(first: int) -> None:
    for op_type, since, last in operator_versions()[first : first + 100]:
        rng = np.random.default_rng(first)
        for opset in {since, last}:
            node = first_drawn(rng, op_type, opset)
            assert node is not None, (op_type, opset)
            assert (node.op_type, node.opset) == (op_type, opset)
            assert any(node.output_types)


def test_the_same_number_of_a_seed_is_the_same_case() -> None:
    for number in range(0, 300, 20):
        try:
            first, second = generate("nodes", 5, number), generate("nodes", 5, number)
        except NotDrawableError:
            continue
        assert first.name == second.name
        assert first.model.SerializeToString() == second.model.SerializeToString()


def test_random_graphs_are_valid_and_hold_like_nodes() -> None:
    graphs = random_graphs(7, 4, opset=18)
    for model, feeds in graphs:
        onnx.checker.check_model(model)
        assert opset_of(model) == 18
        assert set(feeds) <= {value.name for value in model.graph.input}
    operators = [[node.op_type for node in all_nodes(model) if node.op_type != "Constant"] for model, _ in graphs]
    assert all(len(names) >= 5 for names in operators)
    assert any(len(set(names)) < len(names) for names in operators)
