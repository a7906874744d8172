"""Legalize a model itself instead of a copy."""

from __future__ import annotations

from onnx import ModelProto

from reducelower.legalization.passes import attempt_until_settled
from reducelower.model.document import Document
from reducelower.model.skeleton import without_values
from reducelower.options import Settings, Target
from reducelower.plan import Plan
from reducelower.scope.dead_code import remove_named

__all__ = ["attempt_in_place"]


def attempt_in_place(model: ModelProto, target: Target, settings: Settings, *, report: bool) -> Plan:
    """Legalize the model itself, or leave it unchanged if the plan has refusals.

    Raises:
        ContradictionError: see `attempt`.
        ValueError: the target is invalid.
    """
    made, plan = attempt_until_settled(Document.of_message(model).for_trials(), target, settings, report=report)
    if made is not None and not _take_over(model, made.message):
        # The weights change their type, so the result of an attempt without weights cannot be used.
        made, plan = attempt_until_settled(Document.of_message(model), target, settings, report=report)
        assert made is not None
        model.CopyFrom(made.message)
    return plan


def _take_over(model: ModelProto, made: ModelProto) -> bool:
    """Move the result of an attempt without weights into the model; return False and change nothing if weights changed.

    `made` must not be used afterwards.
    """
    graph = model.graph
    own = {tensor.name: tensor for tensor in graph.initializer}
    kept = {tensor.name: tensor for tensor in made.graph.initializer}
    if any(without_values(own[name]) != kept[name] for name in own.keys() & kept.keys()):
        return False
    remove_named(graph.initializer, own.keys() - kept.keys())
    remove_named(made.graph.initializer, own.keys())
    for held, apart in ((model, "graph"), (graph, "initializer")):
        for field, _ in held.ListFields():
            if field.name != apart:
                held.ClearField(field.name)
    model.MergeFrom(made)
    return True
