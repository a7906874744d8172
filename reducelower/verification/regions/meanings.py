"""Versions of an operator that mean the same: a node at either side of one computes the same, and is no region."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from functools import lru_cache

from onnx.defs import OpSchema

from reducelower.model.schemas import schema

__all__ = ["meaning"]

_SAME: Mapping[tuple[str, int], frozenset[str]] = {
    (op_type, version): frozenset(names)
    for version, kinds, names in (
        (12, ("ArgMax", "ArgMin"), ("select_last_index",)),
        (12, ("GatherND",), ("batch_dims",)),
        (13, ("Abs", "ArgMax", "ArgMin", "Ceil", "Floor", "Gather", "GatherElements", "Loop"), ()),
        (14, ("Add", "Div", "Mul", "Sub"), ()),
        (14, ("GRU", "LSTM", "RNN"), ("layout",)),
        (14, ("Reshape",), ("allowzero",)),
        (15, ("Shape",), ("end", "start")),
        (16, ("ScatterElements", "ScatterND"), ("reduction",)),
        (18, ("ScatterElements", "ScatterND"), ("reduction",)),
        (19, ("Cast", "CastLike", "QuantizeLinear"), ("saturate",)),
        (19, ("DequantizeLinear",), ()),
        (20, ("ReduceMax", "ReduceMin"), ()),
        (21, ("DequantizeLinear", "QuantizeLinear"), ("block_size", "output_dtype")),
        (21, ("Transpose",), ()),
        (22, ("LSTM",), ()),
        (23, ("DequantizeLinear", "QuantizeLinear"), ("output_dtype", "precision")),
        (23, ("Squeeze", "Unsqueeze"), ()),
        (24, ("QuantizeLinear",), ()),
        (25, ("QuantizeLinear", "Transpose"), ()),
        (28, ("SpaceToDepth",), ("mode",)),
    )
    for op_type in kinds
}
"""Versions whose page words otherwise what the one before says, read side by side, or says more of types alone: each
with the attributes that came with it, without which a node means what it meant. https://onnx.ai/onnx/operators"""


@lru_cache(maxsize=4096)
def meaning(op_type: str, opset: int, domain: str = "", attributes: tuple[str, ...] = ()) -> int:
    """The oldest version of an operator in which a node means the same as at an opset version.

    Most versions only allow more types: their pages say the same of everything else. The attributes are those
    of the node that are not at their defaults.
    """
    found = schema(op_type, opset, domain)
    if found is None:
        return opset
    since = int(found.since_version)
    older = schema(op_type, since - 1, domain) if since > 1 else None
    if older is None:
        return since
    new = None if domain else _SAME.get((op_type, since))
    is_same = _page(older) == _page(found) if new is None else new.isdisjoint(attributes)
    return meaning(op_type, since - 1, domain, attributes) if is_same else since


def _page(found: OpSchema) -> Hashable:
    """What the page of an operator says of everything but element types, in words without marks of layout."""
    operands = [("in", item) for item in found.inputs] + [("out", item) for item in found.outputs]
    return (
        _words(found.doc),
        tuple((place, item.name, str(item.option), _words(item.description)) for place, item in operands),
        tuple(
            (name, str(item.type), item.required, item.default_value.SerializeToString(), _words(item.description))
            for name, item in sorted(found.attributes.items())
        ),
    )


def _words(text: str | None) -> str:
    return _LAYOUT.sub("", text or "")


_LAYOUT = re.compile(r"[\s*`]|\.(?!\w)")
