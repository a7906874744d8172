"""Rewrite an If whose branches give different shapes with Loops, for opset versions whose If allows only one shape.

Each branch becomes the body of a Loop that runs once or never. A loop-carried value may change its shape between
iterations at every opset version, so the output of the branch that runs replaces an unused initial number.

Sources: the pages of If (1, 11), Loop (1, 11).
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper

from reducelower.files import DataFolder
from reducelower.legalization.whole import Changed
from reducelower.model.attributes import copy_marks, make_node
from reducelower.model.document import Document
from reducelower.model.graph import UNLIKE_BRANCHES_SINCE, subgraphs
from reducelower.model.names import Names
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.model.value_info import may_be_of_one_shape, sizes
from reducelower.types import GraphKey, Inference

__all__ = ["without_unlike_branches"]


def without_unlike_branches(source: Document, opset: int, folder: DataFolder | None) -> Changed | None:
    """The model with Loops in place of every If that is known to give different shapes.

    None if there is none, or if the opset version takes them.
    """
    if opset >= UNLIKE_BRANCHES_SINCE or "If" not in source.columns.operators:
        return None
    inference = Inference(source.message)
    made = deepcopy(source.message)
    work = _Rewriting(made)
    work.rewrite(made.graph, (), inference)
    sentence = f"branches of different shapes, which If takes since opset {UNLIKE_BRANCHES_SINCE}, run in Loops"
    return Changed(Document(made), (sentence,)) if work.has_found else None


class _Rewriting:
    def __init__(self, model: ModelProto) -> None:
        self.has_found = False
        self._fresh = Names(Document(model)).fresh

    def rewrite(self, graph: GraphProto, key: GraphKey, inference: Inference) -> None:
        """Rewrite the nodes of a graph, subgraphs first; the key is that of `Inference.type`."""
        written: list[NodeProto] = []
        for place, node in enumerate(graph.node):
            types = _types_of_unlike(node, (*key, place), inference)
            for number, _, inner in subgraphs(node):
                self.rewrite(inner, (*key, place, number), inference)
            written += self._loops(node, types) if types else [node]
        del graph.node[:]
        graph.node.extend(written)

    def _loops(self, node: NodeProto, types: list[int]) -> list[NodeProto]:
        self.has_found = True
        nodes: list[NodeProto] = []

        def add(op_type: str, *inputs: str, **attributes: object) -> str:
            name = self._fresh(node.name or node.output[0], f"/{op_type}")
            nodes.append(make_node(op_type, inputs, [name], **attributes))
            return name

        carried = [add("Constant", value=TensorProto(data_type=kind, dims=[0])) for kind in types]
        for _, name, graph in subgraphs(node):
            runs = node.input[0] if name == "then_branch" else add("Not", node.input[0])
            body = self._body(node, graph, types)
            inputs = [add("Cast", runs, to=TensorProto.INT64), "", *carried]
            carried = [self._fresh(node.name or node.output[0], f"/{name}") for _ in types]
            nodes.append(make_node("Loop", inputs, carried, body=body))
            nodes[-1].name = carried[0]
        nodes[-1].output[:] = node.output
        copy_marks(node, nodes[-1])
        return nodes

    def _body(self, node: NodeProto, branch: GraphProto, types: list[int]) -> GraphProto:
        """The graph of a branch as a loop body, with the carried inputs and the loop condition added."""
        body = GraphProto()
        body.CopyFrom(branch)
        names = [self._fresh(node.name or node.output[0], f"/{tail}") for tail in ("at", "may_go_on", "goes_on")]
        at, before, after = names
        body.input.append(helper.make_tensor_value_info(at, TensorProto.INT64, []))
        body.input.append(helper.make_tensor_value_info(before, TensorProto.BOOL, []))
        for kind in types:
            carried = self._fresh(node.name or node.output[0], "/given")
            body.input.append(helper.make_tensor_value_info(carried, kind, None))
        del body.output[:]
        body.output.append(helper.make_tensor_value_info(after, TensorProto.BOOL, []))
        body.output.extend(
            helper.make_tensor_value_info(value.name, kind, None)
            for value, kind in zip(branch.output, types, strict=True)
        )
        body.node.append(make_node("Identity", [before], [after]))
        return body


def _types_of_unlike(node: NodeProto, key: GraphKey, inference: Inference) -> list[int]:
    """The element types of the outputs of an If with different shapes; empty for any other node."""
    if node.op_type != "If" or node.domain not in DEFAULT_DOMAINS:
        return []
    branches = [(number, graph) for number, _, graph in subgraphs(node)]
    if not all(graph.node and len(graph.output) == len(node.output) for _, graph in branches):
        return []
    named = (
        [
            inference.type(value.name, inference.graph((*key, number)), may_lack_rank=True) or value.type
            for value in graph.output
        ]
        for number, graph in branches
    )
    results = [*zip(*named, strict=True)]
    if all(map(_may_be_alike, results)):
        return []
    kinds = [max(value_type.tensor_type.elem_type for value_type in result) for result in results]
    return kinds if all(kinds) else []


def _may_be_alike(types: Iterable[TypeProto]) -> bool:
    shapes = [each for each in map(sizes, types) if each is not None]
    return len(shapes) < 2 or may_be_of_one_shape(*shapes)
