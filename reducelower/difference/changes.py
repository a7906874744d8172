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
        """The place and the details, or else the first nodes of both sides."""
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


def changes_of(matched: Matched) -> Iterator[Region]:
    """Yield every change between two graphs, in the order of the first."""
    left, right = matched.left, matched.right
    changes = [*_regions(matched), *_changed_pairs(matched), *_changed_outputs(matched)]
    for _, change, before, after in sorted(changes, key=lambda item: item[0]):
        nodes = tuple(left.nodes[at] for at in before), tuple(right.nodes[at] for at in after)
        yield Region(change, (left, right), nodes)


_Located = tuple[float, Change, Sequence[int], Sequence[int]]


def _changed_pairs(matched: Matched) -> Iterator[_Located]:
    left, right = matched.left, matched.right
    for at, other in matched.pairs.items():
        details = [] if matched.left.nodes[at] == matched.right.nodes[other] else [*_attributes(matched, at, other)]
        reconnected: list[str] = []
        for position, name, new in matched.changed_inputs.get(at, ()):
            if matched.is_free(name, new) or position >= len(left.nodes[at].input):
                continue  # reported with the region that computes it, or in the subgraph that reads it
            sentence = f"{_input(left, at, position)}: {_other_values(left, name, right, new)}"
            is_constant = left.is_fixed(name) and right.is_fixed(new)
            (details if is_constant else reconnected).append(_with_distance(sentence, left, name, right, new))
        if details or reconnected:
            change = Change(
                "changed" if details else "connected otherwise",
                (_text(left, at),),
                (_text(right, other),),
                tuple(details + reconnected),
                ((left.path, left.label(at)),),
            )
            yield at, change, [at], [other]


def _changed_outputs(matched: Matched) -> Iterator[_Located]:
    left, right = matched.left, matched.right
    for name, other in matched.outputs:
        if matched.same(name, other):
            continue
        if not matched.is_free(name, other):
            detail = f"output {shown(name)!r}: {_other_values(left, name, right, other)}"
            yield len(left.nodes), Change("connected otherwise", (), (), (detail,), ((left.path, name),)), [], []


def _regions(matched: Matched) -> Iterator[_Located]:
    """Unmatched nodes, grouped with the unmatched nodes that replace them."""
    left, right = matched.left, matched.right
    # Nodes of the right graph are represented by ~position, so that they differ from those of the left.
    groups = _Groups()
    for at in (at for at in left.nodes if at not in matched.pairs):
        groups.join(at, at)
        for name in left.nodes[at].input:
            if left.is_free(name, matched.pairs):
                groups.join(at, left.producers[name])
    for at in (at for at in right.nodes if at not in matched.taken):
        groups.join(~at, ~at)
        for name in right.nodes[at].input:
            if right.is_free(name, matched.taken):
                groups.join(~at, ~right.producers[name])
    ends = [(name, other) for inputs in matched.changed_inputs.values() for _, name, other in inputs]
    for name, other in [*ends, *matched.outputs]:
        if left.is_free(name, matched.pairs) and right.is_free(other, matched.taken):
            groups.join(left.producers[name], ~right.producers[other])
    matched_positions = sorted(matched.taken)
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
        yield (before[0] if before else _place_of_added(matched, matched_positions, after)), change, before, after


def _place_of_added(matched: Matched, positions: Sequence[int], after: Sequence[int]) -> float:
    """The position in the first graph of added nodes: after the last matched node before them."""
    earlier = bisect_left(positions, after[0])
    return matched.taken[positions[earlier - 1]] + 0.5 if earlier else -0.5


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
        sets = defaultdict(list)
        for item in list(self._parents):
            sets[self._root(item)].append(item)
        return sets.values()


def _attributes(matched: Matched, at: int, other: int) -> Iterator[str]:
    node, new = matched.left.nodes[at], matched.right.nodes[other]
    if node.attribute == new.attribute:
        return
    before, after = dict(matched.left.attributes(node)), dict(matched.right.attributes(new))
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
    """The text for two values that differ; if their names are equal, with the nodes that compute them."""
    one, two = _value(left, name), _value(right, other)
    if one == two and name in left.producers and other in right.producers:
        one, two = (f"{text} of {_origin(side, each)}" for text, side, each in ((one, left, name), (two, right, other)))
    return f"{one} -> {two}"


def _origin(side: Side, name: str) -> str:
    """The node that computes a value, and the number of the output if it has several."""
    node = side.nodes[side.producers[name]]
    which = f", output {side.outputs_at[name]}" if len(node.output) > 1 else ""
    return f"{operator_name(node)} {shown(side.label(side.producers[name]))!r}{which}"


def _constant(side: Side, name: str) -> str:
    """The text of a constant, cached by value; empty for any other value."""
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
    return text + _largest_change(before[differ], after[differ])


def _largest_change(before: Any, after: Any) -> str:
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
