"""A runtime: what it reads and what is known of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reducelower.runtimes.facts import Fact
from reducelower.runtimes.ranges import Ranges

__all__ = ["Runtime"]


@dataclass(frozen=True)
class Runtime:
    """What a target file says.

    Attributes:
        name: what the runtime is called on the command line.
        version: version that the facts are about.
        about: what it is, in a sentence.
        reads: opset versions it reads.
        prefer: opset version that a model is brought to where its own will not do.
        facts: what it gets wrong or does not take.
        rules: rule book tried before the others there; empty for none in particular.
        ir_version: newest IR version it reads; None where that is no matter.
        members: the runtimes that it stands for, where it is several at once; see `combined`.
    """

    name: str
    version: str
    about: str
    reads: Ranges
    prefer: int
    facts: tuple[Fact, ...]
    ir_version: int | None = None
    rules: str = ""
    members: tuple[Runtime, ...] = ()

    def __str__(self) -> str:
        """Name and version."""
        return " and ".join(map(str, self.members)) or f"{self.name} {self.version}".strip()

    def facts_about(self, op_type: str, opset: int) -> tuple[Fact, ...]:
        """The facts that may be true of nodes of an operator at an opset version."""
        return tuple(fact for fact in self.facts if fact.concerns(op_type, opset))

    def misshapes(self, ranks: Iterable[int | None]) -> tuple[str, ...]:
        """What comes in another shape of outputs of these ranks, as sentences.

        A rank is None where nothing tells it; ranks are not asked for where there is no such fact.
        """
        found = [fact for fact in self.facts if fact.outcome == "misshapen"]
        known = set(ranks) if found else set()
        return tuple(
            f"on {self}, {fact.says}"
            for fact in found
            if fact.when.rank_out is None or any(rank in fact.when.rank_out for rank in known)
        )
