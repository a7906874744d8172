"""Copy functions that cannot be converted alike for all callers, one copy for each way they are called.

A function body may depend on facts that only its calls have: attributes, axes that are passed or omitted, element type
and rank of the data. If conversion of a function was refused, or changed a function that is called without one of its
inputs, each distinct call gets a copy with these facts written in. Other functions stay as they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import zip_longest

from onnx import FunctionProto, ModelProto, NodeProto, TensorProto, numpy_helper

from reducelower.model.calls import FunctionId, attributes_of_call, bind, called_function, function_id, functions_of
from reducelower.model.graph import all_nodes, function_path, subgraphs, walk
from reducelower.model.schemas import DEFAULT_DOMAINS, opset_of
from reducelower.scope.graph import GraphScope, constant_nodes
from reducelower.scope.ground import Ground
from reducelower.types import GraphKey, function_key

__all__ = ["called_without_inputs", "specialize"]

# Constants up to this size are axes, shapes or pads; larger ones are weights, which a copy does not need.
_SMALL = 64


def specialize(model: ModelProto, paths: Iterable[str], ground: Ground) -> None:
    """Copy the functions at these paths for each distinct way they are called, wherever that is."""
    _Specializer(model, set(paths), ground).run()


def called_without_inputs(model: ModelProto) -> Iterator[FunctionProto]:
    """Functions with a call that omits an input which the body reads."""
    given: dict[FunctionId, list[set[int]]] = defaultdict(list)
    for node in all_nodes(model):
        given[called_function(node)].append({number for number, name in enumerate(node.input) if name})
    for function in model.functions:
        read = {name for node in walk(function.node) for name in node.input}
        needed = {number for number, name in enumerate(function.input) if name in read}
        if not all(numbers >= needed for numbers in given[function_id(function)]):
            yield function


def _omit_inputs(copy: FunctionProto, names: Collection[str]) -> None:
    """Let the nodes of a copy omit the inputs that the call omits."""
    for node in walk(copy.node) if names else ():
        inputs = ["" if name in names else name for name in node.input]
        while inputs and not inputs[-1] and node.input[len(inputs) - 1]:
            inputs.pop()
        if inputs != list(node.input):
            del node.input[:]
            node.input.extend(inputs)


def _called(nodes: Iterable[NodeProto]) -> set[FunctionId]:
    return {called_function(node) for node in walk(nodes)}


class _Specializer:
    """Copies functions of one model."""

    def __init__(self, model: ModelProto, paths: set[str], ground: Ground) -> None:
        self.model = model
        self.ground = ground
        self.functions = functions_of(model)
        self.copies: dict[tuple[object, ...], FunctionProto] = {}
        self.names = {(function.domain, function.name) for function in model.functions}
        self.affected = {key for key, function in self.functions.items() if function_path(function) in paths}
        # A caller of such a function may pass on its own inputs, so it is copied as well.
        grown = True
        while grown:
            callers = {key for key, function in self.functions.items() if self.affected & _called(function.node)}
            grown = not callers <= self.affected
            self.affected |= callers

    def run(self) -> None:
        self._calls(GraphScope(self.ground, self.model.graph, 0, "graph", key=()), self.model.graph.node)
        for number, function in enumerate(list(self.model.functions)):
            if function_id(function) not in self.affected:
                key = function_key(number)
                self._calls(GraphScope(self.ground, function, 0, "function", key=key), function.node)
        made = list(self.copies.values())
        kept = [function for function in self.model.functions if function_id(function) not in self.affected]
        kept = [FunctionProto.FromString(function.SerializeToString()) for function in kept]
        del self.model.functions[:]
        self.model.functions.extend([*kept, *made])

    def _calls(self, scope: GraphScope, nodes: Iterable[NodeProto]) -> None:
        """Redirect every call in a graph and its subgraphs to a copy of the function."""
        for index, node in enumerate(nodes):
            if node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS and node.output:
                scope.constant_nodes[node.output[0]] = (index, node)
            called = called_function(node)
            if called in self.affected:
                copy = self._copy(self.functions[called], node, scope)
                node.op_type = copy.name
                node.ClearField("overload")
                del node.attribute[:]
            for number, _, graph in subgraphs(node):
                key: GraphKey | None = None if scope.key is None else (*scope.key, index, number)
                self._calls(GraphScope(self.ground, graph, 0, "graph", scope, key), graph.node)

    def _copy(self, function: FunctionProto, call: NodeProto, scope: GraphScope) -> FunctionProto:
        """The copy of a function for a call: an existing one for an equal call, or a new one."""
        given = attributes_of_call(function, call)
        constants = {}
        for name, value_name in zip(function.input, call.input, strict=False):
            value = self.ground.values[scope.readable_number(value_name)] if value_name else None
            if value is not None and value.size <= _SMALL and value.dtype.kind in "iub":
                constants[name] = numpy_helper.from_array(value)
        types = tuple((scope.type_string(name), scope.rank(name)) if name else None for name in call.input)
        key = (
            function_id(function),
            tuple(sorted((name, attribute.SerializeToString()) for name, attribute in given.items())),
            tuple(sorted((name, tensor.SerializeToString()) for name, tensor in constants.items())),
            types,
        )
        if key not in self.copies:
            copy = FunctionProto.FromString(function.SerializeToString())
            copy.name = self._free_name(function)
            copy.ClearField("overload")
            del copy.attribute[:]
            del copy.attribute_proto[:]
            bind(copy.node, given)
            _omit_inputs(copy, [name for name, there in zip_longest(function.input, call.input) if not there])
            self._write_constants(copy, {name: tensor.SerializeToString() for name, tensor in constants.items()})
            self._calls(GraphScope(self.ground, copy, 0, "function"), copy.node)
            self.copies[key] = copy  # after the functions it calls, as onnx's reference evaluator needs it
        return self.copies[key]

    def _free_name(self, function: FunctionProto) -> str:
        number = 1
        while (function.domain, f"{function.name}_{number}") in self.names:
            number += 1
        name = f"{function.name}_{number}"
        self.names.add((function.domain, name))
        return name

    def _write_constants(self, copy: FunctionProto, constants: Mapping[str, bytes]) -> None:
        """Replace inputs by Constant nodes; the inputs remain under names that nothing reads.

        A value that no node can hold at the function's opset version stays an input.
        """
        nodes: list[NodeProto] = []
        opset = opset_of(copy)
        for index, name in enumerate(copy.input):
            if name in constants:
                made = constant_nodes(name, TensorProto.FromString(constants[name]), opset, self.ground.names)
                if made is not None:
                    copy.input[index] = self.ground.names.fresh(name, "_given")
                    nodes += made
        if nodes:
            nodes += [NodeProto.FromString(node.SerializeToString()) for node in copy.node]
            del copy.node[:]
            copy.node.extend(nodes)
