"""Cast by a type's name, and CastLike; not text, since the nodes depend on types.

Sources: the pages of Cast (1, 6), CastLike (15 and later).
"""

from __future__ import annotations

from onnx import NodeProto, TensorProto, helper, numpy_helper

from reducelower.adapters.builder import Writer
from reducelower.adapters.rules import rule
from reducelower.errors import RefusedError
from reducelower.model.attributes import attribute_of
from reducelower.model.schemas import parse_element_type


@rule("Cast", "from 6")
def _raise_name(op: Writer) -> None:
    """The name of an element type becomes its number."""
    name = op.attribute("to")
    try:
        op.set("to", parse_element_type(str(name)))
    except ValueError as error:
        raise RefusedError(str(error)) from error


@rule("Cast", "below 6")
def _lower_number(op: Writer) -> list[NodeProto] | None:
    """The number of an element type becomes its name, which shape inference does not read."""
    if op.scope.element_type(op.input(0)) == op.attribute("to"):
        return op.yields("Identity", op.input(0))
    op.set("to", TensorProto.DataType.Name(op.attribute("to")))
    return None


_FOLDED = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.INT32)
"""Types between which every runtime casts alike, so that constants may be cast here."""

_SMALL = 64
"""Most elements of a constant that is stored again."""


@rule("CastLike", "absent", opset=24)
def _cast_like(op: Writer) -> list[NodeProto]:
    """Cast the data, or store a small constant in the other type, such as in function bodies with CastLike."""
    data, other = op.node.input[:2]
    goal = op.scope.needed_element_type(other)
    value = op.scope.constant(data)
    if value is not None and value.size <= _SMALL and op.scope.element_type(data) in _FOLDED and goal in _FOLDED[:2]:
        array = value.astype(helper.tensor_dtype_to_np_dtype(goal))
        return op.yields("Constant", value=numpy_helper.from_array(array, op.node.output[0]))
    marks = filter(None, (attribute_of(op.node, name) for name in ("saturate", "round_mode")))
    return op.yields("Cast", data, copied=marks, to=goal)
