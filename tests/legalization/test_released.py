"""Initializers of IR version 3 stay constants: they leave the graph inputs on the way to IR version 4."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, checker, numpy_helper, parser

import reducelower
from tests.models import yields

W = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)


def _model(ir_version: int, opset: int = 8, large: bool = False) -> ModelProto:
    size = 64 if large else 3
    made = parser.parse_model(
        f"""<ir_version: {ir_version}, opset_import: ["": {opset}]>
        g (float[2,{size}] x, float[{size},{size}] w, float[{size}] b) => (float[2,{size}] y)
        {{ z = MatMul(x, w) y = Add(z, b) }}"""
    )
    made.graph.initializer.append(numpy_helper.from_array(W[:size, :size], "w"))
    made.graph.initializer.append(numpy_helper.from_array(W[0, :size], "b"))
    return made


def _inputs(model: ModelProto) -> list[str]:
    return [value.name for value in model.graph.input]


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("target", [9, 13, 21])
def test_they_leave_with_a_note(target: int, large: bool) -> None:
    source = _model(3, large=large)
    made = reducelower.legalize(source, reducelower.Target(target))
    assert _inputs(made.model) == ["x"]
    assert any("2 initializers left the graph inputs" in note for note in made.plan.notes)
    checker.check_model(made.model, full_check=True)
    of_bytes = ModelProto.FromString(reducelower.convert_version(source.SerializeToString(), target))
    assert of_bytes == made.model
    x = W[:2, : 64 if large else 3]
    np.testing.assert_array_equal(yields(made.model, {"x": x})[0], yields(source, {"x": x})[0])


@pytest.mark.parametrize(("ir_version", "target", "setting"), [(3, 8, "auto"), (3, 9, "keep"), (4, 13, "auto")])
def test_they_stay_where_they_mean_the_same_as_before(ir_version: int, target: int, setting: str) -> None:
    """Below IR version 4 they are constants, and in a model of IR version 4 they were defaults all along."""
    made = reducelower.convert_version(_model(ir_version), target, ir_version=setting)  # type: ignore[arg-type]
    assert _inputs(made) == ["x", "w", "b"]


def test_they_leave_where_repair_has_to_raise_the_ir_version() -> None:
    source = _model(3)
    del source.graph.input[2]  # which only IR version 4 allows
    mended = reducelower.repair(source)
    assert mended.model.ir_version >= 4
    assert _inputs(mended.model) == ["x"]
    assert any("left the graph inputs" in said for said in mended.done)
