"""Differences in declarations: versions, metadata, inputs and outputs, types of matched values.

What a model declares is a list of statements, each about a subject. Two models differ in the statements that only one
of them makes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from onnx import ModelProto, TensorProto, ValueInfoProto

from reducelower.difference.matching import Matched, Side
from reducelower.model.spelled import type_text
from reducelower.model.text import counted, short, shown
from reducelower.verification.regions.numbering import content, opsets_of

__all__ = ["Fact", "facts_of", "matched_statements", "model_statements"]

FactKind = Literal["version", "metadata", "input", "output", "type"]

Names = Mapping[Literal["input", "output"], Mapping[str, str]]
"""The names that both models have, of one of them, with the names by which they are compared."""

_LONGEST = 60


@dataclass(frozen=True)
class Fact:
    """A difference: the text in each model, empty if it has none."""

    kind: FactKind
    what: str
    before: str
    after: str


class Statement(NamedTuple):
    """What a model says about a subject: the text, and what distinguishes it from others of the same text."""

    kind: FactKind
    aspect: str
    subject: str
    text: str
    identity: Hashable = None


def facts_of(statements: Iterable[tuple[Iterable[Statement], Iterable[Statement]]]) -> Iterator[Fact]:
    """What differs between statements of two models; metadata and types that differ in the same way count as one."""
    merged: dict[Hashable, tuple[Fact, list[str]]] = {}
    for sides in statements:
        before, after = ({each[:3]: each[3:] for each in side} for side in sides)
        for key in before | after:
            (one, identity), (two, other) = (side.get(key, ("", None)) for side in (before, after))
            if (one, identity) == (two, other):
                continue
            kind, aspect, subject = key
            fact = Fact(kind, aspect, short(one, _LONGEST), short(two, _LONGEST) if one != two else "other values")
            group = {"metadata": (aspect, bool(one), bool(two)), "type": (aspect, one, two)}.get(kind, key)
            merged.setdefault(group, (fact, []))[1].append(subject)
    for fact, subjects in merged.values():
        more = f" and {len(subjects) - 1} more" if len(subjects) > 1 else ""
        whose = f"{shown(subjects[0])!r}{more}" if subjects[0] else ""
        yield Fact(fact.kind, shown(" of ".join(filter(None, (fact.what, whose)))), fact.before, fact.after)


def model_statements(model: ModelProto, names: Names) -> Iterator[Statement]:
    """Statements about a model as a whole."""
    yield from (Statement("version", f"opset {domain}".strip(), "", str(it)) for domain, it in opsets_of(model).items())
    yield Statement("version", "IR version", "", str(model.ir_version))
    for name in ("producer_name", "producer_version", "domain", "model_version"):
        yield Statement("metadata", name.replace("_", " "), "", str(getattr(model, name) or ""))
    yield from _documentation("", "model", model)
    yield from _documentation("", "graph", model.graph)
    for name in ("training_info", "configuration"):
        parts = tuple(item.SerializeToString(deterministic=True) for item in getattr(model, name, ()))
        yield Statement("metadata", name.replace("_", " "), "", counted(len(parts), "part") if parts else "", parts)
    yield from _interface_statements("input", model.graph.input, names["input"])
    yield from _interface_statements("output", model.graph.output, names["output"])
    inputs = {value.name: names["input"].get(value.name, value.name) for value in model.graph.input}
    for tensor in (tensor for tensor in model.graph.initializer if tensor.name in inputs):
        yield Statement("input", "default", inputs[tensor.name], "given", content(tensor))
        yield from _documentation(inputs[tensor.name], "default", tensor)


def _interface_statements(
    kind: Literal["input", "output"], values: Iterable[ValueInfoProto], names: Mapping[str, str]
) -> Iterator[Statement]:
    yield Statement(kind, "order", "", ", ".join(names[value.name] for value in values if value.name in names))
    for value in values:
        subject = names.get(value.name, value.name)
        yield Statement(kind, "", subject, type_text(value.type) or "any")
        if value.name in names:
            yield Statement(kind, "name", subject, value.name)
            yield from _documentation(subject, kind, value)


def matched_statements(matched: Matched) -> Iterator[tuple[list[Statement], list[Statement]]]:
    """Statements about each node that two graphs share, and the values that it computes.

    Constants are shared if shared nodes read them at the same place.
    """
    left, right = matched.left, matched.right
    values, tensors = (_values(left), _values(right)), (_tensors(left), _tensors(right))
    constants: dict[str, str] = {}
    for at, other in left.partners.items():
        node, new_node = left.nodes[at], right.nodes[other]
        constants.update(zip(node.input, new_node.input, strict=False))
        label = left.label(at)
        yield [*_documentation(label, "node", node)], [*_documentation(label, "node", new_node)]
        for name, new in zip(node.output, new_node.output, strict=False):
            yield [*_about_value(name, values[0].get(name))], [*_about_value(name, values[1].get(new))]
    for name, new in constants.items():
        if name in tensors[0] and new in tensors[1]:
            both = tensors[0][name], tensors[1][new]
            yield [*_documentation(name, "constant", both[0])], [*_documentation(name, "constant", both[1])]


def _values(side: Side) -> Mapping[str, ValueInfoProto]:
    """By name, the values whose types are stated, except the outputs of the model, which belong to its interface."""
    holder = side.place.holder
    if side.path == "graph":
        return {value.name: value for value in holder.value_info if value.name not in side.outputs}
    return {value.name: value for value in (*holder.value_info, *holder.output)}


def _about_value(name: str, value: ValueInfoProto | None) -> Iterator[Statement]:
    if value is not None:
        yield Statement("type", "", name, type_text(value.type))
        yield from _documentation(name, "value", value)


def _tensors(side: Side) -> Mapping[str, TensorProto]:
    """By name, the initializers that are no inputs."""
    holder = side.place.holder
    inputs = {value.name for value in holder.input}
    return {tensor.name: tensor for tensor in holder.initializer if tensor.name not in inputs}


def _documentation(subject: str, of: str, holder: Any) -> Iterator[Statement]:
    if holder.doc_string:
        yield Statement("metadata", f"{of} doc string", subject, holder.doc_string)
    for item in holder.metadata_props:
        yield Statement("metadata", f"{of} metadata {item.key!r}", subject, item.value)
