"""How the nodes of two matched graphs differ: replaced regions, attributes, constants."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from onnx import NodeProto, TensorProto

from reducelower.difference.matching import Matched
from reducelower.difference.side import Side
from reducelower.lines import Line
from reducelower.model.schemas import element_type_name
from reducelower.model.spelled import attribute_text, constant_text, input_name, operator_name
from reducelower.model.text import shape_text, shown

__all__ = ["Change", "Region", "changes_of"]

ChangeKind = Literal["changed", "replaced", "removed", "added", "connected otherwise"]

_NOT_GIVEN = "not given"
_MOST_NODES = 12


@dataclass(frozen=True)
class Change:
    """A difference between nodes, at one place or at several equal ones.

    Attributes:
        kind: ``changed`` if attributes or constants differ; ``replaced``, ``removed`` or ``added`` if nodes replace
            others or none; ``connected otherwise`` if a node reads another value.
        before, after: the nodes of one place with attributes and constants, one text each.
        details: what changed, a sentence each; empty if `before` and `after` show it.
        nodes: graph path and node of every such place, in the model that has it.
    """

    kind: ChangeKind
    before: tuple[str, ...]
    after: tuple[str, ...]
    details: tuple[str, ...]
    nodes: tuple[tuple[str, str], ...]

    @property
    def lines(self) -> Iterator[Line]:
        """Where it is and what changed, or else the nodes of both sides, as far as they are few."""
        graph, node = self.nodes[0]
        more = f" and {len(self.nodes) - 1} more like it" if len(self.nodes) > 1 else ""
        yield Line(self.kind.partition(" ")[0], f"{graph}: {node!r}{more}", is_detail=True)
        kinds = " -> ".join(dict.fromkeys(text.partition(" ")[0] for text in (*self.before, *self.after)))
        texts = [f"{kinds}: {detail}" if kinds else detail for detail in self.details]
        if not texts:
            for sign, nodes in (("-", self.before), ("+", self.after)):
                texts += [f"{sign} {text}" for text in nodes[:_MOST_NODES]]
                texts += [f"{sign} and {len(nodes) - _MOST_NODES} more nodes"] if len(nodes) > _MOST_NODES else []
        yield from (Line("", text, is_detail=True) for text in texts)


@dataclass(frozen=True)
class Region:
    """A change at one place, with the two graphs and the nodes of each."""

    change: Change
    sides: tuple[Side, Side]
    nodes: tuple[tuple[NodeProto, ...], tuple[NodeProto, ...]]


def changes_of(found: Matched) -> Iterator[Region]:
    """Yield every change between two graphs, in the order of the first."""
    left, right = found.left, found.right
    changes = [*_regions(found), *_of_pairs(found), *_of_outputs(found)]
    for _, change, before, after in sorted(changes, key=lambda item: item[0]):
        nodes = tuple(left.nodes[at] for at in before), tuple(right.nodes[at] for at in after)
        yield Region(change, (left, right), nodes)


_Found = tuple[float, Change, Sequence[int], Sequence[int]]


def _of_pairs(found: Matched) -> Iterator[_Found]:
    left, right = found.left, found.right
    for at, other in found.pairs.items():
        details = [] if found.left.nodes[at] == found.right.nodes[other] else [*_attributes(found, at, other)]
        connected: list[str] = []
        for position, name, new in found.changed_inputs.get(at, ()):
            if found.is_free(name, new) or position >= len(left.nodes[at].input):
                continue  # reported by the region that computes it, or in the graph inside that reads it
            sentence = f"{_input(left, at, position)}: {_other_values(left, name, right, new)}"
            is_constant = left.is_fixed(name) and right.is_fixed(new)
            (details if is_constant else connected).append(_with_distance(sentence, left, name, right, new))
        if details or connected:
            change = Change(
                "changed" if details else "connected otherwise",
                (_text(left, at),),
                (_text(right, other),),
                tuple(details + connected),
                ((left.path, left.label(at)),),
            )
            yield at, change, [at], [other]


def _of_outputs(found: Matched) -> Iterator[_Found]:
    left, right = found.left, found.right
    for name, other in found.outputs:
        if found.same(name, other):
            continue
        if not found.is_free(name, other):
            detail = f"output {shown(name)!r}: {_other_values(left, name, right, other)}"
            yield len(left.nodes), Change("connected otherwise", (), (), (detail,), ((left.path, name),)), [], []


def _regions(found: Matched) -> Iterator[_Found]:
    """Unmatched nodes, grouped with the unmatched nodes that replace them."""
    left, right = found.left, found.right
    # A node of the right has the complement of its position, so that it differs from all of the left.
    groups = _Groups()
    for at in (at for at in left.nodes if at not in found.pairs):
        groups.join(at, at)
        for name in left.nodes[at].input:
            if left.is_free(name, found.pairs):
                groups.join(at, left.producers[name])
    for at in (at for at in right.nodes if at not in found.taken):
        groups.join(~at, ~at)
        for name in right.nodes[at].input:
            if right.is_free(name, found.taken):
                groups.join(~at, ~right.producers[name])
    ends = [(name, other) for inputs in found.changed_inputs.values() for _, name, other in inputs]
    for name, other in [*ends, *found.outputs]:
        if left.is_free(name, found.pairs) and right.is_free(other, found.taken):
            groups.join(left.producers[name], ~right.producers[other])
    matched = sorted(found.taken)
    for members in groups.all():
        before = sorted(at for at in members if at >= 0)
        after = sorted(~at for at in members if at < 0)
        side, positions = (left, before) if before else (right, after)
        change = Change(
            "replaced" if before and after else "removed" if before else "added",
            tuple(_text(left, at) for at in before),
            tuple(_text(right, at) for at in after),
            (),
            ((side.path, side.label(positions[-1])),),
        )
        yield (before[0] if before else _place_of_added(found, matched, after)), change, before, after


def _place_of_added(found: Matched, matched: Sequence[int], after: Sequence[int]) -> float:
    """Position in the first graph for nodes that only the second has: after the last matched node before them."""
    earlier = bisect_left(matched, after[0])
    return found.taken[matched[earlier - 1]] + 0.5 if earlier else -0.5


class _Groups:
    """Disjoint sets with union and find."""

    def __init__(self) -> None:
        self._parents: dict[int, int] = {}

    def _root(self, item: int) -> int:
        while self._parents.setdefault(item, item) != item:
            self._parents[item] = item = self._parents[self._parents[item]]
        return item

    def join(self, item: int, other: int) -> None:
        self._parents[self._root(item)] = self._root(other)

    def all(self) -> Iterable[list[int]]:
        found = defaultdict(list)
        for item in list(self._parents):
            found[self._root(item)].append(item)
        return found.values()


def _attributes(found: Matched, at: int, other: int) -> Iterator[str]:
    node, new = found.left.nodes[at], found.right.nodes[other]
    if node.attribute == new.attribute:
        return
    before, after = dict(found.left.attributes(node)), dict(found.right.attributes(new))
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            one, two = (_attribute(each, name) for each in (node, new))
            yield f"attribute {name}: {one} -> {two}" + (", other values" if one == two else "")


def _attribute(node: NodeProto, name: str) -> str:
    return next((attribute_text(item) for item in node.attribute if item.name == name), _NOT_GIVEN)


def _input(side: Side, at: int, position: int) -> str:
    return f"input {input_name(side.nodes[at], position, side.opsets.get('', 1))}"


def _value(side: Side, name: str) -> str:
    return (_constant(side, name) or f"value {shown(name)!r}") if name else _NOT_GIVEN


def _other_values(left: Side, name: str, right: Side, other: str) -> str:
    """Two values that differ; of the same name, by what computes them."""
    one, two = _value(left, name), _value(right, other)
    if one == two and name in left.producers and other in right.producers:
        one, two = (f"{text} of {_origin(side, each)}" for text, side, each in ((one, left, name), (two, right, other)))
    return f"{one} -> {two}"


def _origin(side: Side, name: str) -> str:
    """What computes a value: the operator, and which of several outputs it is."""
    node = side.nodes[side.producers[name]]
    which = f", output {side.outputs_at[name]}" if len(node.output) > 1 else ""
    return f"{operator_name(node)} {shown(side.label(side.producers[name]))!r}{which}"


def _constant(side: Side, name: str) -> str:
    """The text of a constant, read once for all of the same value; empty for any other value."""
    number = side.constants.get(name)
    text = None if number is None else side.texts.get(number)
    if text is None:
        value = None if name in side.producers else side.place.constant(name)
        if value is None:
            return ""
        if isinstance(value, TensorProto):  # external data that was not read
            text = f"{element_type_name(value.data_type)}{shape_text(tuple(value.dims))}"
        else:
            text = constant_text(value)
        if number is not None:
            side.texts[number] = text
    return text


def _with_distance(sentence: str, left: Side, name: str, right: Side, other: str) -> str:
    """A sentence about a changed constant, with the size of the change if known."""
    before, after = left.place.constant(name) if name else None, right.place.constant(other) if other else None
    if isinstance(before, TensorProto) or isinstance(after, TensorProto):
        return f"{sentence}, other values" if _value(left, name) == _value(right, other) else sentence
    if before is None or after is None:
        return sentence
    if before.shape != after.shape or before.dtype != after.dtype or before.size <= 1:
        return sentence
    differ = before != after
    if before.dtype.kind == "f":
        differ &= ~(np.isnan(before) & np.isnan(after))
        if not differ.any():
            differ = np.signbit(before) != np.signbit(after)
            return f"{sentence}, {int(differ.sum()):,} of {before.size:,} values differ in the sign of zero or NaN"
    text = f"{sentence}, {int(differ.sum()):,} of {before.size:,} values differ"
    return text + _by_how_much(before[differ], after[differ])


def _by_how_much(before: Any, after: Any) -> str:
    if before.dtype.kind not in "fiu" or not before.size:
        return ""
    with np.errstate(all="ignore"):
        distance = np.abs(before.astype(np.float64) - after.astype(np.float64))
    return f", by up to {np.nanmax(distance):.3g}" if not np.isnan(distance).all() else ""


def _text(side: Side, at: int) -> str:
    """A node with its attributes and constants, such as ``ReduceMean (axes = [1], keepdims = 0)``."""
    node = side.nodes[at]
    parts = [
        f"{input_name(node, position, side.opsets.get('', 1))} = {text}"
        for position, name in enumerate(node.input)
        if name and (text := _constant(side, name))
    ]
    parts += [f"{item.name} = {attribute_text(item)}" for item in sorted(node.attribute, key=lambda item: item.name)]
    return shown(f"{operator_name(node)} ({', '.join(parts)})" if parts else operator_name(node))
