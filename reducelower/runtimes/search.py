"""Search for an equivalent form of a node that a runtime gets wrong or refuses; no fact may apply to the form.

A form is legalized like any replacement. If a fact applies to one of its nodes, that node needs a form in turn, so
forms are chains of steps. A `Trial` says where in such a chain the search is. If other operators replace the node, as
at an opset version that lacks it, chains begin anew: what can be done for a node of the model can be done for them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from onnx import NodeProto

from reducelower.errors import RefusedError
from reducelower.plan import Label
from reducelower.runtimes.facts import Fact
from reducelower.runtimes.misfit import Misfit, misfit, remedies_for, rewrites_for
from reducelower.runtimes.remedy import Remedy
from reducelower.runtimes.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from reducelower.rulebook import RuleBook
    from reducelower.scope.body import AnyScope

__all__ = ["Search", "Trial", "refuse_other_operators"]

_STEPS = 2
"""The longest chain of equivalent forms to try."""


@dataclass(frozen=True)
class Trial:
    """Where in a chain of forms the search is.

    Attributes:
        steps: how many more steps the chain may have.
        inside: the operators that are replaced by other operators around the chain.
        excuses: whether it is accepted that the runtime still gets something wrong, of which a sentence says what.
        replaces_elsewhere: whether the node to replace does run, but not on the intended hardware.
    """

    steps: int
    inside: frozenset[str] = frozenset()
    excuses: bool = False
    replaces_elsewhere: bool = False


_Apply: TypeAlias = "Callable[[Remedy, NodeProto, AnyScope, Trial], list[NodeProto] | None]"
"""Writes a form of a node and legalizes it; None if it does not apply to the node."""


def refuse_other_operators(runtime: Runtime, node: NodeProto, scope: AnyScope) -> None:
    """Refuse to replace a node by other operators if the runtime gets these wrong.

    Raises:
        RefusedError: it does.
    """
    form = f"{node.op_type} by other operators"
    about = (fact for fact in runtime.facts if node.op_type in fact.operators and form in fact.not_by)
    facts = [fact for fact in about if fact.outcome != "overflows"]
    problem = misfit(node, scope, facts) if facts else None
    if problem is not None and problem.facts:
        raise problem.refusal(runtime, ())


@dataclass(frozen=True)
class Search:
    """The search for forms of nodes.

    Attributes:
        runtime: the target.
        book: rules that may be forms.
        apply: writes and legalizes the nodes of a form.
    """

    runtime: Runtime
    book: RuleBook
    apply: _Apply

    def form_that_suits(
        self, node: NodeProto, scope: AnyScope, facts: tuple[Fact, ...], within: Trial | None
    ) -> tuple[list[NodeProto] | None, str]:
        """Replace a node if the runtime gets it wrong or refuses it; `within` is where the node is part of a form.

        Raises:
            RefusedError: no equivalent form suits either; the reason is the fact that applies.
        """
        problem = misfit(node, scope, facts)
        if problem is None:
            return None, ""
        if within is not None:
            return self._replaced(node, scope, problem, within)
        try:
            return self._replaced(node, scope, problem, Trial(_STEPS))
        except RefusedError:
            return self._replaced(node, scope, problem, Trial(_STEPS, excuses=True))

    def _replaced(
        self, node: NodeProto, scope: AnyScope, problem: Misfit, trial: Trial
    ) -> tuple[list[NodeProto] | None, str]:
        """The replacement of a node; None if it stays because only its overflow cannot be avoided.

        Raises:
            RefusedError: no form suits.
        """
        reasons = list[str]()
        data = node.SerializeToString()
        form = self._form(data, scope, problem, trial, reasons)
        # A form that runs only on other hardware is no better than such a node, but better than one that is wrong.
        excuses = problem.excuses(node.op_type)
        may_stay = excuses and not (trial.replaces_elsewhere and "elsewhere" in problem.outcomes)
        if form is None and may_stay and trial.excuses:
            self._excuse(scope, excuses, is_of_form=False)
            rest = problem.without_excusable()
            if not rest.facts and rest.unknown is None:
                return None, ""
            form = self._form(data, scope, rest, trial, reasons)
        if form is None:
            raise problem.refusal(self.runtime, reasons)
        nodes, name = form
        return nodes, Label(f"{name} for {self.runtime.name}", problem.says)

    def _form(
        self, node: bytes, scope: AnyScope, problem: Misfit, trial: Trial, reasons: list[str]
    ) -> tuple[list[NodeProto], str] | None:
        """The first equivalent form that suits the runtime, with its name; adds to `reasons` why others do not."""
        copy = NodeProto.FromString(node)
        begins_here = trial.steps == _STEPS and copy.op_type not in trial.inside
        trial = replace(trial, replaces_elsewhere=trial.replaces_elsewhere or "elsewhere" in problem.outcomes)
        # Forms of one step are tried before those of two, so that the simplest is found.
        tries = (
            (remedy, replace(trial, steps=steps))
            for steps in range(trial.steps)
            for remedy in remedies_for(copy, scope, problem, self.book)
        )
        anew = replace(trial, inside=trial.inside | {copy.op_type})
        others = ((remedy, anew) for remedy in rewrites_for(copy, scope, problem, self.book) if begins_here)
        for remedy, within in chain(tries, others):
            nodes = self._tried(remedy, node, scope, problem, within, reasons)
            if nodes is not None:
                return nodes, remedy.name
        return None

    def _tried(
        self, remedy: Remedy, node: bytes, scope: AnyScope, problem: Misfit, within: Trial, reasons: list[str]
    ) -> list[NodeProto] | None:
        """The nodes of a remedy; None if it does not apply, or does not suit, which is undone."""
        if remedy.caveat and not within.excuses:
            return None
        mark = scope.node_scope.mark()
        copy = NodeProto.FromString(node)
        op_type = copy.op_type
        try:
            nodes = self.apply(remedy, copy, scope, within)
        except RefusedError as refused:
            scope.node_scope.roll_back(mark)
            if problem.says not in refused.reason or refused.operator not in ("", op_type):
                # Otherwise, it is still the same fact.
                reasons.append(f"{remedy.name}: {refused.reason}")
            return None
        if nodes is not None and remedy.caveat:
            self._excuse(scope, [remedy.caveat], is_of_form=True)
        return nodes

    def _excuse(self, scope: AnyScope, sentences: Iterable[str], *, is_of_form: bool) -> None:
        """Note what the runtime still gets wrong; it is undone with the form if that is not taken."""
        scope.node_scope.unmended.update((f"on {self.runtime}: {says}", is_of_form) for says in sentences)
