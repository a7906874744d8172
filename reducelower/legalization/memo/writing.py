"""Apply an outcome to another node, with that node's names in the blanks.

The result is bytes: thousands of nodes are written from one template.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import NodeProto, TensorProto, helper

from reducelower.errors import Refusal
from reducelower.legalization.edits import Edit, Rewrite
from reducelower.legalization.memo.outcome import CASTS_BY_NUMBER, Described, Outcome
from reducelower.legalization.memo.reading import ReadNode
from reducelower.model.attributes import value_of
from reducelower.model.graph import rename, subgraphs, walk
from reducelower.model.value_info import stated_type, tensor_type
from reducelower.scope.blanks import MARKS, NAME_BLANK, Added, blanks, fill
from reducelower.scope.graph import GraphScope

__all__ = ["Writing", "in_own_names", "refusal"]


def refusal(outcome: Outcome, path: str, index: int, read: ReadNode) -> Refusal:
    """Why a node of the graph at a path cannot be legalized, with its own names."""
    assert outcome.refusal is not None
    real = read.real_names()
    reason, hint = fill(outcome.refusal.reason, real), fill(outcome.refusal.hint, real)
    return Refusal(path, real[NAME_BLANK] or f"{outcome.op_type}#{index}", outcome.op_type, reason, hint)


def in_own_names(outcome: Outcome, edit: Edit, index: int) -> Rewrite:
    """What becomes of a node if the outcome has the names of the model instead of blanks."""
    nodes = [edit.opened[index]] if outcome.nodes is None else outcome.nodes
    added = {name: _add_constant(each, edit.scope, {}) for name, each in outcome.added.items()}
    for node in nodes if added else ():
        rename(node, lambda name: added.get(name, name))
    edit.drops_operands = True
    return Rewrite(nodes, outcome.op_type, outcome.label, outcome=outcome)


def _add_constant(added: Added, graph: GraphScope, real: Mapping[str, str]) -> str:
    return graph.add_constant(added.value, added.tensor, fill(added.tail, real))


class Writing:
    """Writes one outcome in one graph."""

    def __init__(self, outcome: Outcome, edit: Edit, read: ReadNode) -> None:
        """Add the constants that the nodes read to the graph of an edit.

        `read` is the first node that gets the outcome.
        """
        self.outcome = outcome
        self._graph = graph = edit.scope
        self._doubts = edit.doubts
        self._names = graph.ground.names
        self._described: dict[str, Described | None] = {}
        # A constant may be named after an operand; the first node that reads it decides.
        real = read.real_names() if outcome.added else {}
        self._fixed: dict[str, str] = {}
        for name, each in outcome.added.items():
            self._fixed[name] = _add_constant(each, graph, real)
        self._constants = tuple(map(str.encode, self._fixed.values()))
        self._template = outcome.template
        self._makes_names = bool(outcome.derived) or not self._template.is_bytes
        inputs = {*read.key[1][: read.key[0]]} - {-1}
        edit.drops_operands |= outcome.nodes is not None and not outcome.reads >= {*blanks(len(inputs))}
        self._makes_values = bool(outcome.new_values)
        # An edited node of the same operator is as valid as before.
        is_new = not (outcome.in_place and outcome.nodes and outcome.nodes[0].op_type == outcome.op_type)
        if outcome.nodes and is_new and self._inferred(read) is None:
            # Some faults show only with the types of inputs, and subgraphs read outer values.
            holds_graphs = any(True for node in outcome.nodes for _ in subgraphs(node))
            edit.doubts += [outcome.op_type] if holds_graphs else []

    def rewrite(self, index: int, read: ReadNode) -> Rewrite:
        """What becomes of a node."""
        outcome, graph = self.outcome, self._graph
        names = self._real_names(read) if self._makes_names else {}
        nodes: Sequence[NodeProto | bytes]
        if outcome.nodes is None:
            nodes = (graph.columns.data[index],)
        elif self._template.is_bytes:
            new = [names[name].encode() for _, _, name in outcome.derived] if names else ()
            nodes = self._template.fill((*read.names, read.marks, *new, *self._constants))
        else:
            nodes = [_renamed_copy(node, names, read.marks) for node in outcome.nodes]
        types = (self._inferred(read) or {}) if self._makes_values else {}
        stated = {names[name]: types[name] for name in outcome.new_values if name in types} if types else types
        if graph.ground.opset < CASTS_BY_NUMBER:
            stated = {**_of_casts(outcome, graph, names or read.real_names()), **stated}
        return Rewrite(nodes, outcome.op_type, outcome.label, (), stated, outcome, read)

    def _inferred(self, read: ReadNode) -> Mapping[str, bytes] | None:
        """The types of new values; None if not the types of all operands are stated."""
        outcome, graph = self.outcome, self._graph
        described: dict[str, Described] = {}
        for operand, name in zip(blanks(len(read.names) - 1), read.names, strict=False):
            each = self._of_operand(name.decode())
            if each is not None:
                described[operand] = each
            elif operand in outcome.reads:  # mostly the first operand tells
                return None
        inferred = outcome.inferred(graph.ground.opset, described)
        if inferred.objection:
            self._doubts.append(outcome.op_type)
        return inferred.types

    def _of_operand(self, name: str) -> Described | None:
        if name not in self._described:  # weights may be those of all nodes
            self._described[name] = _described(self._graph, name)
        return self._described[name]

    def _real_names(self, read: ReadNode) -> dict[str, str]:
        """Names by their blanks, with fresh names for new values."""
        real = read.real_names() | self._fixed
        for stem, tail, name in self.outcome.derived:
            # The stem of a nested replacement may itself be a new name.
            real[name] = self._names.fresh(real.get(stem, stem), tail)
        return real


def _described(graph: GraphScope, name: str) -> Described | None:
    """The stated type of a value or of its stated constant, with the constant if it may be a shape; else None."""
    home = graph.home(name)
    tensor = home.tensor(name)
    stated = home.stated_type(name) if tensor is None else stated_type(tensor_type(tensor))
    if not stated.is_known:
        return None
    is_shape = stated.element_type in (TensorProto.INT32, TensorProto.INT64)
    return Described(stated.plain, graph.small_constant(name) if is_shape else None)


def _of_casts(outcome: Outcome, graph: GraphScope, real: Mapping[str, str]) -> Mapping[str, bytes]:
    """The types that Casts yield in place of a node, if the graph does not state them; inference does not see them."""
    casts = [node for node in outcome.nodes or () if node.op_type == "Cast"]
    types = {real[node.output[0]]: TensorProto.DataType.Value(value_of(node, "to")) for node in casts}
    return {
        name: helper.make_tensor_type_proto(number, graph.shape(name)).SerializeToString()
        for name, number in types.items()
        if not graph.states(name)
    }


def _renamed_copy(node: NodeProto, names: Mapping[str, str], marks: bytes) -> NodeProto:
    """A copy of a node and its subgraphs with real names."""

    def called(name: str) -> str:
        return names[name] if name in names else fill(name, names)

    copy = NodeProto.FromString(node.SerializeToString())
    rename(copy, called)
    for each in walk([copy]):
        each.name = called(each.name)
        for _, _, graph in subgraphs(each):
            graph.name = called(graph.name)
    if copy.doc_string == MARKS:
        copy.ClearField("doc_string")
        copy.MergeFromString(marks)
    return copy
