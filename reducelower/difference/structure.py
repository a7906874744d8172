"""Structural difference of two models; nothing is run, and names of values and nodes do not count."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from onnx import ModelProto, ValueInfoProto

from reducelower.difference.changes import Change, changes_of
from reducelower.difference.matching import Matched, match
from reducelower.difference.spelled import type_text
from reducelower.lines import Line
from reducelower.text import counted, short, shown
from reducelower.types import Inference
from reducelower.verification.regions.numbering import content, opsets_of
from reducelower.verification.regions.places import Place
from reducelower.verification.result import to_plain
from reducelower.verification.running.source import inlined

__all__ = ["Change", "Difference", "Fact", "difference"]


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


@dataclass(frozen=True)
class Difference:
    """The differences of two models.

    Attributes:
        facts: versions, metadata, and inputs and outputs that differ.
        changes: nodes that differ; equal changes count as one.
        alike: the number of nodes that both models have.
    """

    facts: tuple[Fact, ...] = ()
    changes: tuple[Change, ...] = ()
    alike: int = 0

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return not (self.facts or self.changes)

    @property
    def sentence(self) -> str:
        """A sentence with the number of differences."""
        if self.same:
            return f"the same structure: {counted(self.alike, 'node')}, whatever they are called"
        places = sum(len(change.nodes) for change in self.changes)
        parts = [f"nodes differ at {counted(places, 'place')}"] if places else []
        if self.facts:
            parts.append(counted(len(self.facts), "other difference" if places else "difference"))
        return f"{', '.join(parts)}; {counted(self.alike, 'node')} alike"

    @property
    def lines(self) -> Iterator[Line]:
        """The lines for every output; the nodes are details, which the HTML page shows in its own way."""
        for fact in self.facts:
            yield Line(fact.kind, f"{fact.what}: {fact.before or 'none'} -> {fact.after or 'none'}")
        for change in self.changes:
            yield from change.lines

    def to_dict(self) -> dict[str, Any]:
        """The same facts as plain JSON values."""
        return {
            "same": self.same,
            "facts": to_plain(self.facts),
            "changes": [change.to_dict() for change in self.changes],
            "alike": self.alike,
        }


def difference(before: ModelProto, after: ModelProto, *, keeps_names: bool = False) -> Difference:
    """Compare two models by structure.

    Operators, attributes, constants by value (however they are spelled), connections, types, versions and metadata
    count. Names of values, nodes and graphs do not, except inputs and outputs of models. A call of a local function
    counts as the nodes of the function. An operator is the same at two opset versions. Tensors with external data are
    equal if they refer to the same place; in models of `Source.of`, by content. A conversion `keeps_names`, so
    nothing else is tried. The models are not changed.
    """
    before, after = inlined(before), inlined(after)
    names: Names = {
        "input": _counterparts(before.graph.input, after.graph.input),
        "output": _counterparts(before.graph.output, after.graph.output),
    }
    inferences = Inference(before), Inference(after)

    def compared(*, by_name: bool) -> tuple[Sequence[Matched], Sequence[Change]]:
        """The matched graphs, outer before inner, and the changes in each."""
        places = Place(before, inferences[0]), Place(after, inferences[1])
        levels = match(*places, names["input"], names["output"], by_name=by_name)
        return levels, [change for level in levels for change in changes_of(level)]

    levels, found = compared(by_name=True)
    if found and not keeps_names:
        # If a node was put in, an exporter may number all values after it differently.
        levels, found = min((levels, found), compared(by_name=False), key=lambda each: sum(map(_size, each[1])))
    changes = tuple(_merged(found))
    changed = sum(len(change.nodes) for change in changes if change.before and change.details)
    alike = sum(len(level.left.partners) for level in levels) - changed
    return Difference(tuple(declared_facts(before, after, names)), changes, alike)


def _size(change: Change) -> int:
    """The number of nodes that differ."""
    return len(change.before) + len(change.after)


def _counterparts(before: Sequence[ValueInfoProto], after: Sequence[ValueInfoProto]) -> dict[str, str]:
    """Maps names in the second model to those in the first: the same name, or else the same place among the rest."""
    first, second = ([value.name for value in values] for values in (before, after))
    names = {name: name for name in second if name in first}
    if len(first) == len(second):
        rest = (name for name in first if name not in names)
        names |= zip((name for name in second if name not in names), rest, strict=True)
    return names


def _merged(changes: Sequence[Change]) -> Iterator[Change]:
    """Changes that differ only in their place merged into one."""
    groups: dict[Change, list[tuple[str, str]]] = {}
    for change in changes:
        groups.setdefault(replace(change, nodes=()), []).extend(change.nodes)
    return (replace(change, nodes=tuple(dict.fromkeys(nodes))) for change, nodes in groups.items())


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
