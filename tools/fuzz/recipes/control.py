"""Control flow: branches and loops around a few nodes; the places of other nodes are drawn elsewhere."""

from __future__ import annotations

import numpy as np
from onnx import GraphProto, TensorProto, helper

from reducelower.model.schemas import element_type_name
from tools.fuzz.drawing import Draft
from tools.fuzz.recipes.registry import recipe
from tools.fuzz.values import draw_values

_ELEMENTS = ("float", "float", "double")


def _value(name: str, element_type: int) -> object:
    return helper.make_tensor_value_info(name, element_type, None)


@recipe("If")
def branches(draft: Draft) -> None:
    draft.give(0, np.asarray(draft.flip()))
    shape = draft.shape(0, 3)
    for name in ("then_branch", "else_branch"):
        tensor = helper.make_tensor(f"{name}_k", TensorProto.FLOAT, shape, np.ones(shape, np.float32).reshape(-1))
        nodes = [
            helper.make_node("Constant", [], [f"{name}_c"], value=tensor),
            helper.make_node("Neg" if name == "then_branch" else "Exp", [f"{name}_c"], [f"{name}_y"]),
        ]
        draft.attributes[name] = helper.make_graph(nodes, name, [], [_value(f"{name}_y", TensorProto.FLOAT)])
    draft.types["V"] = "tensor(float)"


@recipe("Loop")
def loop(draft: Draft) -> None:
    """A value that is doubled in each step, and the sequence of its values."""
    element_type = TensorProto.FLOAT
    draft.types.update(V="tensor(float)", I="tensor(int64)", B="tensor(bool)")
    draft.give(0, np.asarray(draft.integer(0, 3), np.int64), parameter=True)
    if draft.flip():
        draft.give(1, np.asarray(True), parameter=True)
    draft.give(2, draw_values(draft.rng, element_type, draft.shape(0, 3), edge=False))
    scans = draft.flip()
    nodes = [
        helper.make_node("Identity", ["go"], ["on"]),
        helper.make_node("Sum", ["carried", "carried"], ["doubled"]),
        helper.make_node("Abs", ["doubled"], ["seen"]),
    ]
    inputs = [
        helper.make_tensor_value_info("step", TensorProto.INT64, []),
        helper.make_tensor_value_info("go", TensorProto.BOOL, []),
        _value("carried", element_type),
    ]
    outputs = [helper.make_tensor_value_info("on", TensorProto.BOOL, []), _value("doubled", element_type)]
    outputs += [_value("seen", element_type)] if scans else []
    draft.attributes["body"] = _graph(nodes, inputs, outputs)
    draft.outputs = 2 if scans else 1


def _graph(nodes: list, inputs: list, outputs: list) -> GraphProto:
    return helper.make_graph(nodes, "body", inputs, outputs)


@recipe("Scan")
def scan(draft: Draft) -> None:
    """A running sum over the first axis, in either direction."""
    batched = draft.schema.since_version < 9
    element_type = draft.type_of(int(batched), _ELEMENTS)  # the body adds
    draft.types["V"] = f"tensor({element_type_name(element_type)})"
    steps, inner, batch = draft.integer(1, 3), draft.shape(0, 2), (draft.integer(1, 2),) if batched else ()
    at = 1 if batched else 0
    draft.give(at, draw_values(draft.rng, element_type, (*batch, *inner), edge=False))
    axis = 0
    if not batched and inner and "scan_input_axes" in draft.schema.attributes and draft.flip(0.3):
        axis = draft.integer(0, len(inner))
        draft.attributes["scan_input_axes"] = [axis]
    scanned = list(inner)
    scanned.insert(axis, steps)
    draft.give(at + 1, draw_values(draft.rng, element_type, (*batch, *scanned), edge=False))
    nodes = [
        helper.make_node("Sum", ["carried", "element"], ["sum"]),
        helper.make_node("Abs", ["sum"], ["seen"]),
    ]
    draft.attributes["body"] = _graph(
        nodes,
        [_value("carried", element_type), _value("element", element_type)],
        [_value("sum", element_type), _value("seen", element_type)],
    )
    draft.attributes["num_scan_inputs"] = 1
    name = "directions" if batched else "scan_input_directions"
    if draft.flip(0.3):
        draft.attributes[name] = [draft.integer(0, 1)]
    draft.outputs = 2
