"""What a region may be fed: which inputs are indices, shapes or divisors, and which values operators leave open."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from onnx import NodeProto, TensorProto

from reducelower.model.graph import subgraphs, walk
from reducelower.model.numbers import SIGNED, UNSIGNED
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.numerics.measure import Array, element_type_of, identical, measure
from reducelower.verification.feeding.held import FEW, constants_of, differing, held_in, lists_of, texts_of
from reducelower.verification.feeding.roles import HANDING_ON, SELECTING, Role, roles_of
from reducelower.verification.inputs.declared import Dims
from reducelower.verification.operators import column, of_kind, row_of
from reducelower.verification.regions.pairs import Pair
from reducelower.verification.running.conditions import conditions

__all__ = ["INTEGERS", "LARGEST_BOUND", "LARGEST_FED", "Limits", "limits_of", "takes_any"]

_IGNORING_VALUES = of_kind("ignoring values")
_ANY_RANK = of_kind("any rank")

INTEGERS = frozenset({*SIGNED, *UNSIGNED, TensorProto.INT4, TensorProto.UINT4})
"""Integer types, by number."""

_SELECTING = SELECTING | {"index of elements", "places"}
_SIZE_TYPES = (np.int32, np.int64)  # the types of positions and sizes; a zero point is neither
LARGEST_FED = 8  # a size that is fed to every region
LARGEST_BOUND = 140_000  # of sizes and counts beside constants
_MOST_BOUNDS = 8
_DIFFERING = 16  # numbers that one side alone holds; each is fed
_UNKNOWN = Role("whole number", "")  # which says least


@dataclass(frozen=True)
class Limits:
    """What may not be fed to a region, and what to try on it.

    Attributes:
        where: inputs that say where or how much: indices, axes, shapes, sizes, counts, or values that become such.
        divisors: inputs by which integers, or values that become integers, are divided; they are never fed zero.
        divides: whether anything is divided: by -1, the lowest integer ends the process in some runtimes.
        roles: what inputs in `where` say about other values.
        constant_shapes: the shapes of constants, by name.
        rows: for inputs that select from a constant, the rows to select: those that differ by more than rounding from
            a constant of the other side, or all.
        changed: the constants that differ so.
        open_to_special: an operator whose page leaves open what NaN and infinities give; empty if there is none.
        open_to_overflow: whether an operator's page leaves open what integers become that their type does not hold.
        rounds_to_integers: whether floats are rounded to integers, which is undefined beyond the range of integers.
        cast_to: the integer types that values are cast to.
        of_one: small numbers that one side alone holds, or maps to something else.
        constants: these, and small numbers that either side holds, to try values on both sides of each.
        lists: numbers to fill inputs with, in order: if values are compared, some of those in each constant.
        texts: the strings that either side holds.
        texts_of_one: those that one side alone holds, or maps to something else.
        takes_empty: whether empty tensors may be fed.
        takes_any: whether the replacement must accept data without elements.
        has_steps: whether floats are rounded or compared, so that a slight difference shows in few of many values.
        sizes: sizes of constants, and positions and sizes among integers: inputs may have to be as long.
        bounds: the smallest of them that are not fed anyway; where positions in data are looked up, to reach every row
            of a table, data has to be as long as that.
        only_moves: whether both sides only move elements, whatever their values.
    """

    where: Collection[str] = ()
    divisors: Collection[str] = ()
    divides: bool = False
    roles: Mapping[str, Role] = field(default_factory=dict)
    constant_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    rows: Mapping[str, Array] = field(default_factory=dict)
    changed: Collection[str] = ()
    open_to_special: str = ""
    open_to_overflow: bool = False
    rounds_to_integers: bool = False
    cast_to: Collection[int] = ()
    of_one: tuple[float, ...] = ()
    constants: tuple[float, ...] = ()
    lists: Sequence[Sequence[float]] = ()
    texts: tuple[str, ...] = ()
    texts_of_one: tuple[str, ...] = ()
    takes_empty: bool = True
    takes_any: bool = True
    has_steps: bool = False
    sizes: Collection[int] = ()
    bounds: Sequence[int] = ()
    only_moves: bool = False

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What was assumed about the inputs, as sentences."""
        notes = []
        if self.where:
            notes.append(f"{_names(self.where)}: taken for an index, a shape or a count, and fed only such values.")
        if self.divisors:
            notes.append(f"{_names(self.divisors)}: never fed zero, since it divides what is or becomes an integer.")
        if self.open_to_special:
            notes.append(f"NaN and infinities were not fed: {self.open_to_special} leaves open what they do.")
        if self.open_to_overflow:
            notes.append("Only integers whose eighth power is in the range of their type, and single digits, were fed.")
        if self.rounds_to_integers:
            notes.append("NaN and floats beyond the range of integers were not fed: floats are rounded to integers.")
        return tuple(notes)


def _names(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in sorted(names))


def limits_of(pair: Pair) -> Limits:
    """The limits of a region, from its nodes and constants on both sides."""
    free = {item.name for item in pair.inputs}
    integers = {item.name for item in pair.inputs if item.element_type in INTEGERS}
    sides = [list(walk(nodes)) for nodes in (pair.nodes, pair.replacement)]
    both = [*sides[0], *sides[1]]
    own = [node for node in both if node.domain in DEFAULT_DOMAINS]
    kinds = {node.op_type for node in own}
    shapes = {name: value.shape for constants in pair.constants for name, value in constants.items()}
    roles = _roles(sides, free | shapes.keys())
    uses = [_uses(side) for side in sides]

    def used(use: str) -> set[str]:
        return {name for name in free if any(use in of_side[name] for of_side in uses)}

    open_to_special = next((node.op_type for side in sides for node in reversed(side) if _leaves_open(node)), "")
    becomes_integer = any("integers" in uses[pair.is_raised][name] for name in free - integers)
    rounds = becomes_integer or bool(kinds & of_kind("rounding"))
    cast_to = {item.i for node in own if node.op_type == "Cast" for item in node.attribute if item.name == "to"}
    cast_to &= INTEGERS
    where = used("where") | ({name for name, role in roles.items() if role.kind == "whole number"} & free - integers)
    where -= {item.name for item in pair.inputs if item.element_type == TensorProto.STRING}  # what they map to says so
    divisors = used("divisors") & integers
    if open_to_special or rounds or cast_to:
        divisors |= used("divisors by themselves")
    has_steps = rounds or bool(cast_to) or any(node.op_type in of_kind("stepping") for node in both)

    only_one = list(differing(pair))
    of_one = constants_of(filter(_is_numeric, only_one), _DIFFERING)
    held = list(held_in(pair))
    numeric = list(filter(_is_numeric, held))
    small = (value for value in numeric if value.dtype in _SIZE_TYPES and value.size <= FEW)
    sizes = {abs(item) for value in small for item in value.ravel().tolist()}
    dims = {**shapes, **{item.name: item.dims or () for item in pair.inputs}}
    sizes |= {abs(item) for item in _positions(both, dims)} | {size for value in held for size in value.shape}
    if kinds & of_kind("stepping by an input"):
        lengths = {size for each in dims.values() for size in each if isinstance(size, int)}
        sizes.add(sum(sorted(sizes | lengths)[-2:]))  # a window and a step
    least = 1 if kinds & of_kind("placing") else LARGEST_FED - 1
    changed = dict(_changed(pair.constants, roles))
    selecting = {name: roles[name] for name in roles if name in where and roles[name].kind in SELECTING}
    counts = {name: role.length(shapes.get(role.data, ())) for name, role in selecting.items()}
    return Limits(
        where=where,
        divisors=divisors - where,
        divides=not kinds.isdisjoint(column("divisors")),
        roles=roles,
        constant_shapes=shapes,
        rows={name: changed.get(name, np.arange(count)) for name, count in counts.items() if count},
        changed=tuple(roles[name].data for name in changed),
        open_to_special=open_to_special,
        open_to_overflow=bool(kinds & of_kind("open to overflow")),
        rounds_to_integers=rounds,
        cast_to=cast_to,
        of_one=of_one,
        constants=tuple(dict.fromkeys((*of_one, *constants_of(numeric)))),
        lists=lists_of(numeric) if has_steps else (),
        texts=texts_of(value for value in held if value.dtype.kind in "OSUT"),
        texts_of_one=texts_of(value for value in only_one if value.dtype.kind in "OSUT"),
        takes_empty=conditions().feeds_empty and len(own) == len(both) and not kinds & of_kind("ending on empty"),
        takes_any=takes_any(both),
        has_steps=has_steps,
        sizes=sizes,
        bounds=[size for size in sorted(sizes) if least < size < LARGEST_BOUND][:_MOST_BOUNDS],
        only_moves=all(node.op_type in of_kind("handing on", "taking") for node in both),
    )


def _is_numeric(value: Array) -> bool:
    return value.dtype.kind in "iuf"


def _uses(nodes: Sequence[NodeProto]) -> Mapping[str, set[str]]:
    """What becomes of values, by name: ``where`` and ``divisors`` as in the table of operators, or ``integers``.

    Values become what is computed from them, unless operators ignore them. Divisors by themselves are only converted.
    """
    uses: dict[str, set[str]] = defaultdict(set)
    count = -1
    while count != (count := sum(map(len, uses.values()))):  # again, since nodes in subgraphs come after what they give
        for node in reversed(nodes):
            data = node.output[:1] if node.op_type == "TopK" else node.output
            passed_on = set().union(*(uses[name] for name in data if name))
            if node.op_type in _IGNORING_VALUES:
                passed_on = set()
            for at, name in enumerate(node.input):
                is_alone = at == 0 and node.op_type in HANDING_ON
                uses[name] |= _use(node, at) | (passed_on if is_alone else passed_on - {"divisors by themselves"})
            for _, _, graph in subgraphs(node):
                for value in graph.output:
                    uses[value.name] |= passed_on
    uses[""].clear()
    return uses


def _use(node: NodeProto, at: int) -> set[str]:
    """What one input of a node is used for. A CastLike is assumed to cast to integers."""
    found = {name for name in ("where", "divisors") if at in column(name).get(row_of(node), ())}
    to = {item.i for item in node.attribute if item.name == "to"} if node.op_type == "Cast" else set()
    if at == 0 and (node.op_type == "CastLike" or to & INTEGERS):
        found.add("integers")
    return found | ({"divisors by themselves"} if "divisors" in found else set())


def _roles(sides: Sequence[Sequence[NodeProto]], known: Collection[str]) -> dict[str, Role]:
    """The roles of inputs: those in the source, or in the replacement if that says more or only there sizes are known.

    What is a class or token on one side is so on both, and never negative.
    """
    roles: dict[str, Role] = {}
    for side in sides:
        for name, role in roles_of(reversed(side)).items():
            old = roles.get(name, _UNKNOWN)
            says_more = old.kind == _UNKNOWN.kind or (old.kind, role.kind) == ("index", "class")
            if says_more or (old.data not in known and role.data in known):
                roles[name] = role
    return roles


def _changed(
    constants: tuple[Mapping[str, Array], Mapping[str, Array]], roles: Mapping[str, Role]
) -> Iterator[tuple[str, Array]]:
    """The inputs that select from a constant with other values on the other side, and the rows in which it differs."""
    left, right = constants
    for name, role in roles.items():
        first = left.get(role.data)
        if first is None or role.kind not in _SELECTING or not role.length(first.shape):
            continue
        differing = [_elements_changed(table, right) for table in left.values() if table.shape == first.shape]
        if changed := [elements for elements in differing if elements is not None]:
            yield name, np.unique(np.nonzero(np.logical_or.reduce(changed))[role.axis])


def _elements_changed(table: Array, others: Mapping[str, Array]) -> Array | None:
    """Where the other side's table differs by more than rounding; None if that has the same table, or none like it."""
    alike = [other for other in others.values() if (other.shape, other.dtype) == (table.shape, table.dtype)]
    if not alike or any(identical(table, other) for other in alike):
        return None
    found = [measure(table, other, conditions().tolerance(element_type_of(table))).elements for other in alike]
    return min((elements for elements in found if elements is not None), key=np.count_nonzero, default=None)


def _positions(nodes: Iterable[NodeProto], dims: Mapping[str, Dims]) -> set[int]:
    """The positions and sizes in attributes, and how far two windows reach, which are as large as their weights."""
    found: set[int] = set()
    for node in nodes:
        named = {item.name: (*item.ints, item.i) for item in node.attribute if item.name in _REACHING}
        found.update(*named.values(), (2 * number + 1 for number in named.get("dilations", ())))
        weights = [dims.get(name, ())[2:] for name in node.input[1:2]]
        windows = zip(named.get("kernel_shape") or chain(*weights), named.get("strides", ()), strict=False)
        found.update(size + step for size, step in windows if isinstance(size, int))
    return found


_REACHING = frozenset(
    {
        "dilations", "ends", "k", "kernel_shape", "left_window_size", "pads", "right_window_size", "size", "split",
        "starts", "strides",
    }
)  # fmt: skip
"""Attributes that say where, or how far."""


def takes_any(nodes: Iterable[NodeProto]) -> bool:
    """Whether all of these operators accept data of any rank and size, or object to it without a crash."""
    return all(node.op_type in _ANY_RANK and node.domain in DEFAULT_DOMAINS for node in nodes)


def _leaves_open(node: NodeProto) -> bool:
    """Whether the operator's page leaves open what NaN and infinities give, such as which of two values is smaller."""
    if node.domain not in DEFAULT_DOMAINS:
        return False
    scatters = (item.s for item in node.attribute if item.name == "reduction" and node.op_type.startswith("Scatter"))
    return node.op_type in of_kind("open to special") or any(kind in (b"min", b"max") for kind in scatters)
