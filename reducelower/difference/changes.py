"""How the nodes of two matched graphs differ: replaced regions, attributes, constants."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from onnx import NodeProto, TensorProto

from reducelower.difference.matching import Matched, Side
from reducelower.lines import Line
from reducelower.model.schemas import element_type_name
from reducelower.model.spelled import attribute_text, constant_text, input_name, operator_name
from reducelower.model.text import shape_text, shown
from reducelower.verification.regions.numbering import attributes

__all__ = ["Change", "Region", "changes_of"]

ChangeKind = Literal["changed", "replaced", "removed", "added", "connected otherwise"]

_NOT_GIVEN = "not given"
_MOST_NODES = 12
_MOST_BYTES = 1 << 28  # of weights that are compared value by value, which takes several times as many


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
    changes = [*_regions(matched), *_changed_pairs(matched), *_changed_outputs(matched)]
    for _, region in sorted(changes, key=lambda item: item[0]):
        yield region


_Located = tuple[float, Region]


def _changed_pairs(matched: Matched) -> Iterator[_Located]:
    left, right = matched.left, matched.right
    for at, other in left.partners.items():
        node, new_node = left.nodes[at], right.nodes[other]
        details = list(_attributes(matched, at, other))
        reconnected: list[str] = []
        for position, name, new in matched.changed_inputs(at):
            if left.is_free(name) or right.is_free(new):
                continue  # reported with the region that computes it
            holder, opset = (node, left.opset) if position < len(node.input) else (new_node, right.opset)
            sentence = f"input {input_name(holder, position, opset)}: {_other_values(left, name, right, new)}"
            is_constant = left.is_fixed(name) and right.is_fixed(new)
            (details if is_constant else reconnected).append(sentence + _distance(left, name, right, new))
        if details or reconnected:
            change = Change(
                "changed" if details else "connected otherwise",
                (_text(left, at),),
                (_text(right, other),),
                tuple(details + reconnected),
                ((left.path, left.label(at)),),
            )
            yield at, Region(change, (left, right), ((node,), (new_node,)))


def _changed_outputs(matched: Matched) -> Iterator[_Located]:
    left, right = matched.left, matched.right
    for name, other in matched.outputs:
        if not (matched.same(name, other) or left.is_free(name) or right.is_free(other)):
            detail = f"output {shown(name)!r}: {_other_values(left, name, right, other)}"
            change = Change("connected otherwise", (), (), (detail,), ((left.path, name),))
            yield len(left.nodes), Region(change, (left, right), ((), ()))


def _regions(matched: Matched) -> Iterator[_Located]:
    """Unmatched nodes, grouped with the unmatched nodes that replace them, up to values that both sides have."""
    left, right = matched.left, matched.right
    shared = {*left.numbers.values()} & {*right.numbers.values()}
    # Nodes of the right graph are represented by ~position, so that they differ from those of the left.
    groups = _Groups()
    for side, sign in ((left, 0), (right, -1)):
        for at in (at for at in side.nodes if at not in side.partners):
            groups.join(at ^ sign, at ^ sign)
            for name in side.nodes[at].input:
                if side.is_free(name) and side.number(name) not in shared:
                    groups.join(at ^ sign, side.producers[name] ^ sign)
    free = [
        {side.number(name): at for name, at in side.producers.items() if side.is_free(name)} for side in (left, right)
    ]
    for number in free[0].keys() & free[1]:
        groups.join(free[0][number], ~free[1][number])
    ends = [(name, new) for at in left.partners for _, name, new in matched.changed_inputs(at)]
    for name, new in [*ends, *matched.outputs]:
        if left.is_free(name) and right.is_free(new):
            groups.join(left.producers[name], ~right.producers[new])
    positions = sorted(right.partners)
    for members in groups.all():
        before = sorted(at for at in members if at >= 0)
        after = sorted(~at for at in members if at < 0)
        side, own = (left, before) if before else (right, after)
        change = Change(
            "replaced" if before and after else "removed" if before else "added",
            tuple(_text(left, at) for at in before),
            tuple(_text(right, at) for at in after),
            (),
            ((side.path, side.label(own[-1])),),
        )
        nodes = tuple(left.nodes[at] for at in before), tuple(right.nodes[at] for at in after)
        yield before[0] if before else _place_of_added(matched, positions, after), Region(change, (left, right), nodes)


def _place_of_added(matched: Matched, positions: Sequence[int], after: Sequence[int]) -> float:
    """The position in the first graph of added nodes: after the last matched node before them."""
    earlier = bisect_left(positions, after[0])
    return matched.right.partners[positions[earlier - 1]] + 0.5 if earlier else -0.5


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
    before, after = dict(attributes(node, matched.left.opset)), dict(attributes(new, matched.right.opset))
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            one, two = (_attribute(each, name) for each in (node, new))
            yield f"attribute {name}: {one} -> {two}" + (", other values" if one == two else "")


def _attribute(node: NodeProto, name: str) -> str:
    return next((attribute_text(item) for item in node.attribute if item.name == name), _NOT_GIVEN)


def _other_values(left: Side, name: str, right: Side, other: str) -> str:
    """The text for two values that differ; if their names are equal, with the nodes that compute them."""
    one, two = (
        _constant(side, each) or (f"value {shown(each)!r}" if each else _NOT_GIVEN)
        for side, each in ((left, name), (right, other))
    )
    if one == two and name in left.producers and other in right.producers:
        one, two = (f"{text} of {_origin(side, each)}" for text, side, each in ((one, left, name), (two, right, other)))
    return f"{one} -> {two}"


def _origin(side: Side, name: str) -> str:
    """The node that computes a value, and the number of the output if it has several."""
    at = side.producers[name]
    node = side.nodes[at]
    which = f", output {list(node.output).index(name)}" if len(node.output) > 1 else ""
    return f"{operator_name(node)} {shown(side.label(at))!r}{which}"


def _constant(side: Side, name: str) -> str:
    """The text of a constant; empty for any other value."""
    value = None if name in side.producers else side.place.constant(name)
    if isinstance(value, TensorProto):  # external data that was not read
        return f"{element_type_name(value.data_type)}{shape_text(tuple(value.dims))}"
    return "" if value is None else constant_text(value)


def _distance(left: Side, name: str, right: Side, other: str) -> str:
    """How far a changed constant is from what it was, for texts that are the same; empty if they say it all."""
    before, after = left.place.constant(name), right.place.constant(other)
    if before is None or after is None:
        return ""
    if isinstance(before, TensorProto) or isinstance(after, TensorProto) or before.nbytes > _MOST_BYTES:
        return ", other values" if _constant(left, name) == _constant(right, other) else ""
    if before.shape != after.shape or before.dtype != after.dtype or before.size <= 1:
        return ""
    # Zeros of other signs are other values.
    differ = before != after if before.dtype.hasobject else _bits(before) != _bits(after)
    text = f", {int(differ.sum()):,} of {before.size:,} values differ"
    if before.dtype.kind not in "fiu":
        return text
    with np.errstate(all="ignore"):
        distance = np.abs(before[differ].astype(np.float64) - after[differ].astype(np.float64))
    return text if np.isnan(distance).all() else f"{text}, by up to {np.nanmax(distance):.3g}"


def _bits(array: Any) -> Any:
    return np.ascontiguousarray(array).view(f"V{array.dtype.itemsize}")


def _text(side: Side, at: int) -> str:
    """A node with its attributes and constants, such as ``ReduceMean (axes = [1], keepdims = 0)``."""
    node = side.nodes[at]
    parts = [
        f"{input_name(node, position, side.opset)} = {text}"
        for position, name in enumerate(node.input)
        if name and (text := _constant(side, name))
    ]
    parts += [f"{item.name} = {attribute_text(item)}" for item in sorted(node.attribute, key=lambda item: item.name)]
    return shown(f"{operator_name(node)} ({', '.join(parts)})" if parts else operator_name(node))
