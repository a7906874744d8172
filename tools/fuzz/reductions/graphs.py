"""Graphs under construction: names, values with their real shapes, and constants in every form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st
from onnx import FunctionProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

__all__ = ["NAMES", "Draw", "Graph", "Value", "World", "constant"]

Draw = Callable[[st.SearchStrategy], object]

NAMES = (
    "", "x", "axes", "axes_0", "axes_1", "axes_m1", "y/ReduceL2/square", "a b", "é", "1", "one", "zero", "then_branch",
    "reduce/ReduceMax/mask", "\N{SNOWMAN}", "quote'\"", "back\\slash", "%s{}", "sum", "reduced", "n" * 300,
)  # fmt: skip
"""Names of values and nodes: unusual ones, and ones like those that conversions create."""


@dataclass(frozen=True)
class Value:
    """A value in a graph.

    Attributes:
        name: its name.
        element_type: its ONNX element type.
        shape: its shape in the compared run, which the model may not state.
    """

    name: str
    element_type: int
    shape: tuple[int, ...]


@dataclass
class World:
    """State that all graphs of one model share."""

    draw: Draw
    opset: int
    used: set[str] = field(default_factory=set)
    node_names: set[str] = field(default_factory=set)
    functions: list[FunctionProto] = field(default_factory=list)
    inputs: list[ValueInfoProto] = field(default_factory=list)
    feeds: dict[str, np.ndarray] = field(default_factory=dict)
    initializers: list[TensorProto] = field(default_factory=list)

    def flip(self) -> bool:
        """Draw a boolean."""
        return bool(self.draw(st.booleans()))

    def pick(self, choices: Sequence[object]) -> object:
        """Draw one of the choices."""
        return self.draw(st.sampled_from(list(choices)))

    def node_name(self) -> str:
        """Draw a name for a node: none, or a unique one, as onnxruntime requires."""
        name = str(self.pick(NAMES))
        if name in self.node_names:
            return ""
        self.node_names.add(name)
        return name

    def fresh(self) -> str:
        """Draw a name that no value has."""
        name = str(self.draw(st.sampled_from(NAMES[1:])))
        number = 0
        while not name or name in self.used:
            number += 1
            name = f"{name}_{number}"
        self.used.add(name)
        return name


@dataclass
class Graph:
    """A graph or function body under construction."""

    world: World
    parent: Graph | None = None
    is_function: bool = False
    nodes: list[NodeProto] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    axes: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    initializers: list[TensorProto] = field(default_factory=list)

    def add(self, op_type: str, inputs: Sequence[str], **attributes: object) -> str:
        """Add a node with one output; returns the output's name."""
        output = self.world.fresh()
        self.nodes.append(helper.make_node(op_type, inputs, [output], name=self.world.node_name(), **attributes))
        return output

    def known_axes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Axes that exist in this graph or around it, by name and value."""
        return self.axes + (self.parent.known_axes() if self.parent is not None else [])

    @property
    def root(self) -> Graph:
        """The main graph or function body around."""
        return self if self.parent is None else self.parent.root


def constant(graph: Graph, value: np.ndarray) -> str:
    """A constant in a form that the opset and the graph allow."""
    world = graph.world
    forms = ["node"]
    if not graph.root.is_function:
        forms += ["initializer", "initializer", "outermost"]
    if world.opset >= 12 and value.dtype == np.int64 and value.ndim <= 1:
        forms += ["attribute"]
    form = world.pick(forms)
    if form == "node":
        return graph.add("Constant", [], value=numpy_helper.from_array(value, str(world.pick(NAMES))))
    if form == "attribute":
        attributes = {"value_ints": value.tolist()} if value.ndim else {"value_int": value.item()}
        if value.ndim and not value.size:
            return graph.add("Constant", [], value=numpy_helper.from_array(value))
        return graph.add("Constant", [], **attributes)
    name = world.fresh()
    holder = graph if form == "initializer" else graph.root
    holder.initializers.append(numpy_helper.from_array(value, name))
    return name
