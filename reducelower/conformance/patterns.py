"""What failures have in common, and the fewest ways to say it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from reducelower.conformance.conditions import Condition, When

__all__ = ["Opsets", "Pattern", "simplified"]

Opsets = tuple[int, ...]


@dataclass(frozen=True)
class Pattern:
    """What fails: nodes of these operators, in models of these opset versions, under these conditions.

    Attributes:
        operators, opsets: sorted; of the versions those that were probed.
        explains: names of the failing cases that this is true of.
        covers_right: how many right cases it is true of too, because nothing tells them apart.
    """

    operators: tuple[str, ...]
    opsets: Opsets
    when: When
    explains: frozenset[str]
    covers_right: int = 0


def simplified(patterns: Sequence[Pattern]) -> list[Pattern]:
    """The same said in fewer patterns."""
    return _without_needless(_merged(patterns))


def _merged(patterns: Sequence[Pattern]) -> list[Pattern]:
    """Patterns that differ only in their operators, or in the alternatives of one condition, as one."""
    found = list(patterns)
    while True:
        pairs = combinations(range(len(found)), 2)
        joined = ((one, other, _joined(found[one], found[other])) for one, other in pairs)
        one, other, both = next((pair for pair in joined if pair[2] is not None), (0, 0, None))
        if both is None:
            return found
        found[one] = both
        del found[other]


def _joined(left: Pattern, right: Pattern) -> Pattern | None:
    if left.opsets != right.opsets:
        return None
    explains = left.explains | right.explains
    both = replace(left, explains=explains, covers_right=left.covers_right + right.covers_right)
    if left.when == right.when:
        return replace(both, operators=tuple(sorted({*left.operators, *right.operators})))
    names = [condition.name for condition in left.when]
    if left.operators != right.operators or names != [condition.name for condition in right.when]:
        return None
    different = [at for at, (one, two) in enumerate(zip(left.when, right.when, strict=True)) if one != two]
    if len(different) != 1:
        return None
    one, two = left.when[different[0]].value, right.when[different[0]].value
    if not isinstance(one, tuple) or not isinstance(two, tuple):
        return None
    union = Condition(names[different[0]], tuple(sorted({*one, *two})))
    return replace(both, when=tuple(union if at == different[0] else item for at, item in enumerate(left.when)))


def _without_needless(patterns: Sequence[Pattern]) -> list[Pattern]:
    """Without patterns, or operators in a pattern, whose failures the others explain."""
    kept = list(patterns)
    for at in reversed(range(len(kept))):
        for operator in kept[at].operators:
            own = frozenset(name for name in kept[at].explains if name.startswith(f"{operator}-"))
            others = frozenset().union(*(other.explains for place, other in enumerate(kept) if place != at))
            if own <= others:
                rest = tuple(name for name in kept[at].operators if name != operator)
                kept[at] = replace(kept[at], operators=rest, explains=kept[at].explains - own)
    return [pattern for pattern in kept if pattern.operators]
