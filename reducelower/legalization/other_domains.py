"""Move domains other than ONNX's own to another version, by the user's rules for their operators.

onnx has no schemas for these operators, so the user's folder has to say what changes: an operator that it does not name
is refused, and a node for which no guard holds stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from onnx import ModelProto, NodeProto

from reducelower.errors import Refusal, RefusedError
from reducelower.legalization.versions import imports_of
from reducelower.model.document import Document
from reducelower.options import Target
from reducelower.rulebook.boundaries import Boundaries, Candidates

__all__ = ["Move", "domains_to_move", "move_imports", "steps_of"]


@dataclass(frozen=True)
class Move:
    """The move of a domain from a version to the goal; goal 0 means that the target has nothing of the domain."""

    domain: str
    version: int
    goal: int
    local: frozenset[str] = frozenset()

    def at(self, version: int) -> Move:
        """The rest of the move, from another version on."""
        return replace(self, version=version)

    def concerns(self, node: NodeProto) -> bool:
        """Whether the move affects a node of the domain; it does not affect calls of the model's own functions."""
        return self.version != self.goal and node.op_type not in self.local


def domains_to_move(model: ModelProto, source: Document, target: Target) -> tuple[dict[str, Move], Refusal | None]:
    """The moves by domain, and a refusal if the model imports two versions of one domain."""
    moves: dict[str, Move] = {}
    for domain, goal in sorted(target.domains):
        imported = sorted({entry.version for _, entry in imports_of(model, domain)})
        if len(imported) > 1:
            reason = f"it imports {domain} at versions {' and '.join(map(str, imported))}"
            return {}, Refusal("graph", "", "", reason, "keep the one its nodes are written for")
        if imported and imported[0] != goal:
            local = frozenset(function.name for function in source.message.functions if function.domain == domain)
            moves[domain] = Move(domain, imported[0], goal, local)
    return moves, None


def move_imports(model: ModelProto, moves: dict[str, Move]) -> tuple[str, ...]:
    """Import the new versions; return sentences that say what was done."""
    for domain, move in moves.items():
        for imports, entry in list(imports_of(model, domain)):
            if move.goal:
                entry.version = move.goal
            elif not move.local:  # its functions stay, whatever its version
                imports.remove(entry)
    return tuple(
        f"{domain} goes from version {move.version} to {move.goal}." if move.goal else f"Nothing of {domain} remains."
        for domain, move in moves.items()
    )


def steps_of(node: NodeProto, move: Move, user_rules: Boundaries | None) -> Iterator[tuple[int, Candidates]]:
    """What to try for a node at each version boundary of its move, with the version after that boundary.

    Raises:
        RefusedError: the user's rules do not say what the operator becomes.
    """
    rules = None if user_rules is None else user_rules.of_domains.get(move.domain)
    source, goal, op_type = move.version, move.goal, node.op_type
    where = f"the folder versions/{move.domain} of your rules"
    if not goal:
        if rules is not None:
            yield 0, Candidates(rules.tried(op_type, "absent"))
        raise RefusedError(
            f"the target has nothing of {move.domain}, and no rule says what this {op_type} becomes",
            f"write a rule for 'absent' into {where}",
        )
    if rules is None or op_type not in rules.operators:
        raise RefusedError(
            f"nothing says what {op_type} of {move.domain} becomes between versions {source} and {goal}",
            f"write a rule for it into {where}, or the line '{op_type} = []' into its attributes.toml if it stays",
        )
    down = goal < source
    # Only versions with rules, since there may be billions of others.
    boundaries = sorted({occasion.boundary(op_type) for occasion in rules.occasions(op_type)}, reverse=down)
    for boundary in boundaries:
        if min(source, goal) < boundary <= max(source, goal):
            yield boundary - 1 if down else boundary, rules.at(op_type, boundary, down=down)
