"""Facts as sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from reducelower.conformance.learning import Conditions
from reducelower.conformance.running import Result
from reducelower.lines import enumerated
from reducelower.runtimes.facts import When

__all__ = ["overflow_sentence", "sentence"]

_LONGEST = 120


_WRONG = {
    "shape": "come out in a wrong shape",
    "values": "come out with wrong values",
    "overflow": "come out as infinity or NaN",
    "outputs": "come out with too few or too many outputs",
}

_REFUSED = {"error": "are refused", "crash": "crash it", "hang": "do not end"}


def sentence(operators: Sequence[str], when: Conditions, results: Sequence[Result]) -> str:
    """A sentence for a fact: what goes wrong with operators under conditions, according to these results."""
    conditions = ", ".join(When(**dict(when)).described())
    subject = f"{_listed(operators)} ({conditions})" if conditions else _listed(operators)
    kinds = {result.kind for result in results}
    if results[0].word == "wrong":
        verb = _WRONG[kinds.pop()] if len(kinds) == 1 else "come out wrong"
        return f"{_number(subject, operators, verb)}."
    most = Counter(result.kind for result in results).most_common()
    kind = min(name for name, count in most if count == most[0][1])
    texts = Counter(_impersonal(result, operators) for result in results if result.kind == kind)
    detail = min(texts, key=lambda text: (-texts[text], text))
    quoted = f": {_cut(detail)}" if kind != "hang" and detail else ""
    return f"{_number(subject, operators, _REFUSED[kind])}{quoted}".rstrip(".") + "."


def overflow_sentence(operators: Sequence[str], types: Sequence[str]) -> str:
    """A sentence for a fact about very large or very small values."""
    verb = "overflows or underflows" if len(operators) == 1 else "overflow or underflow"
    return f"{_listed(operators)} on {_listed(types)} {verb} where the result is finite."


def _listed(words: Sequence[str]) -> str:
    return enumerated(words, len(words))


def _number(subject: str, operators: Sequence[str], verb: str) -> str:
    """Subject and verb; one operator takes the singular."""
    if len(operators) > 1:
        return f"{subject} {verb}"
    first, _, rest = verb.partition(" ")
    singular = {"come": "comes", "are": "is", "crash": "crashes", "do": "does"}[first]
    return f"{subject} {singular} {rest}"


def _impersonal(result: Result, operators: Sequence[str]) -> str:
    """The text about one of several operators, without its name."""
    own = result.case.partition("-")[0]
    return result.detail.replace(own, "it") if len(operators) > 1 else result.detail


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rsplit(' ', 1)[0]} …"
