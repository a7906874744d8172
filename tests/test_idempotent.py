"""Every command applied twice is the command applied once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import onnx
import pytest
from onnx import ModelProto, parser

import reducelower
from reducelower import ConversionError, Target, load_runtime

MODELS = sorted((Path(__file__).parent / "data" / "models").glob("*.onnx"))


def _for_runtime(name: str, model: ModelProto) -> ModelProto:
    return reducelower.legalize(model, Target(runtime=load_runtime(name))).model


def _repaired(model: ModelProto) -> ModelProto:
    return reducelower.repair(model).model


COMMANDS: dict[str, Callable[[ModelProto], ModelProto]] = {
    **{f"expand by {book}": partial(reducelower.expand, rules=book) for book in ("spec", "stable", "core")},
    **{f"for {name}": partial(_for_runtime, name) for name in ("openvino", "opencv")},
    "repair": _repaired,
    "raise": reducelower.raise_reductions,
}


def _twice(change: Callable[[ModelProto], ModelProto], model: ModelProto) -> None:
    try:
        once = change(model)
    except ConversionError:
        return
    assert change(once) == once


@pytest.mark.parametrize("command", COMMANDS)
def test_models_of_exporters_come_out_of_the_second_time_as_of_the_first(command: str) -> None:
    for path in MODELS:
        _twice(COMMANDS[command], onnx.load(path))


@pytest.mark.parametrize("book", ["spec", "stable", "core"])
def test_what_was_expanded_is_raised_at_once(book: str) -> None:
    for path in MODELS:
        _twice(reducelower.raise_reductions, reducelower.expand(onnx.load(path), rules=book))


@pytest.mark.parametrize("book", ["spec", "stable", "core"])
def test_a_normalization_by_an_expanded_reduction_is_raised_at_once(book: str) -> None:
    """The mean came back first, and only the second time what it is part of."""
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 23]> g (float[2,3,8] x) => (float[2,3,8] y)
        <int64[1] a = {-1}, float e = {1e-6}, float[8] s = {1,2,3,4,5,6,7,8}> {
            q = Mul (x, x) m = ReduceMean (q, a) w = Add (m, e) r = Sqrt (w) o = Div (x, r) y = Mul (o, s)
        }"""
    )
    expanded = reducelower.expand(model, rules=book)
    raised = reducelower.raise_reductions(expanded)
    assert [node.op_type for node in raised.graph.node] == ["RMSNormalization"]
    _twice(reducelower.raise_reductions, expanded)


def test_the_plan_of_two_passes_names_all_nodes_that_went_into_one() -> None:
    from reducelower.recompose.run import raise_with_plan

    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 23]> g (float[2,3,8] x) => (float[2,3,8] y, float[2,3,1] z)
        <int64[1] a = {-1}, float e = {1e-6}, float[8] s = {1,2,3,4,5,6,7,8}> {
            k = ReduceMean (x, a) z = Neg (k)
            q = Mul (x, x) m = ReduceMean (q, a) w = Add (m, e) r = Sqrt (w) o = Div (x, r) y = Mul (o, s)
        }"""
    )
    expanded = reducelower.expand(model, rules="core")
    made = raise_with_plan(expanded)
    mean, normalization = made.plan.sites
    assert (mean.op_type, normalization.op_type) == ("ReduceMean", "RMSNormalization")
    neg = [node.op_type for node in expanded.graph.node].index("Neg")
    assert normalization.raised_from == tuple(range(neg + 1, len(expanded.graph.node)))
    assert made.model.graph.node[normalization.first].op_type == "RMSNormalization"
    assert made.plan.carried == 1
    assert reducelower.verify(expanded, made.model, plan=made.plan).verdict == "equivalent"
