"""What a Reduce node reduces."""

from __future__ import annotations

from onnx import NodeProto

from reducelower.adapters.builder import Writer
from reducelower.errors import RefusedError
from reducelower.model.attributes import attribute_of, value_of
from reducelower.model.schemas import REDUCTIONS
from reducelower.scope.scope import Scope

__all__ = ["OPSET", "Reduction", "given_axes", "how_axes_are_given"]

OPSET = 18
"""Opset version that reductions are written for here: the one that made axes an input of all of them."""


def how_axes_are_given(node: NodeProto, scope: Scope) -> str:
    """A value of the condition ``axes``; docs/reference/target-files.md says what each means."""
    if node.op_type not in REDUCTIONS:
        return ""
    attribute = attribute_of(node, "axes")
    if attribute is not None:
        return "attribute" if attribute.ints else "empty"
    name = node.input[1] if len(node.input) > 1 else ""
    if not name:
        return "omitted" if len(node.input) > 1 else "absent"
    if is_empty(name, scope):
        return "empty"
    definition = scope.written_as(name)
    return "dynamic" if definition == "fed" else definition


def given_axes(node: NodeProto, scope: Scope) -> tuple[int, ...]:
    """The axes of a reduction, from an attribute or an input; empty if they are absent or empty.

    Raises:
        RefusedError: they are known only at run time, or only where a function is called.
    """
    if attribute_of(node, "axes") is not None:
        return tuple(value_of(node, "axes"))
    if len(node.input) < 2 or not node.input[1] or is_empty(node.input[1], scope):
        return ()
    value = scope.constant(node.input[1])
    if value is None:
        raise RefusedError("its axes are known at run time only", "make them constant")
    return tuple(int(axis) for axis in value.reshape(-1))


def is_empty(name: str, scope: Scope) -> bool:
    """Whether a list is empty; one that is not constant is judged by its shape."""
    value = scope.constant(name)
    return scope.shape(name) == (0,) if value is None else not value.size


class Reduction:
    """The parts of a Reduce node."""

    def __init__(self, op: Writer) -> None:
        self.op = op
        self.keepdims = int(op.attribute("keepdims", 1) != 0)
        self.axes = given_axes(op.node, op.scope)
        self.reduces_nothing = not self.axes and bool(op.attribute("noop_with_empty_axes", 0))

    def all_axes(self) -> tuple[int, ...]:
        """The axes, counted from the front; all axes if none are given.

        Raises:
            RefusedError: the rank is needed and unknown.
        """
        if self.axes and min(self.axes) >= 0:
            return self.axes
        rank = self.op.rank(0)
        return tuple(axis % rank for axis in self.axes) if self.axes else tuple(range(rank))

    @property
    def are_listed(self) -> bool:
        """Whether the node is written as `add` writes it: axes as an attribute or an initializer, keepdims stated."""
        node = self.op.node
        is_constant = len(node.input) < 2 or self.op.scope.written_as(node.input[1]) == "initializer"
        is_stated = attribute_of(node, "keepdims") is not None
        return is_constant and is_stated and attribute_of(node, "noop_with_empty_axes") is None

    def add(self, data: str, axes: tuple[int, ...], keepdims: int, tail: str = "", op_type: str = "") -> str:
        """Append a reduction for `OPSET`, by default of the same operator; without axes it reduces all.

        Nothing is left to defaults.
        """
        inputs = [self.op.integers(axes, "axes")] if axes else []
        return self.op.add(op_type or self.op.node.op_type, data, *inputs, tail=tail, keepdims=keepdims)
