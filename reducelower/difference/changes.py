"""How the nodes of two matched graphs differ: replaced regions, attributes, constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from onnx import NodeProto, TensorProto

from reducelower.difference.matching import Matched, Side
from reducelower.difference.spelled import attribute_text, constant_text, input_name, operator_name
from reducelower.lines import Line, enumerated
from reducelower.model.schemas import element_type_name
from reducelower.numerics.measure import element_type_of, measure
from reducelower.numerics.tolerance import EXACT
from reducelower.text import shape_text, shown
from reducelower.verification.regions.numbering import attributes
from reducelower.verification.result import to_plain

__all__ = ["Change", "Part", "changes_of"]

ChangeKind = Literal["changed", "replaced", "removed", "added", "connected otherwise"]

_NOT_GIVEN = "not given"
_MOST_NODES = 12
_MOST_OPERATORS = 3


class Part(NamedTuple):
    """Some nodes of one model."""

    side: Side
    nodes: Sequence[NodeProto]


@dataclass(frozen=True)
class Change:
    """A difference between nodes, at one place or at several equal ones.

    Attributes:
        kind: ``changed`` if attributes or constants differ; ``replaced``, ``removed`` or ``added`` if nodes replace
            others or none; ``connected otherwise`` if a node reads another value.
        before, after: the nodes of one place with attributes and constants, one text each.
        details: what changed, a sentence each; empty if `before` and `after` show it.
        nodes: graph path and node of every such place, in the model that has it.
        parts: the nodes of the first place in both models.
    """

    kind: ChangeKind
    before: tuple[str, ...]
    after: tuple[str, ...]
    details: tuple[str, ...]
    nodes: tuple[tuple[str, str], ...]
    parts: tuple[Part, Part] = field(repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """The same facts as plain JSON values, without the parts."""
        names = ("kind", "before", "after", "details", "nodes")
        return {name: to_plain(getattr(self, name)) for name in names}

    @property
    def title(self) -> str:
        """The operators before and after; empty if only an output of a graph differs."""
        sides = (dict.fromkeys(text.partition(" ")[0] for text in side) for side in (self.before, self.after))
        names = [enumerated(list(operators), _MOST_OPERATORS) for operators in sides]
        return " → ".join(dict.fromkeys(name or "nothing" for name in names)) if any(names) else ""

    @property
    def lines(self) -> Iterator[Line]:
        """The place and the details, or else the first nodes of both sides."""
        graph, node = self.nodes[0]
        more = f" and {len(self.nodes) - 1} more like it" if len(self.nodes) > 1 else ""
        yield Line(self.kind.partition(" ")[0], f"{graph}: {node!r}{more}", is_detail=True)
        title = f"{self.title}: " if self.title else ""
        texts = [f"{title}{detail}" for detail in self.details]
        if not texts:
            for sign, side in (("-", self.before), ("+", self.after)):
                counts = Counter(side)
                nodes = list(side)
                if len(nodes) > _MOST_NODES:  # then alike nodes are one line, where the first of them is
                    nodes = [f"{text}, {count} times" if count > 1 else text for text, count in counts.items()]
                texts += [f"{sign} {text}" for text in nodes[:_MOST_NODES]]
                left = sum(list(counts.values())[_MOST_NODES:])
                texts += [f"{sign} and {left} more nodes"] if left else []
        yield from (Line("", text, is_detail=True) for text in texts)


def changes_of(matched: Matched) -> Iterator[Change]:
    """Yield every change between two graphs, in the order of the first."""
    changes = [*_regions(matched), *_changed_pairs(matched), *_changed_outputs(matched)]
    return (change for _, change in sorted(changes, key=lambda item: item[0]))


_Located = tuple[int, Change]


def _change(
    matched: Matched,
    kind: ChangeKind,
    before: Sequence[int],
    after: Sequence[int],
    details: Sequence[str] = (),
    place: str = "",
) -> Change:
    left, right = matched.left, matched.right
    parts = Part(left, [left.nodes[at] for at in before]), Part(right, [right.nodes[at] for at in after])
    texts = tuple(_text(left, at) for at in before), tuple(_text(right, at) for at in after)
    place = place or (left.label(before[-1]) if before else right.label(after[-1]))
    return Change(kind, *texts, tuple(details), ((left.path, place),), parts)


def _changed_pairs(matched: Matched) -> Iterator[_Located]:
    left, right = matched.left, matched.right
    for at, other in left.partners.items():
        node, new_node = left.nodes[at], right.nodes[other]
        details = list(_attributes(matched, at, other))
        reconnected: list[str] = []
        for position, name, new in matched.changed_inputs(at):
            is_constant = left.is_fixed(name) or right.is_fixed(new)
            if not is_constant and (left.is_free(name) or right.is_free(new)):
                continue  # reported with the region that computes it
            holder, opset = (node, left.opset) if position < len(node.input) else (new_node, right.opset)
            one, two = (_value(side, each, is_free=side.is_free(each)) for side, each in ((left, name), (right, new)))
            sentence = f"input {input_name(holder, position, opset)}: {one} -> {two}"
            (details if is_constant else reconnected).append(sentence + _distance(left, name, right, new))
        if details or reconnected:
            kind: ChangeKind = "changed" if details else "connected otherwise"
            yield at, _change(matched, kind, [at], [other], details + reconnected)


def _changed_outputs(matched: Matched) -> Iterator[_Located]:
    left, right = matched.left, matched.right
    for name, other in matched.outputs:
        if not (matched.same(name, other) or left.is_free(name) or right.is_free(other)):
            detail = f"output {shown(name)!r}: {_value(left, name)} -> {_value(right, other)}"
            yield len(left.nodes), _change(matched, "connected otherwise", [], [], [detail], name)


def _regions(matched: Matched) -> Iterator[_Located]:
    """Unmatched nodes, grouped with the unmatched nodes that replace them, up to values that both sides have."""
    left, right = matched.left, matched.right
    shared = {*left.numbers.values()} & {*right.numbers.values()}
    # Nodes of the right graph are represented by ~position, so that they differ from those of the left.
    edges: list[tuple[int, int]] = []
    for side, sign in ((left, 0), (right, -1)):
        for at in (at for at in side.nodes if at not in side.partners):
            within = (name for name in side.nodes[at].input if side.is_free(name) and side.number(name) not in shared)
            edges += [(at ^ sign, at ^ sign), *((at ^ sign, side.producers[name] ^ sign) for name in within)]
    numbers = [
        {side.number(name): at for name, at in side.producers.items() if side.is_free(name)} for side in (left, right)
    ]
    edges += [(numbers[0][number], ~numbers[1][number]) for number in numbers[0].keys() & numbers[1]]
    ends = [(name, new) for at in left.partners for _, name, new in matched.changed_inputs(at)]
    for name, new in [*ends, *matched.outputs]:
        if left.is_free(name) and right.is_free(new):
            edges.append((left.producers[name], ~right.producers[new]))
    for members in _connected(edges):
        before = sorted(at for at in members if at >= 0)
        after = sorted(~at for at in members if at < 0)
        kind: ChangeKind = "replaced" if before and after else "removed" if before else "added"
        yield (before or after)[0], _change(matched, kind, before, after)


def _connected(edges: Iterable[tuple[int, int]]) -> Iterable[set[int]]:
    """The sets of nodes that edges connect."""
    sets: dict[int, set[int]] = {}
    for one, other in edges:
        small, large = sorted((sets.setdefault(one, {one}), sets.setdefault(other, {other})), key=len)
        large |= small
        sets.update(dict.fromkeys(small, large))
    return {id(members): members for members in sets.values()}.values()


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


def _value(side: Side, name: str, *, is_free: bool = False) -> str:
    """A constant, or the name of a value and the node that computes it, with the number of the output if several.

    If it `is_free`, its node is reported by itself, and names would tell alike changes apart.
    """
    at = side.producers.get(name)
    if at is None:
        return (_constant(side, name) or f"value {shown(name)!r}") if name else _NOT_GIVEN
    node = side.nodes[at]
    if is_free:
        return f"result of {operator_name(node)}"
    which = f", output {list(node.output).index(name)}" if len(node.output) > 1 else ""
    return f"value {shown(name)!r} of {operator_name(node)} {shown(side.label(at))!r}{which}"


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
    if isinstance(before, TensorProto) or isinstance(after, TensorProto):
        return ", other values" if _constant(left, name) == _constant(right, other) else ""
    if before.dtype != after.dtype:
        return f", {element_type_of(before)} -> {element_type_of(after)}"
    if before.shape != after.shape or before.size <= 1:
        return ""
    return f", {measure(before, after, EXACT).mismatch or 'zeros of other signs'}"


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
