"""Write the body of a rule for one node: compute what is known, inline helpers, and keep the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, ValueInfoProto, helper, numpy_helper

from reducelower.errors import RefusedError
from reducelower.model.constants import tensor_of
from reducelower.model.graph import nodes_needed, read_by
from reducelower.model.numbers import Array
from reducelower.model.schemas import element_type_name, schema_in_force
from reducelower.model.skeleton import LARGEST_CONSTANT
from reducelower.rulebook.asked import Asked
from reducelower.rulebook.bindings import chosen
from reducelower.rulebook.reading import Helpers
from reducelower.rulebook.values import BodyValues, Frame
from reducelower.types.contents import evaluated

__all__ = ["BodyWriter", "OwnOperator"]

_ONLY_IN_BODIES: Mapping[str, Callable[[Array], Array]] = {"Reciprocal": np.reciprocal, "Sqrt": np.sqrt}
"""Operators that are folded in a body, but not in models."""

_LARGEST = 64
"""The most elements of a folded constant, unless an operand has more, or it is int64 and so has sizes or places."""

_OF_SEVERAL = ("Add", "And", "Concat")
"""Operators that pass on one of two inputs if the replaced node lacks the other."""

_CASTS = ("Cast", "CastLike")
"""Operators that read a number of the header as written; for others it gets the element type of the first input."""


class OwnOperator(NamedTuple):
    """How to write an operator of the engine's own, its inputs, and the attributes that it needs or allows."""

    write: Callable[[BodyWriter, NodeProto, Sequence[str], Frame], None]
    fewest: int
    most: int
    needs: tuple[str, ...] = ()
    allows: tuple[str, ...] = ()


class BodyWriter(BodyValues):
    """Writes the body of one rule for one node.

    Attributes:
        least_outputs: how many outputs a node of the operator itself keeps even if nothing reads them.
    """

    def __init__(
        self,
        function: FunctionProto,
        helpers: Helpers,
        asked: Asked,
        known_inputs: set[str],
        is_general: bool,
        own: Mapping[str, OwnOperator],
    ) -> None:
        super().__init__(function, asked, known_inputs)
        self.helpers = helpers
        self._is_general = is_general
        self._own = own
        self.least_outputs = 0

    def write_body(self) -> dict[str, str]:
        """Write the body, without what the node's outputs do not need; return the names that values have in the graph.

        These are the node's inputs and outputs. The node that computes the value of an output computes the output. What
        another output has already, a constant, or an input gets an Identity.
        """
        function, asked = self.function, self.asked
        stated = {attribute.name: attribute for attribute in asked.node.attribute}
        defaults = {attribute.name: attribute for attribute in function.attribute_proto}
        frame = Frame(
            {name: name if asked.operand(name) else "" for name in function.input},
            {**asked.defaults, **defaults, **stated},
        )
        inputs = dict(zip(function.input, asked.node.input, strict=False))
        outputs = {name: output for name in function.output if (output := asked.output(name))}
        frame.names.update((name, name) for name in function.output if name not in frame.names)
        self.write(function.node, frame)
        called: dict[str, str] = {}
        for name, output in outputs.items():
            source = frame.names[name]
            is_of_another = source in called or source in outputs or source not in self.made_by
            if source in function.input or (source != name and is_of_another):
                self.emit("Identity", [source], [source := self.free(name)])
            called[source] = output
        self.nodes = nodes_needed(self.nodes, called)
        read = {*called, *(name for node in self.nodes for name in read_by(node))}
        operator = schema_in_force(asked.node.op_type, self.opset, asked.node.domain)
        kept = max(self.least_outputs, 0 if operator is None else operator.min_output)
        for node in self.nodes:
            if node.op_type == asked.node.op_type:
                node.output[kept:] = [name if name in read else "" for name in node.output[kept:]]
                while len(node.output) > 1 and not node.output[-1]:
                    del node.output[-1]
        return {"": "", **inputs, **called}

    def write(self, nodes: Iterable[NodeProto], frame: Frame) -> None:
        """Write nodes of a function."""
        for node in nodes:
            takes_raw = node.op_type in _CASTS or node.op_type in self.helpers
            inputs = [self.read(name, frame, as_written=takes_raw) for name in node.input]
            if node.op_type in self._own:
                self._own[node.op_type].write(self, node, inputs, frame)
            elif node.op_type in self.helpers:
                self.call(node.op_type, inputs, node.attribute, node.output, frame)
            else:
                self._operator(node, inputs, frame)

    def emit(
        self, op_type: str, inputs: Sequence[str], outputs: Sequence[str], attributes: Iterable[AttributeProto] = ()
    ) -> None:
        """Append a node."""
        node = NodeProto(op_type=op_type, input=inputs, output=outputs, attribute=attributes)
        while len(node.input) > 1 and not node.input[-1]:
            del node.input[-1]
        self.nodes.append(node)
        self.made_by.update(dict.fromkeys(filter(None, outputs), node))

    def emit_unless_known(self, node: NodeProto, frame: Frame) -> None:
        """Append a node whose outputs have the names of its function, or note its output as a constant."""
        value = self._computed(node)
        if value is None:
            self.emit(node.op_type, node.input, [self.yields(name, frame) for name in node.output], node.attribute)
        else:
            frame.names[node.output[0]] = self.constant(node.output[0], value)

    def _operator(self, node: NodeProto, inputs: Sequence[str], frame: Frame) -> None:
        attributes = self.resolved(node, frame)
        for attribute in attributes:
            if attribute.type == AttributeProto.GRAPH:
                attribute.g.CopyFrom(self.branch(attribute.g, frame))
        made = NodeProto(op_type=node.op_type, input=inputs, output=node.output, attribute=attributes)
        if self._passes_on(made, frame):
            # Of several, it is the only one that the replaced node has. An absent input makes the output absent.
            given = next(filter(None, inputs), "") if node.op_type in _OF_SEVERAL else inputs[0]
            frame.names[node.output[0]] = given
            return
        if node.op_type == "CastLike":
            # Old opset versions lack CastLike, and onnxruntime does not inline its body in the body of a SequenceMap.
            goal = self.goal_of_cast(made)
            if not goal and not self._is_general:
                goal = self.asked.scope.needed_element_type(self.asked.operand(inputs[1]))
            if goal:
                attributes.append(helper.make_attribute("to", goal))
                made = NodeProto(op_type="Cast", input=inputs[:1], output=node.output, attribute=attributes)
        self.emit_unless_known(made, frame)

    def _passes_on(self, node: NodeProto, frame: Frame) -> bool:
        """Whether a node passes on its input as it is."""
        if node.op_type == "Identity" or (node.op_type in ("Transpose", *_CASTS) and not node.input[0]):
            return True
        if node.op_type == "Unsqueeze" and len(node.input) > 1:
            axes = self.value(node.input[1])
            return axes is not None and not axes.size
        if node.op_type in _OF_SEVERAL:
            return "" in node.input
        if node.op_type not in _CASTS or node.input[0] in self.constants:
            return False
        if self._is_general and "stash_type" not in frame.attributes:
            return False
        goal = self.goal_of_cast(node)
        return goal is not None and goal == self.element_type(node.input[0])

    def _computed(self, node: NodeProto) -> Array | None:
        """The output of a node, if it is known."""
        if node.op_type == "Constant":
            tensor = tensor_of(node)
            return None if tensor is None else numpy_helper.to_array(tensor)
        asks_for_sizes = node.op_type == "Shape" and not (node.attribute or self._is_general)
        if asks_for_sizes and self.asked.is_input(node.input[0]):
            shape = self.asked.scope.shape(self.asked.operand(node.input[0]))
            return None if shape is None or None in shape else np.array(shape, np.int64)
        values = [self.value(name) if name else None for name in node.input]
        if node.op_type in _CASTS and values[0] is not None:
            goal = self.goal_of_cast(node)
            return None if goal is None else values[0].astype(helper.tensor_dtype_to_np_dtype(goal))
        if not node.input or len(node.output) > 1:
            return None
        if node.op_type == "Gather" and values[0] is None and values[1] is not None and not self._is_general:
            values[0] = self._sizes(node.input[0])
        if any(name and value is None for name, value in zip(node.input, values, strict=True)):
            return None
        result = evaluated(node, values)
        if node.op_type in _ONLY_IN_BODIES and values[0] is not None:
            result = np.asarray(_ONLY_IN_BODIES[node.op_type](values[0]))
        if result is not None and result.dtype == object:  # sizes that are not all numbers
            return None
        most = LARGEST_CONSTANT if result is not None and result.dtype == np.int64 else _LARGEST
        most = max(most, *(value.size for value in values if value is not None))
        return None if result is None or result.size > most else result

    def _sizes(self, name: str) -> Array | None:
        """An input that holds sizes, some of which may be numbers."""
        return self.asked.scope.known(self.asked.operand(name)).contents if self.asked.is_input(name) else None

    def call(
        self, name: str, inputs: Sequence[str], passed: Iterable[AttributeProto], outputs: Sequence[str], frame: Frame
    ) -> None:
        """Inline a helper."""
        function = self._helper(name)
        attributes = {
            **frame.attributes,
            **{attribute.name: attribute for attribute in function.attribute_proto},
        }
        caller = NodeProto(op_type=name, attribute=passed)
        attributes.update((attribute.name, attribute) for attribute in self.resolved(caller, frame))
        inner = Frame(dict(zip(function.input, inputs, strict=True)), attributes)
        wanted = dict(zip(function.output, outputs, strict=True))
        for formal, actual in wanted.items():
            if actual and formal not in inner.names:
                inner.names[formal] = self.yields(actual, frame)
        self.write(function.node, inner)
        frame.names.update((actual, inner.names[formal]) for formal, actual in wanted.items() if actual)

    def _helper(self, name: str) -> FunctionProto:
        """The definition of a helper for the element type of the node's data."""
        first, *others = self.helpers[name]
        if not others and not first.function.overload:
            return first.function
        element_type = self.asked.scope.needed_element_type(self.asked.node.input[0])
        helper = chosen(self.helpers[name], element_type)
        if helper is None:
            reason = f"the helper {name} of its rule is not written for {element_type_name(element_type)}"
            raise RefusedError(reason, "write it, or narrow the overload of the rule")
        return helper.function

    def branch(self, graph: GraphProto, frame: Frame) -> GraphProto:
        """A subgraph, written."""
        outside, self.nodes = self.nodes, []
        inner = Frame(dict(frame.names), frame.attributes)
        inputs = []
        for value in graph.input:
            name = inner.names[value.name] = self.free(value.name)
            inputs.append(ValueInfoProto(name=name, type=value.type))
            if not (value.type.WhichOneof("value") or self._is_general):
                inputs[-1].type.tensor_type.elem_type = self._own_type()
            self.input_types[name] = inputs[-1].type.tensor_type.elem_type
        self.write(graph.node, inner)
        results: list[str] = []
        for output in graph.output:
            name = self.read(output.name, inner)
            if name in results or not any(name in node.output for node in self.nodes):
                source, name = name, self.free(output.name)  # it has to be computed inside, and by a node of its own
                self.emit("Identity", [source], [name])
            results.append(name)
        inside, self.nodes = self.nodes, outside
        outputs = [
            ValueInfoProto(name=name, type=output.type)
            if output.type.tensor_type.elem_type or self._is_general
            else helper.make_tensor_value_info(name, self.element_type(name) or 0, None)
            for name, output in zip(results, graph.output, strict=True)
        ]
        return helper.make_graph(inside, graph.name, inputs, outputs)
