"""Edits of one graph, collected first and applied at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING

from reducelower.errors import Refusal
from reducelower.legalization.nodelist import NodeList, Replacement
from reducelower.legalization.quantized_pairs import QUANTIZED
from reducelower.model.graph import inner_path, node_label, subgraphs, walk
from reducelower.model.value_info import state
from reducelower.options import Target
from reducelower.plan import Label, Site
from reducelower.rewrites import Applied, Entry
from reducelower.scope.blanks import blank
from reducelower.scope.graph import GraphScope
from reducelower.scope.values import Stored
from reducelower.text import counted

if TYPE_CHECKING:
    from reducelower.legalization.memo.outcome import Outcome
    from reducelower.legalization.memo.reading import ReadNode

__all__ = ["Edit", "applied", "notes_on_zeros", "splice"]


@dataclass(eq=False)
class Edit:
    """The edits of one graph, by node position.

    Attributes:
        nodes: the nodes of the graph.
        replaced: the nodes that replace a node, which may include the node itself.
        sites: operator and label of each rewrite.
        regions: the positions of all nodes that a rewrite stands for, if it stands for several.
        types: serialized types of new values by name, to be stated.
        refused: why a node cannot be legalized.
        drops_operands: whether a node may no longer read something.
        outcomes: positions and nodes as read, with their outcomes, in order.
    """

    scope: GraphScope
    nodes: NodeList = field(init=False)
    replaced: dict[int, Replacement] = field(default_factory=dict)
    sites: dict[int, tuple[str, str]] = field(default_factory=dict)
    regions: dict[int, tuple[int, ...]] = field(default_factory=dict)
    types: dict[int, Mapping[str, bytes]] = field(default_factory=dict)
    refused: dict[int, Refusal] = field(default_factory=dict)
    drops_operands: bool = False
    outcomes: list[tuple[int, ReadNode | None, Outcome]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.nodes = NodeList(self.scope.edited, self.scope.columns)

    def inside(self, index: int) -> Iterator[GraphScope]:
        """The scopes of a node's subgraphs, which may be edited then."""
        scope, node = self.scope, self.nodes[index]
        for number, attribute, graph in subgraphs(node):
            path = inner_path(scope.path, node, index, attribute)
            yield GraphScope(scope.ground, graph, scope.opset, path, key=(*scope.key, index, number))

    def refuse(self, index: int, node: str, op_type: str, reason: str, hint: str) -> None:
        """Record why a node cannot be legalized; only the first reason counts."""
        name = node or f"{op_type}#{index}"
        self.refused.setdefault(index, Refusal(self.scope.path, name, op_type, reason, hint))

    def note(self, index: int, read: ReadNode | None, outcome: Outcome) -> None:
        """Note the outcome for a node."""
        self.outcomes.append((index, read, outcome))
        if outcome.label:
            self.sites[index] = outcome.op_type, outcome.label

    @property
    def unchanged(self) -> int:
        """How many nodes are neither rewritten nor removed; right before `splice`."""
        return len(self.nodes) - len(self.replaced.keys() | self.sites.keys())

    @property
    def left(self) -> Sequence[Refusal]:
        """The refusals that count: a node that was removed as unused need not be legal."""
        return [refusal for index, refusal in sorted(self.refused.items()) if self.replaced.get(index, True)]

    def splice(self, *, report: bool = False) -> list[Site]:
        """Apply the replacements and state the types of new values; return the sites if `report`.

        Splice the subgraphs of the nodes first.
        """
        scope = self.scope
        originals = scope.holder.node
        names = {at: node_label(originals[at], at) for at in self.sites if report}
        for index in sorted(self.types):
            state(scope.edited, self.types[index])
        if scope.added_nodes:
            self.replaced[-1] = scope.added_nodes
        self.nodes.splice(self.replaced)
        sites = []
        shift = 0
        for index in sorted({*self.replaced, *names} if report else ()):
            count = len(self.replaced[index]) if index in self.replaced else 1
            if index in names:
                op_type, label = self.sites[index]
                because = label.because if isinstance(label, Label) else ""
                place = index, index + shift, count, because, self.regions.get(index, ())
                sites.append(Site(scope.path, names[index], op_type, str(label), *place))
            shift += count - (index >= 0)
        return sites


def splice(edits: Sequence[Edit], *, report: bool) -> list[Site]:
    """Splice in all replacements; return all sites if `report`, else an empty list."""
    sites: list[Site] = []
    # Subgraphs are listed after their enclosing graph, but must be done before their node is copied.
    for edit in reversed(edits):
        sites[:0] = edit.splice(report=report)
    return sites


def notes_on_zeros(edits: Iterable[Edit], target: Target, *, is_asked: bool) -> tuple[bool, Sequence[str]]:
    """Whether a rewrite is right only if no dimension is zero, and sentences for the user.

    `is_asked` says whether the user asked for the assumption; else the runtime requires it.
    """
    outcomes = [
        outcome
        for edit in edits
        for index, _, outcome in edit.outcomes
        if outcome.zeros and edit.replaced.get(index) != []  # else the node was removed as unused
    ]
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
        for index, read, outcome in sorted(edit.outcomes, key=itemgetter(0)):
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
