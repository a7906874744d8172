"""Find the facts about a runtime that are true of a node, and the remedies that may avoid them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain

from onnx import NodeProto, TensorProto, numpy_helper

from reducelower.adapters.absent import expressions, is_expressible
from reducelower.adapters.builder import Writer
from reducelower.adapters.casts import computed_in, wider_types
from reducelower.adapters.crossings import crossings, moved
from reducelower.errors import RefusedError
from reducelower.model.schemas import REDUCTIONS, element_type_name, versions
from reducelower.rulebook import RuleBook, load_book
from reducelower.rulebook.asked import Tried
from reducelower.rulebook.boundaries import Boundaries
from reducelower.rulebook.occasions import Occasion, Written
from reducelower.runtimes.facts import Fact, Is
from reducelower.runtimes.features import Features
from reducelower.runtimes.forms import forms_of
from reducelower.runtimes.remedies import PRODUCT
from reducelower.runtimes.remedy import Nodes, Remedy, remedy, rewrite
from reducelower.runtimes.runtime import Runtime
from reducelower.scope.scope import Scope

__all__ = ["Misfit", "misfit", "remedies_for", "rewrites_for"]

_OVERFLOWING_BODIES = {
    "ReduceL2": "all that can stand for ReduceL2 squares before it adds up, which overflows.",
    "ReduceLogSum": "all that can stand for ReduceLogSum adds up first, which overflows where the logarithm does not.",
}
"""Operators whose body in the specification is the last resort, with the caveat of using it.

The body of ReduceLogSumExp is never used: it overflows for common values, and every kernel subtracts the maximum.
"""

_BOOKS = ("stable", "core", "portable")
"""The books whose rules keep values in range, in the order in which they are tried; the user's own comes first."""

_EXCUSABLE = frozenset({"overflows", "elsewhere"})
"""Outcomes with which a node may stay, and is reported, if no remedy avoids them."""

_TYPES = frozenset({"element_types", "second_types", "last_types", "output_types"})
"""Conditions of facts that are about element types."""

_FAILURES: Mapping[Is, str] = {
    "wrong": "its result is wrong",
    "overflows": "its result is wrong for large or small values",
    "misshapen": "its result has the wrong shape",
    "refused": "it is refused",
    "absent": "it is missing",
    "elsewhere": "it runs elsewhere",
}
"""How a node fails, for people."""


@dataclass(frozen=True)
class Misfit:
    """A node that comes out wrong on a runtime or is refused there.

    Attributes:
        facts: the facts that are true of it.
        unknown: why a fact cannot be decided, if one of them depends on something unknown.
    """

    facts: tuple[Fact, ...]
    unknown: RefusedError | None = None

    @property
    def says(self) -> str:
        """What is wrong with the node, for people."""
        return self.facts[0].sentence if self.facts else str(self.unknown)

    @property
    def outcomes(self) -> frozenset[str]:
        """In which ways it goes wrong."""
        return frozenset(fact.outcome for fact in self.facts)

    def excuses(self, op_type: str) -> tuple[str, ...]:
        """Sentences about what may stay if no remedy avoids it."""
        return tuple(
            f"{op_type}: {fact.sentence}" if fact.outcome == "elsewhere" else fact.sentence
            for fact in self.facts
            if fact.outcome in _EXCUSABLE
        )

    @property
    def element_types(self) -> frozenset[str]:
        """The element types that facts are about."""
        conditions = (value for fact in self.facts for name, value in fact.when.conditions if name in _TYPES)
        return frozenset().union(*conditions)  # type: ignore[arg-type]  # such conditions are sets of names

    def without_excusable(self) -> Misfit:
        """The rest of the misfit if what may stay is accepted."""
        return Misfit(tuple(fact for fact in self.facts if fact.outcome not in _EXCUSABLE), self.unknown)

    def refusal(self, runtime: Runtime, reasons: Sequence[str]) -> RefusedError:
        """The refusal if no remedy works."""
        if not self.facts and self.unknown is not None:
            return self.unknown
        last = f"; the last way tried was {reasons[-1]}" if reasons else ""
        return RefusedError(
            f"on {runtime}, {_FAILURES[self.facts[0].outcome]}: {self.says}",
            f"nothing equivalent is known to work{last}",
        )


def misfit(node: NodeProto, scope: Scope, facts: Sequence[Fact]) -> Misfit | None:
    """The facts that are true of a node written for the target's opset version; None if none is."""
    features = Features(node, scope)
    true = []
    unknown = None
    for fact in facts:
        try:
            if fact.when.matches(features) and not (fact.outcome == "overflows" and 0 in (features.shape(0) or ())):
                true.append(fact)
        except RefusedError as refused:
            # Operators other than reductions count as right if a fact about them cannot be decided. Otherwise, behind
            # an operator of another domain, whose element type is unknown, every node would be refused.
            unknown = refused if node.op_type in REDUCTIONS else None
    return Misfit(tuple(true), unknown) if true or unknown is not None else None


def remedies_for(node: NodeProto, scope: Scope, problem: Misfit, book: RuleBook) -> Iterator[Remedy]:
    """The remedies to try for a node, the least intrusive first, without those that were measured to be no better.

    If values overflow, these are only the ones that keep values in range: the rules made for that, or a wider type.
    """
    if any(fact.holds_in_every_form and fact.outcome not in _EXCUSABLE for fact in problem.facts):
        yield _store_operands  # axes that are computed from constants may be known before the model runs
        return
    yield from _not_tried(_candidates(node, scope, problem, book), problem)


def rewrites_for(node: NodeProto, scope: Scope, problem: Misfit, book: RuleBook) -> Iterator[Remedy]:
    """What replaces the node where an opset version or a rule book lacks it, its element type, or this form of it.

    Each node that is written so is fitted as if it was a node of the model. None is tried for reductions, whose forms
    are many, nor for what may stay.
    """
    if (
        node.op_type in REDUCTIONS
        or problem.excuses(node.op_type)
        or any(fact.holds_in_every_form for fact in problem.facts)
    ):
        return
    own = book.boundaries
    ways = [_other_operators(node.op_type, own), _in_wider_types(node, scope, problem.element_types)]
    older = Remedy(f"{node.op_type} as older opsets have it", (_AsOlder(own),))
    of_books = _by_books(node, scope, book), _by_rule(load_book("spec"), node, scope)
    yield from _not_tried(chain(*ways, [older], *of_books), problem)


def _not_tried(remedies: Iterable[Remedy], problem: Misfit) -> Iterator[Remedy]:
    """Each remedy once, since several books may have the same rule, and none that was measured to be no better."""
    seen = set().union(*(fact.not_by for fact in problem.facts))
    for each in remedies:
        if each.name not in seen:
            seen.add(each.name)
            yield each


def _candidates(node: NodeProto, scope: Scope, problem: Misfit, book: RuleBook) -> Iterator[Remedy]:
    if "overflows" not in problem.outcomes:
        yield from (_value, _store_operands)
    yield from (form for form in forms_of(node.op_type) if form.keeps_range or "overflows" not in problem.outcomes)
    if node.op_type in REDUCTIONS:
        yield from _by_rules(node, scope, problem, book)
    else:
        yield from _other_operators(node.op_type, book.boundaries)


def _other_operators(op_type: str, own: Boundaries | None) -> Iterator[Remedy]:
    if is_expressible(op_type):
        yield Remedy(f"{op_type} by other operators", expressions(op_type, own))


def _in_wider_types(node: NodeProto, scope: Scope, names: Container[str]) -> Iterator[Remedy]:
    """The ways to compute a node in a wider type in place of one of these."""
    narrow = {scope.element_type(name) or 0 for name in (*node.input, *node.output) if name}
    for element_type in sorted(narrow - {0}):
        for wide in wider_types(node.op_type, element_type) if element_type_name(element_type) in names else ():
            cast = partial(computed_in, narrow=element_type, wide=wide)
            yield remedy(f"computed in {element_type_name(wide)}")(cast)


def _by_rules(node: NodeProto, scope: Scope, problem: Misfit, book: RuleBook) -> Iterator[Remedy]:
    """The ways to write a reduction with other operators or in another element type."""
    yield from _by_books(node, scope, book)
    # Only float16 gains range by a cast: it overflows long before float does.
    element_type = scope.element_type(node.input[0]) or 0
    if "overflows" not in problem.outcomes or element_type == TensorProto.FLOAT16:
        yield from (*_in_wider_types(node, scope, [element_type_name(element_type)]), PRODUCT)
    if "overflows" not in problem.outcomes and node.op_type != "ReduceLogSumExp":
        yield from _by_rule(load_book("spec"), node, scope)


def _by_books(node: NodeProto, scope: Scope, book: RuleBook) -> Iterator[Remedy]:
    own = [] if book.name in ("spec", *_BOOKS) else [book]
    for each in (*own, *map(load_book, _BOOKS)):
        yield from _by_rule(each, node, scope)


def _by_rule(book: RuleBook, node: NodeProto, scope: Scope) -> Iterator[Remedy]:
    try:
        rule = book.rule_for(node, scope)
    except RefusedError:
        return
    if rule is not None:
        is_narrow = book.name == "spec" and node.op_type in _OVERFLOWING_BODIES
        yield Remedy(rule.name, (rule,), caveat=_OVERFLOWING_BODIES[node.op_type] if is_narrow else "")


@remedy("its constant value")
def _value(op: Writer) -> Nodes:
    """Replace the node by a constant, if its result depends on constants alone."""
    value = op.scope.constant(op.node.output[0]) if len(op.node.output) == 1 else None
    if value is None:
        return None
    return op.yields("Constant", value=numpy_helper.from_array(value))


@remedy("its constant operands stored")
def _store_operands(op: Writer) -> Nodes:
    """Replace operands that are computed from constants alone, such as an Identity of a weight, by initializers."""
    inputs, scope = op.node.input, op.scope
    values = [scope.constant(name) if name and scope.written_as(name) == "dynamic" else None for name in inputs]
    if all(value is None for value in values):
        return None
    operands = [
        name if value is None else scope.add_constant(value, "stored")
        for name, value in zip(inputs, values, strict=True)
    ]
    return rewrite(op, *operands)


@dataclass(frozen=True)
class _AsOlder:
    """What replaces a node where it would cross one of the boundaries below; `own` are rules of the user's."""

    own: Boundaries | None
    occasion = Occasion("absent", "")

    def written(self, tried: Tried) -> Written | None:
        """None if nothing does, or older opset versions have nothing for it: what that is does not matter here."""
        node = tried.node
        path = crossings(node.op_type, tried.opset, versions(node.op_type)[0], self.own)
        with suppress(RefusedError):
            return moved(node, path, tried.scope)[0]
        return None
