"""Facts as sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reducelower.conformance.conditions import When
from reducelower.conformance.results import Result

__all__ = ["listed", "overflow_sentence", "sentence"]

_FORMS = {
    "attribute": "axes as an attribute",
    "initializer": "axes as an initializer",
    "constant": "axes from a Constant node",
    "dynamic": "axes known at run time only",
    "absent": "no axes",
    "omitted": "an empty name for axes",
    "empty": "an empty list of axes",
}

_LONGEST = 120


def listed(words: Sequence[str], last: str = "and") -> str:
    """Words as a list in a sentence."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def _flag(name: str, values: Sequence[str]) -> str:
    written = [f"{name}={value}" for value in values if value != "unset"]
    return f"with {listed([*written, f'{name} not written'], 'or') if 'unset' in values else listed(written, 'or')}"


def _rank(what: str, text: str) -> str:
    low, dash, high = text.partition("-")
    if not dash:
        return f"{what} {low}"
    return f"{what} {low} or more" if not high else f"{what} {high} or less" if not low else f"{what} {low} to {high}"


_COUNTS = {"0": "over no dimension", "1": "over one dimension", "2-": "over several dimensions"}

_PHRASES: Mapping[str, Callable[[Any], str]] = {
    "axes": lambda value: f"with {listed([_FORMS[form] for form in value], 'or')}",
    "keepdims": lambda value: _flag("keepdims", value),
    "noop": lambda value: _flag("noop_with_empty_axes", value),
    "negative_axes": lambda value: "with a negative axis" if value else "without a negative axis",
    "axes_count": lambda value: _COUNTS.get(value, f"over {value} dimensions"),
    "all_axes": lambda value: "over every dimension" if value else "over some dimensions only",
    "element_types": lambda value: f"on {listed(value)}",
    "output_types": lambda value: f"to {listed(value)}",
    "rank": lambda value: _rank("on data of rank", value),
    "rank_out": lambda value: _rank("to a result of rank", value),
    "attributes": lambda value: f"with {listed(value)}",
    "after": lambda value: f"behind {listed(value, 'or')}",
    "fed": lambda value: "with other inputs that are fed" if value else "with no other input that is fed",
}

_WRONG = {
    "shape": "come out in a wrong shape",
    "values": "come out with wrong values",
    "overflow": "come out as infinity or NaN",
    "outputs": "come out with too few or too many outputs",
}

_REFUSED = {"error": "are refused", "crash": "crash it", "hang": "do not end"}


def sentence(operators: Sequence[str], when: When, results: Sequence[Result]) -> str:
    """A sentence for a fact: what goes wrong with operators under conditions, according to these results."""
    values = {condition.name: condition.value for condition in when}
    phrases = [phrase(values[name]) for name, phrase in _PHRASES.items() if name in values]
    subject = " ".join([listed(operators), ", ".join(phrases)]).strip()
    kinds = {result.kind for result in results}
    if results[0].word == "wrong":
        found = _WRONG[kinds.pop()] if len(kinds) == 1 else "come out wrong"
        return f"{_number(subject, operators, found)}."
    most = Counter(result.kind for result in results).most_common()
    kind = min(name for name, count in most if count == most[0][1])
    said = Counter(_impersonal(result, operators) for result in results if result.kind == kind)
    detail = min(said, key=lambda text: (-said[text], text))
    quoted = f": {_cut(detail)}" if kind != "hang" and detail else ""
    return f"{_number(subject, operators, _REFUSED[kind])}{quoted}".rstrip(".") + "."


def overflow_sentence(operators: Sequence[str], types: Sequence[str]) -> str:
    """A sentence for a fact about very large or very small values."""
    verb = "overflows or underflows" if len(operators) == 1 else "overflow or underflow"
    return f"{listed(operators)} on {listed(types)} {verb} where the result is finite."


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
