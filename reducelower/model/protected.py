"""onnx's shape inference, protected from nodes that would crash the process.

For four operators, inference reads the input type without checking that there is one; outputs of operators that onnx
does not know have none. GatherND fails on a negative `batch_dims`. Both were seen with onnx 1.23, by running inference
on its own node tests without types and with other attributes.

For STFT without `onesided`, inference assumes 0, although the default is 1 (onnx 1.23).

Before onnx 1.23, Attention divides by the number of heads of the keys and values, which is zero if a function leaves it
to its calls.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain

from onnx import (
    ModelProto,
    NodeProto,
    defs,
    shape_inference,
)

from reducelower.model.attributes import attribute_of
from reducelower.model.graph import walk
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.text import one_line

__all__ = ["infer_shapes", "may_crash", "objection"]

_DEFAULT, _ML = DEFAULT_DOMAINS, frozenset({"ai.onnx.ml"})
_CRASHING_OPERATORS = {
    "EyeLike": _DEFAULT,
    "GatherND": _DEFAULT,
    "LabelEncoder": _ML,
    "RegexFullMatch": _DEFAULT,
    "STFT": _DEFAULT,
    "TreeEnsemble": _ML,
}
_SUSPECTS: tuple[bytes, ...] = (b"EyeLike", b"LabelEncoder", b"RegexFullMatch", b"STFT", b"TreeEnsemble", b"batch_dims")
"""Operator and attribute names to search for in the bytes of a model."""
if defs.onnx_opset_version() < 28:  # before onnx 1.23
    _CRASHING_OPERATORS |= {"Attention": _DEFAULT}
    _SUSPECTS += (b"kv_num_heads",)


def infer_shapes(
    model: ModelProto, *, check_type: bool = False, strict_mode: bool = False, data_prop: bool = False
) -> ModelProto:
    """As `onnx.shape_inference.infer_shapes`, but it infers nothing for models that could crash the process.

    Raises:
        onnx.shape_inference.InferenceError: as onnx's inference does.
        ValueError: the model is larger than 2 GiB.
    """
    data = model.SerializeToString()
    if any(map(data.__contains__, _SUSPECTS)) and _may_crash(model):
        return ModelProto.FromString(data)
    return shape_inference.infer_shapes(data, check_type, strict_mode, data_prop)


def objection(model: ModelProto) -> str:
    """The objection of strict shape inference to a model; empty if there is none."""
    try:
        infer_shapes(model, check_type=True, strict_mode=True)
    except Exception as error:  # inference raises several types
        return one_line(error)
    return ""


def _may_crash(model: ModelProto) -> bool:
    """Whether inferring a model could crash the process."""
    graph = model.graph
    stated = {value.name for value in chain(graph.input, graph.value_info) if value.HasField("type")}
    stated |= {tensor.name for tensor in graph.initializer}
    held = ((graph.node, stated), *((function.node, set[str]()) for function in model.functions))
    return any(may_crash(node, known) for nodes, known in held for node in walk(nodes))


def may_crash(node: NodeProto, stated: Collection[str]) -> bool:
    """Whether inferring this node could crash the process or mislead, given the names of values with known types."""
    if node.domain not in _CRASHING_OPERATORS.get(node.op_type, ()):
        return False
    if node.op_type == "STFT":
        return attribute_of(node, "onesided") is None
    if node.op_type == "GatherND":
        batch_dims = attribute_of(node, "batch_dims")
        return batch_dims is not None and batch_dims.i < 0
    if node.op_type == "Attention":
        heads = attribute_of(node, "kv_num_heads")
        return heads is not None and heads.i == 0
    if node.op_type == "EyeLike" and attribute_of(node, "dtype") is None:
        return False
    return not node.input or node.input[0] not in stated
