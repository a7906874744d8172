"""Transformers with random weights, exported in the test run, come to every opset and stay right."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import checker

import reducelower
from reducelower.numerics.tolerance import Tolerance
from reducelower.recompose import raise_with_plan

torch = pytest.importorskip("torch")

from tools.exporters.transformers import MODELS, exported, made, run  # noqa: E402 (needs torch)


@pytest.mark.parametrize(("opset", "dynamo"), [(14, False), (18, True)], ids=["traced", "dynamo"])
@pytest.mark.parametrize("name", MODELS)
def test_a_transformer_comes_to_every_opset(name: str, opset: int, dynamo: bool, tmp_path: Path) -> None:
    model, feeds = exported(name, tmp_path, opset=opset, dynamo=dynamo)
    expected = run(model, feeds)
    for target in (9, 11, 13, 17, 21):
        converted = reducelower.convert_version(model, target)
        checker.check_model(converted, full_check=True)
        for found, wanted in zip(run(converted, feeds), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5, err_msg=f"opset {target}")


def test_a_fused_model_comes_to_every_opset(tmp_path: Path) -> None:
    """As onnxruntime's optimizer writes it: operators of its own, LayerNormalization at opset 14."""
    model, feeds = exported("Bert", tmp_path, opset=14, dynamo=False)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "fused.onnx")
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    fused = onnx.load(tmp_path / "fused.onnx")
    assert any(node.op_type == "LayerNormalization" for node in fused.graph.node)
    assert any(node.domain == "com.microsoft" for node in fused.graph.node)
    expected = run(fused, feeds)
    for target in (9, 11, 13, 17, 21):
        converted = reducelower.convert_version(fused, target)
        checker.check_model(converted, full_check=True)
        np.testing.assert_allclose(run(converted, feeds)[0], expected[0], rtol=1e-4, atol=1e-5)


def computed(name: str) -> dict[str, int]:
    """How often a transformer computes what there is an operator for, by what its modules are called."""
    found: Counter[str] = Counter()

    def count(module: Any, *_: Any) -> None:
        kind = type(module).__name__
        if kind.endswith("RMSNorm"):
            found["RMSNormalization"] += 1
        elif "LayerNorm" in kind:
            found["LayerNormalization"] += 1
        elif "GroupNorm" in kind:
            found["GroupNormalization"] += 1
        elif "GELU" in kind or "Gelu" in kind:
            found["Gelu"] += 1

    module, given = made(name)
    for part in module.modules():
        part.register_forward_hook(count)
    with torch.no_grad():
        module(given)
    return dict(found)


@pytest.mark.parametrize(("opset", "dynamo"), [(14, False), (18, True)], ids=["traced", "dynamo"])
@pytest.mark.parametrize("name", MODELS)
def test_what_a_transformer_computes_is_put_together(name: str, opset: int, dynamo: bool, tmp_path: Path) -> None:
    model, feeds = exported(name, tmp_path, opset=opset, dynamo=dynamo)
    converted = reducelower.convert_version(model, 23)
    raised = raise_with_plan(converted)
    checker.check_model(raised.model, full_check=True)
    wanted = computed(name)
    kinds = Counter(node.op_type for node in raised.model.graph.node)
    assert {kind: kinds[kind] for kind in wanted} == wanted, raised.plan.notes
    # A value near zero that layers with random weights add up from large ones may be off by the rounding of these.
    near = {"float": Tolerance(64, 1e-5, 1e-5)}
    verdict = reducelower.verify(converted, raised.model, plan=raised.plan, tolerances=near).verdict
    # onnxruntime's InstanceNormalization loses digits where the values of a group hardly differ.
    assert verdict == "equivalent" or (name, verdict) == ("Bit", "not shown")
    again = reducelower.expand(raised.model, ops=sorted(wanted.keys() - {"Gelu"}), rules="stable")
    for found in (raised.model, again):
        np.testing.assert_allclose(run(found, feeds)[0], run(model, feeds)[0], rtol=1e-4, atol=1e-5)
