"""Replace a node by a function body: a rule, or the body in the operator's schema."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from onnx import FunctionProto, GraphProto, NodeProto, helper

from reducelower.model.attributes import copy_marks
from reducelower.model.graph import subgraphs
from reducelower.rulebook.asked import Asked
from reducelower.rulebook.reading import Helpers
from reducelower.rulebook.specializing import OWN_OPERATORS
from reducelower.rulebook.writer import BodyWriter
from reducelower.scope.body import AnyScope, BodyScope

__all__ = ["write_out"]


def write_out(
    function: FunctionProto,
    helpers: Helpers,
    asked: Asked,
    known_inputs: Iterable[str] = (),
    *,
    is_general: bool = False,
) -> list[NodeProto]:
    """The nodes of a function body that replace a node, at the opset version of the body.

    Args:
        function: the rule, or the body in an operator's schema.
        helpers: functions that it may call.
        asked: the node.
        known_inputs: inputs whose constant values it computes with.
        is_general: whether the body may not depend on the node's sizes and element types, so that it serves many nodes.
    """
    body = BodyWriter(function, helpers, asked, set(known_inputs), is_general, OWN_OPERATORS)
    body.write_body()
    nodes = _Instance(body).nodes()
    if not is_general and any(attribute.HasField("g") for each in nodes for attribute in each.attribute):
        _state_ranks(nodes, asked.scope, body.opset)
    return nodes


def _state_ranks(
    nodes: Sequence[NodeProto], scope: AnyScope, opset: int, around: tuple[NodeProto, GraphProto] | None = None
) -> None:
    """State the known ranks of inputs and outputs of subgraphs, since some runtimes require them."""
    inside = BodyScope(scope, nodes, opset, around)
    for inner in nodes:
        for number, _, graph in subgraphs(inner):
            for place, value in enumerate((*graph.input, *graph.output)):
                if value.type.tensor_type.HasField("shape"):
                    continue
                found = inside.type_inside(inner, number, value.name)
                rank = len(found.tensor_type.shape.dim) if found and found.tensor_type.HasField("shape") else None
                if rank is None and inner.op_type == "If":
                    rank = inside.rank(inner.output[place])
                element_type, shape = value.type.tensor_type.elem_type, None if rank is None else [None] * rank
                value.CopyFrom(helper.make_tensor_value_info(value.name, element_type, shape))
            _state_ranks(graph.node, inside, opset, (inner, graph))


class _Instance:
    """One use of a function body for one node."""

    def __init__(self, body: BodyWriter) -> None:
        self.body = body
        self.function = function = body.function
        self.node = node = body.asked.node
        self.scope = body.asked.scope
        self.stem = node.name or node.output[0]
        self.names: dict[str, str] = {"": ""}
        # Those that nodes still read become constants of the graph.
        self.constants = body.constants
        self.constant_names: dict[str, str] = {}
        for index, name in enumerate(function.input):
            self.names[name] = node.input[index] if index < len(node.input) else ""
        computed = {name for each in body.nodes for name in each.output}
        for name, output in zip(function.output, node.output, strict=False):
            # The node that computes the value computes the output. An alias of another output, or of an input of the
            # body, gets its Identity below.
            source = body.same.get(name, name)
            source = source if source in computed.difference(function.output) else name
            if output and source not in self.names:
                self.names[source] = output

    def nodes(self) -> list[NodeProto]:
        made = [self._node(inner) for inner in self.body.nodes]
        for name, output in zip(self.function.output, self.node.output, strict=False):
            source = self.body.same.get(name, name)
            if output and (source in self.constants or self.names[source] != output):
                named = self.scope.fresh(self.stem, f"/{self.node.op_type}/{name}")
                made.append(NodeProto(op_type="Identity", name=named, input=[self._read(source)], output=[output]))
        for copy in made:
            if self.node.output[0] in copy.output:
                copy_marks(self.node, copy)
        return made

    def _node(self, inner: NodeProto) -> NodeProto:
        copy = NodeProto(op_type=inner.op_type, domain=inner.domain)
        copy.input.extend(map(self._read, inner.input))
        copy.output.extend(self._name(name) for name in inner.output)
        name = next(filter(None, inner.output), "")
        # The node of the first output takes the original node's name. Other names may collide with nodes of the model.
        copy.name = self._name(name)
        if copy.name in self.node.output[1:]:
            formal = self.function.output[list(self.node.output).index(copy.name)]
            copy.name = self.scope.fresh(self.stem, f"/{self.node.op_type}/{formal}")
        copy.attribute.extend(inner.attribute)
        for _, _, graph in subgraphs(copy):
            self._rename_graph(graph)
        while len(copy.input) > 1 and not copy.input[-1]:
            del copy.input[-1]
        return copy

    def _name(self, name: str) -> str:
        if name not in self.names:
            self.names[name] = self.scope.fresh(self.stem, f"/{self.node.op_type}/{name}")
        return self.names[name]

    def _read(self, name: str) -> str:
        """The name in the graph of a value of the body."""
        if name in self.constants and name not in self.constant_names:
            self.constant_names[name] = self.scope.add_constant(self.constants[name], name)
        return self.constant_names.get(name) or self.names.get(name, name)

    def _rename_graph(self, graph: GraphProto) -> None:
        """Give the inputs and values of a subgraph fresh names."""
        for value in graph.input:
            value.name = self._name(value.name)
        made = [self._node(inner) for inner in graph.node]
        inside = {value.name for value in graph.input} | {name for copy in made for name in copy.output}
        for output in graph.output:
            name = self._read(output.name)
            if name not in inside:
                # The outputs of a graph have to be computed in it.
                outer, name = name, self.scope.fresh(self.stem, f"/{self.node.op_type}/{output.name}")
                made.append(NodeProto(op_type="Identity", name=name, input=[outer], output=[name]))
            output.name = name
        del graph.node[:]
        graph.node.extend(made)
