"""Write the body of a rule for one node: compute what is known of the node, and write the rest.

A body is written for the general case. Constants, known sizes and known ranks become numbers, an If with a known
condition becomes one of its branches, and helpers are inlined. Besides ONNX's operators there are the engine's own:

- ``Self``: the operator that is replaced, with the attributes of the node that the rule does not name;
  ``least_outputs`` says how many outputs it has even if nothing reads them;
- ``Rank (x)``: the number of dimensions; ``Given (x)``: whether the node has that input;
- ``Answer <to>``: the value of a guard, true, false or a number; its names are those of the function it stands in;
- ``Known (x)``: whether a value is known when the body is written;
- ``IsEmpty (x)``: whether a tensor has no elements; false if that is impossible;
- ``SizeAlong <axis> (x)``: one size, as a list;
- ``ReshapeTo (x, shape)``: a Reshape to sizes that may be zero;
- ``Fold <step, over>``: calls a helper once for each number in a list, which it gets as ``at``, on its last results;
  without ``over`` once for each further input of the node, which it gets as its last input;
- ``Refuse <reason, hint>``: the node is refused;
- ``ItsBody <reason, hint>``: the node cannot cross the boundary as it is (see `NeedsBodyError`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from onnx import NodeProto, helper

from reducelower.errors import RefusedError
from reducelower.model.graph import subgraphs
from reducelower.rulebook.guards import evaluated, filled, read_as_constants
from reducelower.rulebook.occasions import NeedsBodyError
from reducelower.rulebook.values import Frame
from reducelower.rulebook.writer import BodyWriter, OwnOperator

__all__ = ["OWN_OPERATORS"]

_LEAST_OUTPUTS = "least_outputs"
"""The last attribute of a ``Self`` says how many of its outputs stay even if nothing reads them."""


def _self(body: BodyWriter, node: NodeProto, inputs: Sequence[str], frame: Frame) -> None:
    stated = body.resolved(node, frame)
    if stated and stated[-1].name == _LEAST_OUTPUTS:
        body.least_outputs = stated.pop().i
    named = {attribute.name for attribute in stated}
    kept = [
        attribute
        for attribute in body.asked.node.attribute
        if attribute.name not in named and attribute.name not in body.function.attribute
        and attribute.name not in {declared.name for declared in body.function.attribute_proto}
    ]  # fmt: skip
    rule = body.function
    surplus = [name for name in rule.input if name.startswith(f"{node.input[-1]}_and_")] if node.input else []
    more = [name for name in rule.output if name.startswith(f"{node.output[-1]}_and_")]
    made = NodeProto(op_type=body.asked.node.op_type, input=[*inputs, *surplus], output=[*node.output, *more])
    made.attribute.extend([*kept, *stated])
    body.emit_unless_known(made, frame)


def _rank(body: BodyWriter, node: NodeProto, inputs: Sequence[str], frame: Frame) -> None:
    (name,) = inputs
    if body.asked.is_input(name):
        operand = body.asked.operand(name)
        rank = body.asked.scope.rank(operand)
    else:
        constant = body.constants.get(name)
        operand, rank = "", None if constant is None else constant.ndim
    if rank is not None:
        frame.names[node.output[0]] = body.constant(f"rank_{rank}", np.array([rank] if node.attribute else rank))
        return
    body.unknown_rank = body.unknown_rank or operand
    sizes = body.free("sizes")
    body.emit("Shape", [name], [sizes])
    if node.attribute:
        body.emit("Shape", [sizes], [body.yields(node.output[0], frame)])
        return
    # Not by Size: onnxruntime 1.32 infers another length of a Range up to that, and does not load the model.
    listed = body.free("rank_in_list")
    body.emit("Shape", [sizes], [listed])
    first = body.constant("first", np.array(0, np.int64))
    body.emit("Gather", [listed, first], [body.yields(node.output[0], frame)])


def _size_along(body: BodyWriter, node: NodeProto, inputs: Sequence[str], frame: Frame) -> None:
    attributes = {attribute.name: attribute.i for attribute in body.resolved(node, frame)}
    axis, is_scalar = attributes["axis"], attributes.get("scalar", 0)
    shape = body.asked.scope.shape(body.asked.operand(inputs[0])) if body.asked.is_input(inputs[0]) else None
    if shape is not None and shape[axis] is not None:
        size = np.array(shape[axis] if is_scalar else [shape[axis]], np.int64)
        frame.names[node.output[0]] = body.constant(f"size_{shape[axis]}", size)
        return
    sizes = body.free("sizes")
    body.emit("Shape", inputs, [sizes])
    axis = axis if shape is None else axis % len(shape)
    at = np.array(axis if is_scalar else [axis], np.int64)
    place = body.constant(f"axis_{axis}".replace("-", "m"), at)
    outputs = [body.yields(node.output[0], frame)]
    body.emit("Gather", [sizes, place], outputs, [helper.make_attribute("axis", 0)])


def _reshape_to(body: BodyWriter, node: NodeProto, inputs: Sequence[str], frame: Frame) -> None:
    shape = body.value(inputs[1])
    is_plain = shape is not None and bool(shape.all())
    keeps = [] if is_plain else [helper.make_attribute("allowzero", 1)]
    body.emit("Reshape", inputs, [body.yields(node.output[0], frame)], keeps)


def _given(body: BodyWriter, node: NodeProto, inputs: Sequence[str], frame: Frame) -> None:
    frame.names[node.output[0]] = body.constant(f"is_{bool(inputs[0])}".lower(), np.array(bool(inputs[0])))


def _answer(body: BodyWriter, node: NodeProto, inputs: Sequence[str], frame: Frame) -> None:
    question = node.attribute[0].s.decode()
    answer = evaluated(question, body.asked.within(frame.names))
    if answer is None:
        raise RefusedError(f"what {question} is for {body.asked.node.op_type} is not known")
    if answer:
        names = (frame.names.get(name, "") for name in read_as_constants(question))
        body.known_inputs.update(filter(body.asked.is_input, names))
    frame.names[node.output[0]] = body.constant(f"answer_{answer}".lower().replace("-", "m"), np.array(answer))


def _is_known(body: BodyWriter, node: NodeProto, inputs: Sequence[str], frame: Frame) -> None:
    is_known = body.value(inputs[0]) is not None
    frame.names[node.output[0]] = body.constant(f"is_{is_known}".lower(), np.array(is_known))


def _is_empty(body: BodyWriter, node: NodeProto, inputs: Sequence[str], frame: Frame) -> None:
    (name,) = inputs
    scope = body.asked.scope
    operand = body.asked.operand(name) if body.asked.is_input(name) else ""
    is_empty = bool(operand) and 0 in (scope.shape(operand) or ())
    if is_empty or not (scope.may_be_empty(operand) if operand else scope.heeds_zero()):
        frame.names[node.output[0]] = body.constant(f"is_{is_empty}".lower(), np.array(is_empty))
        return
    count = body.free("count")
    body.emit("Size", [name], [count])
    none = body.constant("number_of_none", np.array(0, np.int64))
    body.emit("Equal", [count, none], [body.yields(node.output[0], frame)])


def _if(body: BodyWriter, node: NodeProto, inputs: Sequence[str], frame: Frame) -> None:
    branches = {name: graph for _, name, graph in subgraphs(node)}
    condition = body.value(inputs[0])
    if condition is not None:
        branch = branches["then_branch" if condition.reshape(-1)[0] else "else_branch"]
        body.write(branch.node, frame)
        for name, output in zip(node.output, branch.output, strict=True):
            frame.names[name] = body.read(output.name, frame)
        return
    attributes = [helper.make_attribute(name, body.branch(graph, frame)) for name, graph in branches.items()]
    outputs = [body.yields(name, frame) for name in node.output]
    body.emit("If", inputs, outputs, attributes)
    for place in range(len(outputs)):
        types = [attribute.g.output[place].type.tensor_type for attribute in body.nodes[-1].attribute]
        element_type = next((each.elem_type for each in types if each.elem_type), 0)
        for each in types if element_type else ():
            each.elem_type = element_type


def _fold(body: BodyWriter, node: NodeProto, inputs: Sequence[str], frame: Frame) -> None:
    attributes = {attribute.name: attribute for attribute in body.resolved(node, frame)}
    step = attributes["step"].s.decode()
    state, others = list(inputs[: len(node.output)]), inputs[len(node.output) :]
    if "over" in attributes:
        turns = [(str(at), [helper.make_attribute("at", [at])], others) for at in attributes["over"].ints]
    else:
        more_inputs = [name for name in body.function.input if name not in inputs]
        turns = [(name, [], [*others, name]) for name in more_inputs]
    for turn, places, read in turns:
        inner = Frame({}, frame.attributes)
        names = [f"{name}_{turn}" for name in node.output]
        body.call(step, [*state, *read], places, names, inner)
        state = [inner.names[name] for name in names]
    frame.names.update(zip(node.output, state, strict=True))


def _refuse(body: BodyWriter, node: NodeProto, inputs: Sequence[str], frame: Frame) -> None:
    raise RefusedError(*_reason_and_hint(body, node, frame))


def _its_body(body: BodyWriter, node: NodeProto, inputs: Sequence[str], frame: Frame) -> None:
    raise NeedsBodyError(*_reason_and_hint(body, node, frame), body.asked.opset)


def _reason_and_hint(body: BodyWriter, node: NodeProto, frame: Frame) -> tuple[str, str]:
    """The reason and the hint of a refusal, from the attributes of a node of a body."""
    asked = body.asked.within(frame.names)
    texts = {attribute.name: filled(attribute.s.decode(), asked) for attribute in node.attribute}
    return texts["reason"], texts.get("hint", "")


OWN_OPERATORS: Mapping[str, OwnOperator] = {
    "Answer": OwnOperator(_answer, 0, 0, ("to",)),
    "Fold": OwnOperator(_fold, 1, 1 << 30, ("step",), ("over",)),
    "Given": OwnOperator(_given, 1, 1),
    "If": OwnOperator(_if, 1, 1, ("then_branch", "else_branch")),
    "IsEmpty": OwnOperator(_is_empty, 1, 1),
    "ItsBody": OwnOperator(_its_body, 0, 0, ("reason",), ("hint",)),
    "Known": OwnOperator(_is_known, 1, 1),
    "Rank": OwnOperator(_rank, 1, 1, (), ("list",)),
    "Refuse": OwnOperator(_refuse, 0, 0, ("reason",), ("hint",)),
    "ReshapeTo": OwnOperator(_reshape_to, 2, 2),
    "Self": OwnOperator(_self, 0, 1 << 30),  # with any attributes
    "SizeAlong": OwnOperator(_size_along, 1, 1, ("axis",), ("scalar",)),
}
"""The operators that have their own way of being written."""
