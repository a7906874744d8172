"""Widen 2-bit and 4-bit integers to 8 bits, for opset versions without such element types.

No operator computes with them: they are only moved, cast, quantized and dequantized, which works the same in 8 bits.
Weights and inner values are widened, and values made from other types are limited to the narrow range. Inputs and
outputs of the model keep their types, and operators of other domains may look at the bits, so such models are not
changed.

Sources: the pages of QuantizeLinear (21, 25), DequantizeLinear (21, 25), Cast (25), and that of 4-bit types among the
technical details: a cast to them rounds floats to the nearest integer, ties to even, where one to 8 bits truncates.
onnxruntime rounds with 2 bits as well (and takes ties away from zero).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper
from onnx.numpy_helper import from_array, to_array

from reducelower.files import DataFolder
from reducelower.legalization.whole import Changed, main_graphs
from reducelower.model.attributes import attribute_of, make_node, set_attribute
from reducelower.model.document import Document
from reducelower.model.graph import walk
from reducelower.model.names import Names
from reducelower.model.numbers import FIRST_FLOATS
from reducelower.model.schemas import DEFAULT_DOMAINS, element_type_name
from reducelower.model.skeleton import skeleton
from reducelower.scope.values import loaded
from reducelower.types import infer

__all__ = ["without_narrow_integers"]


@dataclass(frozen=True)
class _Narrow:
    """A narrow type: the opset version that introduced it, the 8-bit type that replaces it, its bounds."""

    since: int
    wide: int
    lowest: int
    highest: int


_T = TensorProto
_NARROW: Mapping[int, _Narrow] = {
    _T.INT4: _Narrow(21, _T.INT8, -8, 7),
    _T.UINT4: _Narrow(21, _T.UINT8, 0, 15),
    _T.INT2: _Narrow(25, _T.INT8, -2, 1),
    _T.UINT2: _Narrow(25, _T.UINT8, 0, 3),
}

_MAKING = {"Cast": ("to", 1), "CastLike": ("", 1), "QuantizeLinear": ("output_dtype", 2)}
"""Operators that turn values of one element type into another: the attribute that names it, and the input that has
it."""


_CASTS = ("Cast", "CastLike")


def without_narrow_integers(source: Document, opset: int, folder: DataFolder | None) -> Changed | None:
    """A copy of the model with all integers widened that are too narrow for the opset version.

    None if there are none, or if not all of them can be widened.
    """
    model, absent = source.message, _absent(opset)
    tensors = [tensor for graph in main_graphs(model) for tensor in _tensors(graph) if tensor.data_type in absent]
    makes = not source.operators.isdisjoint(_MAKING) and any(
        _names_type(node) in absent for node in walk(model.graph.node)
    )
    if not tensors and not makes:
        return None
    if folder is None and any(tensor.data_location == TensorProto.EXTERNAL for tensor in tensors):
        return None
    types = _types(model)
    if not _are_all_inside(model, absent, types):
        return None
    made = deepcopy(model)
    inner = _widen_all(made, absent, types, folder)
    said = f"integers of fewer than 8 bits, which opset {opset} does not have, are held in 8"
    return Changed(Document.of_message(made), (said,), inner=inner)


def _widen_all(
    model: ModelProto, absent: Mapping[int, _Narrow], types: Mapping[str, int], folder: DataFolder | None
) -> frozenset[str]:
    """Widen in place; return the names of computed values that were narrow."""
    names = Names(lambda: model)
    inner: set[str] = set()
    # Innermost graphs first, since nodes are copied together with their subgraphs.
    for graph in reversed(main_graphs(model)):
        for tensor in _tensors(graph):
            if tensor.data_type in absent:
                _widen(tensor, absent[tensor.data_type].wide, folder)
        for value in (*graph.input, *graph.output, *graph.value_info):
            if value.type.tensor_type.elem_type in absent:
                value.type.tensor_type.elem_type = absent[value.type.tensor_type.elem_type].wide
        computed = (name for node in graph.node if node.op_type != "Constant" for name in node.output)
        inner.update(name for name in computed if types.get(name) in absent)
        fitted: list[NodeProto] = []
        for node in graph.node:
            narrow = absent.get(_made(node, types))
            if narrow is not None and node.op_type in _CASTS:
                fitted += _rounded(node, types[node.input[0]], names)
            fitted += _fitted(node, narrow, names)
        del graph.node[:]
        graph.node.extend(fitted)
    return frozenset(inner)


def _absent(opset: int) -> dict[int, _Narrow]:
    return {narrow: held for narrow, held in _NARROW.items() if opset < held.since}


def _tensors(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for node in graph.node:
        if node.op_type in ("Constant", "ConstantOfShape"):
            yield from (attribute.t for attribute in node.attribute if attribute.type == AttributeProto.TENSOR)


def _types(model: ModelProto) -> dict[str, int]:
    """Element types by name, as far as inference finds them."""
    found: dict[str, int] = {}
    for graph in main_graphs(infer(skeleton(model))):
        stated = (*graph.input, *graph.output, *graph.value_info)
        found |= {value.name: value.type.tensor_type.elem_type for value in stated}
        found |= {tensor.name: tensor.data_type for tensor in graph.initializer}
    return found


def _names_type(node: NodeProto) -> int:
    """The element type in an attribute of a node that converts types; 0 if there is none."""
    if node.domain not in DEFAULT_DOMAINS or node.op_type not in _MAKING:
        return 0
    attribute = attribute_of(node, _MAKING[node.op_type][0])
    return 0 if attribute is None else attribute.i


def _is_like(node: NodeProto) -> str:
    """The input whose element type the node gives to its output; empty if there is none."""
    if node.domain not in DEFAULT_DOMAINS or node.op_type not in _MAKING:
        return ""
    return next(iter(node.input[_MAKING[node.op_type][1] :]), "")


def _made(node: NodeProto, types: Mapping[str, int]) -> int:
    return _names_type(node) or types.get(_is_like(node), 0)


def _are_all_inside(model: ModelProto, absent: Collection[int], types: Mapping[str, int]) -> bool:
    """Whether only operators of the default domain use narrow values, and every producer of them is known."""
    outside = {value.name for value in (*model.graph.input, *model.graph.output)}
    for node in walk(model.graph.node):
        if node.domain in DEFAULT_DOMAINS and node.op_type != "BitCast":
            if (like := _is_like(node)) and not types.get(like):
                return False
            if node.op_type in _CASTS and _made(node, types) in absent and not types.get(node.input[0]):
                return False  # floats are rounded
        else:
            outside.update(node.input, node.output)
    return not any(types.get(name) in absent for name in outside)


def _widen(tensor: TensorProto, wide: int, folder: DataFolder | None) -> None:
    """Store a tensor in a wider type; one without its values stays without them."""
    if tensor.data_location == TensorProto.EXTERNAL:
        assert folder is not None
        tensor.CopyFrom(loaded(tensor, folder))
    if tensor.raw_data or tensor.int32_data:
        values = to_array(tensor).astype(helper.tensor_dtype_to_np_dtype(wide))
        held = from_array(values, tensor.name)
        for field in ("raw_data", "int32_data"):
            tensor.ClearField(field)
        tensor.raw_data = held.raw_data
    tensor.data_type = wide


def _rounded(node: NodeProto, given: int, names: Names) -> Iterator[NodeProto]:
    """What rounds the floats that a cast takes, which takes them rounded from then on; nothing for other types."""
    if not element_type_name(given).startswith(("float", "double", "bfloat")):
        return
    taken = node.input[0]
    if given not in FIRST_FLOATS:  # which Round takes at every opset version
        wide = names.fresh(node.output[0], "/float")
        yield make_node("Cast", [taken], [wide], to=_T.FLOAT)
        taken = wide
    node.input[0] = names.fresh(node.output[0], "/rounded")
    yield make_node("Round", [taken], [node.input[0]])


def _fitted(node: NodeProto, narrow: _Narrow | None, names: Names) -> Iterator[NodeProto]:
    """A node, followed by nodes that bring its output into the range of its former narrow type, if it had one.

    QuantizeLinear saturates. A cast keeps the low bits, the highest of which is the sign.
    """
    if narrow is None:
        yield node
        return
    attribute = _MAKING[node.op_type][0]
    if attribute_of(node, attribute) is not None:
        set_attribute(node, attribute, narrow.wide)
    result = node.output[0]
    value = node.output[0] = names.fresh(result, "/held")
    yield node
    sign = -narrow.lowest
    steps: list[tuple[str, tuple[int, ...]]] = [("BitwiseAnd", (narrow.highest - narrow.lowest,))]
    if node.op_type == "QuantizeLinear":
        steps = [("Clip", (narrow.lowest, narrow.highest))]
    elif sign:
        steps += [("BitwiseXor", (sign,)), ("Sub", (sign,))]
    dtype = helper.tensor_dtype_to_np_dtype(narrow.wide)
    for step, operands in steps:
        bounds = [names.fresh(result, f"/{step}/operand") for _ in operands]
        for name, operand in zip(bounds, operands, strict=True):
            yield make_node("Constant", [], [name], value=from_array(np.array(operand, dtype)))
        name = names.fresh(result, f"/{step}")
        made = make_node(step, [value, *bounds], [result if (step, operands) == steps[-1] else name])
        made.name = name
        yield made
        value = name
