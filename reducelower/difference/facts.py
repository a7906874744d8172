"""Differences in declarations: versions, metadata, inputs and outputs."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from onnx import ModelProto, ValueInfoProto

from reducelower.model.spelled import type_text
from reducelower.model.text import counted, short, shown
from reducelower.verification.regions.numbering import content, opsets_of

__all__ = ["Fact", "declared_facts"]

FactKind = Literal["version", "metadata", "input", "output"]

Names = Mapping[Literal["input", "output"], Mapping[str, str]]
"""The names of inputs and outputs that both models have: those of the second, with those of the first."""

_LONGEST = 60


@dataclass(frozen=True)
class Fact:
    """A difference: the text in each model, empty if it has none."""

    kind: FactKind
    what: str
    before: str
    after: str


_Statement = tuple[tuple[FactKind, str], tuple[str, Hashable]]
"""What a model says about something: the text, and what tells it apart from others of the same text."""


def declared_facts(before: ModelProto, after: ModelProto, names: Names) -> Iterator[Fact]:
    """What differs in what two models declare as a whole."""
    own: Names = {kind: {name: name for name in pairs.values()} for kind, pairs in names.items()}
    sides = dict(_statements(before, own)), dict(_statements(after, names))
    for kind, what in sides[0] | sides[1]:
        (one, identity), (two, other) = (side.get((kind, what), ("", None)) for side in sides)
        if (one, identity) != (two, other):
            yield Fact(kind, shown(what), short(one, _LONGEST), short(two, _LONGEST) if one != two else "other values")


def _statements(model: ModelProto, names: Names) -> Iterator[_Statement]:
    yield from ((("version", f"opset {name}".strip()), (str(it), None)) for name, it in opsets_of(model).items())
    yield ("version", "IR version"), (str(model.ir_version), None)
    for name in ("producer_name", "producer_version", "domain", "model_version"):
        yield ("metadata", name.replace("_", " ")), (str(getattr(model, name) or ""), None)
    yield from _documentation("model", model)
    yield from _documentation("graph", model.graph)
    for name in ("training_info", "configuration"):
        parts = tuple(item.SerializeToString(deterministic=True) for item in getattr(model, name, ()))
        yield ("metadata", name.replace("_", " ")), (counted(len(parts), "part") if parts else "", parts)
    yield from _of_interface("input", model.graph.input, names["input"])
    yield from _of_interface("output", model.graph.output, names["output"])
    inputs = {value.name: names["input"].get(value.name, value.name) for value in model.graph.input}
    for tensor in (tensor for tensor in model.graph.initializer if tensor.name in inputs):
        yield ("input", f"default of {shown(inputs[tensor.name])!r}"), ("given", content(tensor))


def _of_interface(
    kind: Literal["input", "output"], values: Sequence[ValueInfoProto], names: Mapping[str, str]
) -> Iterator[_Statement]:
    yield (kind, "order"), (", ".join(names[value.name] for value in values if value.name in names), None)
    for value in values:
        subject = repr(shown(names.get(value.name, value.name)))
        yield (kind, subject), (type_text(value.type) or "any", None)
        if value.name in names:
            yield (kind, f"name of {subject}"), (value.name, None)
            yield from _documentation(kind, value, f" of {subject}")


def _documentation(of: str, holder: Any, whose: str = "") -> Iterator[_Statement]:
    if holder.doc_string:
        yield ("metadata", f"{of} doc string{whose}"), (holder.doc_string, None)
    for item in holder.metadata_props:
        yield ("metadata", f"{of} metadata {item.key!r}{whose}"), (item.value, None)
