"""A fact about exactly the form of node that failed in a real model: as narrow as its evidence.

Everything that the failing nodes have in common becomes a condition: attributes, element types and ranks. If a right
node matches as well, the other features that tell them apart are added. Nothing is dropped as probably irrelevant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from reducelower.conformance.bisection import Part
from reducelower.conformance.case import CaseFeatures
from reducelower.conformance.conditions import Conditions, common, holds
from reducelower.conformance.running import Result
from reducelower.conformance.sentences import sentence
from reducelower.model.schemas import DEFAULT_DOMAINS, since_version, versions
from reducelower.runtimes.facts import Evidence, Fact, When
from reducelower.runtimes.ranges import Ranges

__all__ = ["narrow_fact"]

_FORM = ("element_types", "second_types", "output_types", "rank", "rank_second", "attributes")
"""Features that are always stated if known: the form of a node."""

_IN_SENTENCE = ("element_types", "output_types", "attributes", "after")

_LONGEST = 60
"""The longest condition on an attribute; longer ones contain a tensor, which no two models share."""

_OTHERS = tuple(field.name for field in fields(When) if field.name not in (*_FORM, "made", "after"))


def narrow_fact(failing: Sequence[Part], right: Sequence[Part], evidence: Evidence) -> Fact | None:
    """The fact that is true of all failing parts and of no right one; None if no condition tells them apart.

    A part is a node, possibly preceded by the node that computes its first input. All parts have the same operator and
    opset version.
    """
    first = failing[0]
    if first.nodes[-1].domain not in DEFAULT_DOMAINS:
        return None  # facts are about ONNX's own operators
    node, opset = first.nodes[-1], first.case.opset
    nodes = [part.case.features for part in failing]
    when = {name: value for name in _FORM if (value := _shared(nodes, name)) is not None}
    if len(first.nodes) > 1:
        if len(first.nodes) > 2 or not _reads_first(first):
            return None
        when["after"] = frozenset({first.nodes[0].op_type})
    for name in _OTHERS:
        still_matching = [part.case.features for part in right if holds(when.items(), part.case.features)]
        value = _shared(nodes, name)
        if value is not None and not all(holds([(name, value)], features) for features in still_matching):
            when[name] = value
    if any(holds(when.items(), part.case.features) for part in right):
        return None
    results = [Result.of(part.case, "", "", part.verdict) for part in failing]
    return Fact(
        sentence([node.op_type], _for_sentence(when, nodes[0]), results),
        "wrong" if all(part.verdict.word == "wrong" for part in failing) else "refused",
        evidence,
        frozenset({node.op_type}),
        opsets=_same_operator(node.op_type, opset),
        when=When(**when),
    )


def _for_sentence(when: Mapping[str, Any], first: CaseFeatures) -> Conditions:
    """The conditions for a sentence: without defaults, and without an output type that equals the input type."""
    parts = dict(when)
    if parts.get("output_types") == parts.get("element_types"):
        parts.pop("output_types", None)
    parts["attributes"] = [text for text in when.get("attributes", ()) if text.partition("=")[0] in first.attributes]
    return tuple((name, frozenset(parts[name])) for name in _IN_SENTENCE if parts.get(name))


def _reads_first(part: Part) -> bool:
    """Whether the first input of the last node is an output of the one before."""
    before, last = part.nodes
    return last.input[:1] != [] and last.input[0] in before.output


def _shared(nodes: Sequence[CaseFeatures], name: str) -> Any:
    """The condition on a feature that all nodes share; None if it is unknown, differs, or there is no such input."""
    if name == "rank_second" and not all(features.second_types for features in nodes):
        return None
    if name != "attributes":
        return common(nodes, name)
    shared = frozenset.intersection(*(features.attributes or frozenset() for features in nodes))
    return frozenset(text for text in shared if "=" in text and len(text) <= _LONGEST) or None


def _same_operator(op_type: str, opset: int) -> Ranges:
    """The opset versions with the same definition of an operator: a runtime has one importer for them."""
    since = since_version(op_type, opset)
    later = min((version for version in versions(op_type) if version > since), default=None)
    return Ranges.between(since, None if later is None else later - 1)
