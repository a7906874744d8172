"""Versions of an operator that mean the same, so that a node computes the same at both and is no region."""

from __future__ import annotations

import re
from collections.abc import Hashable
from functools import lru_cache

from onnx.defs import OpSchema

from reducelower.model.schemas import schema
from reducelower.verification.operators import column

__all__ = ["meaning"]


@lru_cache(maxsize=4096)
def meaning(op_type: str, opset: int, domain: str = "", attributes: tuple[str, ...] = ()) -> int:
    """The oldest version of an operator in which a node means the same as at an opset version.

    Most versions only allow more types: their pages say the same about everything else. `attributes` are those of the
    node that are not at their defaults.
    """
    found = schema(op_type, opset, domain)
    if found is None:
        return opset
    since = int(found.since_version)
    older = schema(op_type, since - 1, domain) if since > 1 else None
    if older is None:
        return since
    new = None if domain else column("same").get(op_type, {}).get(since)
    is_same = _page(older) == _page(found) if new is None else set(new).isdisjoint(attributes)
    return meaning(op_type, since - 1, domain, attributes) if is_same else since


def _page(found: OpSchema) -> Hashable:
    """What the page of an operator says about everything except element types, without marks of layout."""
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
