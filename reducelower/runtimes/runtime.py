"""A runtime: the opset versions it reads, and the facts about it; several can be combined into one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from reducelower.errors import TargetError
from reducelower.model.schemas import latest_opset
from reducelower.runtimes.facts import Fact, When
from reducelower.runtimes.ranges import Ranges
from reducelower.text import counted

__all__ = ["Runtime", "combined"]


@dataclass(frozen=True, repr=False)
class Runtime:
    """The content of a target file.

    Attributes:
        name: its name on the command line.
        version: version that the facts are about.
        about: what it is, in a sentence.
        reads: opset versions it reads.
        prefer: opset version to try besides the one nearest to a model's own.
        facts: what it gets wrong or refuses.
        ir_version: newest IR version it reads; None if it does not matter.
        ml: newest version of the domain ``ai.onnx.ml`` it reads; None if it does not matter.
        members: the runtimes that are combined in it, if any; see `combined`.
        measures: what was measured: ``operators`` if onnx's node tests ran there; empty for reductions and their parts.
        note: a sentence if the facts are about another version; empty otherwise.
    """

    name: str
    version: str
    about: str
    reads: Ranges
    prefer: int
    facts: tuple[Fact, ...]
    ir_version: int | None = None
    ml: int | None = None
    members: tuple[Runtime, ...] = ()
    note: str = ""
    measures: str = ""

    @property
    def measures_operators(self) -> bool:
        """Whether onnx's node tests ran there, so that an operator without a fact is known to be right."""
        return self.measures == "operators"

    def __repr__(self) -> str:
        """The version and the number of facts; all of them would fill many screens."""
        return f"<{self}: {counted(len(self.facts), 'fact')}>"

    def __str__(self) -> str:
        return " and ".join(map(str, self.members)) or f"{self.name} {self.version}".strip()

    def facts_about(self, op_type: str, opset: int) -> tuple[Fact, ...]:
        """The facts that may be true of nodes of an operator at an opset version."""
        if op_type not in self._about:  # the search for a form asks about the same operators at many opset versions
            self._about[op_type] = [fact for fact in self.facts if fact.is_about(op_type)]
        return tuple(fact for fact in self._about[op_type] if fact.concerns(op_type, opset))

    @cached_property
    def _about(self) -> dict[str, list[Fact]]:
        return {}

    def refuses_added(self, op_type: str) -> bool:
        """Whether the runtime runs no node of an operator that a conversion adds."""
        refusals = (fact for fact in self.facts if op_type in fact.operators and fact.outcome in ("absent", "refused"))
        return any(not fact.when.conditions or fact.when == When(made=True) for fact in refusals)

    def misshapes(self, ranks: Iterable[int | None]) -> tuple[str, ...]:
        """Sentences about wrong shapes of model outputs with these ranks, None where unknown.

        The ranks are iterated only if there is such a fact.
        """
        facts = [fact for fact in self.facts if fact.outcome == "misshapen"]
        distinct = set(ranks) if facts else set()
        return tuple(
            f"on {self}: {fact.sentence}"
            for fact in facts
            if fact.when.rank_out is None or any(rank in fact.when.rank_out for rank in distinct)
        )


def combined(runtimes: Sequence[Runtime]) -> Runtime:
    """A runtime that reads what all of them read and gets wrong what any of them gets wrong.

    Raises:
        TargetError: there is no opset version that all of them read.
    """
    members = list(dict.fromkeys(runtimes))
    if len(members) == 1:
        return members[0]
    common = [opset for opset in range(1, latest_opset() + 1) if all(opset in each.reads for each in members)]
    if not common:
        ranges = "; ".join(f"{each} reads opsets {each.reads}" for each in members)
        raise TargetError(f"no opset version suits all of them: {ranges}", " and ".join(each.name for each in members))
    reads = Ranges.of(common)
    return Runtime(
        name="+".join(each.name for each in members),
        version="",
        about=f"A model that is right on {' and '.join(map(str, members))}.",
        reads=reads,
        prefer=reads.nearest(min(each.prefer for each in members)),
        facts=tuple(replace(fact, says=f"({each}) {fact.says}") for each in members for fact in each.facts),
        ir_version=min((each.ir_version for each in members if each.ir_version is not None), default=None),
        ml=min((each.ml for each in members if each.ml is not None), default=None),
        members=tuple(members),
        note=" ".join(filter(None, (each.note for each in members))),
    )
