"""Replace a node by a function body: a rule, or the body in the operator's schema."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from onnx import FunctionProto, GraphProto, NodeProto, helper

from reducelower.model.attributes import copy_marks
from reducelower.model.graph import rename, subgraphs, walk
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
    names = body.write_body()
    node, scope = asked.node, asked.scope
    stem = node.name or node.output[0]

    def called(name: str) -> str:
        """The name in the graph. Those constants that nodes still read become constants of the graph."""
        if name not in names:
            is_constant = name in body.constants
            tail = name if is_constant else f"/{node.op_type}/{name}"
            names[name] = scope.add_constant(body.constants[name], tail) if is_constant else scope.fresh(stem, tail)
        return names[name]

    formals = dict(zip(node.output[1:], function.output[1:], strict=False))
    for each in body.nodes:
        rename(each, called)
    for each in walk(body.nodes):
        name = next(filter(None, each.output), "")
        # Nodes of the model may have the names of outputs; the node of the first output takes that of the node.
        each.name = scope.fresh(stem, f"/{node.op_type}/{formals[name]}") if name in formals else name
        if node.output[0] in each.output:
            copy_marks(node, each)
    nodes = body.nodes
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
