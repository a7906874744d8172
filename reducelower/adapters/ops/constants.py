"""Constant nodes at their boundaries."""

from __future__ import annotations

from onnx import helper

from reducelower.adapters.builder import Writer
from reducelower.adapters.rules import rule
from reducelower.errors import RefusedError
from reducelower.model.attributes import attribute_of
from reducelower.model.constants import tensor_of
from reducelower.model.numbers import FIRST_FLOATS
from reducelower.scope.node import unheld


@rule("Constant", "below 12")
def _lower_shorthand(op: Writer) -> None:
    """``value_int`` and the like become a tensor."""
    if attribute_of(op.node, "value") is not None or attribute_of(op.node, "sparse_value") is not None:
        return
    tensor = tensor_of(op.node)
    if tensor is None:
        raise RefusedError("it holds no value, so the model is not valid", "correct the model")
    del op.node.attribute[:]
    op.node.attribute.append(helper.make_attribute("value", tensor))


@rule("Constant", "below 9")
def _lower_element_type(op: Writer) -> None:
    """Before opset 9, Constant takes only floats; `without_constants` makes initializers of others."""
    tensor = tensor_of(op.node)
    if tensor is not None and tensor.data_type not in FIRST_FLOATS:
        raise unheld(tensor.data_type)
