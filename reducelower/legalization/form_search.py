"""Search for an equivalent form of a node that a runtime gets wrong or refuses; no fact may apply to the form.

A form is legalized like any replacement. If a fact applies to one of its nodes, that node needs a form in turn, so
forms are chains of steps. A `Trial` says where in such a chain the search is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from onnx import NodeProto

from reducelower.adapters.builder import Writer
from reducelower.errors import RefusedError
from reducelower.plan import Label
from reducelower.rulebook import Rule
from reducelower.runtimes.facts import Fact
from reducelower.runtimes.remedy import Remedy
from reducelower.runtimes.runtime import Runtime
from reducelower.runtimes.search import Misfit, misfit, remedies_for

if TYPE_CHECKING:
    from reducelower.options import Target
    from reducelower.rulebook.rules import Rules
    from reducelower.scope.body import AnyScope

__all__ = ["Trial", "form_that_suits", "refuse_other_operators"]

_STEPS = 3
"""The longest chain of equivalent forms to try."""


@dataclass
class Trial:
    """Where in a chain of forms the search is.

    Attributes:
        steps: how many more steps the chain may have.
        excused: sentences about what the runtime still gets wrong, if that is accepted; None if it is not.
        overflows: whether the search might have succeeded if overflow were accepted.
        replaces_elsewhere: whether the node to replace does run, but not on the intended hardware.
    """

    steps: int
    excused: dict[str, None] | None = None
    overflows: bool = False
    replaces_elsewhere: bool = False

    def within_form(self, steps: int, problem: Misfit) -> Trial:
        """The search within a form of a node; what it excuses counts only if the form is taken."""
        excused = None if self.excused is None else dict(self.excused)
        return Trial(steps, excused, replaces_elsewhere=self.replaces_elsewhere or problem.is_elsewhere)


class Rewriter(Protocol):
    """Legalizes the nodes of a form; see `reducelower.legalization.node_rewriter.NodeRewriter`."""

    target: Target
    goal: int
    rules: Rules
    trial: Trial | None

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
    problem = misfit(node, scope, facts)
    if problem is None:
        return None, ""
    if rewriter.trial is not None:
        return _Search(rewriter, rewriter.trial, scope).replaced(node, problem)
    trial = Trial(_STEPS)
    try:
        return _Search(rewriter, trial, scope).replaced(node, problem)
    except RefusedError:
        if not trial.overflows:
            raise
    trial = Trial(_STEPS, excused={})
    outcome = _Search(rewriter, trial, scope).replaced(node, problem)
    scope.node_scope.unmended.update(trial.excused or {})
    return outcome


def refuse_other_operators(runtime: Runtime, node: NodeProto, scope: AnyScope) -> None:
    """Refuse to replace a node by other operators if the runtime gets these wrong.

    Raises:
        RefusedError: it does.
    """
    facts = runtime.facts_against(f"{node.op_type} by other operators", node.op_type)
    problem = misfit(node, scope, facts) if facts else None
    if problem is not None and problem.facts:
        raise RefusedError(
            f"on {runtime}, no equivalent form comes out better: {problem.says}",
            f"keep to an opset version that has {node.op_type}",
        )


class _Search:
    """The search for a form of one node."""

    def __init__(self, rewriter: Rewriter, trial: Trial, scope: AnyScope) -> None:
        assert rewriter.target.runtime is not None
        self._runtime = rewriter.target.runtime
        self._trial = trial
        self._rewriter = rewriter
        self._scope = scope

    def replaced(self, node: NodeProto, problem: Misfit) -> tuple[list[NodeProto] | None, str]:
        """The replacement of a node; None if it stays because only its overflow cannot be avoided.

        Raises:
            RefusedError: no form suits.
        """
        trial, reasons = self._trial, list[str]()
        data = node.SerializeToString()
        form = self._form(data, problem, reasons)
        # A form that runs only on other hardware is no better than such a node, but better than one that is wrong.
        may_stay = problem.is_excusable and not (trial.replaces_elsewhere and problem.is_elsewhere)
        trial.overflows |= form is None and may_stay
        if form is None and may_stay and trial.excused is not None:
            trial.excused.update((f"on {self._runtime}: {says}", None) for says in problem.excuses(node.op_type))
            rest = problem.without_excusable()
            if not rest.facts and rest.unknown is None:
                return None, ""
            form = self._form(data, rest, reasons)
        if form is None:
            raise problem.refusal(self._runtime, reasons)
        nodes, name = form
        return nodes, Label(f"{name} for {self._runtime.name}", problem.says)

    def _form(self, node: bytes, problem: Misfit, reasons: list[str]) -> tuple[list[NodeProto], str] | None:
        """The first equivalent form that suits the runtime, with its name; adds to `reasons` why others do not."""
        trial = self._trial
        # Forms of one step are tried before those of two, so that the simplest is found.
        for steps in range(trial.steps):
            copy = NodeProto.FromString(node)
            for remedy in remedies_for(copy, self._scope, problem, self._rewriter.rules, self._runtime):
                if remedy.caveat and trial.excused is None:
                    trial.overflows = True
                    continue
                inner = trial.within_form(steps, problem)
                nodes = self._apply(remedy, NodeProto.FromString(node), inner, reasons)
                if nodes is not None:
                    if trial.excused is not None:
                        caveat = {f"on {self._runtime}: {remedy.caveat}": None} if remedy.caveat else {}
                        trial.excused.update({**(inner.excused or {}), **caveat})
                    return nodes, remedy.name
                trial.overflows |= inner.overflows
        return None

    def _apply(self, remedy: Remedy, node: NodeProto, trial: Trial, reasons: list[str]) -> list[NodeProto] | None:
        """The nodes of a form; None if it does not suit the runtime either."""
        rewriter, nodes_of_model = self._rewriter.within(trial), self._scope.node_scope
        mark = nodes_of_model.mark()
        try:
            if isinstance(remedy.by, Rule):
                return rewriter.expand(node, rewriter.goal, self._scope, remedy.by)[0]
            written = remedy.by(Writer(node, self._scope))
            return None if written is None else rewriter.settle_all(*written, self._scope)
        except RefusedError as refused:
            nodes_of_model.roll_back(mark)
            reasons.append(f"{remedy.name}: {refused.reason}")
            return None
