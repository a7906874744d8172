"""Boundaries between two versions of an operator, and how a node crosses them.

Most changes are derived from the two schemas: attributes that were added, dropped or became inputs, new inputs,
defaults. Rewrites for changes that schemas do not show (the same node means something else) are registered with
`lowers` and `raises`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TypeAlias

from onnx import AttributeProto, NodeProto, defs, helper

from reducelower.adapters import ops
from reducelower.adapters.builder import Writer
from reducelower.adapters.moves import Move, moves_between, to_attribute, to_input
from reducelower.errors import RefusedError
from reducelower.model.schemas import schema, versions
from reducelower.rulebook.boundaries import BoundaryRule, ItsBody, first_that_holds, shipped
from reducelower.rulebook.rows import Row, rows_of
from reducelower.scope.body import AnyScope

__all__ = [
    "Crossing", "ItsBody", "Outcome", "Replacement", "Rewrite", "crossings", "lowers", "moved", "raises",
]  # fmt: skip

Outcome: TypeAlias = "list[NodeProto] | None"
"""The nodes that replace a node; None if the node itself stays, perhaps edited."""


class Replacement(list[NodeProto]):
    """Nodes that replace one node.

    Attributes:
        label: for reports.
        opset: the opset version that they are written for.
    """

    def __init__(self, nodes: Iterable[NodeProto], label: str, opset: int) -> None:
        super().__init__(nodes)
        self.label = label
        self.opset = opset


Rewrite: TypeAlias = "Callable[[Writer], Outcome | ItsBody]"

_LOWERS: dict[tuple[str, int], Rewrite] = {}
_RAISES: dict[tuple[str, int], Rewrite] = {}


def _entered(table: dict[tuple[str, int], Rewrite], op_type: str, boundary: int) -> Callable[[Rewrite], Rewrite]:
    def enter(rewrite: Rewrite) -> Rewrite:
        table[op_type, boundary] = rewrite
        return rewrite

    return enter


def lowers(op_type: str, boundary: int) -> Callable[[Rewrite], Rewrite]:
    """Register the rewrite that takes an operator below an opset version that changed it.

    The rewrite gets a copy of the node, which it may edit. It returns the nodes that replace it, written for the opset
    version just below the boundary; or None, and then the changes in the schemas are applied. It raises RefusedError if
    the older version cannot express the node.
    """
    return _entered(_LOWERS, op_type, boundary)


def raises(op_type: str, boundary: int) -> Callable[[Rewrite], Rewrite]:
    """Register the rewrite that takes an operator up to an opset version, for which replacements are written."""
    return _entered(_RAISES, op_type, boundary)


@dataclass(frozen=True)
class Crossing:
    """One boundary of one operator, in one direction.

    Attributes:
        boundary: opset version that introduced the newer of the two versions.
        down: whether the node goes from the newer version to the older one.
        source: the schema of the node.
        goal: the schema on the far side.
        moves: attributes of the older version that are inputs of the newer one.
        rewrite: the rewrite that is registered for this boundary, if any.
        gone: attributes that the far side lacks.
        changed_defaults: attributes whose default differs on the far side, with their default here.
        required: attributes that only the far side requires.
        rules: the rules for it in `rules/versions`.
        rows: edits and refusals for it, if no rule applies.
        further: rules of the user's own for it, which are tried first.
    """

    op_type: str
    boundary: int
    down: bool
    source: defs.OpSchema
    goal: defs.OpSchema
    moves: tuple[Move, ...]
    rewrite: Rewrite | None
    gone: frozenset[str] = field(default=frozenset())
    changed_defaults: Mapping[str, AttributeProto] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    rules: tuple[BoundaryRule, ...] = ()
    rows: tuple[Row, ...] = ()
    further: tuple[BoundaryRule, ...] = ()

    @property
    def opset(self) -> int:
        """Opset version of nodes on the far side."""
        return self.boundary - 1 if self.down else self.boundary

    @cached_property
    def label(self) -> str:
        """The label in reports."""
        if self.moves:
            names = ", ".join([move.attribute for move in self.moves])
            return f"{names}: {'input to attribute' if self.down else 'attribute to input'}"
        return f"opset {self.boundary} to {self.boundary - 1}" if self.down else f"opset {self.boundary}"

    @property
    def is_plain(self) -> bool:
        """Whether every node may cross unchanged, apart from its element types."""
        return not (
            self.rewrite
            or self.rules
            or self.rows
            or self.further
            or self.moves
            or self.gone
            or self.changed_defaults
            or self.required
            or len(self.source.inputs) > len(self.goal.inputs)
            or self.source.max_input > self.goal.max_input
            or self.source.max_output > self.goal.max_output
            or self.source.min_input < self.goal.min_input
            or self.source.min_output < self.goal.min_output
        )

    def cross(self, node: NodeProto, scope: AnyScope) -> Replacement | ItsBody | None:
        """Take a node across the boundary; refused if the far side cannot express it."""
        source_opset = self.boundary if self.down else self.boundary - 1
        first = first_that_holds((*self.further, *self.rules), node, scope, source_opset)
        if first is not None:
            rule, outcome = first
            label = rule.label(node, scope) or self.label
            return outcome if isinstance(outcome, ItsBody) else Replacement(outcome, label, rule.opset)
        for row in self.rows:
            row.apply(node, scope, source_opset)
        if self.rewrite is not None:
            nodes = self.rewrite(Writer(node, scope))
            if nodes is not None:
                return nodes if isinstance(nodes, ItsBody) else Replacement(nodes, self.label, self.opset)
        for move in self.moves:
            if self.down:
                to_attribute(move, node, scope, self.boundary)
            else:
                to_input(move, node, scope)
        if self.gone:
            self._drop_attributes(node)
        if self.changed_defaults:
            self._write_defaults(node)
        self._check_arity(node)
        if len(node.output) < self.goal.min_output:
            self._name_needed_outputs(node, scope)
        return None

    def _drop_attributes(self, node: NodeProto) -> None:
        for index in reversed(range(len(node.attribute))):
            attribute = node.attribute[index]
            if attribute.name in self.gone:
                self._check_neutral(attribute, node)
                del node.attribute[index]

    def _check_neutral(self, attribute: AttributeProto, node: NodeProto) -> None:
        name = attribute.name
        value, default = helper.get_attribute_value(attribute), self.source.attributes[name].default_value
        if default.type and value == helper.get_attribute_value(default):
            return
        shown = value.decode() if isinstance(value, bytes) else value
        raise RefusedError(
            f"it uses {name}={shown}, which {self.op_type} does not have at opset {self.opset}",
            f"opset {self.boundary} is the {'oldest' if self.down else 'first without it; stay below'}"
            + (" that has it" if self.down else ""),
        )

    def _write_defaults(self, node: NodeProto) -> None:
        present = {attribute.name for attribute in node.attribute}
        node.attribute.extend(default for name, default in self.changed_defaults.items() if name not in present)

    def leave_out_empty_ends(self, node: NodeProto) -> None:
        """Drop empty names at the end of a node for which the far side has no inputs or outputs."""
        for names, most in ((node.input, self.goal.max_input), (node.output, self.goal.max_output)):
            while len(names) > most and not names[-1]:
                del names[-1]

    def _check_arity(self, node: NodeProto) -> None:
        self.leave_out_empty_ends(node)
        goal, inputs, outputs = self.goal, len(node.input), len(node.output)
        if inputs > goal.max_input:
            extra = self.source.inputs[min(inputs, len(self.source.inputs)) - 1].name
            raise RefusedError(f"it uses the input {extra}, which {self.op_type} does not have at opset {self.opset}")
        if inputs < goal.min_input:
            raise RefusedError(
                f"{self.op_type} needs {goal.min_input} inputs at opset {self.opset}, and it has {inputs}"
            )
        if outputs > goal.max_output:
            raise RefusedError(
                f"it uses the output {self.source.outputs[min(outputs, len(self.source.outputs)) - 1].name}, which "
                f"{self.op_type} does not have at opset {self.opset}"
            )
        if self.required:
            present = {attribute.name for attribute in node.attribute}
            for name in self.required:
                if name not in present:
                    raise RefusedError(f"{self.op_type} needs the attribute {name} at opset {self.opset}")

    def _name_needed_outputs(self, node: NodeProto, scope: AnyScope) -> None:
        """Add outputs, which nothing reads, if the far side requires more."""
        missing = self.goal.min_output - len(node.output)
        stem = node.name or next(filter(None, node.output), "")
        node.output.extend(scope.fresh(stem, f"/{self.op_type}/unread") for _ in range(missing))


@cache
def _crossing(op_type: str, boundary: int, below: int, down: bool) -> Crossing:
    old, new = schema(op_type, below), schema(op_type, boundary)
    assert old is not None
    assert new is not None
    source, goal = (new, old) if down else (old, new)
    moves = moves_between(op_type, old, new)
    moved = {move.attribute for move in moves}
    gone = frozenset(set(source.attributes) - set(goal.attributes) - moved)
    changed: dict[str, AttributeProto] = {}
    required: list[str] = []
    for name, attribute in goal.attributes.items():
        before = source.attributes.get(name)
        if attribute.required and name not in moved and (before is None or not before.required):
            required.append(name)
        if before is None or before.type != attribute.type or before.required:
            continue
        if before.default_value.type and before.default_value != attribute.default_value:
            changed[name] = before.default_value
    rewrite = (_LOWERS if down else _RAISES).get((op_type, boundary))
    rules = shipped().at(op_type, boundary, down=down)
    rows = tuple(row for row in rows_of(op_type) if row.occasion.is_at(op_type, boundary, down=down))
    return Crossing(op_type, boundary, down, source, goal, moves, rewrite, gone, changed, tuple(required), rules, rows)


@cache
def crossings(op_type: str, source_opset: int, goal_opset: int) -> tuple[Crossing, ...]:
    """The boundaries of an operator between two opset versions that both have it, in order."""
    ops.load(op_type)
    between = [number for number in versions(op_type) if number <= max(source_opset, goal_opset)]
    low = min(source_opset, goal_opset)
    pairs = [(new, old) for old, new in itertools.pairwise(between) if new > low]
    if goal_opset < source_opset:
        return tuple(_crossing(op_type, new, new - 1, True) for new, old in reversed(pairs))
    return tuple(_crossing(op_type, new, new - 1, False) for new, old in pairs)


def moved(node: NodeProto, opset: int, goal: int, scope: AnyScope) -> tuple[list[NodeProto] | None, int]:
    """Take a node to another opset version; return the nodes that replace it, if any, and their opset version.

    Raises:
        RefusedError: it cannot cross a boundary.
    """
    for crossing in crossings(node.op_type, opset, goal):
        opset = crossing.opset
        outcome = None if crossing.is_plain else crossing.cross(node, scope)
        if isinstance(outcome, ItsBody):
            raise RefusedError(*outcome)
        if outcome is not None:
            return outcome, outcome.opset
    return None, opset
