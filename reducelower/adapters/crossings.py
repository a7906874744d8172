"""Boundaries between two versions of an operator, and how a node crosses them.

Rules come first: where the same node means something else, the schemas do not show it. Most other changes are derived
from the two schemas: attributes that were added, dropped or became inputs, new inputs, defaults.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from onnx import AttributeProto, NodeProto, defs, helper

from reducelower.adapters.moves import Move, moves_between, to_attribute, to_input
from reducelower.adapters.rules import AnyRule, first, rules_for
from reducelower.errors import RefusedError
from reducelower.model.schemas import schema, versions
from reducelower.plan import joined
from reducelower.rulebook.boundaries import Boundaries
from reducelower.rulebook.occasions import Written
from reducelower.scope.body import AnyScope

__all__ = ["Crossing", "crossing_at", "crossings", "moved"]


@dataclass(frozen=True)
class Crossing:
    """One boundary of one operator, in one direction.

    Attributes:
        boundary: opset version that introduced the newer of the two versions.
        down: whether the node goes from the newer version to the older one.
        source: the schema of the node.
        goal: the schema on the far side.
        rules: the rules for it, in the order in which they are tried.
        moves: attributes of the older version that are inputs of the newer one.
        gone: attributes that the far side lacks.
        changed_defaults: attributes whose default differs on the far side, with their default here.
    """

    op_type: str
    boundary: int
    down: bool
    source: defs.OpSchema
    goal: defs.OpSchema
    rules: tuple[AnyRule, ...]
    moves: tuple[Move, ...]
    gone: frozenset[str] = field(default=frozenset())
    changed_defaults: Mapping[str, AttributeProto] = field(default_factory=dict)

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
            self.rules
            or self.moves
            or self.gone
            or self.changed_defaults
            or self.source.max_input > self.goal.max_input
            or self.source.max_output > self.goal.max_output
        )

    def cross(self, node: NodeProto, scope: AnyScope) -> Written | None:
        """Take a node across the boundary; return what replaces it, None if it stays, perhaps edited.

        Raises:
            RefusedError: the far side cannot express it.
        """
        written = first(self.rules, node, scope, self.boundary if self.down else self.boundary - 1)
        if written is not None:
            return written._replace(label=written.label or self.label)
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
        if outputs > goal.max_output:
            raise RefusedError(
                f"it uses the output {self.source.outputs[min(outputs, len(self.source.outputs)) - 1].name}, which "
                f"{self.op_type} does not have at opset {self.opset}"
            )


def crossing_at(op_type: str, boundary: int, *, down: bool, own: Boundaries | None = None) -> Crossing:
    """The boundary of an operator; rules of the user's `own` are tried first."""
    old, new = schema(op_type, boundary - 1), schema(op_type, boundary)
    assert old is not None
    assert new is not None
    source, goal = (new, old) if down else (old, new)
    moves = moves_between(op_type, old, new)
    moved = {move.attribute for move in moves}
    gone = frozenset(set(source.attributes) - set(goal.attributes) - moved)
    changed: dict[str, AttributeProto] = {}
    for name, attribute in goal.attributes.items():
        before = source.attributes.get(name)
        if before is None or before.type != attribute.type or before.required:
            continue
        if before.default_value.type and before.default_value != attribute.default_value:
            changed[name] = before.default_value
    rules = tuple(rules_for(op_type, "below" if down else "from", boundary, own))
    return Crossing(op_type, boundary, down, source, goal, rules, moves, gone, changed)


@lru_cache(maxsize=8192)
def crossings(op_type: str, opset: int, goal: int, own: Boundaries | None = None) -> tuple[Crossing, ...]:
    """The boundaries of an operator between two opset versions at which its nodes may change, in order."""
    down = goal < opset
    between = [boundary for boundary in versions(op_type)[1:] if min(opset, goal) < boundary <= max(opset, goal)]
    path = (crossing_at(op_type, boundary, down=down, own=own) for boundary in sorted(between, reverse=down))
    return tuple(crossing for crossing in path if not crossing.is_plain)


def moved(node: NodeProto, path: Iterable[Crossing], scope: AnyScope) -> tuple[Written | None, str]:
    """Take a node across boundaries; return what replaces it, None if it stays, and the label of all changes.

    Raises:
        RefusedError: it cannot cross one of them.
    """
    labels = ""
    for crossing in path:
        crossing.leave_out_empty_ends(node)
        before = node.SerializeToString()
        written = crossing.cross(node, scope)
        if written is not None:
            return written, joined(labels, written.label)
        if node.SerializeToString() != before:
            labels = joined(labels, crossing.label)
    return None, labels
