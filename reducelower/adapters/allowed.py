"""Attribute values that the operators' pages allow, which schemas do not list.

A node with another value has no defined meaning, so it is refused before any rewrite. An entry has the values that the
page allows in any version; those that came later are refused at their boundary.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from onnx import AttributeProto, NodeProto, TensorProto, helper

from reducelower.errors import RefusedError
from reducelower.model.attributes import NAMING_TYPES

__all__ = ["ALLOWED", "POSITIVE", "refuse_disallowed"]

_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
_DIRECTIONS = ("forward", "reverse", "bidirectional")
_REDUCTIONS = ("none", "add", "mul", "max", "min")
_LOSSES = ("none", "sum", "mean")
_ORDERS = ("DCR", "CRD")
_ROUNDINGS = ("up", "down", "nearest")
_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16)
_COORDINATES = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)  # fmt: skip

ALLOWED: Mapping[tuple[str, str], Collection[Any]] = {
    **{
        (op_type, "auto_pad"): _PADS
        for op_type in ("AveragePool", "Conv", "ConvInteger", "ConvTranspose", "LpPool", "MaxPool", "QLinearConv")
    },
    **{(op_type, "direction"): _DIRECTIONS for op_type in ("GRU", "LSTM", "RNN")},
    **{(op_type, "reduction"): _REDUCTIONS for op_type in ("ScatterElements", "ScatterND")},
    **{(op_type, "reduction"): _LOSSES for op_type in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")},
    **{(op_type, "mode"): _ORDERS for op_type in ("DepthToSpace", "SpaceToDepth")},
    **{(op_type, "round_mode"): _ROUNDINGS for op_type in ("Cast", "CastLike")},
    **{
        (op_type, "stash_type"): _FLOATS
        for op_type in ("GroupNormalization", "LayerNormalization", "Range", "RMSNormalization")
    },
    ("Attention", "qk_matmul_output_mode"): range(4),
    ("Attention", "softmax_precision"): _FLOATS,
    ("BitShift", "direction"): ("LEFT", "RIGHT"),
    ("Gelu", "approximate"): ("none", "tanh"),
    ("GridSample", "mode"): ("bilinear", "linear", "nearest", "bicubic", "cubic"),
    ("GridSample", "padding_mode"): ("zeros", "border", "reflection"),
    ("ImageDecoder", "pixel_format"): ("RGB", "BGR", "Grayscale"),
    ("Pad", "mode"): ("constant", "reflect", "edge", "wrap"),
    ("QuantizeLinear", "precision"): (0, *_FLOATS),
    ("Resize", "coordinate_transformation_mode"): _COORDINATES,
    ("Resize", "keep_aspect_ratio_policy"): ("stretch", "not_larger", "not_smaller"),
    ("Resize", "mode"): ("nearest", "linear", "cubic"),
    ("Resize", "nearest_mode"): ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
    ("RoiAlign", "coordinate_transformation_mode"): ("half_pixel", "output_half_pixel"),
    ("RoiAlign", "mode"): ("avg", "max"),
    ("StringNormalizer", "case_change_action"): ("LOWER", "UPPER", "NONE"),
    ("TensorScatter", "mode"): ("linear", "circular"),
    ("TfIdfVectorizer", "mode"): ("TF", "IDF", "TFIDF"),
    ("Upsample", "mode"): ("nearest", "linear", "bilinear"),
}
"""The allowed values by operator and attribute."""

POSITIVE = frozenset(
    {
        "blocksize", "dilations", "group", "hidden_size", "kernel_shape", "kv_num_heads", "num_groups", "num_heads",
        "num_outputs", "offset_group", "q_num_heads", "strides",
    }
)  # fmt: skip
"""Attributes that have to be positive, whatever the operator."""

_ELEMENT_TYPES = frozenset(TensorProto.DataType.values())


def refuse_disallowed(node: NodeProto) -> None:
    """Refuse a node with an attribute value that the page of its operator does not allow.

    Raises:
        RefusedError: there is one; the error names the attribute, its value, and the allowed values.
    """
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            continue
        name = attribute.name
        if name in POSITIVE:
            numbers = attribute.ints or ([attribute.i] if attribute.type == AttributeProto.INT else [])
            if any(number <= 0 for number in numbers):
                raise _refusal(node, attribute, "only numbers above zero")
        elif name in NAMING_TYPES and attribute.type == AttributeProto.INT:
            if attribute.i not in _ELEMENT_TYPES:
                raise _refusal(node, attribute, "only the element types that the installed onnx knows")
        elif (allowed := ALLOWED.get((node.op_type, name))) is not None and _value(attribute) not in allowed:
            raise _refusal(node, attribute, f"only {', '.join(map(str, allowed))}")


def _value(attribute: AttributeProto) -> Any:
    value = helper.get_attribute_value(attribute)
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _refusal(node: NodeProto, attribute: AttributeProto, allowed: str) -> RefusedError:
    value = _value(attribute)
    shown = list(value) if attribute.ints else value
    return RefusedError(
        f"its attribute {attribute.name} is {shown}, and {node.op_type} takes {allowed}", "correct the model"
    )
