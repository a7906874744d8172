"""Edits of one graph, collected first and applied at the end, so that positions stay valid all along."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from onnx import NodeProto

from reducelower.errors import Refusal
from reducelower.legalization.quantized_pairs import QUANTIZED
from reducelower.model.columns import graph_of
from reducelower.model.graph import inner_path, node_label, subgraphs, walk
from reducelower.model.value_info import state
from reducelower.options import Target
from reducelower.plan import Label, Site
from reducelower.rewrites import Applied, Entry
from reducelower.scope.blanks import blank
from reducelower.scope.graph import GraphScope
from reducelower.scope.ground import Stored
from reducelower.text import counted

if TYPE_CHECKING:
    from reducelower.legalization.memo.outcome import Outcome
    from reducelower.legalization.memo.reading import ReadNode

__all__ = ["REMOVED", "Edit", "Rewrite", "applied", "notes_on_zeros", "sites_of", "splice"]


class Rewrite(NamedTuple):
    """What becomes of one node.

    Attributes:
        nodes: the nodes in its place, as messages or serialized; perhaps the node itself, as edited.
        op_type: its operator.
        label: for reports; empty if there is nothing to report.
        stands_for: the positions of all nodes that it replaces, if there are several.
        types: serialized types of new values by name, to be stated.
        outcome: what it was written from, with blanks for names.
        read: the node, as read; None if it has subgraphs, and so no blanks.
    """

    nodes: Sequence[NodeProto | bytes]
    op_type: str = ""
    label: str = ""
    stands_for: tuple[int, ...] = ()
    types: Mapping[str, bytes] = {}
    outcome: Outcome | None = None
    read: ReadNode | None = None


_OUTCOME = attrgetter("outcome")

REMOVED = Rewrite(())
"""Nothing takes the place of a node: what it computed is not read any more."""


@dataclass(eq=False)
class Edit:
    """The edits of one graph.

    Attributes:
        rewrites: what becomes of nodes, by position.
        opened: the nodes with subgraphs that may be edited, by position.
        refused: why nodes cannot be legalized, by position.
        drops_operands: whether a node may no longer read something.
        doubts: operators of rewrites that have to be checked in the context of the whole model.
    """

    scope: GraphScope
    rewrites: dict[int, Rewrite] = field(default_factory=dict)
    opened: dict[int, NodeProto] = field(default_factory=dict)
    refused: dict[int, Refusal] = field(default_factory=dict)
    drops_operands: bool = False
    doubts: list[str] = field(default_factory=list)

    def inside(self, index: int) -> Iterator[GraphScope]:
        """The scopes of a node's subgraphs, which may be edited then."""
        scope = self.scope
        node = self.opened[index] = NodeProto.FromString(scope.columns.data[index])
        for number, attribute, graph in subgraphs(node):
            path = inner_path(scope.path, node, index, attribute)
            yield GraphScope(scope.ground, graph, scope.opset, path, key=(*scope.key, index, number))

    @property
    def unchanged(self) -> int:
        """How many nodes are neither reported nor removed."""
        changed = sum(1 for rewrite in self.rewrites.values() if rewrite.label or not rewrite.nodes)
        return len(self.scope.columns.data) - changed

    @property
    def left(self) -> Sequence[Refusal]:
        """The refusals that count: a node that was removed as unused need not be legal."""
        return [refusal for index, refusal in sorted(self.refused.items()) if index not in self.rewrites]

    @property
    def sites(self) -> Iterator[Site]:
        """What was rewritten, in order."""
        scope, shift = self.scope, len(self.scope.added_nodes)
        for index, rewrite in sorted(self.rewrites.items()):
            count, label = len(rewrite.nodes), rewrite.label
            if label and count:
                name = node_label(scope.holder.node[index], index)
                because = label.because if isinstance(label, Label) else ""
                place = index, index + shift, count, because, rewrite.stands_for
                yield Site(scope.path, name, rewrite.op_type, str(label), *place)
            shift += count - 1

    def splice(self) -> None:
        """Apply the rewrites and state the types of new values, after the same was done in the subgraphs."""
        scope, data, graph = self.scope, self.scope.columns.data, self.scope.edited
        nodes: list[NodeProto | bytes] = [*scope.added_nodes]
        in_place: dict[int, bytes] = {}
        for index, rewrite in self.rewrites.items():
            if len(rewrite.nodes) == 1 and isinstance(rewrite.nodes[0], bytes):
                in_place[index] = rewrite.nodes[0]
            if rewrite.types:
                state(graph, rewrite.types)
        if len(in_place) == len(self.rewrites) and not (self.opened or nodes):
            for index, node in in_place.items():
                graph.node[index].ParseFromString(node)
            return
        copied = 0
        for index in sorted(self.rewrites.keys() | self.opened):
            nodes += data[copied:index]
            nodes += self.rewrites[index].nodes if index in self.rewrites else [self.opened[index]]
            copied = index + 1
        nodes += data[copied:]
        nodes += graph.node[len(data) :]  # a rule may have appended some to the body
        serialized = graph_of(nodes)
        graph.ClearField("node")
        graph.MergeFromString(serialized)


def splice(edits: Sequence[Edit]) -> None:
    """Apply the edits of all graphs; those of subgraphs are listed after those of the graph around them."""
    for edit in reversed(edits):
        edit.splice()


def sites_of(edits: Iterable[Edit]) -> tuple[Site, ...]:
    """What was rewritten in all graphs, in order."""
    return tuple(site for edit in edits for site in edit.sites)


def notes_on_zeros(edits: Iterable[Edit], target: Target, *, is_asked: bool) -> tuple[bool, Sequence[str]]:
    """Whether a rewrite is right only if no dimension is zero, and sentences for the user.

    `is_asked` says whether the user asked for the assumption; else the runtime requires it.
    """
    outcomes: list[Outcome] = []
    for edit in edits:
        found = map(_OUTCOME, edit.rewrites.values())
        outcomes += [outcome for outcome in found if outcome is not None and outcome.zeros]
    if not outcomes:
        return False, ()
    notes = []
    is_assumed = any("assumed" in outcome.zeros for outcome in outcomes)
    if is_assumed:
        reason = "" if is_asked else f", since {target.runtime} refuses an If that would ask"
        notes.append(f"The result assumes that no dimension is 0 when the model runs{reason}.")
    added: Counter[str] = Counter()
    for outcome in outcomes:
        if "heeded" in outcome.zeros:
            added[outcome.op_type] += sum(node.op_type == "If" for node in walk(outcome.nodes or ()))
    if total := sum(added.values()):
        of = ", ".join(op_type for op_type, count in sorted(added.items()) if count)
        does, them = ("asks", "it") if total == 1 else ("ask", "them")
        notes.append(
            f"{counted(total, 'If')} in place of {of} {does} at run time whether a dimension is 0, since nothing known "
            f"of the sizes rules that out; --assume-nonempty leaves {them} out."
        )
    return is_assumed, notes


def applied(edits: Iterable[Edit]) -> Sequence[Applied]:
    """What was applied where, as data."""
    entries: dict[int, Entry] = {}
    records = []
    for edit in edits:
        for index, rewrite in sorted(edit.rewrites.items()):
            outcome, read = rewrite.outcome, rewrite.read
            if outcome is None:
                continue
            is_pair = outcome.op_type == "DequantizeLinear" and read is not None and read.key[0] > QUANTIZED
            if read is None or is_pair:
                records.append(Applied(edit.scope.path, index))
                continue
            if id(outcome) not in entries:
                entries[id(outcome)] = _entry_of(read, outcome, edit.scope)
            names = {blank(number): name.decode() for number, name in enumerate(read.names[:-1])}
            records.append(Applied(edit.scope.path, index, entries[id(outcome)], names))
    return records


def _entry_of(read: ReadNode, outcome: Outcome, graph: GraphScope) -> Entry:
    """The outcome of a node of a graph as data, together with what was asked about the node."""
    constants, answers = {}, []
    for question, answer in outcome.trail.items():
        operand = blank(question.value) if question.value >= 0 else ""
        if question.name == "known_of" and isinstance(answer, tuple):
            answers += [("known", blank(at), facts) for at, facts in enumerate(answer)]
        elif isinstance(answer, Stored):
            constants[operand] = answer.array
        elif answer is not None:
            answers.append((question.name, operand, answer))
    added = {name: each.tensor for name, each in outcome.added.items()}
    return Entry(
        read.in_blanks(),
        outcome.nodes or (),
        (graph.opset, graph.ground.opset),
        constants,
        added,
        answers,
    )
