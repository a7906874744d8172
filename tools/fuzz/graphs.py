"""Random graphs of 5 to 40 nodes. Each node is run when it is added, so that the graph is valid.

Cases that are hard for conversions are drawn more often: nodes like earlier ones on data of another rank; the same axes
as an initializer of their own, a shared or overridable initializer, a Constant in any form, or computed from one;
values after operators without a schema; odd names; types, shapes and ranks that are stated in some places and left out
in others.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

from reducelower.model.schemas import latest_opset
from tools.fuzz.drawing import Input, NotDrawableError, type_proto
from tools.fuzz.nodes import DrawnNode, draw_node, operators_at
from tools.fuzz.places import Placed, finish, place_inside
from tools.fuzz.placing import blurred, constant_node, inferred_outputs, outputs_of, stated_shape
from tools.fuzz.runtimes import NEWEST_OF_ONNXRUNTIME
from tools.fuzz.steadiness import LEFT_OUT, OFTEN, is_exact_after, takes_inexact
from tools.fuzz.values import draw_values, type_string

__all__ = ["draw_graph", "random_graphs"]

_LARGEST = 2000
"""How many elements a value may have."""

_ODD_NAMES = (
    "axes_0", "y/ReduceL2/square", "a b", "é", "1", "one", "then_branch", "\N{SNOWMAN}", "quote'\"", "back\\slash",
    "%s{}", "n" * 300,
)  # fmt: skip
"""Unusual names, and names like those that conversions give."""


@dataclass
class Value:
    """A value of the graph: its data in this run, and whether no rounding has touched it."""

    array: np.ndarray
    is_exact: bool


@dataclass
class Growing:
    """A graph under construction."""

    placed: Placed
    values: dict[str, Value] = field(default_factory=dict)
    drawn: list[tuple[DrawnNode, list[str]]] = field(default_factory=list)
    constants: dict[tuple[str, bytes, tuple[int, ...]], str] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)
    made: list[str] = field(default_factory=list)

    @property
    def rng(self) -> np.random.Generator:
        """The source of all choices."""
        return self.placed.rng

    def pick(self, choices: list[Any]) -> Any:
        """One of the choices."""
        return choices[int(self.rng.integers(len(choices)))]

    def pool(self) -> dict[str, list[tuple[int, ...]]]:
        """Shapes of the existing values, by the name of their element type."""
        shapes: dict[str, list[tuple[int, ...]]] = {}
        for value in self.values.values():
            shapes.setdefault(type_string(value.array)[7:-1], []).append(value.array.shape)
        return shapes


def random_graphs(seed: int, count: int, *, opset: int | None = None) -> list[tuple[ModelProto, dict[str, Any]]]:
    """Random valid models of 5 to 40 nodes, and values for their inputs.

    Args:
        seed: the same seed gives the same models.
        count: how many.
        opset: their opset version; any from 7 on if left out.
    """
    graphs = []
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        chosen = opset or int(rng.integers(7, latest_opset() + 1))
        model, feeds, _ = draw_graph(rng, chosen)
        graphs.append((model, feeds))
    return graphs


def draw_graph(rng: np.random.Generator, opset: int) -> tuple[ModelProto, dict[str, Any], set[str]]:
    """A graph, values for its inputs, and its operators."""
    graph = Growing(Placed(rng, opset))
    for at in range(int(rng.integers(1, 4))):
        element_type = (TensorProto.FLOAT, TensorProto.FLOAT, TensorProto.INT64, TensorProto.DOUBLE)[
            int(rng.integers(4))
        ]
        shape = tuple(int(size) for size in rng.integers(1, 5, int(rng.integers(1, 5))))
        _add_input(graph, f"x{at}", draw_values(rng, element_type if at else TensorProto.FLOAT, shape, edge=False))
    wanted = int(rng.integers(5, 41))
    operators = [name for name in operators_at(opset) if name not in LEFT_OUT]
    often = [name for name in OFTEN if name in operators]
    tries = 0
    while len(graph.drawn) < wanted and tries < 8 * wanted:
        tries += 1
        try:
            if graph.drawn and rng.random() < 0.3:
                _add_like(graph)
            elif rng.random() < 0.08:
                _blur(graph)
            else:
                _add(graph, graph.pick(often if rng.random() < 0.35 else operators))
        except NotDrawableError:
            continue
    return _finished(graph), graph.placed.feeds, {node.op_type for node, _ in graph.drawn}


def _add_input(graph: Growing, name: str, array: np.ndarray) -> None:
    shape = stated_shape(graph.rng, array.shape, name)
    graph.placed.inputs.append(helper.make_value_info(name, type_proto(type_string(array), shape)))
    graph.placed.feeds[name] = array
    graph.values[name] = Value(array, is_exact=True)


def _add(graph: Growing, op_type: str) -> None:
    """Add a node whose data are existing values, if some fit."""
    node = draw_node(graph.rng, op_type, graph.placed.opset, graph.pool())
    names: list[str | None] = []
    inputs: list[Input | None] = []
    for given in node.inputs:
        fitting = [] if given is None or given.is_parameter else _fitting(graph, given.value, op_type)
        if given is None:
            names.append("")
        elif fitting and graph.rng.random() < 0.9:
            # The newest value is the most likely to come out of earlier nodes.
            name = fitting[-1] if graph.rng.random() < 0.4 else graph.pick(fitting)
            names.append(name)
            given = replace(given, value=graph.values[name].array)
        else:
            names.append(None)
        inputs.append(given)
    _append(graph, replace(node, inputs=tuple(inputs)), names)


def _fitting(graph: Growing, array: Any, op_type: str) -> list[str]:
    if isinstance(array, list):
        return []
    return [
        name
        for name, value in graph.values.items()
        if value.array.dtype == array.dtype
        and value.array.shape == array.shape
        and (value.is_exact or takes_inexact(op_type))
    ]


def _add_like(graph: Growing) -> None:
    """Add a node like an earlier one, on other data of the same element type with any shape."""
    node, names = graph.pick(graph.drawn)
    if not names or not isinstance(node.inputs[0], Input) or names[0] not in graph.values:
        raise NotDrawableError("it reads no value")
    here = graph.values[names[0]].array
    others = [
        name
        for name, value in graph.values.items()
        if name != names[0] and value.array.dtype == here.dtype and (value.is_exact or takes_inexact(node.op_type))
    ]
    if not others:
        raise NotDrawableError("there is no other value")
    name = graph.pick(others)
    if not graph.values[name].array.ndim and {"axis", "axes"} & set(node.attributes):
        raise NotDrawableError("a scalar has no axes")
    inputs = (replace(node.inputs[0], value=graph.values[name].array), *node.inputs[1:])
    again = [None if one is not None and one.is_parameter else old for one, old in zip(inputs, names, strict=True)]
    _append(graph, replace(node, inputs=inputs), [name, *again[1:]])


def _append(graph: Growing, node: DrawnNode, names: list[str | None]) -> None:
    """Run the node. If the result is usable, add the node, and constants for inputs that have no name yet."""
    runtime = "onnxruntime" if node.opset <= NEWEST_OF_ONNXRUNTIME else "reference"  # what will run the whole graph
    results = outputs_of(node, [runtime])
    if results is None:
        raise NotDrawableError(f"{runtime} does not run {node.op_type}")
    inferred_outputs(node)
    arrays = [np.asarray(value) for value in results]
    if any(given is not None and not given.is_parameter and not np.size(given.value) for given in node.inputs):
        raise NotDrawableError("what runtimes make of empty data is known to be wrong too often")
    if any(isinstance(value, list) for value in results) or any(not _is_sensible(array) for array in arrays):
        raise NotDrawableError("its outcome is too large, or not tensors")
    exact = all(graph.values[name].is_exact for name in names if name in graph.values)
    written = [
        _constant(graph, given.value) if name is None and given is not None else name or ""
        for name, given in zip(names, node.inputs, strict=True)
    ]
    number = len(graph.drawn)
    stem = f"{graph.pick(_ODD_NAMES)}_" if graph.rng.random() < 0.1 else "v"
    outputs = [f"{stem}{number}_{at}" for at in range(len(arrays))]
    proto = node.written(written, outputs, f"n{number}" if graph.placed.flip(0.7) else "")
    place_inside(graph.placed, proto, outputs, [spelt for spelt in node.output_types if spelt])
    graph.read |= set(written)
    for name, array in zip(outputs, arrays, strict=True):
        graph.values[name] = Value(array, exact and is_exact_after(node.op_type))
        graph.made.append(name)
    graph.drawn.append((node, written))


def _is_sensible(array: np.ndarray) -> bool:
    if not 0 < array.size <= _LARGEST:
        return False
    if array.dtype.kind in "OUSb":
        return True
    wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    return bool(np.all(np.isfinite(wide)) and np.all(np.abs(wide) < 1e3))


def _constant(graph: Growing, value: Any) -> str:
    """A constant: an existing one with that value, or a new initializer, node or input."""
    if isinstance(value, list) or graph.rng.random() < 0.04:
        name = f"i{len(graph.placed.inputs)}"
        _add_input(graph, name, np.asarray(value))
        return name
    key = (value.dtype.str, value.tobytes(), value.shape) if value.dtype.kind != "O" else ("O", b"", ())
    if value.dtype.kind != "O" and key in graph.constants and graph.rng.random() < 0.5:
        return graph.constants[key]
    name = f"c{len(graph.placed.initializers) + len(graph.placed.nodes)}"
    by_node = graph.rng.random() < 0.5 and (graph.placed.opset >= 9 or value.dtype == np.float32)
    if by_node:
        graph.placed.nodes.append(constant_node(graph.rng, value, name, graph.placed.opset))
    else:
        graph.placed.initializers.append(numpy_helper.from_array(value, name))
        if graph.rng.random() < 0.05:
            graph.placed.overridable.append(name)
    if value.dtype == np.int64 and value.ndim and graph.rng.random() < 0.05:
        graph.placed.nodes.append(helper.make_node("Identity", [name], [f"{name}_computed"]))
        name = f"{name}_computed"
    graph.constants[key] = name
    return name


def _blur(graph: Growing) -> None:
    """The value after a node whose output, or its rank, is unknown before it runs."""
    name = graph.pick([name for name in graph.values if f"{name}_blurred" not in graph.values] or [""])
    if not name or name.endswith("_blurred"):
        raise NotDrawableError("there is nothing left to blur")
    made = blurred(graph.placed, name, graph.values[name].array)
    graph.values[made] = graph.values[name]
    graph.read.add(name)
    graph.made.append(made)


def _finished(graph: Growing) -> ModelProto:
    """The model. Values that nothing reads are outputs, and so are some others; some types are stated."""
    placed = graph.placed
    for name in graph.made:
        array = graph.values[name].array
        spelt = type_string(array)
        if name not in graph.read or graph.rng.random() < 0.1:
            placed.outputs.append(
                helper.make_value_info(name, type_proto(spelt, stated_shape(placed.rng, array.shape, name)))
            )
        elif graph.rng.random() < 0.5:
            shape = stated_shape(placed.rng, array.shape, name) if graph.rng.random() < 0.7 else None
            placed.value_info.append(helper.make_value_info(name, type_proto(spelt, shape)))
    if not placed.outputs:
        raise NotDrawableError("nothing was drawn")
    return finish(placed)
