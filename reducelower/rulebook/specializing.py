"""Write the body of a boundary rule for one node: what is known of the node is computed, and the rest is written.

A body is for the general case. Constants, known sizes and ranks go in as numbers, an If whose condition is known
becomes one of its branches, helpers are written out. Besides ONNX's operators a body may use a few of the engine's own:

- ``Self``: the operator that is replaced, with the attributes of the node that the rule does not name;
  ``least_outputs`` says how many outputs it has even if nothing reads them;
- ``Rank (x)``: the number of dimensions; ``Given (x)``: whether the node has that input;
- ``Answer <to>``: what a guard comes to, true, false or a number; it names what its function calls inputs of the rule;
- ``Known (x)``: whether a value is a number in what is written;
- ``IsEmpty (x)``: whether a tensor has no elements, false where it cannot be without;
- ``SizeAlong <axis> (x)``: one size, as a list; ``Listed (x)``: a list, of what may be a scalar;
- ``ReshapeTo (x, shape)``: a Reshape to sizes that may be zero;
- ``Fold <step, over>``: a helper once for each number in a list, which gets it as ``at``, on what the last one gave;
  without ``over`` once for each further input of the node, which it gets as its last;
- ``Refuse <reason, hint>``: the node is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from reducelower.errors import RefusedError
from reducelower.model.attributes import add_named, make_attribute, refuse_reference
from reducelower.model.constants import tensor_of
from reducelower.model.graph import nodes_needed, read_by, subgraphs
from reducelower.model.numbers import FLOATS, Array, largest_finite, whole_range
from reducelower.model.schemas import opset_of, schema_in_force
from reducelower.rulebook.asked import Asked
from reducelower.rulebook.bindings import BINDINGS
from reducelower.rulebook.guards import evaluated, filled, read_as_constants
from reducelower.rulebook.reading import Source
from reducelower.rulebook.simplify import Simplified, Type, goal_of_cast, hand_on_names, types_of_outputs
from reducelower.scope.fold import LARGEST
from reducelower.scope.fold import evaluated as folded

__all__ = ["OWN", "TYPES", "reason_and_hint", "specialized", "with_all"]

TYPES: Mapping[str, Callable[[Asked], int]] = {
    "wide": lambda asked: _widest(asked, asked.node.input[:1]),
    "widest": lambda asked: _widest(asked, asked.node.input),
    "comparable": lambda asked: _comparable(asked.scope.needed_element_type(asked.node.input[0])),
    "wide_result": lambda asked: (
        TensorProto.DOUBLE if asked.attribute("output_datatype") == TensorProto.DOUBLE else TensorProto.FLOAT
    ),
}
"""Element types that a body names as ``to = @wide``: float, or double if the first input, or any of them, is double.

``comparable`` is that of the first input, but for bools, which are compared as integers.
"""


def _widest(asked: Asked, names: Iterable[str]) -> int:
    types = [asked.scope.needed_element_type(name) for name in names if name]
    return TensorProto.DOUBLE if TensorProto.DOUBLE in types else TensorProto.FLOAT


def _comparable(element_type: int) -> int:
    return TensorProto.INT32 if element_type == TensorProto.BOOL else element_type


_Number: TypeAlias = "int | float"

_OF_NOTHING: Mapping[str, Callable[[_Number, _Number], _Number]] = {
    "CumProd": lambda _, __: 1,
    "CumSum": lambda _, __: 0,
    "ReduceMax": lambda least, _: least,
    "ReduceMin": lambda _, greatest: greatest,
    "ReduceProd": lambda _, __: 1,
    "ReduceSum": lambda _, __: 0,
}
"""What comes of no elements, by the ends of the type: the specification's table of neutral elements for reductions."""

_COMPLETE = 13
"""An opset version that has all that constants are computed with; a body for an older one uses it all the same."""

_OF_BODIES_ALONE: Mapping[str, Callable[[Array], Array]] = {"Reciprocal": np.reciprocal, "Sqrt": np.sqrt}
"""What is computed with constants of a body, and not looked for in models."""

_LARGEST = 64
"""The most elements of a constant that is computed, unless it is computed from as many, or holds sizes or places."""

_LEAST_OUTPUTS = "least_outputs"
"""The last attribute of a ``Self`` whose outputs stay even if nothing reads them: how many of them."""

_ABSENT = "absent"
"""What a node gives that would turn or cast an input that the node replaced leaves out."""

_AS_WRITTEN = ("Cast", "CastLike")
"""What takes a number of the header as it is written; for others it has the element type of the first input."""


@dataclass
class _Frame:
    """A function that is being written: what its names stand for, and its attributes."""

    names: dict[str, str]
    attributes: Mapping[str, AttributeProto]
    header: Mapping[str, None] = field(default_factory=dict)


_Write: TypeAlias = "Callable[[_Body, NodeProto, Sequence[str], _Frame], None]"


def specialized(
    function: FunctionProto,
    helpers: Mapping[str, Source],
    asked: Asked,
    known_inputs: Iterable[str] = (),
    bound: Mapping[str, AttributeProto] | None = None,
    *,
    as_it_stands: bool = False,
) -> Simplified:
    """The body for a node.

    Args:
        function: the rule, or the body in an operator's schema.
        helpers: functions that it may call.
        asked: the node.
        known_inputs: inputs whose constant values it computes with.
        bound: further attributes, which the engine gives.
        as_it_stands: whether sizes and element types of the node stay out of it, so that it serves many nodes.
    """
    return _Body(function, helpers, asked, set(known_inputs), bound or {}, as_it_stands).written()


class _Body:
    """The body of one rule while it is written for one node."""

    def __init__(
        self,
        function: FunctionProto,
        helpers: Mapping[str, Source],
        asked: Asked,
        known_inputs: set[str],
        bound: Mapping[str, AttributeProto],
        as_it_stands: bool,
    ) -> None:
        self.function = function
        self.helpers = helpers
        self.asked = asked
        self.opset = opset_of(function)
        self.done = Simplified()
        self._taken = {*function.input, *function.output, "first", "second"}  # by which `asked` knows operands as well
        self._numbers: dict[str, int] = {}
        self._known_inputs = known_inputs
        self._bound = bound
        self._as_it_stands = as_it_stands
        self._least_outputs = 0
        self._types: dict[str, Type] = {
            name: partial(asked.scope.element_type, asked.operand(name))
            for name in function.input
            if asked.operand(name)
        }
        self._unknown_rank = ""

    def written(self) -> Simplified:
        function, asked = self.function, self.asked
        stated = {attribute.name: attribute for attribute in asked.node.attribute}
        defaults = {attribute.name: attribute for attribute in function.attribute_proto}
        names = {name: name if asked.operand(name) else "" for name in function.input}
        header = dict.fromkeys([*function.attribute, *defaults])
        frame = _Frame(names, {**asked.defaults(), **defaults, **stated, **self._bound}, header)
        outputs = [name for name in function.output if asked.output(name)]
        frame.names.update((name, name) for name in function.output if name not in names)
        self.write(function.node, frame)
        for name in outputs:
            if frame.names[name] != name:
                self.done.same[name] = frame.names[name]
        hand_on_names(self.done, outputs)
        wanted = {self.done.same.get(name, name) for name in outputs}
        self.done.nodes = nodes_needed(self.done.nodes, wanted)
        read = wanted | {name for node in self.done.nodes for name in read_by(node)}
        own = schema_in_force(asked.node.op_type, self.opset, asked.node.domain)
        kept = max(self._least_outputs, 0 if own is None else own.min_output)
        for node in self.done.nodes:
            if node.op_type == asked.node.op_type:
                node.output[kept:] = [name if name in read else "" for name in node.output[kept:]]
                while len(node.output) > 1 and not node.output[-1]:
                    del node.output[-1]
        self._types.clear()  # breaks a reference cycle that would keep the model alive
        return self.done

    def write(self, nodes: Iterable[NodeProto], frame: _Frame) -> None:
        for node in nodes:
            takes_raw = node.op_type in _AS_WRITTEN or node.op_type in self.helpers
            inputs = [self.read(name, frame, as_written=takes_raw) for name in node.input]
            if node.domain:
                self._operator(node, inputs, frame)
            elif node.op_type in OWN:
                OWN[node.op_type].write(self, node, inputs, frame)
            elif node.op_type in self.helpers:
                self._call(node.op_type, inputs, node.attribute, node.output, frame)
            else:
                self._operator(node, inputs, frame)

    def read(self, name: str, frame: _Frame, *, as_written: bool = False) -> str:
        """The name of a value; an attribute that is no other value is one by its name."""
        if name in frame.names or not name:
            return frame.names.get(name, "")
        if name in BINDINGS and name in frame.header and name not in frame.attributes:
            return self.constant(name, _bound(name, self._own_type()))
        if name == "of_nothing":
            own = self._own_type()
            ends = (-inf, inf) if own in FLOATS else whole_range(own)
            number = _OF_NOTHING[self.asked.node.op_type](*ends)
            return self.constant(name, np.array(number, helper.tensor_dtype_to_np_dtype(own)))
        if name == "target":
            return self.constant(name, np.array(self.asked.scope.target_opset, np.int64))
        attribute = frame.attributes.get(name)
        if attribute is not None:
            refuse_reference(attribute)
        value = None if attribute is None else _as_value(attribute)
        if value is None:
            raise RefusedError(f"nothing gives {name!r} in the rule for {self.function.name}", "correct the rule")
        if value.dtype.kind == "f" and value.ndim <= 1 and not as_written:
            return self.constant(f"{name}_typed", value.astype(helper.tensor_dtype_to_np_dtype(self._own_type())))
        return self.constant(name, value)

    def _own_type(self) -> int:
        """The element type of the first input; refused if it is not known."""
        return self.asked.scope.needed_element_type(self.asked.node.input[0])

    def constant(self, name: str, value: Array) -> str:
        """The name of a constant of the body."""
        known = self.done.constants.get(name)
        is_other = known is not None and (known.dtype != value.dtype or not np.array_equal(known, value))
        if is_other or (known is None and name in self._taken):
            name = self.free(name)
        self.done.constants[name] = np.asarray(value)
        self._types[name] = partial(helper.np_dtype_to_tensor_dtype, value.dtype)
        return name

    def free(self, name: str) -> str:
        """A name of the body that nothing has yet."""
        found = name
        while found in self._taken or found in self.done.constants:
            self._numbers[name] = self._numbers.get(name, 1) + 1
            found = f"{name}_{self._numbers[name]}"
        self._taken.add(found)
        return found

    def value(self, name: str) -> Array | None:
        """The value of a constant, or of an input that the guard found constant."""
        if name in self._known_inputs:
            return self.asked.value(name)
        return self.done.constants.get(name)

    def yields(self, name: str, frame: _Frame) -> str:
        """The name in the body for what a node of it gives."""
        if not name:
            return ""
        if name not in frame.names:
            frame.names[name] = self.free(name)
        return frame.names[name]

    def emit(
        self,
        op_type: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        attributes: Iterable[AttributeProto],
        domain: str = "",
    ) -> None:
        node = NodeProto(op_type=op_type, domain=domain, input=inputs, output=outputs)
        node.attribute.extend(attributes)
        self._types.update(types_of_outputs(node, self.opset, self._types))
        self.done.nodes.append(node)

    def _operator(self, node: NodeProto, inputs: Sequence[str], frame: _Frame) -> None:
        attributes = self.resolved(node, frame)
        for attribute in attributes:
            if attribute.type == AttributeProto.GRAPH:
                attribute.g.CopyFrom(self._branch(attribute.g, frame))
        made = NodeProto(op_type=node.op_type, domain=node.domain, input=inputs, output=node.output)
        made.attribute.extend(attributes)
        other = "" if node.domain else self._passed_on(made, frame)
        if other:
            frame.names[node.output[0]] = "" if other == _ABSENT else other
            return
        value = self._computed(made)
        if value is not None:
            frame.names[node.output[0]] = self.constant(node.output[0], value)
            return
        outputs = [self.yields(name, frame) for name in node.output]
        if node.op_type == "CastLike" and not (node.domain or self._as_it_stands):
            # It came late, and is known to be a Cast.
            goal = goal_of_cast(made, self._types)
            goal = goal or self.asked.scope.needed_element_type(self.asked.operand(inputs[1]))
            self.emit("Cast", inputs[:1], outputs, [*attributes, helper.make_attribute("to", goal)])
            return
        self.emit(node.op_type, inputs, outputs, attributes, node.domain)

    def _passed_on(self, node: NodeProto, frame: _Frame) -> str:
        """The input that a node passes on as it is; empty if it computes something."""
        if node.op_type in ("Identity", "Transpose", *_AS_WRITTEN) and not node.input[0]:
            return _ABSENT
        if node.op_type == "Identity":
            return str(node.input[0])
        if node.op_type == "Unsqueeze" and len(node.input) > 1:
            axes = self.value(node.input[1])
            return str(node.input[0]) if axes is not None and not axes.size else ""
        if node.op_type == "Add" and "" in node.input:
            return str(next(filter(None, node.input)))
        if node.op_type not in _AS_WRITTEN or node.input[0] in self.done.constants:
            return ""
        if self._as_it_stands and "stash_type" not in frame.attributes:
            return ""
        goal, own = goal_of_cast(node, self._types), self._types.get(node.input[0])
        return str(node.input[0]) if own is not None and goal is not None and goal == own() else ""

    def _computed(self, node: NodeProto) -> Array | None:
        """What a node gives, if that is known."""
        if node.domain:
            return None
        if node.op_type == "Constant":
            tensor = tensor_of(node)
            return None if tensor is None else numpy_helper.to_array(tensor)
        asks_for_sizes = node.op_type == "Shape" and not (node.attribute or self._as_it_stands)
        if asks_for_sizes and self.asked.is_input(node.input[0]):
            shape = self.asked.scope.shape(self.asked.operand(node.input[0]))
            return None if shape is None or None in shape else np.array(shape, np.int64)
        values = [self.value(name) if name else None for name in node.input]
        if node.op_type in _AS_WRITTEN and values[0] is not None:
            goal = goal_of_cast(node, self._types)
            return None if goal is None else values[0].astype(helper.tensor_dtype_to_np_dtype(goal))
        if not node.input or len(node.output) > 1:
            return None
        if any(name and value is None for name, value in zip(node.input, values, strict=True)):
            return None
        result = folded(node, values, self.opset)
        if result is None and self.opset < _COMPLETE:
            result = folded(node, values, _COMPLETE)
        if node.op_type in _OF_BODIES_ALONE and values[0] is not None:
            result = np.asarray(_OF_BODIES_ALONE[node.op_type](values[0]))
        most = LARGEST if result is not None and result.dtype == np.int64 else _LARGEST
        most = max(most, *(value.size for value in values if value is not None))
        return None if result is None or result.size > most else result

    def resolved(self, node: NodeProto, frame: _Frame) -> list[AttributeProto]:
        """The attributes of a node, with what they refer to: an attribute, an element type, or a known value."""
        found = []
        for attribute in node.attribute:
            name = attribute.ref_attr_name
            if not name:
                copy = AttributeProto()
                copy.CopyFrom(attribute)
                found.append(copy)
                continue
            holder = NodeProto()
            given = frame.attributes.get(name)
            if given is not None and given.type == attribute.type:
                add_named(holder, given, attribute.name)
            elif attribute.type == AttributeProto.TENSOR:
                tensor = numpy_helper.from_array(np.reshape(self._needed(self.read(name, frame), attribute), 1))
                holder.attribute.append(helper.make_attribute(attribute.name, tensor))
            elif name in frame.names:
                value = self._needed(frame.names[name], attribute)
                add_named(holder, make_attribute(name, value), attribute.name)
            elif name in TYPES:
                holder.attribute.append(helper.make_attribute(attribute.name, TYPES[name](self.asked)))
            elif given is not None:
                add_named(holder, given, attribute.name)
                if attribute.type == AttributeProto.FLOAT and not given.ref_attr_name:
                    number = float(helper.get_attribute_value(given))
                    holder.attribute[0].CopyFrom(helper.make_attribute(attribute.name, number))
            found += holder.attribute
        return found

    def _needed(self, name: str, attribute: AttributeProto) -> Any:
        value = self.value(name)
        if value is None:
            if self._unknown_rank:
                self.asked.scope.needed_rank(self._unknown_rank)
            raise RefusedError(f"{name} of the rule for {self.function.name} is not known here", "correct the rule")
        if attribute.type == AttributeProto.TENSOR:
            return value
        plain: Any = value.tolist()
        if attribute.type in (AttributeProto.INT, AttributeProto.FLOAT):
            number = value.reshape(-1).tolist()[0]
            return float(number) if attribute.type == AttributeProto.FLOAT else number
        return [plain] if attribute.type == AttributeProto.INTS and not isinstance(plain, list) else plain

    def _call(
        self, name: str, inputs: Sequence[str], given: Iterable[AttributeProto], outputs: Sequence[str], frame: _Frame
    ) -> None:
        """Write a helper out."""
        function = self.helpers[name].function
        attributes = {
            **frame.attributes,
            **{attribute.name: attribute for attribute in function.attribute_proto},
        }
        caller = NodeProto(op_type=name, attribute=given)
        attributes.update((attribute.name, attribute) for attribute in self.resolved(caller, frame))
        inner = _Frame(
            dict(zip(function.input, inputs, strict=True)),
            attributes,
            {**frame.header, **dict.fromkeys(function.attribute)},
        )
        wanted = dict(zip(function.output, outputs, strict=True))
        for formal, actual in wanted.items():
            if actual and formal not in inner.names:
                inner.names[formal] = self.yields(actual, frame)
        self.write(function.node, inner)
        frame.names.update((actual, inner.names[formal]) for formal, actual in wanted.items() if actual)

    # The engine's own operators

    def _self(self, node: NodeProto, inputs: Sequence[str], frame: _Frame) -> None:
        written = self.resolved(node, frame)
        if written and written[-1].name == _LEAST_OUTPUTS:
            self._least_outputs = written.pop().i
        named = {attribute.name for attribute in written}
        kept = [
            attribute
            for attribute in self.asked.node.attribute
            if attribute.name not in named and attribute.name not in self.function.attribute
            and attribute.name not in {known.name for known in self.function.attribute_proto}
        ]  # fmt: skip
        names, (taken, given) = list(inputs), (self.function.input, self.function.output)
        surplus = [name for name in taken if name.startswith(f"{node.input[-1]}_and_")] if node.input else []
        more = [name for name in given if name.startswith(f"{node.output[-1]}_and_")]
        own = self.asked.node
        made = NodeProto(op_type=own.op_type, domain=own.domain, input=[*names, *surplus], output=[*node.output, *more])
        made.attribute.extend([*kept, *written])
        value = self._computed(made)
        if value is not None:
            frame.names[node.output[0]] = self.constant(node.output[0], value)
            return
        outputs = [self.yields(name, frame) for name in made.output]
        self.emit(made.op_type, made.input, outputs, made.attribute, made.domain)

    def _rank(self, node: NodeProto, inputs: Sequence[str], frame: _Frame) -> None:
        (name,) = inputs
        scope = self.asked.scope
        rank = scope.rank(self.asked.operand(name)) if self.asked.is_input(name) else self._row_rank(name)
        if rank is not None:
            frame.names[node.output[0]] = self.constant(f"rank_{rank}", np.array([rank] if node.attribute else rank))
            return
        self._unknown_rank = self._unknown_rank or (self.asked.operand(name) if self.asked.is_input(name) else "")
        sizes = self.free("sizes")
        self.emit("Shape", [name], [sizes], ())
        self.emit("Shape" if node.attribute else "Size", [sizes], [self.yields(node.output[0], frame)], ())

    def _size_along(self, node: NodeProto, inputs: Sequence[str], frame: _Frame) -> None:
        attributes = {attribute.name: attribute.i for attribute in self.resolved(node, frame)}
        axis, is_scalar = attributes["axis"], attributes.get("scalar", 0)
        shape = self.asked.scope.shape(self.asked.operand(inputs[0])) if self.asked.is_input(inputs[0]) else None
        if shape is not None and shape[axis] is not None:
            size = np.array(shape[axis] if is_scalar else [shape[axis]], np.int64)
            frame.names[node.output[0]] = self.constant(f"size_{shape[axis]}", size)
            return
        sizes = self.free("sizes")
        self.emit("Shape", inputs, [sizes], ())
        at = np.array(axis if is_scalar else [axis], np.int64)
        place = self.constant(f"axis_{axis}".replace("-", "m"), at)
        outputs = [self.yields(node.output[0], frame)]
        self.emit("Gather", [sizes, place], outputs, [helper.make_attribute("axis", 0)])

    def _listed(self, node: NodeProto, inputs: Sequence[str], frame: _Frame) -> None:
        (name,) = inputs
        if self.asked.is_input(name) and self.asked.scope.rank(self.asked.operand(name)) == 1:
            frame.names[node.output[0]] = name
            return
        row = self.constant("row", np.array([-1], np.int64))
        self.emit("Reshape", [name, row], [self.yields(node.output[0], frame)], ())

    def _reshape_to(self, node: NodeProto, inputs: Sequence[str], frame: _Frame) -> None:
        shape = self.value(inputs[1])
        is_plain = shape is not None and bool(shape.all())
        keeps = [] if is_plain else [helper.make_attribute("allowzero", 1)]
        self.emit("Reshape", inputs, [self.yields(node.output[0], frame)], keeps)

    def _row_rank(self, name: str) -> int | None:
        known = self.done.constants.get(name)
        return None if known is None else known.ndim

    def _given(self, node: NodeProto, inputs: Sequence[str], frame: _Frame) -> None:
        frame.names[node.output[0]] = self.constant(f"is_{bool(inputs[0])}".lower(), np.array(bool(inputs[0])))

    def _answer(self, node: NodeProto, inputs: Sequence[str], frame: _Frame) -> None:
        question = node.attribute[0].s.decode()
        found = evaluated(question, self.asked.within(frame.names))
        if found is None:
            raise RefusedError(f"what {question} is for {self.asked.node.op_type} is not known")
        if found:
            asked = (frame.names.get(name, "") for name in read_as_constants(question))
            self._known_inputs.update(filter(self.asked.is_input, asked))
        frame.names[node.output[0]] = self.constant(f"answer_{found}".lower().replace("-", "m"), np.array(found))

    def _is_known(self, node: NodeProto, inputs: Sequence[str], frame: _Frame) -> None:
        is_known = self.value(inputs[0]) is not None
        frame.names[node.output[0]] = self.constant(f"is_{is_known}".lower(), np.array(is_known))

    def _is_empty(self, node: NodeProto, inputs: Sequence[str], frame: _Frame) -> None:
        (name,) = inputs
        scope = self.asked.scope
        operand = self.asked.operand(name) if self.asked.is_input(name) else ""
        is_empty = bool(operand) and 0 in (scope.shape(operand) or ())
        if is_empty or not (scope.may_be_empty(operand) if operand else scope.heeds_zero()):
            frame.names[node.output[0]] = self.constant(f"is_{is_empty}".lower(), np.array(is_empty))
            return
        count = self.free("count")
        self.emit("Size", [name], [count], ())
        none = self.constant("number_of_none", np.array(0, np.int64))
        self.emit("Equal", [count, none], [self.yields(node.output[0], frame)], ())

    def _if(self, node: NodeProto, inputs: Sequence[str], frame: _Frame) -> None:
        branches = {name: graph for _, name, graph in subgraphs(node)}
        condition = self.value(inputs[0])
        if condition is not None:
            chosen = branches["then_branch" if condition.reshape(-1)[0] else "else_branch"]
            self.write(chosen.node, frame)
            for name, given in zip(node.output, chosen.output, strict=True):
                frame.names[name] = self.read(given.name, frame)
            return
        written = [helper.make_attribute(name, self._branch(graph, frame)) for name, graph in branches.items()]
        outputs = [self.yields(name, frame) for name in node.output]
        self.emit("If", inputs, outputs, written)
        for place, name in enumerate(outputs):
            yielded = [attribute.g.output[place].type.tensor_type for attribute in self.done.nodes[-1].attribute]
            known = next((each.elem_type for each in yielded if each.elem_type), 0)
            for each in yielded if known else ():
                each.elem_type = known
            self._types[name] = partial(int, known)

    def _branch(self, graph: GraphProto, frame: _Frame) -> GraphProto:
        outside, self.done.nodes = self.done.nodes, []
        inner = _Frame(dict(frame.names), frame.attributes, frame.header)
        taken = []
        for value in graph.input:
            name = inner.names[value.name] = self.free(value.name)
            taken.append(ValueInfoProto(name=name, type=value.type))
            if not (value.type.WhichOneof("value") or self._as_it_stands):
                taken[-1].type.tensor_type.elem_type = self._own_type()
            self._types[name] = partial(int, taken[-1].type.tensor_type.elem_type)
        self.write(graph.node, inner)
        results = [self.read(given.name, inner) for given in graph.output]
        for place, name in enumerate(results):
            if name in results[:place] or any(value.name == name for value in taken):  # computed there, for it alone
                results[place] = self.free(graph.output[place].name)
                self._types[results[place]] = self._types[name]
                self.done.nodes.append(NodeProto(op_type="Identity", input=[name], output=[results[place]]))
        inside, self.done.nodes = self.done.nodes, outside
        types = [self._types[name]() if name in self._types else 0 for name in results]
        outputs = [
            ValueInfoProto(name=name, type=given.type)
            if given.type.tensor_type.elem_type or self._as_it_stands
            else helper.make_tensor_value_info(name, kind or 0, None)
            for name, kind, given in zip(results, types, graph.output, strict=True)
        ]
        return helper.make_graph(inside, graph.name, taken, outputs)

    def _fold(self, node: NodeProto, inputs: Sequence[str], frame: _Frame) -> None:
        attributes = {attribute.name: attribute for attribute in self.resolved(node, frame)}
        step = attributes["step"].s.decode()
        state, others = list(inputs[: len(node.output)]), inputs[len(node.output) :]
        if "over" in attributes:
            turns = [(str(at), [helper.make_attribute("at", [at])], others) for at in attributes["over"].ints]
        else:
            further = [name for name in self.function.input if name not in inputs]
            turns = [(name, [], [*others, name]) for name in further]
        for turn, places, given in turns:
            inner = _Frame({}, frame.attributes, frame.header)
            names = [f"{name}_{turn}" for name in node.output]
            self._call(step, [*state, *given], places, names, inner)
            state = [inner.names[name] for name in names]
        frame.names.update(zip(node.output, state, strict=True))

    def _refuse(self, node: NodeProto, inputs: Sequence[str], frame: _Frame) -> None:
        raise RefusedError(*reason_and_hint(node, self.asked.within(frame.names)))


class Own(NamedTuple):
    """How an operator of the engine's own is written: its inputs, and the attributes that it needs and may have."""

    write: _Write
    least: int
    most: int
    needs: tuple[str, ...] = ()
    allows: tuple[str, ...] = ()


OWN: Mapping[str, Own] = {
    "Answer": Own(_Body._answer, 0, 0, ("to",)),
    "Fold": Own(_Body._fold, 1, 1 << 30, ("step",), ("over",)),
    "Given": Own(_Body._given, 1, 1),
    "If": Own(_Body._if, 1, 1, ("then_branch", "else_branch")),
    "IsEmpty": Own(_Body._is_empty, 1, 1),
    "Known": Own(_Body._is_known, 1, 1),
    "Listed": Own(_Body._listed, 1, 1),
    "Rank": Own(_Body._rank, 1, 1, (), ("list",)),
    "Refuse": Own(_Body._refuse, 0, 0, ("reason",), ("hint",)),
    "ReshapeTo": Own(_Body._reshape_to, 2, 2),
    "Self": Own(_Body._self, 0, 1 << 30),  # with any attributes
    "SizeAlong": Own(_Body._size_along, 1, 1, ("axis",), ("scalar",)),
}
"""The operators of a body that are written in a way of their own."""


def reason_and_hint(node: NodeProto, asked: Asked) -> tuple[str, str]:
    """What a node of a body says about a refusal."""
    said = {attribute.name: filled(attribute.s.decode(), asked) for attribute in node.attribute}
    return said["reason"], said.get("hint", "")


def with_all(function: FunctionProto, node: NodeProto) -> FunctionProto:
    """A rule with as many inputs and outputs as the node: further ones follow the last, under its name."""
    more_in, more_out = len(node.input) - len(function.input), len(node.output) - len(function.output)
    if max(more_in, more_out) <= 0 or not (function.input or more_in <= 0):
        return function
    whole = FunctionProto()
    whole.CopyFrom(function)
    whole.input.extend(f"{function.input[-1]}_and_{place}" for place in range(more_in))
    whole.output.extend(f"{function.output[-1]}_and_{place}" for place in range(more_out))
    return whole


def _bound(name: str, element_type: int) -> Array:
    """What a name of the table of bindings stands for; the ends of narrow floats, which only IsInf takes, as well."""
    if element_type in BINDINGS[name]:
        return numpy_helper.to_array(helper.make_tensor(name, element_type, (), [BINDINGS[name][element_type]]))
    largest = largest_finite(element_type)
    return np.array(largest if name == "largest" else -largest, helper.tensor_dtype_to_np_dtype(element_type))


def _as_value(attribute: AttributeProto) -> Array | None:
    """The value that an attribute stands for; None for a string or a graph."""
    match attribute.type:
        case AttributeProto.TENSOR:
            return numpy_helper.to_array(attribute.t)
        case AttributeProto.INT | AttributeProto.INTS:
            return np.array(helper.get_attribute_value(attribute), np.int64)
        case AttributeProto.FLOAT | AttributeProto.FLOATS:
            return np.array(helper.get_attribute_value(attribute), np.float32)
    return None
