"""The part of a graph that a picture shows: operators, and the values between them with types and shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import AttributeProto, ModelProto, NodeProto, TypeProto, helper, numpy_helper, shape_inference

from reducelower.model.graph import subgraphs
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.model.spelled import attribute_text, constant_text, input_name
from reducelower.model.text import shape_text, short
from reducelower.numerics.tolerance import element_type_name
from reducelower.verification.changes import Region
from reducelower.verification.inputs import tensor_dims
from reducelower.verification.matching import Side
from reducelower.verification.pairs import FreeInput, Pair
from reducelower.verification.places import Dims, Place

__all__ = ["Box", "Fragment", "Value", "fragments_of", "region_fragments"]

_MOST_BOXES = 60
_LONGEST_LINE = 34


@dataclass(frozen=True)
class Value:
    """A tensor on an edge.

    Attributes:
        name: its name in the model.
        kind: element type and shape, such as ``float[N,1,768]``; empty where nothing states them.
    """

    name: str
    kind: str = ""


@dataclass(frozen=True)
class Box:
    """An operator.

    Attributes:
        op_type: the operator, with its domain in front where that is not the default one.
        name: name of the node; may be empty.
        lines: attributes and constant inputs, a line each.
        inputs, outputs: names of the values that are drawn as edges, one for each time they are read.
    """

    op_type: str
    name: str
    lines: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Fragment:
    """Boxes with what goes in and what comes out.

    Attributes:
        boxes: operators, each after those whose values it reads.
        values: every value that an edge stands for, by name.
        inputs, outputs: names of the values that come from outside and that go there.
        opset: opset version of the default domain.
        left_out: how many operators there are that are not drawn.
    """

    boxes: tuple[Box, ...]
    values: Mapping[str, Value]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    opset: int
    left_out: int = 0


def fragments_of(pair: Pair) -> tuple[Fragment, Fragment]:
    """What stood in the source, and what stands in its place."""
    node = _fragment(pair, [pair.node], pair.before, pair.constants[0])
    nodes = _fragment(pair, pair.replacement, pair.after, pair.constants[1])
    return (nodes, node) if pair.is_raised else (node, nodes)


def region_fragments(region: Region) -> tuple[Fragment, Fragment]:
    """What stands in one model, and what stands in its place in the other."""
    before, after = (_of_region(side, nodes) for side, nodes in zip(region.sides, region.nodes, strict=True))
    return before, after


def _of_region(side: Side, nodes: Sequence[NodeProto]) -> Fragment:
    own = {id(node) for node in nodes}
    constants: dict[str, Any] = {}
    kinds: dict[str, str] = {}
    for name in dict.fromkeys(name for node in nodes for name in (*node.input, *node.output) if name):
        value = side.place.constant(name)
        if isinstance(value, np.ndarray):
            constants[name] = value
        known = side.place.type_of(name)
        if known is not None:
            kinds[name] = f"{element_type_name(known[0])}{_known_shape(known[1])}"
    results = [
        name
        for node in nodes
        for name in node.output
        if name in side.outputs or any(id(side.nodes[reader]) not in own for reader, _ in side.readers.get(name, ()))
    ]
    return _drawn(nodes, constants, kinds, results, side.place.opsets.get("", 1))


def _fragment(pair: Pair, nodes: Sequence[NodeProto], place: Place, constants: Mapping[str, Any]) -> Fragment:
    kinds = _kinds(pair, nodes, place, constants)
    return _drawn(nodes, constants, kinds, pair.node.output, place.opsets.get("", 1))


def _drawn(
    nodes: Sequence[NodeProto],
    constants: Mapping[str, Any],
    kinds: Mapping[str, str],
    wanted: Sequence[str],
    opset: int,
) -> Fragment:
    """A picture of nodes.

    Args:
        nodes: the nodes.
        constants: values that are written into the boxes that read them.
        kinds: element types and shapes, by name.
        wanted: what they are there for.
        opset: opset version of the default domain.
    """
    held = dict(constants)
    for node in nodes:
        value = _own_constant(node)
        if value is not None:
            held[node.output[0]] = value
    drawn = [node for node in nodes if not (len(node.output) == 1 and node.output[0] in held)] or list(nodes)
    boxes = tuple(_box(node, held, opset) for node in drawn[:_MOST_BOXES])
    produced = {name for box in boxes for name in box.outputs}
    read = dict.fromkeys(name for box in boxes for name in box.inputs)
    kept = [box for box in boxes if box.outputs]
    values = {name: Value(name, kinds.get(name, "")) for name in [*read, *produced]}
    results = tuple(name for name in wanted if name in produced)
    dangling = tuple(name for box in kept for name in box.outputs if name not in read and name not in results)
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
        except Exception:  # external data that is not here, or a tensor whose size does not fit its bytes
            return None
    return np.array(value, dtype=object) if isinstance(value, bytes) else np.array(value)


def _box(node: NodeProto, held: Mapping[str, Any], opset: int) -> Box:
    lines = [
        short(f"input {input_name(node, position, opset)} = {constant_text(held[name])}", _LONGEST_LINE)
        for position, name in enumerate(node.input)
        if name in held
    ]
    lines += [short(f"{item.name} = {attribute_text(item)}", _LONGEST_LINE) for item in node.attribute]
    names = list(node.input)
    for _, _, graph in subgraphs(node):
        inner = {name for item in graph.node for name in item.output}
        names += dict.fromkeys(name for item in graph.node for name in item.input if name not in inner)
    domain = "" if node.domain in DEFAULT_DOMAINS else f"{node.domain}."
    return Box(
        short(f"{domain}{node.op_type}", _LONGEST_LINE),
        node.name,
        tuple(lines),
        tuple(name for name in names if name and name not in held),
        tuple(name for name in node.output if name),
    )


def _kinds(pair: Pair, nodes: Sequence[NodeProto], place: Place, constants: Mapping[str, Any]) -> dict[str, str]:
    """Element types and shapes inside a site, from what is known of its inputs."""
    model = ModelProto(ir_version=10)
    model.graph.name = "site"
    for item in pair.inputs:
        if item.element_type:
            model.graph.input.append(helper.make_tensor_value_info(item.name, item.element_type, item.dims))
    model.graph.initializer.extend(
        numpy_helper.from_array(value, name) for name, value in constants.items() if value.dtype != object
    )
    model.graph.node.extend(nodes)
    model.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in pair.node.output if name)
    model.opset_import.extend(helper.make_opsetid(*item) for item in place.opsets.items())
    try:
        graph = shape_inference.infer_shapes(model, data_prop=True).graph
    except Exception:  # inference gives up in several ways on what it does not know; edges then have no types
        graph = model.graph
    known = {item.name: _free_kind(item) for item in pair.inputs if item.element_type}
    for value in [*graph.value_info, *graph.output]:
        if value.type.tensor_type.elem_type:
            known[value.name] = _kind(value.type)
    return known


def _free_kind(item: FreeInput) -> str:
    return f"{element_type_name(item.element_type)}{_known_shape(item.dims)}"


def _kind(value_type: TypeProto) -> str:
    tensor = value_type.tensor_type
    return f"{element_type_name(tensor.elem_type)}{_known_shape(tensor_dims(tensor))}"


def _known_shape(dims: Dims | None) -> str:
    """Sizes; symbols that inference made up have no meaning for a reader."""
    if dims is not None:
        dims = tuple(None if isinstance(dim, str) and dim.startswith("unk__") else dim for dim in dims)
    return shape_text(dims)
