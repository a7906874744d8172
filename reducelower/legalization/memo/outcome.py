"""The result of one node, with blanks for names, so that it can be applied to other nodes."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from onnx import NodeProto, TensorProto

from reducelower.legalization.memo.alone import InferredAlone, infer_alone, operands_of
from reducelower.legalization.memo.template import Template
from reducelower.legalization.quantized_pairs import QUANTIZED
from reducelower.legalization.tidying import may_share
from reducelower.model.graph import read_by
from reducelower.model.rewrites import Applied, Entry
from reducelower.scope.blanks import MARKS, NAME_BLANK, blank, blanks, is_in_blanks

if TYPE_CHECKING:
    from reducelower.errors import RefusedError
    from reducelower.legalization.edits import Edit
    from reducelower.legalization.memo.reading import ReadNode
    from reducelower.scope.blanks import Added
    from reducelower.scope.graph import Described, GraphScope
    from reducelower.scope.node import NodeScope
    from reducelower.scope.trail import Question
    from reducelower.scope.values import Values

__all__ = ["NOTHING", "Outcome", "applied"]

_TYPES_KEPT = 64
"""For how many combinations of operand types an outcome keeps the types of its new values."""


@dataclass(eq=False, frozen=True)
class Outcome:
    """The result of one node.

    Attributes:
        label: its name in reports; empty if there is nothing to report.
        nodes: the nodes that replace it; None if it stays.
        in_place: whether the only such node is the edited node itself.
        added: constants that the nodes read, by their blanks.
        stated: types to state for operands, by number.
        adopted: tensors that become the value of operands, by number.
        derived: new names in order: stem, tail, name.
        types: types to state for new values that inference may not find.
        unmended: sentences about problems on the target runtime that no form avoids.
        zeros: see `NodeScope`.
        trail: every question that led to it, with the answer.
        operands: how many distinct operands the node has.
    """

    op_type: str
    label: str = ""
    nodes: Sequence[NodeProto] | None = None
    in_place: bool = False
    refusal: RefusedError | None = None
    added: Sequence[tuple[str, Added]] = ()
    stated: Sequence[tuple[int, bytes]] = ()
    adopted: Sequence[tuple[int, TensorProto]] = ()
    derived: Sequence[tuple[str, str, str]] = ()
    types: Sequence[tuple[str, bytes]] = ()
    unmended: Sequence[str] = ()
    zeros: Collection[str] = ()
    trail: Mapping[Question, Hashable] = field(default_factory=dict, repr=False)
    operands: int = 0
    _inferred: dict[tuple[Described | None, ...], InferredAlone] = field(default_factory=dict, repr=False)

    @cached_property
    def template(self) -> Template:
        """What is written for a node."""
        new = [name for _, _, name in self.derived] + [name for name, _ in self.added]
        return Template(self.nodes or (), (*blanks(self.operands), NAME_BLANK, MARKS, *new), is_bare=self.in_place)

    @cached_property
    def reads(self) -> Sequence[int]:
        """The numbers of the operands that the nodes read."""
        return sorted(int(operand[1:-1]) for operand in operands_of(self.nodes or (), self.added))

    @cached_property
    def may_share(self) -> bool:
        """Whether rewrites of other nodes may compute a part of this as well."""
        outputs = {name for node in self.nodes or () for name in node.output} - set(self.new_values)
        return not self.in_place and may_share(self.nodes or (), outputs)

    @cached_property
    def new_values(self) -> Sequence[str]:
        """The outputs of the nodes that are not operands."""
        derived = {name for _, _, name in self.derived}
        return [name for node in self.nodes or () for name in node.output if name in derived]

    def inferred(self, opset: int, operands: tuple[Described | None, ...], values: Values) -> InferredAlone:
        """The inference over the nodes by themselves, cached; see `infer_alone`."""
        inferred = self._inferred.get(operands)
        if inferred is None:
            if len(self._inferred) >= _TYPES_KEPT:
                self._inferred.clear()
            names = blanks(len(operands))
            described = {name: each for name, each in zip(names, operands, strict=True) if each is not None}
            read = [names[number] for number in self.reads]
            inferred = infer_alone(self.nodes or (), read, self.added, opset, described, values, self.types)
            self._inferred[operands] = inferred
        return inferred

    @classmethod
    def of(
        cls,
        scope: NodeScope,
        op_type: str,
        label: str,
        nodes: Sequence[NodeProto] | None,
        *,
        in_place: bool,
    ) -> Outcome:
        """The outcome from a node's scope.

        Raises:
            RefusedError: the nodes read a constant that nothing can hold.
        """
        for node in nodes or ():
            for attribute in node.attribute:
                # A tensor in an attribute may be named after an operand; that name has no meaning.
                if attribute.t.name and is_in_blanks(attribute.t.name):
                    attribute.t.ClearField("name")
        outputs = [name for node in nodes or () for name in node.output]
        read = {name for node in nodes or () for name in read_by(node)}
        added = [(name, each) for name, each in scope.added.items() if name in read]
        for _, each in added:
            scope.check_constant(each.tensor)
        if nodes is None and not (scope.stated or scope.unmended):
            return NOTHING
        return cls(
            op_type,
            label=label,
            nodes=nodes,
            in_place=in_place,
            added=added,
            stated=scope.stated,
            adopted=scope.adopted,
            derived=scope.derived,
            unmended=tuple(scope.unmended),
            zeros=frozenset(scope.zeros),
            trail=scope.trail,
            operands=scope.operands,
            types=[(name, scope.types[name].SerializeToString()) for name in outputs if name in scope.types],
        )


NOTHING = Outcome("")
"""The outcome of a node that is legal."""


def applied(edits: Iterable[Edit]) -> Sequence[Applied]:
    """What was applied where, as data."""
    entries: dict[int, Entry] = {}
    records = []
    for edit in edits:
        for index, pairs in sorted(edit.outcomes.items()):
            for read, outcome in pairs:
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
        elif question.name not in ("constant_number", "small_constant_number", "small_stated_number"):
            answers.append((question.name, operand, answer))
        elif isinstance(answer, int) and (value := graph.ground.values[answer]) is not None:
            constants[operand] = value
    added = {name: each.tensor for name, each in outcome.added}
    return Entry(
        read.in_blanks(),
        outcome.nodes or (),
        (graph.opset, graph.ground.opset),
        constants,
        added,
        {blank(number): tensor for number, tensor in outcome.adopted},
        frozenset(name for _, _, name in outcome.derived),
        answers,
        outcome.label,
    )
