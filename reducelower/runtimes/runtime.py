"""A runtime: what it reads and what is known of it; several can be combined into one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

from reducelower.errors import TargetError
from reducelower.model.schemas import latest_opset
from reducelower.model.text import counted
from reducelower.runtimes.facts import Fact, When
from reducelower.runtimes.ranges import Ranges

__all__ = ["Runtime", "combined"]


@dataclass(frozen=True, repr=False)
class Runtime:
    """The content of a target file.

    Attributes:
        name: what the runtime is called on the command line.
        version: version that the facts are about.
        about: what it is, in a sentence.
        reads: opset versions it reads.
        prefer: opset version that a model is brought to where its own will not do.
        facts: what it gets wrong or does not take.
        rules: rule book tried before the others there; empty for none in particular.
        ir_version: newest IR version it reads; None where that is no matter.
        ml: newest version of the domain ``ai.onnx.ml`` it reads; None where that is no matter.
        members: the runtimes that it stands for, where it is several at once; see `combined`.
        measures: what was measured: ``operators`` if onnx's node tests ran there; empty for reductions and their parts.
        note: a sentence where the facts are not about this very version; empty otherwise.
    """

    name: str
    version: str
    about: str
    reads: Ranges
    prefer: int
    facts: tuple[Fact, ...]
    ir_version: int | None = None
    ml: int | None = None
    rules: str = ""
    members: tuple[Runtime, ...] = ()
    note: str = ""
    measures: str = ""

    @property
    def measures_operators(self) -> bool:
        """Whether onnx's node tests ran there, so that an operator without a fact is known to be right."""
        return self.measures == "operators"

    def __repr__(self) -> str:
        """One line: which version, and how much is known of it; in full that is many screens."""
        return f"<{self}: {counted(len(self.facts), 'fact')}>"

    def __str__(self) -> str:
        return " and ".join(map(str, self.members)) or f"{self.name} {self.version}".strip()

    def facts_about(self, op_type: str, opset: int) -> tuple[Fact, ...]:
        """The facts that may be true of nodes of an operator at an opset version."""
        if op_type not in self._about:  # a search for a form asks for the same few at many opset versions
            self._about[op_type] = [fact for fact in self.facts if fact.is_about(op_type)]
        return tuple(fact for fact in self._about[op_type] if fact.concerns(op_type, opset))

    @cached_property
    def _about(self) -> dict[str, list[Fact]]:
        return {}

    def against(self, way: str, op_type: str) -> tuple[Fact, ...]:
        """The facts that exclude this way for nodes of an operator, because it is no better."""
        failing = (fact for fact in self.facts if op_type in fact.operators and fact.outcome != "overflows")
        return tuple(fact for fact in failing if way in fact.not_by)

    def refuses_added(self, op_type: str) -> bool:
        """Whether the runtime does not run nodes of an operator that the tool adds, whatever they are."""
        about = (fact for fact in self.facts if op_type in fact.operators and fact.outcome in ("absent", "refused"))
        return any(not fact.when.conditions or fact.when == When(made=True) for fact in about)

    def misshapes(self, ranks: Iterable[int | None]) -> tuple[str, ...]:
        """Sentences about wrong shapes of model outputs with these ranks.

        A rank is None if unknown; ranks are not asked for if there is no such fact.
        """
        found = [fact for fact in self.facts if fact.outcome == "misshapen"]
        known = set(ranks) if found else set()
        return tuple(
            f"on {self}: {fact.told}"
            for fact in found
            if fact.when.rank_out is None or any(rank in fact.when.rank_out for rank in known)
        )


def combined(runtimes: Sequence[Runtime]) -> Runtime:
    """A runtime that reads what all of them read and gets wrong what any of them gets wrong.

    Raises:
        TargetError: there is no opset version that all of them read.
    """
    members = list(dict.fromkeys(runtimes))
    if len(members) == 1:
        return members[0]
    reads = reduce(Ranges.intersection, (each.reads for each in members))
    common = [opset for opset in range(1, latest_opset() + 1) if opset in reads]
    if not common:
        known = "; ".join(f"{each} reads opsets {each.reads}" for each in members)
        raise TargetError(f"no opset version suits all of them: {known}", " and ".join(each.name for each in members))
    wanted = min(each.prefer for each in members)
    return Runtime(
        name="+".join(each.name for each in members),
        version="",
        about=f"A model that is right on {' and '.join(map(str, members))}.",
        reads=reads,
        prefer=min(common, key=lambda opset: (abs(opset - wanted), opset)),
        facts=tuple(replace(fact, says=f"({each}) {fact.says}") for each in members for fact in each.facts),
        ir_version=min((each.ir_version for each in members if each.ir_version is not None), default=None),
        ml=min((each.ml for each in members if each.ml is not None), default=None),
        rules=next((each.rules for each in members if each.rules), ""),
        members=tuple(members),
        note=" ".join(filter(None, (each.note for each in members))),
    )
