"""Puts rewrites in the place of their nodes, and tells whether what comes of it is the converted model.

Both models are numbered with one table (`numbering`). If their outputs have the same numbers, the converted model
computes what the source computes wherever each rewrite is right, and nodes that stayed mean the same at the target's
opset version. So nothing that the engine did besides has to be trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableSequence, Sequence
from dataclasses import dataclass, field

from onnx import ModelProto, NodeProto, TensorProto, helper

from reducelower.model.graph import function_path, inner_path, subgraphs
from reducelower.model.rewrites import Applied
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.verification.regions.cut import renamed
from reducelower.verification.regions.meanings import meaning
from reducelower.verification.regions.numbering import Functions, Numbers, Table, attributes, opsets_of

__all__ = ["Stayed", "Substituted", "is_same", "substituted"]


@dataclass(frozen=True, eq=False)
class Stayed:
    """A node that stayed, though the page of its operator is another at the target's opset version."""

    graph: str
    index: int
    node: NodeProto


@dataclass
class Substituted:
    """A model with rewrites in the place of their nodes.

    Attributes:
        model: what comes of it, at the target's opset version.
        stayed: the nodes that stayed and may mean something else there.
        left_out: the nodes that were rewritten and of which no entry says how.
    """

    model: ModelProto
    stayed: list[Stayed] = field(default_factory=list)
    left_out: list[tuple[str, int]] = field(default_factory=list)


def substituted(source: ModelProto, applied: Iterable[Applied], goal: int) -> Substituted:
    """A copy of a model, at an opset version, with rewrites in the place of their nodes."""
    model = ModelProto()
    model.CopyFrom(source)
    by_place: dict[tuple[str, int], list[Applied]] = {}
    for each in applied:
        by_place.setdefault((each.graph, each.index), []).append(each)
    found = Substituted(model)
    putting = _Putting(by_place, found, opsets_of(source).get("", goal), goal)
    putting.walk(model.graph.node, "graph")
    for function in model.functions:
        putting.own = opsets_of(function).get("", goal)
        putting.walk(function.node, function_path(function))
    for imports in (model.opset_import, *(function.opset_import for function in model.functions)):
        for entry in imports:
            if entry.domain in DEFAULT_DOMAINS:
                entry.version = goal
    return found


@dataclass
class _Putting:
    by_place: Mapping[tuple[str, int], Sequence[Applied]]
    found: Substituted
    own: int
    goal: int
    count: int = 0
    same: dict[object, bool] = field(default_factory=dict)

    def walk(self, nodes: MutableSequence[NodeProto], path: str) -> None:
        """Rewrite the nodes of one graph."""
        made: list[NodeProto] = []
        changed = False
        for index, node in enumerate(nodes):
            done = self.by_place.get((path, index), ())
            for _, attribute, graph in subgraphs(node):
                self.walk(graph.node, inner_path(path, node, index, attribute))
            if not done:
                if not self._means_the_same(node):
                    self.found.stayed.append(Stayed(path, index, node))
                made.append(node)
                continue
            changed = True
            if any(each.entry is None for each in done):
                self.found.left_out.append((path, index))
                made.append(node)
                continue
            put: list[NodeProto] = []
            for each in done:
                del put[-1:]  # a later rewrite is of the one node that an earlier one left
                put += self._put(each)
            made += put
        if changed:
            del nodes[:]
            nodes.extend(made)

    def _put(self, each: Applied) -> Iterator[NodeProto]:
        assert each.entry is not None and each.names is not None
        self.count += 1
        entry = each.entry
        names = dict(each.names)
        for name in (*entry.added, *entry.derived):
            names[name] = f"{name}⟦{self.count}⟧"
        for name, tensor in entry.added.items():
            yield _constant(names[name], tensor)
        for name, tensor in entry.adopted.items():
            yield _constant(names[name], tensor)
        for node in entry.nodes:
            yield renamed(node, names)

    def _means_the_same(self, node: NodeProto) -> bool:
        """Whether a node that stays means at the target's opset version what it meant."""
        if node.domain not in DEFAULT_DOMAINS or node.op_type == "Constant" or self.own == self.goal:
            return True
        names = tuple(name for name, _ in attributes(node, self.own)) if node.attribute else ()
        key = node.op_type, names, self.own
        if key not in self.same:
            versions = (meaning(node.op_type, opset, "", names) for opset in (self.own, self.goal))
            self.same[key] = len(set(versions)) == 1
        return self.same[key]


def _constant(name: str, value: TensorProto) -> NodeProto:
    return helper.make_node("Constant", [], [name], value=value)


def is_same(made: ModelProto, result: ModelProto) -> bool:
    """Whether two models compute every output of the second by the same operators from the same values."""
    table = Table()
    found = []
    version = min(made.ir_version, result.ir_version)
    for model, ir_version in ((made, made.ir_version), (result, version)):
        numbers: Numbers = {}
        table.start(model.graph, numbers, is_main=True, ir_version=ir_version)
        functions, opsets = Functions(model), opsets_of(model)
        for node in model.graph.node:
            table.add(node, numbers, opsets, functions)
        found.append([numbers.get(value.name) for value in result.graph.output])
    return None not in found[0] and found[0] == found[1]
