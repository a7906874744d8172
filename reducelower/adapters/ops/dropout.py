"""Dropout, which passes data through outside of training, and in training is a draw and a product.

Source: the page of Dropout (1, 6, 7, 10, 12, 13).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper

from reducelower.adapters.builder import Writer
from reducelower.adapters.registry import Outcome, lowers, raises
from reducelower.errors import RefusedError
from reducelower.model.attributes import attribute_of


def _with_mask(op: Writer, value: bool) -> list[NodeProto]:
    """The data passed through, and a mask that is the same everywhere."""
    op.yields("Identity", op.input(0))
    every = helper.make_tensor("mask", TensorProto.BOOL, [1], [value])
    op.yields("ConstantOfShape", op.add("Shape", op.input(0)), output=1, value=every)
    return op.nodes


@lowers("Dropout", 12)
def _lower_training_mode(op: Writer) -> Outcome:
    """Only inference can be said; the ratio says nothing there. Its mask is true from 12 on and false before."""
    training = op.constant_input(2) if op.input(2) else np.array(False)
    if training is None or training.reshape(-1)[0]:
        return _drawn(op)
    for constant in op.node.input[1:]:
        if constant and op.scope.constant(constant) is not None:
            op.scope.release(constant)
    if op.wants(1):
        return _with_mask(op, True)
    op.drop("seed")
    ratio = op.constant_input(1) if op.input(1) else None
    del op.node.input[1:]
    if ratio is not None:
        op.set("ratio", float(ratio.reshape(-1)[0]))
    return None


def _drawn(op: Writer) -> list[NodeProto]:
    """In training: what a draw between 0 and 1 leaves, which is what is not below the ratio, by 1 / (1 - ratio).

    Outside of training, where that is known at run time only, the ratio is zero.
    """
    element_type = op.element_type(0)
    wide = TensorProto.DOUBLE if element_type == TensorProto.DOUBLE else TensorProto.FLOAT
    data = op.cast(op.input(0), element_type, wide, "wide")
    given = op.input(1)
    ratio = (
        op.cast(given, op.scope.needed_element_type(given), wide, "ratio") if given else op.constant(0.5, wide, "half")
    )
    if op.constant_input(2) is None:
        ratio = op.add("Mul", ratio, op.add("Cast", op.input(2), tail="is_training", to=wide), tail="ratio_now")
    # A whole number here, a float there.
    seed: dict[str, Any] = {} if attribute_of(op.node, "seed") is None else {"seed": float(op.attribute("seed"))}
    draw = op.add("RandomUniformLike", data, tail="draw", dtype=wide, **seed)
    kept = op.add("Not", op.add("Less", draw, ratio, tail="dropped"), tail="kept")
    rest = op.add("Sub", op.constant(1.0, wide, "one"), ratio, tail="rest")
    scaled = op.add("Div", op.add("Mul", data, op.add("Cast", kept, to=wide), tail="left"), rest, tail="scaled")
    op.yields_cast(scaled, wide, element_type)
    return op.yields("Identity", kept, output=1) if op.wants(1) else op.nodes


@raises("Dropout", 12)
def _raise_training_mode(op: Writer) -> Outcome:
    """Without training_mode the ratio says nothing, and the mask would be true where it was false."""
    if op.wants(1):
        return _with_mask(op, False)
    op.drop("ratio")
    return None


def _cast_mask(op: Writer, element_type: int) -> list[NodeProto]:
    mask, name = op.fresh("mask"), op.fresh("cast")
    cast = helper.make_node("Cast", [mask], [op.node.output[1]], name=name, to=element_type)
    op.node.output[1] = mask
    return [op.node, cast]


@raises("Dropout", 10)
def _raise_mask(op: Writer) -> Outcome:
    """The mask was of the data's element type."""
    return _cast_mask(op, op.element_type(0)) if op.wants(1) else None


@lowers("Dropout", 10)
def _lower_mask(op: Writer) -> Outcome:
    """The mask was of the data's element type."""
    return _cast_mask(op, TensorProto.BOOL) if op.wants(1) else None


@raises("Dropout", 7)
def _raise_is_test(op: Writer) -> None:
    """Dropout was in training unless is_test said otherwise."""
    if not op.attribute("is_test", 0):
        raise RefusedError("it is in training mode (is_test=0), which opsets 7 to 11 do not have", "set is_test=1")
    op.drop("is_test")


@lowers("Dropout", 7)
def _lower_is_test(op: Writer) -> None:
    """Dropout was in training unless is_test said otherwise."""
    if op.wants(1):
        raise RefusedError("its mask is used, which is not filled outside of training before opset 7")
    op.state("is_test", 1)
