"""The places where a node can be: main graph, branch, body of a Loop or Scan, function."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

from tools.fuzz.case import OPAQUE
from tools.fuzz.drawing import type_proto
from tools.fuzz.nodes import DrawnNode

__all__ = ["STACKING", "Placed", "finish", "place_inside", "places_of", "put", "value_name"]

STACKING = ("loop", "scan")
"""Places that stack the outputs of every step."""


@dataclass
class Placed:
    """A model under construction around one node."""

    rng: np.random.Generator
    opset: int
    inputs: list[ValueInfoProto] = field(default_factory=list)
    initializers: list[TensorProto] = field(default_factory=list)
    nodes: list[NodeProto] = field(default_factory=list)
    outputs: list[ValueInfoProto] = field(default_factory=list)
    value_info: list[ValueInfoProto] = field(default_factory=list)
    functions: list[FunctionProto] = field(default_factory=list)
    feeds: dict[str, Any] = field(default_factory=dict)
    shapes: list[tuple[int, ...] | None] = field(default_factory=list)
    overridable: list[str] = field(default_factory=list)

    def flip(self, chance: float = 0.5) -> bool:
        """True with this probability."""
        return bool(self.rng.random() < chance)


def places_of(node: DrawnNode) -> tuple[str, ...]:
    """The places where a node can be; only tensors can be stacked."""
    of_tensors = all(spelt.startswith("tensor(") or not spelt for spelt in node.output_types)
    places = ["main", "if"] + (["loop"] if of_tensors and node.opset >= 8 else [])
    places += ["scan"] if of_tensors and node.opset >= 9 else []
    return (*places, "function")


def put(placed: Placed, where: str, nodes: list[NodeProto], outputs: list[str], types: list[str]) -> None:
    """Put nodes in a place; `value_name` returns the names of their outputs outside of it."""
    _PLACERS[where](placed, nodes, outputs, types)


def place_inside(placed: Placed, node: NodeProto, outputs: list[str], types: list[str]) -> None:
    """Add a node to a larger graph, mostly as it is, sometimes inside branches or a function."""
    chance = placed.rng.random()
    put(placed, "if" if chance < 0.06 else "function" if chance < 0.12 else "main", [node], outputs, types)


def value_name(where: str, output: str) -> str:
    """The name outside of a place for `output` inside."""
    return f"{output}_all" if where in STACKING else output


def _in_main(placed: Placed, nodes: list[NodeProto], outputs: list[str], types: list[str]) -> None:
    placed.nodes += nodes


def _subgraph(nodes: list[NodeProto], outputs: list[str], types: list[str], name: str) -> GraphProto:
    stated = [helper.make_value_info(one, type_proto(spelt)) for one, spelt in zip(outputs, types, strict=True)]
    made: GraphProto = helper.make_graph(nodes, name, [], stated)
    return made


def _in_if(placed: Placed, nodes: list[NodeProto], outputs: list[str], types: list[str]) -> None:
    branches = {}
    for branch in ("then_branch", "else_branch"):
        copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
        made = {name for node in copies for name in node.output if name}
        for node in copies:
            node.input[:] = [f"{branch}_{name}" if name in made else name for name in node.input]
            node.output[:] = [f"{branch}_{name}" if name else "" for name in node.output]
        branches[branch] = _subgraph(copies, [f"{branch}_{name}" for name in outputs], types, branch)
    condition = f"{outputs[0]}_condition"
    placed.inputs.append(helper.make_tensor_value_info(condition, TensorProto.BOOL, []))
    placed.feeds[condition] = np.array(placed.flip())
    placed.nodes.append(helper.make_node("If", [condition], outputs, **branches))


def _in_loop(placed: Placed, nodes: list[NodeProto], outputs: list[str], types: list[str]) -> None:
    """A loop of two steps, which also carries a value: below opset 11 it must."""
    body = _subgraph(
        [*nodes, *(helper.make_node("Identity", [name], [f"{name}_on"]) for name in ("go", "carried"))],
        ["go_on", "carried_on", *outputs],
        ["tensor(bool)", "tensor(float)", *types],
        "body",
    )
    starts = {"step": np.array(2), "go": np.array(True), "carried": np.array(1, np.float32)}
    for name, value in starts.items():
        body.input.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), []))
        placed.initializers.append(numpy_helper.from_array(value, f"{outputs[0]}_{name}"))
    made = [f"{outputs[0]}_last", *(value_name("loop", name) for name in outputs)]
    placed.nodes.append(helper.make_node("Loop", [f"{outputs[0]}_{name}" for name in starts], made, body=body))


def _in_scan(placed: Placed, nodes: list[NodeProto], outputs: list[str], types: list[str]) -> None:
    body = _subgraph(nodes, outputs, types, "body")
    body.input.append(helper.make_tensor_value_info("element", TensorProto.FLOAT, []))
    elements = f"{outputs[0]}_elements"
    placed.initializers.append(numpy_helper.from_array(np.zeros(2, np.float32), elements))
    stacked = [value_name("scan", name) for name in outputs]
    placed.nodes.append(helper.make_node("Scan", [elements], stacked, body=body, num_scan_inputs=1))


_REFERRED = (
    AttributeProto.INT,
    AttributeProto.FLOAT,
    AttributeProto.INTS,
    AttributeProto.FLOATS,
    AttributeProto.STRING,
)


def _in_function(placed: Placed, nodes: list[NodeProto], outputs: list[str], types: list[str]) -> None:
    made = {name for node in nodes for name in node.output}
    inputs = list(dict.fromkeys(name for node in nodes for name in node.input if name and name not in made))
    node = nodes[-1]
    declared, defaults, given = [], [], []
    for attribute in node.attribute:
        if attribute.type not in _REFERRED or not placed.flip(0.3):
            continue
        value = AttributeProto.FromString(attribute.SerializeToString())
        given_as, kind = f"the_{attribute.name}", attribute.type
        value.name = given_as
        attribute_name = attribute.name
        attribute.Clear()
        attribute.name, attribute.type, attribute.ref_attr_name = attribute_name, kind, given_as
        if placed.flip():
            declared.append(given_as)
            given.append(value)
        else:
            defaults.append(value)
    imports = [helper.make_opsetid("", placed.opset)]
    name = f"Function_{outputs[0]}"
    placed.functions.append(
        helper.make_function(
            "local", name, inputs, outputs, nodes, imports, attributes=declared, attribute_protos=defaults
        )
    )
    call = helper.make_node(name, inputs, outputs, domain="local")
    call.attribute.extend(given)
    placed.nodes.append(call)


_PLACERS = {"main": _in_main, "if": _in_if, "loop": _in_loop, "scan": _in_scan, "function": _in_function}


def finish(placed: Placed) -> ModelProto:
    """The model, at the oldest IR version that its opset version and functions allow, or a newer one."""
    graph = helper.make_graph(placed.nodes, "fuzz", placed.inputs, placed.outputs, placed.initializers)
    graph.value_info.extend(placed.value_info)
    imports = [helper.make_opsetid("", placed.opset)]
    if placed.functions:
        imports.append(helper.make_opsetid("local", 1))
    if any(node.domain == OPAQUE for node in placed.nodes):
        imports.append(helper.make_opsetid(OPAQUE, 1))
    oldest = helper.find_min_ir_version_for(imports, ignore_unknown=True)
    model: ModelProto = helper.make_model(graph, opset_imports=imports, functions=placed.functions)
    model.ir_version = max(oldest, 8 if placed.functions else 3 if placed.flip(0.3) else 4)
    for tensor in placed.initializers:
        if model.ir_version < 4 or tensor.name in placed.overridable:  # below 4, initializers must be inputs as well
            model.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    return model
