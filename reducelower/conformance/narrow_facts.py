"""A fact about the very form of node that failed in a real model: as narrow as its evidence.

All that the failing nodes have in common is a condition, their attributes, element types and ranks. Where that is true
of a right node too, whatever else tells them apart is added. Nothing is left out because it probably does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from reducelower.conformance.bisection import Part
from reducelower.conformance.case import CaseFeatures
from reducelower.conformance.conditions import Conditions, common, holds
from reducelower.conformance.results import Result
from reducelower.conformance.sentences import sentence
from reducelower.model.schemas import DEFAULT_DOMAINS, since_version, versions
from reducelower.runtimes.facts import Evidence, Fact, When
from reducelower.runtimes.ranges import Ranges

__all__ = ["narrow_fact"]

_FORM = ("element_types", "second_types", "output_types", "rank", "rank_second", "attributes")
"""What is always stated, where it is known: the form of a node, as two people would compare it."""

_SAID = ("element_types", "output_types", "attributes", "after")

_LONGEST = 60
"""Of a condition on an attribute; what is longer holds a tensor, and no two models have the same."""

_OTHERS = tuple(field.name for field in fields(When) if field.name not in (*_FORM, "made", "after"))


def narrow_fact(failing: Sequence[Part], right: Sequence[Part], evidence: Evidence) -> Fact | None:
    """The fact that is true of failing parts and of no right one; None if no condition tells them apart.

    A part is a node, or a node behind the one that computes its first input; all failing ones are of one operator and
    opset version, and so are the right ones.
    """
    first = failing[0]
    if first.nodes[-1].domain not in DEFAULT_DOMAINS:
        return None  # facts are about ONNX's own operators
    node, opset = first.nodes[-1], first.case.opset
    found = [part.case.features for part in failing]
    stated = {name: value for name in _FORM if (value := _stated(found, name)) is not None}
    if len(first.nodes) > 1:
        if len(first.nodes) > 2 or not _reads_first(first):
            return None
        stated["after"] = frozenset({first.nodes[0].op_type})
    for name in _OTHERS:
        wrongly = [part.case.features for part in right if holds(stated.items(), part.case.features)]
        value = _stated(found, name)
        if value is not None and not all(holds([(name, value)], features) for features in wrongly):
            stated[name] = value
    if any(holds(stated.items(), part.case.features) for part in right):
        return None
    results = [Result.of(part.case, "", "", part.verdict) for part in failing]
    return Fact(
        sentence([node.op_type], _worth_saying(stated, found[0]), results),
        "wrong" if all(part.verdict.word == "wrong" for part in failing) else "refused",
        evidence,
        frozenset({node.op_type}),
        opsets=_same_operator(node.op_type, opset),
        when=When(**stated),
    )


def _worth_saying(stated: Mapping[str, Any], first: CaseFeatures) -> Conditions:
    """The conditions for a sentence: without defaults, and without the type of a result that is that of the data."""
    said = dict(stated)
    if said.get("output_types") == said.get("element_types"):
        said.pop("output_types", None)
    said["attributes"] = [text for text in stated.get("attributes", ()) if text.partition("=")[0] in first.attributes]
    return tuple((name, frozenset(said[name])) for name in _SAID if said.get(name))


def _reads_first(part: Part) -> bool:
    """Whether the last node reads a result of the one before as its first input."""
    before, last = part.nodes
    return last.input[:1] != [] and last.input[0] in before.output


def _stated(found: Sequence[CaseFeatures], name: str) -> Any:
    """The condition that states a feature of nodes; None if it is unknown, not alike, or there is no such input."""
    if name == "rank_second" and not all(features.second_types for features in found):
        return None
    if name != "attributes":
        return common(found, name)
    shared = frozenset.intersection(*(features.attributes or frozenset() for features in found))
    return frozenset(text for text in shared if "=" in text and len(text) <= _LONGEST) or None


def _same_operator(op_type: str, opset: int) -> Ranges:
    """The opset versions at which a node means what it means at one: a runtime has one importer for these."""
    since = since_version(op_type, opset)
    later = min((version for version in versions(op_type) if version > since), default=None)
    return Ranges(((since, None if later is None else later - 1),))
