"""Nodes that a runtime gets wrong or refuses, replaced by equivalent ones that no fact is true of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from onnx import NodeProto

from reducelower.adapters.registry import Replacement
from reducelower.errors import RefusedError
from reducelower.legalization.dead_ends import DeadEnds
from reducelower.plan import Label
from reducelower.runtimes.facts import Fact
from reducelower.runtimes.runtime import Runtime
from reducelower.runtimes.search import Misfit, Way, has_ways, misfit, ways_out

if TYPE_CHECKING:
    from reducelower.legalization.legality import Treatment
    from reducelower.options import Target
    from reducelower.rulebook import Rule
    from reducelower.rulebook.rules import Rules
    from reducelower.scope.body import AnyScope

__all__ = ["Mender"]

_STEPS = 3
"""How many equivalent forms may follow one from the other until one is right on a runtime."""


class Settler(Protocol):
    """What makes legal that a form is made of; see `reducelower.legalization.node.Settler`."""

    target: Target
    goal: int
    rules: Rules

    @property
    def underway(self) -> tuple[str, ...]: ...

    def expand(self, node: NodeProto, opset: int, scope: AnyScope, rule: Rule) -> tuple[list[NodeProto], str]: ...

    def settle_all(self, nodes: list[NodeProto], opset: int, around: AnyScope) -> list[NodeProto]: ...


class Mender:
    """What finds the way round a runtime's faults in one run."""

    def __init__(self, settler: Settler) -> None:
        """Work for a settler, whose target has a runtime and which settles what is tried."""
        runtime = settler.target.runtime
        assert runtime is not None
        self._unmended: dict[str, None] = {}
        self._settler = settler
        self._runtime: Runtime = runtime
        self._further_steps = _STEPS
        self._excused: dict[str, None] | None = None
        self._dead_ends = DeadEnds()
        self._is_cut_short = False
        self._might_be_excused = False

    def mend(self, node: NodeProto, scope: AnyScope, facts: tuple[Fact, ...]) -> tuple[list[NodeProto] | None, str]:
        """Replace a node that the runtime gets wrong or refuses by what it gets right, if it is such a node.

        Raises:
            RefusedError: nothing equivalent will do either; the reason is the fact in the way.
        """
        found = misfit(node, scope, facts)
        if found is None:
            return None, ""
        if self.is_trying:
            return self._mended_in_trial(node, scope, found)
        self._dead_ends.clear()
        self._might_be_excused = False
        try:
            return self._mended(node, scope, found)
        except RefusedError:
            if not self._might_be_excused:
                raise
            self._excused = {}
        try:
            outcome = self._mended(node, scope, found)
            self._unmended.update(self._excused)
        finally:
            self._excused = None
        return outcome

    def take_unmended(self) -> tuple[str, ...]:
        """What overflows and could not be mended since this was last asked, as sentences, in the order it was met."""
        taken, self._unmended = tuple(self._unmended), {}
        return taken

    @property
    def is_trying(self) -> bool:
        """Whether something is being tried in place of a node."""
        return self._further_steps < _STEPS

    def refuse_hopeless(self, nodes: Iterable[tuple[NodeProto, Treatment | None]], scope: AnyScope) -> None:
        """Refuse what is being tried where nothing can stand for one of its nodes, before ways round others are sought.

        Raises:
            RefusedError: the runtime gets such a node wrong or refuses it.
        """
        for node, treatment in nodes:
            if treatment is None or not treatment.facts or treatment.crossings or node.domain or has_ways(node.op_type):
                continue
            found = misfit(node, scope, treatment.facts)
            if found is not None and not found.overflows:
                raise found.refusal(self._runtime, ())

    def _mended_in_trial(self, node: NodeProto, scope: AnyScope, found: Misfit) -> tuple[list[NodeProto] | None, str]:
        """What comes in place of a node that is part of something that is being tried."""
        steps = self._further_steps
        key = self._dead_ends.expression(node, scope), self._excused is None, self._settler.underway
        known = self._dead_ends.known(key, steps)
        if known is not None:
            refused, was_cut_short = known
            self._is_cut_short |= was_cut_short
            raise RefusedError(refused.reason, refused.hint)
        was_cut_short, self._is_cut_short = self._is_cut_short, False
        try:
            return self._mended(node, scope, found)
        except RefusedError as refused:
            self._dead_ends.note(key, steps, refused, was_cut_short=self._is_cut_short)
            raise
        finally:
            self._is_cut_short |= was_cut_short

    def _mended(self, node: NodeProto, scope: AnyScope, found: Misfit) -> tuple[list[NodeProto] | None, str]:
        """What comes in place of a node, or None where it stays because only its overflow cannot be mended."""
        reasons: list[str] = []
        data = node.SerializeToString()
        nodes = self._way_round(data, scope, found, reasons)
        self._might_be_excused |= nodes is None and found.overflows
        if nodes is None and found.overflows and self._excused is not None:
            self._excused.update((f"on {self._runtime}, {says}", None) for says in found.overflowing)
            if found.only_overflows:
                return None, ""
            nodes = self._way_round(data, scope, found.without_overflow(), reasons)
        if nodes is None:
            raise found.refusal(self._runtime, reasons)
        return nodes, Label(f"{nodes.label} for {self._runtime.name}", found.says)

    def _way_round(self, node: bytes, scope: AnyScope, found: Misfit, reasons: list[str]) -> Replacement | None:
        """The first equivalent form that is right on the runtime; why others are not is added to the reasons."""
        allowed, excused = self._further_steps, self._excused
        was_cut_short = self._is_cut_short or not allowed
        hopeless: set[str] = set()
        try:
            # What takes one step is tried before what takes two, so that the simplest way is found.
            for steps in range(allowed):
                self._further_steps = steps
                is_cut_short = False
                for way in ways_out(NodeProto.FromString(node), scope, found, self._settler.rules, self._runtime):
                    if way.name in hopeless:
                        continue
                    if way.caveat and excused is None:
                        self._might_be_excused = True
                        continue
                    self._is_cut_short = False
                    mark = scope.node_scope.mark()
                    self._excused = None if excused is None else dict(excused)
                    try:
                        nodes = self._go(way, NodeProto.FromString(node), scope)
                    except RefusedError as refused:
                        scope.node_scope.roll_back(mark)
                        reasons.append(f"{way.name}: {refused.reason}")
                        nodes = None
                    if nodes is None and not self._is_cut_short:
                        hopeless.add(way.name)  # More steps change nothing.
                    is_cut_short |= self._is_cut_short
                    if nodes is not None:
                        if way.caveat and self._excused is not None:
                            self._excused[f"on {self._runtime}, {way.caveat}"] = None
                        excused = self._excused
                        return Replacement(nodes, way.name)
                self._is_cut_short = is_cut_short
                if not is_cut_short:
                    break
        finally:
            self._further_steps, self._excused = allowed, excused
            self._is_cut_short |= was_cut_short
        return None

    def _go(self, way: Way, node: NodeProto, scope: AnyScope) -> list[NodeProto] | None:
        if way.rule is not None:
            return self._settler.expand(node, self._settler.goal, scope, way.rule)[0]
        assert way.remedy is not None
        written = way.remedy(node, scope)
        return None if written is None else self._settler.settle_all(*written, scope)
