"""Differences in declarations: versions, metadata, inputs and outputs, types of matched values."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from onnx import FunctionProto, GraphProto, ModelProto

from reducelower.difference.matching import Matched
from reducelower.difference.side import Side
from reducelower.model.graph import function_path
from reducelower.model.spelled import attribute_text, type_text
from reducelower.model.text import short, shown
from reducelower.verification.regions.numbering import content, opsets_of

__all__ = ["Fact", "interface_facts", "model_facts", "stated_facts"]

FactKind = Literal["version", "metadata", "input", "output", "type", "constant", "function"]

_LONGEST = 60


@dataclass(frozen=True)
class Fact:
    """A difference: the text in each model, empty if it has none."""

    kind: FactKind
    what: str
    before: str
    after: str


def model_facts(before: ModelProto, after: ModelProto) -> Iterator[Fact]:
    """Differences in the models' own fields."""
    opsets = opsets_of(before), opsets_of(after)
    for domain in sorted({*opsets[0], *opsets[1]}):
        yield from _fact("version", f"opset {domain}".strip(), *(each.get(domain, "") for each in opsets))
    yield from _fact("version", "IR version", before.ir_version, after.ir_version)
    for name in ("producer_name", "producer_version", "domain", "model_version", "doc_string"):
        yield from _fact("metadata", name.replace("_", " "), getattr(before, name) or "", getattr(after, name) or "")
    yield from _properties("model metadata", before, after)
    yield from _fact("metadata", "doc string of the graph", before.graph.doc_string, after.graph.doc_string)
    yield from _properties("graph metadata", before.graph, after.graph)
    for name in ("training_info", "configuration"):
        if hasattr(before, name):
            one, two = (
                [item.SerializeToString(deterministic=True) for item in getattr(each, name)] for each in (before, after)
            )
            if one != two:
                yield Fact("metadata", name.replace("_", " "), f"{len(one)} entries", f"{len(two)} other entries")
    functions = [
        {function_path(item).removeprefix("functions/"): item for item in each.functions} for each in (before, after)
    ]
    for name in sorted({*functions[0], *functions[1]}):
        yield from _fact("function", name, *("defined" if name in each else "" for each in functions))
        if name in functions[0] and name in functions[1]:
            versions = [opsets_of(each[name]).get("", "") for each in functions]
            yield from _fact("version", f"opset of function {name}", *versions)
            yield from _properties(f"metadata of function {name}", *(each[name] for each in functions))
            yield from _attributes(name, *(each[name] for each in functions))


def _attributes(function: str, before: FunctionProto, after: FunctionProto) -> Iterator[Fact]:
    """Differences in the declared attributes of functions, and their defaults."""
    defaults = [{one.name: one for one in each.attribute_proto} for each in (before, after)]
    texts = [
        {**dict.fromkeys(each.attribute, "required"), **{name: attribute_text(one) for name, one in by_name.items()}}
        for each, by_name in zip((before, after), defaults, strict=True)
    ]
    for name in sorted({*texts[0], *texts[1]}):
        what = f"attribute {name} of function {function}"
        one, two = (each.get(name, "") for each in texts)
        if one == two and defaults[0].get(name) != defaults[1].get(name):
            two = f"another {two}"
        yield from _fact("function", what, one, two)


def _fact(kind: FactKind, what: str, before: Any, after: Any) -> Iterator[Fact]:
    if before != after:
        yield Fact(kind, shown(what), short(str(before), _LONGEST), short(str(after), _LONGEST))


def _properties(what: str, before: Any, after: Any) -> Iterator[Fact]:
    for key, one, two in _changed_properties(before, after):
        yield from _fact("metadata", f"{what} {key!r}", one, two)


def _changed_properties(before: Any, after: Any) -> Iterator[tuple[str, str, str]]:
    one, two = ({item.key: item.value for item in each.metadata_props} for each in (before, after))
    for key in sorted({*one, *two}):
        if one.get(key) != two.get(key):
            yield key, one.get(key, ""), two.get(key, "")


def interface_facts(before: GraphProto, after: GraphProto, names: Mapping[str, str]) -> Iterator[Fact]:
    """Differences in inputs and outputs; `names` maps inputs of the second model to those of the first."""
    sides = {"input": (before.input, after.input), "output": (before.output, after.output)}
    documented = [{value.name: value for value in (*each.input, *each.output)} for each in (before, after)]
    kind: Literal["input", "output"]
    for kind in ("input", "output"):
        first, second = ({value.name: type_text(value.type) for value in values} for values in sides[kind])
        pairs = names if kind == "input" else dict(zip(second, first, strict=False))
        if kind == "output" and set(first) == set(second):
            pairs = {name: name for name in second}
        for name, other in pairs.items():
            yield from _fact(kind, "name", other, name)
            yield from _fact(kind, repr(shown(other)), first[other], second[name])
            for key, *both in _changed_documentation(documented[0][other], documented[1][name]):
                yield from _fact("metadata", f"{kind} {key} of {shown(other)!r}", *both)
        for name in (each for each in second if each not in pairs):
            yield Fact(kind, repr(shown(name)), "", second[name] or "of any type")
        matched_names = set(pairs.values())
        for name in (each for each in first if each not in matched_names):
            yield Fact(kind, repr(shown(name)), first[name] or "of any type", "")
        order = [pairs[name] for name in second if name in pairs]
        if order != [name for name in first if name in order]:
            yield Fact(kind, "order", ", ".join(first), ", ".join(order))
    defaults = [{tensor.name: tensor for tensor in each.initializer} for each in (before, after)]
    for name, other in names.items():
        has_default = [other in defaults[0], name in defaults[1]]
        yield from _fact("input", f"default of {other!r}", *("given" if each else "" for each in has_default))
        if all(has_default):
            yield from _properties(f"metadata of {other!r}", defaults[0][other], defaults[1][name])
        if all(has_default) and content(defaults[0][other]) != content(defaults[1][name]):
            yield Fact("input", f"default of {other!r}", "its values", "other values")


def stated_facts(levels: Iterable[Matched]) -> Iterator[Fact]:
    """Differences in types and metadata of matched nodes and values, in all graphs; equal ones are merged."""
    types: dict[tuple[str, str], list[str]] = defaultdict(list)
    metadata: dict[tuple[str, bool, bool], list[tuple[str, str, str]]] = defaultdict(list)
    for matched in levels:
        sides = matched.left, matched.right
        for name, other in _typed_pairs(matched):
            one, two = sides[0].stated.get(name), sides[1].stated.get(other)
            if one == two:
                continue
            texts = type_text(one.type) if one is not None else "", type_text(two.type) if two is not None else ""
            if texts[0] != texts[1]:
                types[texts if all(texts) else ("stated" * bool(texts[0]), "stated" * bool(texts[1]))].append(name)
            if one is not None and two is not None:
                for key, *both in _changed_documentation(one, two):
                    metadata[f"value {key}", bool(both[0]), bool(both[1])].append((name, both[0], both[1]))
        for at, new in matched.pairs.items():
            if matched.left.nodes[at] == matched.right.nodes[new]:
                continue
            for key, *both in _changed_documentation(matched.left.nodes[at], matched.right.nodes[new]):
                label = matched.left.label(at)
                metadata[f"node {key}", bool(both[0]), bool(both[1])].append((label, both[0], both[1]))
        yield from _unused_constants(*sides)
        yield from _constant_metadata(*sides)
    for (before, after), names in types.items():
        yield Fact("type", _several("value", names), before, after)
    for (key, _, _), entries in metadata.items():
        what = f"{key} of {_several('', [name for name, _, _ in entries])}"
        yield from _fact("metadata", what, entries[0][1], entries[0][2])


def _changed_documentation(before: Any, after: Any) -> Iterator[tuple[str, str, str]]:
    if not (before.doc_string or after.doc_string or before.metadata_props or after.metadata_props):
        return
    if before.doc_string != after.doc_string:
        yield "doc string", before.doc_string, after.doc_string
    for key, one, two in _changed_properties(before, after):
        yield f"metadata {key!r}", one, two


def _several(what: str, names: list[str]) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{what} {shown(names[0])!r}{more}".strip()


def _typed_pairs(matched: Matched) -> Iterator[tuple[str, str]]:
    """Pairs of names of values with a stated type that matched nodes compute, except outputs of the model."""
    left, right = matched.left, matched.right
    model_outputs = {*left.outputs, *right.outputs} if left.path == "graph" else set()
    names = dict.fromkeys(left.stated)
    for other in right.stated:
        names.setdefault(_counterpart(other, right, left, matched.taken))
    for name in names:
        other = _counterpart(name, left, right, matched.pairs)
        if name and other and name not in model_outputs and other not in model_outputs:
            yield name, other


def _counterpart(name: str, side: Side, other: Side, matched: Mapping[int, int]) -> str:
    """The output of the matched node that corresponds to an output; empty if there is none."""
    at = matched.get(side.producers.get(name, -1))
    outputs = () if at is None else other.nodes[at].output
    place = side.outputs_at.get(name, 0)
    return outputs[place] if place < len(outputs) else ""


def _unused_constants(left: Side, right: Side) -> Iterator[Fact]:
    """Unused constants that only one graph has."""
    idle = [
        {number for name, number in side.constants.items() if name not in side.read and name not in side.outputs}
        for side in (left, right)
    ]
    only = [len(idle[0] - idle[1]), len(idle[1] - idle[0])]
    if any(only):
        yield Fact("constant", f"constants that nothing reads in {left.path}", f"{only[0]} others", f"{only[1]} others")


def _constant_metadata(left: Side, right: Side) -> Iterator[Fact]:
    """Differences in the metadata of initializers, which are matched by value."""
    counts = []
    for side in (left, right):
        holder = side.place.holder
        tensors = holder.initializer if isinstance(holder, GraphProto) else ()
        with_properties = [(tensor, {item.key: item.value for item in tensor.metadata_props}) for tensor in tensors]
        counts.append(
            Counter(
                (side.constants.get(tensor.name), tensor.doc_string, *sorted(properties.items()))
                for tensor, properties in with_properties
                if properties or tensor.doc_string
            )
        )
    only = [(counts[0] - counts[1]).total(), (counts[1] - counts[0]).total()]
    if any(only):
        yield Fact("metadata", f"metadata of constants in {left.path}", f"{only[0]} others", f"{only[1]} others")
