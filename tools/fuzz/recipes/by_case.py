"""Operators whose inputs fit together as in onnx's own cases, with other values, element types and attributes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from onnx import AttributeProto, NodeProto, ValueInfoProto, helper

from reducelower.model.schemas import element_type_name, parse_element_type
from tools.fuzz.drawing import Draft, NotDrawableError
from tools.fuzz.recipes.registry import recipe
from tools.fuzz.values import draw_values, dtype_of, type_string
from tools.node_cases import Case, cases

_OPERATORS = (
    "AffineGrid", "Attention", "BitCast", "BitShift", "BlackmanWindow", "CastLike", "CausalConvWithState",
    "CenterCropPad", "Col2Im", "Compress", "ConstantOfShape", "ConvInteger", "ConvTranspose", "CumProd", "CumSum",
    "DFT", "DeformConv", "DepthToSpace", "DequantizeLinear", "Det", "DynamicQuantizeLinear", "EyeLike", "Gather",
    "GatherElements", "GatherND", "GridSample", "HammingWindow", "HannWindow", "If", "ImageDecoder",
    "InstanceNormalization", "LRN", "LayerNormalization", "LinearAttention", "Loop", "LpNormalization", "MatMulInteger",
    "MaxUnpool", "MeanVarianceNormalization", "MelWeightMatrix", "Mod", "NegativeLogLikelihoodLoss",
    "NonMaxSuppression", "OneHot", "OptionalGetElement", "OptionalHasElement", "Pow", "QLinearConv", "QLinearMatMul",
    "QuantizeLinear", "RMSNormalization", "Range", "RegexFullMatch", "ReverseSequence", "RoiAlign", "RotaryEmbedding",
    "STFT", "Scan", "Scatter", "ScatterElements", "ScatterND", "SequenceInsert", "SequenceMap",
    "SoftmaxCrossEntropyLoss", "SpaceToDepth", "SplitToSequence", "StringNormalizer", "StringSplit", "SwiGLU",
    "TensorScatter", "TfIdfVectorizer", "Trilu", "Unique",
)  # fmt: skip

_AS_THEY_ARE = frozenset({"MelWeightMatrix", "NonMaxSuppression", "Range", "ReverseSequence", "RoiAlign"})
"""Operators whose numbers are places and bounds, which fit together too."""

_FITTING_ATTRIBUTES = _AS_THEY_ARE | {"DequantizeLinear", "QuantizeLinear"}
"""Operators whose attributes say which shapes fit together."""

_SCALARS_BELOW = {"DequantizeLinear": 13, "QuantizeLinear": 13}
"""Operators whose inputs after the first are scalars below a version."""

_FLOATS = ("float", "double", "float16", "bfloat16")
_MOST_OF_PARAMETER = 64


@cache
def _cases_of(op_type: str) -> list[Case]:
    """onnx's cases of single nodes, without those that only differ in what is a constant."""
    return [
        case
        for case in cases()
        if case.operator == op_type
        and len(case.model.graph.node) == 1
        and case.model.graph.node[0].op_type == op_type
        and not case.name.endswith("_with_constants")
    ]


@recipe(*_OPERATORS)
def like_a_case(draft: Draft) -> None:
    """Draw a case, without the attributes that the version does not have."""
    case = draft.pick(_cases_of(draft.schema.name))
    graph, (node,) = case.model.graph, case.model.graph.node
    stated = {value.name: value for value in (*graph.input, *graph.output)}
    given = dict(zip((value.name for value in graph.input), case.inputs, strict=False))
    if len(node.input) > draft.schema.max_input or any(name not in given for name in node.input if name):
        raise NotDrawableError("the version has fewer inputs, or the case computes some")
    for position, name in enumerate(node.input):
        if name:
            _input(draft, position, stated[name], given[name])
    for name, attribute in _attributes(draft, node).items():
        formal = draft.schema.attributes.get(name)
        if formal is not None and int(formal.type) == attribute.type:  # type: ignore[call-overload]
            draft.attributes[name] = _value(attribute)
    draft.outputs = len(node.output)
    for formal, name in zip(draft.schema.outputs, node.output, strict=False):
        if name and "(" not in formal.type_str:
            draft.types.setdefault(formal.type_str, _spelt(stated[name]))


def _attributes(draft: Draft, node: NodeProto) -> dict[str, AttributeProto]:
    """The attributes of a case; sometimes without some of them, or with some of another case."""
    stated = {attribute.name: attribute for attribute in node.attribute}
    has_graph = any(attribute.type == AttributeProto.GRAPH for attribute in node.attribute)
    if has_graph or node.op_type in _FITTING_ATTRIBUTES or draft.flip(0.6):
        return stated
    (other,) = draft.pick(_cases_of(draft.schema.name)).model.graph.node
    return {
        name: attribute
        for name, attribute in (stated | {one.name: one for one in other.attribute if draft.flip()}).items()
        if draft.flip(0.8) or getattr(draft.schema.attributes.get(name), "required", False)
    }


def _value(attribute: AttributeProto) -> Any:
    value = helper.get_attribute_value(attribute)
    return value.decode() if isinstance(value, bytes) else value


def _input(draft: Draft, position: int, stated: ValueInfoProto, value: Any) -> None:
    formal = draft.schema.inputs[min(position, len(draft.schema.inputs) - 1)]
    spelt = _spelt(stated)
    if not spelt.startswith("tensor("):
        if spelt not in formal.types or not isinstance(value, (list, np.ndarray)) or not len(value):
            raise NotDrawableError(f"a value of type {spelt}")
        draft.types.setdefault(formal.type_str, spelt)
        draft.give(position, [np.asarray(one) for one in value] if isinstance(value, list) else value)
        return
    array = _redrawn(draft, position, np.asarray(value))
    if position and array.size and draft.opset < _SCALARS_BELOW.get(draft.schema.name, 0):
        array = array.reshape(-1)[:1].reshape(())
    if "(" not in formal.type_str and formal.type_str not in draft.types:
        draft.types[formal.type_str] = _type(draft, formal.types, spelt)
    goal = dtype_of(parse_element_type(draft.types.get(formal.type_str, formal.type_str)))
    is_parameter = position > 0 and array.ndim < 2 and array.size <= _MOST_OF_PARAMETER
    draft.give(position, array.astype(goal).reshape(array.shape), parameter=is_parameter)


def _type(draft: Draft, allowed: set[str], spelt: str) -> str:
    """The element type of the case, or mostly another float for a float."""
    own = spelt.removeprefix("tensor(").removesuffix(")")
    others = [name for name in _FLOATS if f"tensor({name})" in allowed] if own in _FLOATS else []
    if others and (spelt not in allowed or draft.flip()):
        return f"tensor({draft.pick(others)})"
    if spelt not in allowed:
        raise NotDrawableError(f"the version does not take {spelt}")
    return spelt


def _redrawn(draft: Draft, position: int, array: np.ndarray) -> np.ndarray:
    """Other values for the first input, and those of others in another order."""
    if draft.schema.name in _AS_THEY_ARE or not array.size:
        return array
    if position == 0 and array.dtype.kind == "f":
        element_type = parse_element_type(type_string(array))
        return draw_values(draft.rng, element_type, array.shape, edge=False)
    if array.dtype.kind == "f" and array.ndim:
        return np.asarray(draft.rng.permutation(array.reshape(-1))).reshape(array.shape)
    return array


def _spelt(stated: ValueInfoProto) -> str:
    """The type as schemas write it."""
    kind = stated.type.WhichOneof("value")
    if kind == "sequence_type":
        return f"seq({_tensor(stated.type.sequence_type.elem_type)})"
    if kind == "optional_type":
        inner = stated.type.optional_type.elem_type
        is_sequence = inner.WhichOneof("value") == "sequence_type"
        name = f"seq({_tensor(inner.sequence_type.elem_type)})" if is_sequence else _tensor(inner)
        return f"optional({name})"
    return _tensor(stated.type)


def _tensor(of_type: Any) -> str:
    return f"tensor({element_type_name(of_type.tensor_type.elem_type)})"
