"""Pad at its boundaries: axes, the wrap mode, pads and value as attributes.

Source: https://onnx.ai/onnx/operators/onnx__Pad.html (1, 2, 11, 18, 19).
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.ops.axes import from_the_front
from reducelower.adapters.registry import Outcome, lowers, raises
from reducelower.errors import RefusedError
from reducelower.model.attributes import attribute_of, drop_attribute, set_attribute, value_of
from reducelower.model.build import copy_marks
from reducelower.scope.scope import Scope

__all__: list[str] = []

_INT64 = TensorProto.INT64


def _axes(body: Writer, rank: int) -> list[int]:
    """The axes that are padded, counted from the front."""
    if not body.input(3):
        return list(range(rank))
    axes = body.constant_input(3)
    if axes is None:
        raise RefusedError(
            "the axes it pads are computed at run time, and opset 17 pads all of them",
            "opset 18 is the oldest that has the input axes",
        )
    return [from_the_front(axis, rank) for axis in axes.reshape(-1).tolist()]


@lowers("Pad", 19)
def _lower_wrap(node: NodeProto, scope: Scope) -> Outcome:
    """Wrapping takes elements from the other end: the places are known where sizes and pads are."""
    if value_of(node, "mode", "constant") != "wrap":
        return False
    body = Writer(node, scope)
    data = node.input[0]
    shape, pads = scope.shape(data), body.constant_input(1)
    if shape is None or pads is None:
        raise RefusedError(
            "it uses mode=wrap with pads or a shape that are not known, which no other operator can do",
            "opset 19 is the oldest that has the mode",
        )
    axes = _axes(body, len(shape))
    counts = pads.reshape(-1).tolist()
    padded = [
        (axis, before, after)
        for axis, before, after in zip(axes, counts, counts[len(axes) :], strict=False)
        if before or after
    ]
    for axis, before, after in padded:
        size = shape[axis]
        if not size or before < 0 or after < 0:
            raise RefusedError(
                f"it uses mode=wrap on axis {axis}, whose size is not known, or with negative pads",
                "opset 19 is the oldest that has the mode",
            )
        places = body.constant(np.arange(-before, size + after) % size, _INT64, "places")
        data = body.add("Gather", data, places, tail=f"wrapped_{axis}", axis=axis)
    for name in node.input[1:]:
        scope.release(name)
    if not body.nodes:
        return body.yields("Identity", data)
    last = body.nodes[-1]
    last.output[0] = node.output[0]
    copy_marks(node, last)
    return body.nodes


@lowers("Pad", 18)
def _lower_axes(node: NodeProto, scope: Scope) -> Outcome:
    """Pads are given for every axis: zero for those not named."""
    body = Writer(node, scope)
    if not body.input(3):
        return False
    rank = scope.needed_rank(node.input[0])
    axes = _axes(body, rank)
    pads = body.constant_input(1)
    count = len(axes)
    # Where each of the two pads of every dimension stands among those given, or one past them.
    places = [axes.index(axis) if axis in axes else 2 * count for axis in range(rank)]
    places += [axes.index(axis) + count if axis in axes else 2 * count for axis in range(rank)]
    scope.release(node.input[3])
    value = node.input[2]
    if pads is not None:
        scope.release(node.input[1])
        known = [*pads.reshape(-1).tolist(), 0]
        node.input[1] = body.constant([known[place] for place in places], _INT64, "pads")
    else:
        extended = body.add("Concat", node.input[1], body.constant([0], _INT64, "pads_0"), tail="extended", axis=0)
        node.input[1] = body.add("Gather", extended, body.constant(places, _INT64, "places"), tail="pads", axis=0)
    del node.input[2:]
    if value:
        node.input.append(value)
    return [*body.nodes, node] if body.nodes else True


@lowers("Pad", 11)
def _lower_inputs(node: NodeProto, scope: Scope) -> Outcome:
    """The value is an attribute of type float, which must hold it exactly."""
    name = node.input[2] if len(node.input) > 2 else ""
    value = scope.constant(name) if name else None
    if value is None:
        return False
    if value_of(node, "mode", "constant") != "constant":
        scope.release(name)
        del node.input[2:]
        return True
    number = float(value.reshape(-1)[0])
    if not np.isnan(number) and float(np.float32(number)) != number:
        raise RefusedError(
            f"it pads with {number!r}, and the attribute value is of type float, which does not hold that exactly",
            "opset 11 is the oldest that takes the value as an input",
        )
    return False


@raises("Pad", 11)
def _raise_inputs(node: NodeProto, scope: Scope) -> Outcome:
    """A value that says nothing need not become an input, whose element type would have to be known."""
    value = attribute_of(node, "value")
    if value is None or value.ref_attr_name or (value.f and value_of(node, "mode", "constant") == "constant"):
        return False
    return drop_attribute(node, "value")


@raises("Pad", 2)
def _raise_name(node: NodeProto, scope: Scope) -> Outcome:
    """The attribute was called paddings."""
    paddings = value_of(node, "paddings")
    drop_attribute(node, "paddings")
    set_attribute(node, "pads", paddings)
    return True


@lowers("Pad", 2)
def _lower_name(node: NodeProto, scope: Scope) -> Outcome:
    """The attribute was called paddings, and could not crop."""
    pads = value_of(node, "pads")
    if any(pad < 0 for pad in pads):
        raise RefusedError("it crops with negative pads", "opset 2 is the oldest that does")
    drop_attribute(node, "pads")
    set_attribute(node, "paddings", pads)
    return True
