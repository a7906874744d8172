"""Find the facts about a runtime that are true of a node, and the ways to avoid them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from onnx import NodeProto, TensorProto, numpy_helper

from reducelower.adapters import decompose
from reducelower.adapters.builder import Writer
from reducelower.errors import RefusedError
from reducelower.model.schemas import REDUCTIONS
from reducelower.rulebook.rules import Rules
from reducelower.runtimes.facts import NO_COMPARISON_DOES, Fact, Is
from reducelower.runtimes.features import Features
from reducelower.runtimes.forms import FORMS
from reducelower.runtimes.product import PRODUCTS
from reducelower.runtimes.remedies import CASTS, RANGE_KEEPING, REMEDIES, Remedy, Written, once_more
from reducelower.runtimes.runtime import Runtime
from reducelower.scope.scope import Scope

__all__ = ["Misfit", "has_ways", "misfit", "ways_out"]

_OVERFLOWING_BODIES = {
    "ReduceL2": "all that can stand for ReduceL2 squares before it adds up, which overflows.",
    "ReduceLogSum": "all that can stand for ReduceLogSum adds up first, which overflows where the logarithm does not.",
}
"""Operators whose body in the specification is the last resort, and the caveat then.

That of ReduceLogSumExp never is: it overflows for values that are common, and every kernel subtracts the maximum.
"""


_EXCUSABLE = frozenset({"overflows", "elsewhere"})
"""Outcomes of nodes that stay, and are told, if nothing avoids them."""

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

    The facts are those that are true of it, none where what they ask for is not known.
    """

    facts: tuple[Fact, ...]
    unknown: RefusedError | None = None

    @property
    def says(self) -> str:
        """What is wrong with the node, for people."""
        return self.facts[0].told if self.facts else str(self.unknown)

    @property
    def overflows(self) -> bool:
        """Whether large or small values go wrong."""
        return any(fact.outcome == "overflows" for fact in self.facts)

    def excuses(self, op_type: str) -> tuple[str, ...]:
        """What may stay if nothing avoids it, for people: large values that go wrong, and what runs elsewhere."""
        return tuple(
            f"{op_type}: {fact.told}" if fact.outcome == "elsewhere" else fact.told
            for fact in self.facts
            if fact.outcome in _EXCUSABLE
        )

    @property
    def is_excusable(self) -> bool:
        """Whether any of it may stay if nothing avoids it."""
        return any(fact.outcome in _EXCUSABLE for fact in self.facts)

    @property
    def is_elsewhere(self) -> bool:
        """Whether it runs, but not on the hardware that is meant."""
        return any(fact.outcome == "elsewhere" for fact in self.facts)

    def without_excusable(self) -> Misfit:
        """The rest of the misfit if that is accepted."""
        return Misfit(tuple(fact for fact in self.facts if fact.outcome not in _EXCUSABLE), self.unknown)

    def refusal(self, runtime: Runtime, reasons: Sequence[str]) -> RefusedError:
        """The refusal if no way works."""
        if not self.facts and self.unknown is not None:
            return self.unknown
        last = f"; the last way tried was {reasons[-1]}" if reasons else ""
        return RefusedError(
            f"on {runtime}, {_FAILURES[self.facts[0].outcome]}: {self.says}", f"nothing equivalent works{last}"
        )


def misfit(node: NodeProto, scope: Scope, facts: Sequence[Fact]) -> Misfit | None:
    """The facts that are true of a node written for the target's opset version; None if none is."""
    features = Features(node, scope)
    found = []
    unknown = None
    for fact in facts:
        try:
            if fact.when.matches(features) and not (fact.outcome == "overflows" and features.reads_nothing):
                found.append(fact)
        except RefusedError as refused:
            # Of other operators what is not known is taken to be right: an element type that nothing states comes from
            # an operator of another domain, and every node behind it would be refused.
            unknown = refused if node.op_type in REDUCTIONS else None
    return Misfit(tuple(found), unknown) if found or unknown is not None else None


def ways_out(node: NodeProto, scope: Scope, found: Misfit, rules: Rules, runtime: Runtime) -> Iterator[Remedy]:
    """What may be tried in place of a node, the least intrusive first, without what was tried there and is no better.

    Where values overflow, only what keeps them in range: the rules of the books made for that, or a wider type.
    """
    if any(fact.holds_of_any_form and fact.outcome not in _EXCUSABLE for fact in found.facts):
        return
    seen = set().union(*(fact.not_by for fact in found.facts))
    # One fact after the other: what does nothing about the first only defers it.
    asked = [name for fact in found.facts[:1] for name, _ in fact.when.conditions]
    for way in _ways(node, scope, found, rules, runtime):
        # What one book says of an operator another may say as well.
        if way.name not in seen and (not found.facts or way.may_help(asked)):
            seen.add(way.name)
            yield way


@cache
def has_ways(op_type: str) -> bool:
    """Whether anything may be tried in place of nodes of an operator."""
    if op_type in REDUCTIONS or op_type in FORMS:
        return True
    return decompose.is_expressible(op_type)


def _ways(node: NodeProto, scope: Scope, found: Misfit, rules: Rules, runtime: Runtime) -> Iterator[Remedy]:
    if not found.overflows:
        yield from (_CONSTANT_VALUE, _OPERANDS_STORED)
    if not has_ways(node.op_type):
        return
    if node.op_type not in REDUCTIONS:
        forms = FORMS.get(node.op_type, ())
        yield from (form for form in forms if form.keeps_range or not found.overflows)
        other = Remedy(f"{node.op_type} by other operators", _other_operators)
        is_trusted = node.op_type not in NO_COMPARISON_DOES or any(other.name in fact.by for fact in found.facts)
        if is_trusted and decompose.is_expressible(node.op_type):
            yield other
        return
    yield from RANGE_KEEPING if found.overflows else REMEDIES
    for book in _books(rules, runtime):
        yield from _by_rule(book, node, scope)
    # float16 overflows first of all where float does not; the others gain no range.
    if not found.overflows or scope.element_type(node.input[0]) == TensorProto.FLOAT16:
        yield from (*CASTS, *PRODUCTS)
    if not found.overflows and node.op_type != "ReduceLogSumExp":
        yield from _by_rule(Rules("spec"), node, scope)


def _books(rules: Rules, runtime: Runtime) -> list[Rules]:
    """The books whose rules keep values in range, the user's own first, then the one that the runtime is better at."""
    own = [] if rules.book.name in ("spec", "stable", "core", "portable") else [rules]
    names = sorted(("stable", "core", "portable"), key=lambda name: name != runtime.rules)
    return [*own, *map(Rules, names)]


def _by_rule(book: Rules, node: NodeProto, scope: Scope) -> Iterator[Remedy]:
    try:
        rule = book.find(node, scope)
    except RefusedError:
        return
    is_narrow = book.book.name == "spec" and node.op_type in _OVERFLOWING_BODIES
    yield Remedy(rule.name, rule, caveat=_OVERFLOWING_BODIES[node.op_type] if is_narrow else "")


def _value(op: Writer) -> Written | None:
    """The result as a constant, if it depends on constants alone."""
    value = op.scope.constant(op.node.output[0]) if len(op.node.output) == 1 else None
    if value is None:
        return None
    op.scope.release(*op.node.input)
    return op.yields("Constant", value=numpy_helper.from_array(value)), op.scope.target_opset


def _store_operands(op: Writer) -> Written | None:
    """Read operands that are computed from constants alone, such as an Identity of a weight, as initializers."""
    inputs, scope = op.node.input, op.scope
    values = [scope.constant(name) if name and scope.written_as(name) == "dynamic" else None for name in inputs]
    if all(value is None for value in values):
        return None
    operands = [
        name if value is None else scope.add_constant(value, "stored")
        for name, value in zip(inputs, values, strict=True)
    ]
    scope.release(*(name for name, value in zip(inputs, values, strict=True) if value is not None))
    return once_more(op, *operands)


def _other_operators(op: Writer) -> Written:
    nodes, opset, _ = decompose.replacement(op.node, op.scope.target_opset, op.scope)
    return nodes, opset


_CONSTANT_VALUE = Remedy("its constant value", _value)
_OPERANDS_STORED = Remedy("its constant operands stored", _store_operands)
