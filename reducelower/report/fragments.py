"""The part of a graph that a picture shows: operators, and the values between them with types and shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import AttributeProto, NodeProto, helper, numpy_helper

from reducelower.difference.changes import Region
from reducelower.difference.matching import Side
from reducelower.model.graph import subgraphs
from reducelower.model.schemas import DEFAULT_DOMAINS, element_type_name
from reducelower.model.spelled import attribute_text, constant_text, input_name, operator_name
from reducelower.model.text import shape_text, short
from reducelower.verification.regions.cut import Region as Cut
from reducelower.verification.regions.places import Dims, Place

__all__ = ["Box", "Fragment", "Value", "fragments_of", "region_fragments"]

_MOST_BOXES = 60
_LONGEST_LINE = 34


@dataclass(frozen=True)
class Value:
    """A tensor on an edge; its kind is element type and shape, such as ``float[N,1,768]``, or empty."""

    name: str
    kind: str = ""


@dataclass(frozen=True)
class Box:
    """An operator with its domain, a line for each attribute and constant input, and the names of its edges."""

    op_type: str
    name: str
    lines: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Fragment:
    """Boxes in topological order, their values, inputs and outputs, and how many boxes are left out."""

    boxes: tuple[Box, ...]
    values: Mapping[str, Value]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    opset: int
    left_out: int = 0


def fragments_of(cut: Cut) -> tuple[Fragment, Fragment]:
    """The nodes of the source, and those that replace them."""
    level, pairs = cut.claim.level, cut.claim.pairs
    before = _fragment(level.left, cut.nodes[0], [name for name, _ in pairs])
    after = _fragment(level.right, cut.nodes[1], [name for _, name in pairs])
    return before, after


def region_fragments(region: Region) -> tuple[Fragment, Fragment]:
    """The nodes of one model, and those in their place in the other."""
    before, after = (
        _fragment(side.place, nodes, _results(side, nodes))
        for side, nodes in zip(region.sides, region.nodes, strict=True)
    )
    return before, after


def _results(side: Side, nodes: Sequence[NodeProto]) -> list[str]:
    """The outputs of nodes that others read."""
    own = {id(node) for node in nodes}
    return [
        name
        for node in nodes
        for name in node.output
        if name in side.outputs or any(id(side.nodes[reader]) not in own for reader, _ in side.readers.get(name, ()))
    ]


def _fragment(place: Place, nodes: Sequence[NodeProto], wanted: Sequence[str]) -> Fragment:
    """The picture of the nodes that compute some values; constants are shown in the boxes that read them."""
    held: dict[str, Any] = {}
    kinds: dict[str, str] = {}
    for name in dict.fromkeys(name for node in nodes for name in (*node.input, *node.output) if name):
        value = place.constant(name)
        if isinstance(value, np.ndarray):
            held[name] = value
        known = place.type_of(name)
        if known is not None:
            kinds[name] = f"{element_type_name(known[0])}{_known_shape(known[1])}"
    for node in nodes:
        value = _own_constant(node)
        if value is not None:
            held[node.output[0]] = value
    opset = place.opsets.get("", 1)
    drawn = [node for node in nodes if not (len(node.output) == 1 and node.output[0] in held)] or list(nodes)
    boxes = tuple(_box(node, held, opset) for node in drawn[:_MOST_BOXES])
    produced = {name for box in boxes for name in box.outputs}
    read = dict.fromkeys(name for box in boxes for name in box.inputs)
    values = {name: Value(name, kinds.get(name, "")) for name in [*read, *produced]}
    results = tuple(name for name in wanted if name in produced)
    dangling = tuple(name for box in boxes for name in box.outputs if name not in read)
    inputs = tuple(name for name in read if name not in produced)
    return Fragment(boxes, values, inputs, results or dangling, opset, len(drawn) - len(boxes))


def _own_constant(node: NodeProto) -> Any:
    """The value of a small Constant node, which is written into the boxes that read it."""
    if node.op_type != "Constant" or node.domain not in DEFAULT_DOMAINS or len(node.attribute) != 1:
        return None
    (attribute,) = node.attribute
    if attribute.ref_attr_name or attribute.name == "sparse_value":
        return None
    value = helper.get_attribute_value(attribute)
    if attribute.type == AttributeProto.TENSOR:
        try:
            return numpy_helper.to_array(value)
        except Exception:  # missing external data, or a tensor whose size does not fit its bytes
            return None
    return np.array(value, dtype=object) if isinstance(value, bytes) else np.array(value)


def _box(node: NodeProto, held: Mapping[str, Any], opset: int) -> Box:
    lines = [
        _line(f"input {input_name(node, position, opset)}", constant_text(held[name]))
        for position, name in enumerate(node.input)
        if name in held
    ]
    lines += [_line(item.name, attribute_text(item)) for item in node.attribute]
    names = list(node.input)
    for _, _, graph in subgraphs(node):
        inner = {name for item in graph.node for name in item.output}
        names += dict.fromkeys(name for item in graph.node for name in item.input if name not in inner)
    return Box(
        short(operator_name(node), _LONGEST_LINE),
        node.name,
        tuple(lines),
        tuple(name for name in names if name and name not in held),
        tuple(name for name in node.output if name),
    )


def _line(name: str, value: str) -> str:
    """A name and its value; of a long list the first items, so that no number is cut."""
    text = f"{name} = {value}"
    if len(text) <= _LONGEST_LINE or not value.startswith("["):
        return short(text, _LONGEST_LINE)
    kept, _, _ = text[: _LONGEST_LINE - 3].rpartition(", ")
    return f"{kept}, …]" if kept else short(text, _LONGEST_LINE)


def _known_shape(dims: Dims | None) -> str:
    """Sizes, without the symbols that inference made up."""
    if dims is not None:
        dims = tuple(None if isinstance(dim, str) and dim.startswith("unk__") else dim for dim in dims)
    return shape_text(dims)
