"""Search for an equivalent form of a node that a runtime gets wrong or refuses, to which no fact applies.

A form is legalized like any replacement. If a fact is true of one of its nodes, a form is sought for that in turn, so
forms are chains of steps. A trial says where in such a chain a search stands.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from onnx import NodeProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.registry import Replacement
from reducelower.errors import RefusedError
from reducelower.legalization.failed_searches import FailedSearch, FailedSearches, Obstacles
from reducelower.plan import Label
from reducelower.runtimes.facts import Fact
from reducelower.runtimes.remedies import Remedy
from reducelower.runtimes.runtime import Runtime
from reducelower.runtimes.search import Misfit, Way, has_ways, misfit, ways_out

if TYPE_CHECKING:
    from reducelower.legalization.legality import Treatment
    from reducelower.options import Target
    from reducelower.rulebook import Rule
    from reducelower.rulebook.rules import Rules
    from reducelower.scope.body import AnyScope

__all__ = ["Trial", "form_that_suits", "refuse_hopeless"]

_STEPS = 3
"""The longest chain of equivalent forms to try."""


@dataclass(frozen=True)
class Trial:
    """Where a search stands.

    Attributes:
        failed: the searches for forms of the model's node that have failed.
        steps: how many more steps a chain may have.
        path: the expressions for which forms are being sought, outer ones first, and how far they are from the model's
            node.
        excused: sentences about what the runtime still gets wrong, if that is accepted; None if it is not.
        met: what this search has met.
    """

    failed: FailedSearches
    steps: int
    path: Mapping[int, int]
    excused: dict[str, None] | None = None
    met: Obstacles = field(default_factory=Obstacles)

    @property
    def is_of_form(self) -> bool:
        """Whether the node belongs to a form that is tried, rather than to the model."""
        return self.steps < _STEPS

    def of(self, expression: int) -> Trial:
        """The search for a form of an expression that came up in this one."""
        return replace(self, path={**self.path, expression: len(self.path)}, met=Obstacles())

    def with_steps(self, steps: int) -> Trial:
        """The search within a form; what it excuses counts only if the form is taken."""
        excused = None if self.excused is None else dict(self.excused)
        return replace(self, steps=steps, excused=excused, met=Obstacles())


class Rewriter(Protocol):
    """Legalizes the nodes of a form; see `reducelower.legalization.node_rewriter.NodeRewriter`."""

    target: Target
    goal: int
    rules: Rules
    unmended: dict[str, None]
    trial: Trial | None

    @property
    def underway(self) -> tuple[str, ...]: ...

    def within(self, trial: Trial) -> Rewriter: ...

    def expand(self, node: NodeProto, opset: int, scope: AnyScope, rule: Rule) -> tuple[list[NodeProto], str]: ...

    def settle_all(self, nodes: list[NodeProto], opset: int, around: AnyScope) -> list[NodeProto]: ...


def form_that_suits(
    rewriter: Rewriter, node: NodeProto, scope: AnyScope, facts: tuple[Fact, ...]
) -> tuple[list[NodeProto] | None, str]:
    """Replace a node if the runtime gets it wrong or refuses it.

    Raises:
        RefusedError: no equivalent form suits either; the reason is the fact that applies.
    """
    found = misfit(node, scope, facts)
    if found is None:
        return None, ""
    if rewriter.trial is not None:
        return _for_node_of_form(rewriter, rewriter.trial, node, scope, found)
    failed = FailedSearches()
    expression = failed.expression(node, scope)
    trial = Trial(failed, _STEPS, {expression: 0})
    try:
        return _Search(rewriter, trial, scope, expression).replaced(node, found)
    except RefusedError:
        if not trial.met.overflow:
            raise
    trial = replace(trial, excused={})
    outcome = _Search(rewriter, trial, scope, expression).replaced(node, found)
    rewriter.unmended.update(trial.excused or {})
    return outcome


def refuse_hopeless(runtime: Runtime, nodes: Iterable[tuple[NodeProto, Treatment | None]], scope: AnyScope) -> None:
    """Reject a form early if one of its nodes has no suitable form, before others are worked on.

    Raises:
        RefusedError: there is such a node.
    """
    for node, treatment in nodes:
        if treatment is None or not treatment.facts or treatment.crossings or node.domain or has_ways(node.op_type):
            continue
        found = misfit(node, scope, treatment.facts)
        if found is not None and not found.is_excusable:
            raise found.refusal(runtime, ())


def _for_node_of_form(
    rewriter: Rewriter, outer: Trial, node: NodeProto, scope: AnyScope, found: Misfit
) -> tuple[list[NodeProto] | None, str]:
    """The replacement of a node that is part of a form."""
    expression = outer.failed.expression(node, scope)
    search = _Search(rewriter, outer.of(expression), scope, expression)
    if expression in outer.path:
        # The outer search for it has already failed with fewer steps, so this one would fail too.
        outer.met.merge(Obstacles(way_back=outer.path[expression]))
        raise found.refusal(search.runtime, ())
    known = search.known(expression, outer.steps)
    if known is not None:
        assert known.refused is not None
        outer.met.merge(known.met)
        raise RefusedError(known.refused.reason, known.refused.hint)
    try:
        return search.replaced(node, found)
    except RefusedError as refused:
        search.note(expression, outer.steps, refused, search.trial.met, depth=len(outer.path))
        raise
    finally:
        outer.met.merge(search.trial.met)


class _Search:
    """The search for a form of one expression."""

    def __init__(self, rewriter: Rewriter, trial: Trial, scope: AnyScope, expression: int) -> None:
        assert rewriter.target.runtime is not None
        self.runtime = rewriter.target.runtime
        self.trial = trial
        self._rewriter = rewriter
        self._scope = scope
        self._expression = expression

    def replaced(self, node: NodeProto, found: Misfit) -> tuple[list[NodeProto] | None, str]:
        """The replacement of a node; None if it stays because only its overflow cannot be avoided.

        Raises:
            RefusedError: no form suits.
        """
        trial, reasons = self.trial, list[str]()
        data = node.SerializeToString()
        nodes = self._form(data, found, reasons)
        # A form that runs elsewhere itself is no better than the node.
        may_stay = found.is_excusable and not (trial.is_of_form and found.is_elsewhere)
        trial.met.overflow |= nodes is None and may_stay
        if nodes is None and may_stay and trial.excused is not None:
            trial.excused.update((f"on {self.runtime}: {says}", None) for says in found.excuses(node.op_type))
            rest = found.without_excusable()
            if not rest.facts and rest.unknown is None:
                return None, ""
            nodes = self._form(data, rest, reasons)
        if nodes is None:
            raise found.refusal(self.runtime, reasons)
        return nodes, Label(f"{nodes.label} for {self.runtime.name}", found.says)

    def _form(self, node: bytes, found: Misfit, reasons: list[str]) -> Replacement | None:
        """The first equivalent form that suits the runtime; why others do not is added to `reasons`."""
        trial, hopeless = self.trial, set[str]()
        trial.met.steps |= not trial.steps
        # Forms of one step are tried before those of two, so that the simplest is found.
        for steps in range(trial.steps):
            is_cut_short = False
            ways = ways_out(NodeProto.FromString(node), self._scope, found, self._rewriter.rules, self.runtime)
            for way in ways:
                if way.name in hopeless:
                    continue
                if way.caveat and trial.excused is None:
                    trial.met.overflow = True
                    continue
                inner = trial.with_steps(steps)
                tried = self._try(way, node, inner)
                if not isinstance(tried, FailedSearch):
                    if trial.excused is not None:
                        caveat = {f"on {self.runtime}: {way.caveat}": None} if way.caveat else {}
                        trial.excused.update({**(inner.excused or {}), **caveat})
                    return Replacement(tried, way.name)
                if tried.refused is not None:
                    reasons.append(f"{way.name}: {tried.refused.reason}")
                if not tried.met.steps:
                    hopeless.add(way.name)  # more steps would not help
                is_cut_short |= tried.met.steps
                trial.met.merge(replace(tried.met, steps=False))
            if not is_cut_short:
                return None
        trial.met.steps = True
        return None

    def _try(self, way: Way, node: bytes, trial: Trial) -> list[NodeProto] | FailedSearch:
        """The nodes of a form, or why it fails."""
        tried = self._expression, way.name
        known = self.known(tried, trial.steps)
        if known is not None:
            return known
        nodes_of_model = self._scope.node_scope
        mark, refused, nodes = nodes_of_model.mark(), None, None
        try:
            nodes = self._apply(way, NodeProto.FromString(node), trial)
        except RefusedError as error:
            nodes_of_model.roll_back(mark)
            refused = error
        if nodes is not None:
            return nodes
        self.note(tried, trial.steps, refused, trial.met, depth=len(trial.path))
        return FailedSearch(trial.steps, refused, trial.met)

    def _apply(self, way: Way, node: NodeProto, trial: Trial) -> list[NodeProto] | None:
        rewriter = self._rewriter.within(trial)
        if not isinstance(way.by, Remedy):
            return rewriter.expand(node, rewriter.goal, self._scope, way.by)[0]
        written = way.by.write(Writer(node, self._scope))
        return None if written is None else rewriter.settle_all(*written, self._scope)

    def known(self, tried: Hashable, steps: int) -> FailedSearch | None:
        """The recorded failure for an expression, or for a way to write it; None if more steps may succeed."""
        key = tried, self.trial.excused is not None, self._rewriter.underway
        return self.trial.failed.known(key, steps)

    def note(self, tried: Hashable, steps: int, refused: RefusedError | None, met: Obstacles, *, depth: int) -> None:
        """Record that no form suits an expression, or that a way to write it does not."""
        excuses = self.trial.excused is not None
        # If overflow was no obstacle, accepting it changes nothing.
        for mode in {excuses, excuses or not met.overflow}:
            self.trial.failed.note((tried, mode, self._rewriter.underway), steps, refused, met, depth=depth)
