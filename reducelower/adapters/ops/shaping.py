"""Reshape with allowzero, and Split with computed sizes; not text, since the nodes depend on sizes and outputs.

Sources: the pages of Reshape (13, 14), Split (13).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, helper

from reducelower.adapters.builder import Writer
from reducelower.adapters.reshaping import plain_reshape
from reducelower.adapters.rules import rule
from reducelower.model.attributes import make_node

__all__ = ["without_allowzero"]


@rule("Reshape", "below 14")
def _lower_allowzero(op: Writer) -> list[NodeProto] | None:
    """Without allowzero, a zero copies the size of the input; with it, the result has no elements.

    A shape with such a zero has no -1, and the data is empty. So a single known zero can be written as -1.
    """
    if not op.attribute("allowzero", 0):
        return None
    shape = op.constant_input(1)
    if shape is None:
        return without_allowzero(op) or _with_branches(op)
    op.drop("allowzero")
    zeros = int((shape == 0).sum())
    if zeros == 0:
        return None
    if zeros == 1:
        op.node.input[1] = op.integers(np.where(shape == 0, -1, shape), "shape")
        return None
    dtype = helper.tensor_dtype_to_np_dtype(op.element_type(0))
    return op.yields("Identity", op.scope.add_constant(np.zeros(shape.tolist(), dtype), "nothing"))


def without_allowzero(op: Writer) -> list[NodeProto] | None:
    """The Reshape that means the same without allowzero, for opset 13; None if too little is known about sizes."""
    data, target = op.node.input[:2]
    known = op.scope.known(data), op.scope.known(target), op.scope.known(op.node.output[0])
    plain = plain_reshape(*known) or plain_reshape(*known, op.scope.never_zero())
    if (plain is None or not plain.is_plain) and not op.scope.heeds_zero():
        plain = plain_reshape(*known, is_empty_never=True)
    if plain is None:
        return None
    if plain.target is not None:
        target = op.integers(plain.target, "shape")
    if plain.ahead:
        data = op.add("Unsqueeze", data, op.integers(plain.ahead, "axes"))
    if not plain.behind:
        return op.yields("Reshape", data, target)
    return op.yields("Squeeze", op.add("Reshape", data, target), op.integers(plain.behind, "axes"))


def _with_branches(op: Writer) -> list[NodeProto]:
    """Test at run time whether the shape has a zero; data whose known sizes are not zero rule that out."""
    data, target = op.node.input[:2]
    sizes = op.shape(0)
    if sizes is not None and all(sizes):
        return op.yields("Reshape", data, target)
    element_type = op.element_type(0)
    nothing = "" if element_type == TensorProto.STRING else 0
    zero = op.scope.add_constant(np.array(nothing, helper.tensor_dtype_to_np_dtype(element_type)), "zero")
    result = op.scope.shape(op.node.output[0])

    def branch(op_type: str, source: str) -> GraphProto:
        name = op.fresh(op_type.lower())
        made = make_node(op_type, [source, target], [name])
        made.name = name
        # Some runtimes refuse a branch of unknown rank.
        return helper.make_graph([made], name, [], [helper.make_tensor_value_info(name, element_type, result)])

    product = op.add("ReduceProd", target, tail="product", keepdims=0)
    has_zero = op.add("Equal", product, op.integers(0, "number_of_none"), tail="has_zero")
    return op.yields("If", has_zero, then_branch=branch("Expand", zero), else_branch=branch("Reshape", data))


@rule("Split", "below 13")
def _lower_computed_sizes(op: Writer) -> list[NodeProto] | None:
    """An attribute cannot state computed sizes, so each part becomes a Slice."""
    name = op.input(1)
    sizes: Any = op.scope.constant(name) if name else None
    if not name or (sizes is not None and (sizes >= 0).all()):
        return None
    axes = op.integers([int(op.attribute("axis", 0))], "axis")
    zero = op.integers([0], "axes_0")
    start = zero
    for index in range(len(op.node.output)):
        places = [op.integers([place], f"part_{place}") for place in (index, index + 1)]
        size = op.add("Slice", name, *places, zero, tail=f"size_{index}")
        end = op.add("Add", start, size, tail=f"end_{index}")
        if op.node.output[index]:
            op.yields("Slice", op.input(0), start, end, axes, output=index)
        start = end
    return op.nodes
