"""The part of a graph in a report: a line for each node, with its outputs, inputs and attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto

from reducelower.difference.changes import Part
from reducelower.difference.spelled import attribute_text, constant_text, input_name, operator_name
from reducelower.model.graph import subgraphs
from reducelower.model.schemas import element_type_name
from reducelower.text import shape_text, short
from reducelower.verification.inputs.declared import Dims

__all__ = ["Fragment", "Value", "WrittenNode", "fragment"]

_MOST_NODES = 60
_LONGEST_NAME = 32
_LONGEST_PART = 60


@dataclass(frozen=True)
class Value:
    """A value: its full name, and its type, such as ``float[N,1,768]``."""

    name: str
    kind: str = ""

    @property
    def label(self) -> str:
        """The last part of the name, since exporters write the whole path of a module."""
        return short(self.name.rstrip("/").rpartition("/")[2] or self.name, _LONGEST_NAME)


@dataclass(frozen=True)
class WrittenNode:
    """A node: its outputs, inputs, and settings: constants (``axes: [1]``) and attributes (``axes = [1]``)."""

    op_type: str
    name: str
    outputs: tuple[Value, ...]
    inputs: tuple[Value, ...]
    settings: tuple[str, ...]


@dataclass(frozen=True)
class Fragment:
    """Nodes in topological order, their inputs from outside, their results, and the number of nodes left out."""

    nodes: tuple[WrittenNode, ...]
    inputs: tuple[Value, ...]
    results: frozenset[str]
    opset: int
    left_out: int = 0

    def has(self, op_type: str, setting: str = "") -> bool:
        """Whether a node has this operator and setting; the report marks what only one side has."""
        return any(node.op_type == op_type and (not setting or setting in node.settings) for node in self.nodes)


def fragment(part: Part) -> Fragment:
    """The nodes of one model; constants are shown with the nodes that read them."""
    side, nodes = part
    place, own = side.place, {id(node) for node in nodes}
    outputs = [name for node in nodes for name in node.output if name]
    results = {
        name
        for name in outputs
        if name in side.outputs or any(id(side.nodes[reader]) not in own for reader in side.readers.get(name, ()))
    }
    constants: dict[str, Any] = {}
    values: dict[str, Value] = {}
    for name in dict.fromkeys(name for node in nodes for name in (*node.input, *node.output) if name):
        value = place.constant(name)
        if isinstance(value, np.ndarray):
            constants[name] = value
        kind, dims = place.type_of(name)
        values[name] = Value(name, f"{element_type_name(kind)}{_known_shape(dims)}" if kind else "")
    opset = place.opsets.get("", 1)
    written = tuple(_written(node, constants, values, opset) for node in nodes[:_MOST_NODES])
    computed = {value.name for node in written for value in node.outputs}
    read = dict.fromkeys(value for node in written for value in node.inputs if value.name not in computed)
    return Fragment(written, tuple(read), frozenset(results), opset, len(nodes) - len(written))


def _written(node: NodeProto, constants: Mapping[str, Any], values: Mapping[str, Value], opset: int) -> WrittenNode:
    settings = [
        f"{input_name(node, position, opset)}: {constant_text(constants[name])}"
        for position, name in enumerate(node.input)
        if name in constants
    ]
    settings += [short(f"{item.name} = {attribute_text(item)}", _LONGEST_PART) for item in node.attribute]
    names = list(node.input)
    for _, _, graph in subgraphs(node):
        inner = {name for item in graph.node for name in item.output}
        names += dict.fromkeys(name for item in graph.node for name in item.input if name not in inner)
    return WrittenNode(
        operator_name(node),
        node.name,
        tuple(values[name] for name in node.output if name),
        tuple(values.get(name, Value(name)) for name in names if name and name not in constants),
        tuple(settings),
    )


def _known_shape(dims: Dims | None) -> str:
    """The text of a shape, without symbols that inference invented."""
    if dims is not None:
        dims = tuple(None if isinstance(dim, str) and dim.startswith("unk__") else dim for dim in dims)
    return shape_text(dims)
