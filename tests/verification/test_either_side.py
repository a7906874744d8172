"""Pairs that differ at one place only: a size that has to be one, an offset, a key, a magnitude, a threshold."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

from reducelower.verification import verify

COUNT = 40


def chained(thresholds: np.ndarray) -> ModelProto:
    """A tree that compares one feature with one threshold after the other."""
    leaves = COUNT + 1
    nothing = [0] * leaves
    node = helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1,
        nodes_treeids=[0] * (COUNT + leaves), nodes_nodeids=list(range(COUNT + leaves)),
        nodes_featureids=[0] * (COUNT + leaves), nodes_values=[*map(float, thresholds), *map(float, nothing)],
        nodes_modes=["BRANCH_LEQ"] * COUNT + ["LEAF"] * leaves,
        nodes_truenodeids=[*range(COUNT, 2 * COUNT), *nothing],
        nodes_falsenodeids=[*range(1, COUNT), 2 * COUNT, *nothing],
        target_treeids=nothing, target_nodeids=list(range(COUNT, COUNT + leaves)), target_ids=nothing,
        target_weights=[at + 0.5 for at in range(leaves)],
    )  # fmt: skip
    given, result = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 1]) for name in ("x", "y"))
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(helper.make_graph([node], "g", [given], [result]), opset_imports=imports, ir_version=8)


@pytest.mark.parametrize("at", range(0, COUNT, 6))
def test_every_threshold_of_a_tree_is_met_from_both_sides(at: int) -> None:
    thresholds = np.sort(np.random.default_rng(3).standard_normal(COUNT) * 3)
    other = thresholds.copy()
    other[at] += 0.001
    assert verify(chained(thresholds), chained(other)).verdict == "different"
