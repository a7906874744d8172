"""Dropout, which passes data through outside of training, and in training is a draw and a product.

Source: https://onnx.ai/onnx/operators/onnx__Dropout.html (1, 6, 7, 10, 12, 13).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper

from reducelower.adapters.builder import Writer
from reducelower.adapters.registry import Outcome, lowers, raises
from reducelower.errors import RefusedError
from reducelower.model.attributes import attribute_of, drop_attribute, set_attribute, value_of
from reducelower.scope.scope import Scope


def _has_mask(node: NodeProto) -> bool:
    return len(node.output) > 1 and bool(node.output[1])


def _with_mask(node: NodeProto, scope: Scope, value: bool) -> list[NodeProto]:
    """The data passed through, and a mask that is the same everywhere."""
    body = Writer(node, scope)
    body.yields("Identity", node.input[0])
    every = helper.make_tensor("mask", TensorProto.BOOL, [1], [value])
    body.yields("ConstantOfShape", body.add("Shape", node.input[0]), output=1, value=every)
    return body.nodes


@lowers("Dropout", 12)
def _lower_training_mode(node: NodeProto, scope: Scope) -> Outcome:
    """Only inference can be said; the ratio says nothing there. Its mask is true from 12 on and false before."""
    training = scope.constant(node.input[2]) if len(node.input) > 2 and node.input[2] else np.array(False)
    if training is None or training.reshape(-1)[0]:
        return _drawn(node, scope)
    for constant in node.input[1:]:
        if constant and scope.constant(constant) is not None:
            scope.release(constant)
    if _has_mask(node):
        return _with_mask(node, scope, True)
    drop_attribute(node, "seed")
    ratio = scope.constant(node.input[1]) if len(node.input) > 1 and node.input[1] else None
    del node.input[1:]
    if ratio is not None:
        set_attribute(node, "ratio", float(ratio.reshape(-1)[0]))
    return None


def _drawn(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """In training: what a draw between 0 and 1 leaves, which is what is not below the ratio, by 1 / (1 - ratio).

    Outside of training, where that is known at run time only, the ratio is zero.
    """
    body = Writer(node, scope)
    element_type = scope.needed_element_type(node.input[0])
    wide = TensorProto.DOUBLE if element_type == TensorProto.DOUBLE else TensorProto.FLOAT
    data = body.cast(node.input[0], element_type, wide, "wide")
    given = body.input(1)
    ratio = (
        body.cast(given, scope.needed_element_type(given), wide, "ratio") if given else body.constant(0.5, wide, "half")
    )
    if scope.constant(node.input[2]) is None:
        ratio = body.add("Mul", ratio, body.add("Cast", node.input[2], tail="is_training", to=wide), tail="ratio_now")
    # A whole number here, a float there.
    seed: dict[str, Any] = {} if attribute_of(node, "seed") is None else {"seed": float(value_of(node, "seed"))}
    draw = body.add("RandomUniformLike", data, tail="draw", dtype=wide, **seed)
    kept = body.add("Not", body.add("Less", draw, ratio, tail="dropped"), tail="kept")
    rest = body.add("Sub", body.constant(1.0, wide, "one"), ratio, tail="rest")
    scaled = body.add("Div", body.add("Mul", data, body.add("Cast", kept, to=wide), tail="left"), rest, tail="scaled")
    body.yields_cast(scaled, wide, element_type)
    return body.yields("Identity", kept, output=1) if _has_mask(node) else body.nodes


@raises("Dropout", 12)
def _raise_training_mode(node: NodeProto, scope: Scope) -> Outcome:
    """Without training_mode the ratio says nothing, and the mask would be true where it was false."""
    if _has_mask(node):
        return _with_mask(node, scope, False)
    drop_attribute(node, "ratio")
    return None


def _cast_mask(node: NodeProto, scope: Scope, element_type: int) -> list[NodeProto]:
    mask, name = (scope.fresh(node.name or node.output[0], f"/Dropout/{tail}") for tail in ("mask", "cast"))
    cast = helper.make_node("Cast", [mask], [node.output[1]], name=name, to=element_type)
    node.output[1] = mask
    return [node, cast]


@raises("Dropout", 10)
def _raise_mask(node: NodeProto, scope: Scope) -> Outcome:
    """The mask was of the data's element type."""
    return _cast_mask(node, scope, scope.needed_element_type(node.input[0])) if _has_mask(node) else None


@lowers("Dropout", 10)
def _lower_mask(node: NodeProto, scope: Scope) -> Outcome:
    """The mask was of the data's element type."""
    return _cast_mask(node, scope, TensorProto.BOOL) if _has_mask(node) else None


@raises("Dropout", 7)
def _raise_is_test(node: NodeProto, scope: Scope) -> Outcome:
    """Dropout was in training unless is_test said otherwise."""
    if not value_of(node, "is_test", 0):
        raise RefusedError("it is in training mode (is_test=0), which opsets 7 to 11 do not have", "set is_test=1")
    drop_attribute(node, "is_test")
    return None


@lowers("Dropout", 7)
def _lower_is_test(node: NodeProto, scope: Scope) -> Outcome:
    """Dropout was in training unless is_test said otherwise."""
    if _has_mask(node):
        raise RefusedError("its mask is used, which is not filled outside of training before opset 7")
    if attribute_of(node, "is_test") is not None:
        return None
    set_attribute(node, "is_test", 1)
    return None
