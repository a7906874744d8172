"""Store values otherwise whose element types an opset version lacks.

Below opset 9, Constant takes floats only; an initializer takes every type.

Below opset 21 there are no integers of 4 bits, below 25 none of 2. No operator computes with them: they are only moved
and dequantized, which works the same in 8 bits. So stored weights are widened, and the values that are moved. A model
is not changed if narrow integers are its inputs or outputs, which keep their types, if operators of other domains may
look at the bits, or if a node converts other values to narrow integers, which have to stay in range.

Source: the page of DequantizeLinear (21, 25).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from onnx import ModelProto, TensorProto, helper
from onnx.numpy_helper import from_array, to_array

from reducelower.files import DataFolder
from reducelower.files.external import all_tensors, loaded
from reducelower.legalization.whole import Attempt, Changed
from reducelower.model.constants import tensor_of
from reducelower.model.document import Document
from reducelower.model.graph import graphs, walk
from reducelower.model.numbers import FIRST_FLOATS
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.options import Settings
from reducelower.scope.ground import writes_initializers
from reducelower.types import Inference

__all__ = ["without_constants", "without_narrow_integers"]

_CONSTANT_TAKES_ALL = 9


def without_constants(tried: Attempt, settings: Settings) -> Changed | None:
    """The model with initializers in place of its Constant nodes of other types than floats, below opset 9."""
    opset, source = tried.plan.target.opset or 0, tried.source
    if opset >= _CONSTANT_TAKES_ALL or not writes_initializers(source.message, settings.ir_version):
        return None
    made = source.copy()
    for _, graph in graphs(made):
        for at in reversed(range(len(graph.node))):
            node = graph.node[at]
            tensor = tensor_of(node) if node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS else None
            if tensor is not None and tensor.data_type not in FIRST_FLOATS:
                graph.initializer.add().CopyFrom(tensor)
                graph.initializer[-1].name = node.output[0]
                del graph.node[at]
    return Changed(Document(made))


_T = TensorProto
_NARROW: Mapping[int, tuple[int, int]] = {
    _T.INT4: (21, _T.INT8),
    _T.UINT4: (21, _T.UINT8),
    _T.INT2: (25, _T.INT8),
    _T.UINT2: (25, _T.UINT8),
}
"""Narrow types: the opset version that introduced each, and the 8-bit type that holds it below."""

_CONVERTING = frozenset({"Cast", "CastLike", "QuantizeLinear"})
"""Operators that turn values of one element type into another."""


def without_narrow_integers(tried: Attempt, settings: Settings) -> Changed | None:
    """The model with all stored integers that are too narrow for the opset version widened.

    None if there are none, or if some of them cannot be widened.
    """
    opset = tried.plan.target.opset or 0
    absent = {narrow: wide for narrow, (since, wide) in _NARROW.items() if opset < since}
    if absent.keys().isdisjoint(tried.source.columns.element_types):
        return None
    made = tried.source.copy()
    folder = None if settings.base_dir is None else DataFolder.of(settings.base_dir)
    tensors = [tensor for tensor in all_tensors(made) if tensor.data_type in absent]
    is_at_hand = folder is not None or all(tensor.data_location != TensorProto.EXTERNAL for tensor in tensors)
    types = _types(made)
    if not tensors or not is_at_hand or not _are_all_inside(made, absent, types):
        return None
    for tensor in tensors:
        _widen(tensor, absent[tensor.data_type], folder)
    for value in (value for _, graph in graphs(made) for value in (*graph.input, *graph.output, *graph.value_info)):
        if value.type.tensor_type.elem_type in absent:
            value.type.tensor_type.elem_type = absent[value.type.tensor_type.elem_type]
    computed = (name for node in walk(made.graph.node) if node.op_type != "Constant" for name in node.output)
    inner = frozenset(name for name in computed if types.get(name) in absent)
    sentence = f"integers of fewer than 8 bits, which opset {opset} does not have, are held in 8"
    return Changed(Document(made), (sentence,), inner=inner)


def _types(model: ModelProto) -> dict[str, int]:
    """Element types by name, as far as they are known."""
    inference = Inference(model)
    types = {tensor.name: tensor.data_type for _, graph in graphs(model) for tensor in graph.initializer}
    for key in inference.keys:
        types |= {name: each.tensor_type.elem_type for name, each in inference.types(key).items()}
    inference.clear()
    return types


def _are_all_inside(model: ModelProto, absent: Collection[int], types: Mapping[str, int]) -> bool:
    """Whether only operators of the default domain read narrow values, and none converts other values to them."""
    outside = {value.name for value in (*model.graph.input, *model.graph.output)}
    for node in walk(model.graph.node):
        if node.domain not in DEFAULT_DOMAINS or node.op_type == "BitCast":
            outside.update(node.input, node.output)
        elif node.op_type in _CONVERTING and types.get(node.output[0], 0) in (0, *absent):
            return False
    return not any(types.get(name) in absent for name in outside)


def _widen(tensor: TensorProto, wide: int, folder: DataFolder | None) -> None:
    """Store a tensor in a wider type; one without its values stays without them."""
    if tensor.data_location == TensorProto.EXTERNAL:
        assert folder is not None
        tensor.CopyFrom(loaded(tensor, folder))
    if tensor.raw_data or tensor.int32_data:
        values = to_array(tensor).astype(helper.tensor_dtype_to_np_dtype(wide))
        widened = from_array(values, tensor.name)
        for field in ("raw_data", "int32_data"):
            tensor.ClearField(field)
        tensor.raw_data = widened.raw_data
    tensor.data_type = wide
