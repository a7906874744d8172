"""Replace nodes that a runtime gets wrong or refuses by equivalent ones to which no fact applies."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from onnx import NodeProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.registry import Replacement
from reducelower.errors import RefusedError
from reducelower.legalization.dead_ends import DeadEnd, DeadEnds, Obstacles
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
"""The longest chain of equivalent forms to try."""


class Settler(Protocol):
    """Legalizes the nodes of a form; see `reducelower.legalization.node.Settler`."""

    target: Target
    goal: int
    rules: Rules

    @property
    def underway(self) -> tuple[str, ...]: ...

    def expand(self, node: NodeProto, opset: int, scope: AnyScope, rule: Rule) -> tuple[list[NodeProto], str]: ...

    def settle_all(self, nodes: list[NodeProto], opset: int, around: AnyScope) -> list[NodeProto]: ...


class Mender:
    """Searches for forms that the runtime gets right, in one run."""

    def __init__(self, settler: Settler) -> None:
        """Take the settler of the run, whose target has a runtime; it legalizes the forms that are tried."""
        runtime = settler.target.runtime
        assert runtime is not None
        self._unmended: dict[str, None] = {}
        self._settler = settler
        self._runtime: Runtime = runtime
        self._further_steps = _STEPS
        self._excused: dict[str, None] | None = None
        self._dead_ends = DeadEnds()
        self._obstacles = Obstacles()
        self._path: dict[int, int] = {}

    def mend(self, node: NodeProto, scope: AnyScope, facts: tuple[Fact, ...]) -> tuple[list[NodeProto] | None, str]:
        """Replace a node if the runtime gets it wrong or refuses it.

        Raises:
            RefusedError: no equivalent form suits either; the reason is the fact that applies.
        """
        found = misfit(node, scope, facts)
        if found is None:
            return None, ""
        if self.is_trying:
            return self._mended_in_trial(node, scope, found)
        self._dead_ends.clear()
        self._obstacles = Obstacles()
        expression = self._dead_ends.expression(node, scope)
        with self._on_path(expression):
            try:
                return self._mended(node, scope, found, expression)
            except RefusedError:
                if not self._obstacles.overflow:
                    raise
                self._excused = {}
            try:
                outcome = self._mended(node, scope, found, expression)
                self._unmended.update(self._excused)
            finally:
                self._excused = None
        return outcome

    def take_unmended(self) -> tuple[str, ...]:
        """Return and clear sentences about overflow that no form avoids, in order of appearance."""
        taken, self._unmended = tuple(self._unmended), {}
        return taken

    @property
    def is_trying(self) -> bool:
        """Whether an alternative for a node is being tried."""
        return self._further_steps < _STEPS

    def refuse_hopeless(self, nodes: Iterable[tuple[NodeProto, Treatment | None]], scope: AnyScope) -> None:
        """Reject an alternative early if one of its nodes has no suitable form, before others are worked on.

        Raises:
            RefusedError: there is such a node.
        """
        for node, treatment in nodes:
            if treatment is None or not treatment.facts or treatment.crossings or node.domain or has_ways(node.op_type):
                continue
            found = misfit(node, scope, treatment.facts)
            if found is not None and not found.is_excusable:
                raise found.refusal(self._runtime, ())

    def _mended_in_trial(self, node: NodeProto, scope: AnyScope, found: Misfit) -> tuple[list[NodeProto] | None, str]:
        """The replacement of a node that is part of an alternative."""
        expression, steps = self._dead_ends.expression(node, scope), self._further_steps
        if expression in self._path:
            # The outer search for it has already failed with fewer steps, so this one would fail too.
            self._obstacles.merge(Obstacles(way_back=self._path[expression]))
            raise found.refusal(self._runtime, ())
        known = self._known(expression, steps)
        if known is not None:
            assert known.refused is not None
            self._obstacles.merge(known.met)
            raise RefusedError(known.refused.reason, known.refused.hint)
        outer, self._obstacles = self._obstacles, Obstacles()
        try:
            with self._on_path(expression):
                return self._mended(node, scope, found, expression)
        except RefusedError as refused:
            self._note(expression, steps, refused, self._obstacles)
            raise
        finally:
            outer.merge(self._obstacles)
            self._obstacles = outer

    def _known(self, tried: Hashable, steps: int) -> DeadEnd | None:
        """The recorded failure for a node or a way to write it; None if more steps may succeed."""
        return self._dead_ends.known((tried, self._excused is not None, self._settler.underway), steps)

    def _note(self, tried: Hashable, steps: int, refused: RefusedError | None, met: Obstacles) -> None:
        """Record that no form suits a node or a way to write it."""
        excuses = self._excused is not None
        # If overflow was no obstacle, accepting it changes nothing.
        for mode in {excuses, excuses or not met.overflow}:
            key = tried, mode, self._settler.underway
            self._dead_ends.note(key, steps, refused, met, depth=len(self._path))

    @contextmanager
    def _on_path(self, expression: int) -> Iterator[None]:
        self._path[expression] = len(self._path)
        try:
            yield
        finally:
            del self._path[expression]

    def _mended(
        self, node: NodeProto, scope: AnyScope, found: Misfit, expression: int
    ) -> tuple[list[NodeProto] | None, str]:
        """The replacement of a node; None if it stays because only its overflow cannot be avoided."""
        reasons: list[str] = []
        data = node.SerializeToString()
        nodes = self._find_alternative(data, scope, found, reasons, expression)
        # An alternative that runs elsewhere itself is no better than the node.
        may_stay = found.is_excusable and not (self.is_trying and found.is_elsewhere)
        self._obstacles.overflow |= nodes is None and may_stay
        if nodes is None and may_stay and self._excused is not None:
            self._excused.update((f"on {self._runtime}: {says}", None) for says in found.excuses(node.op_type))
            rest = found.without_excusable()
            if not rest.facts and rest.unknown is None:
                return None, ""
            nodes = self._find_alternative(data, scope, rest, reasons, expression)
        if nodes is None:
            raise found.refusal(self._runtime, reasons)
        return nodes, Label(f"{nodes.label} for {self._runtime.name}", found.says)

    def _find_alternative(
        self, node: bytes, scope: AnyScope, found: Misfit, reasons: list[str], expression: int
    ) -> Replacement | None:
        """The first equivalent form that suits the runtime; why others do not is added to `reasons`."""
        allowed, excused, obstacles = self._further_steps, self._excused, self._obstacles
        obstacles.steps |= not allowed
        hopeless: set[str] = set()
        try:
            # Forms of one step are tried before those of two, so that the simplest is found.
            for steps in range(allowed):
                self._further_steps = steps
                is_cut_short = False
                for way in ways_out(NodeProto.FromString(node), scope, found, self._settler.rules, self._runtime):
                    if way.name in hopeless:
                        continue
                    if way.caveat and excused is None:
                        obstacles.overflow = True
                        continue
                    self._excused = None if excused is None else dict(excused)
                    tried = self._try(way, node, scope, expression)
                    if not isinstance(tried, DeadEnd):
                        if way.caveat and self._excused is not None:
                            self._excused[f"on {self._runtime}: {way.caveat}"] = None
                        excused = self._excused
                        return Replacement(tried, way.name)
                    if tried.refused is not None:
                        reasons.append(f"{way.name}: {tried.refused.reason}")
                    if not tried.met.steps:
                        hopeless.add(way.name)  # more steps would not help
                    is_cut_short |= tried.met.steps
                    obstacles.merge(replace(tried.met, steps=False))
                if not is_cut_short:
                    break
            else:
                obstacles.steps = True
        finally:
            self._further_steps, self._excused, self._obstacles = allowed, excused, obstacles
        return None

    def _try(self, way: Way, node: bytes, scope: AnyScope, expression: int) -> list[NodeProto] | DeadEnd:
        """The nodes of an alternative, or why it fails."""
        known = self._known((expression, way.name), self._further_steps)
        if known is not None:
            return known
        self._obstacles = met = Obstacles()
        mark, refused = scope.node_scope.mark(), None
        try:
            nodes = self._apply(way, NodeProto.FromString(node), scope)
        except RefusedError as error:
            scope.node_scope.roll_back(mark)
            nodes, refused = None, error
        if nodes is not None:
            return nodes
        self._note((expression, way.name), self._further_steps, refused, met)
        return DeadEnd(self._further_steps, refused, met)

    def _apply(self, way: Way, node: NodeProto, scope: AnyScope) -> list[NodeProto] | None:
        if way.rule is not None:
            return self._settler.expand(node, self._settler.goal, scope, way.rule)[0]
        assert way.remedy is not None
        written = way.remedy(Writer(node, scope))
        return None if written is None else self._settler.settle_all(*written, scope)
