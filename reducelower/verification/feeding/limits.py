"""What a region may be fed: which inputs are indices, shapes or divisors, and which values operators leave open."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from onnx import NodeProto, TensorProto

from reducelower.model.graph import subgraphs, walk
from reducelower.model.numbers import SIGNED, UNSIGNED
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.numerics.measure import Array, element_type_of, identical, measure
from reducelower.numerics.tolerance import tolerance_for
from reducelower.verification.feeding.held import FEW, constants_of, held_in, keys_of, lists_of, texts_of
from reducelower.verification.feeding.roles import HANDING_ON, Role, roles_of
from reducelower.verification.operators import column, of_kind
from reducelower.verification.regions.pairs import Pair
from reducelower.verification.running.conditions import conditions

__all__ = ["INTEGERS", "Limits", "limits_of", "takes_any"]

_KNOWN_DOMAINS = DEFAULT_DOMAINS | {"ai.onnx.ml"}
_IGNORING_VALUES = of_kind("ignoring values")
_ANY_RANK = of_kind("any rank")

INTEGERS = frozenset({*SIGNED, *UNSIGNED, TensorProto.INT4, TensorProto.UINT4})
"""Integer types, by number."""

_SELECTING = frozenset({"class", "index", "index of elements", "places"})
_SIZE_TYPES = (np.int32, np.int64)  # the types of positions and sizes; a zero point is neither
_LARGEST_FED = 7  # the largest size that is fed to every region
_LARGEST_BOUND = 140_000
_MOST_BOUNDS = 4


@dataclass(frozen=True)
class Limits:
    """What may not be fed to a region, and what to try on it.

    Attributes:
        where: inputs that say where or how much: indices, axes, shapes, sizes, counts, or values that become such.
        divisors: inputs by which integers, or values that become integers, are divided; they are never fed zero.
        roles: what inputs in `where` say about other values.
        constant_shapes: the shapes of constants, by name.
        open_to_special: an operator whose page leaves open what NaN and infinities give; empty if there is none.
        open_to_overflow: whether an operator's page leaves open what integers become that their type does not hold.
        rounds_to_integers: whether floats are rounded to integers, which is undefined beyond the range of integers.
        cast_to: the integer types that values are cast to.
        constants: small numbers that either side holds, to try values on both sides of each.
        lists: numbers to fill inputs with, in order: what operators map to other values; if values are compared, also
            some of the numbers in each constant.
        texts: the strings that either side holds.
        takes_empty: whether empty tensors may be fed.
        takes_any: whether the replacement must accept data without elements.
        has_steps: whether floats are rounded or compared, so that a slight difference shows in few of many values.
            sizes: sizes of constants, and integers among them: the sizes of inputs may have to fit these.
        bounds: those of these integers, without signs, that are larger than the sizes fed anyway; and the sizes of
            constants, if positions in data are looked up: to reach every row, data has to be as long.
        changed: for inputs that select from a constant with other values on the other side, the rows that differ
            by more than rounding.
        only_moves: whether both sides only move elements, whatever their values.
    """

    where: Collection[str] = ()
    divisors: Collection[str] = ()
    roles: Mapping[str, Role] = field(default_factory=dict)
    constant_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    open_to_special: str = ""
    open_to_overflow: bool = False
    rounds_to_integers: bool = False
    cast_to: Collection[int] = ()
    constants: tuple[float, ...] = ()
    lists: Sequence[Sequence[float]] = ()
    texts: tuple[str, ...] = ()
    takes_empty: bool = True
    takes_any: bool = True
    has_steps: bool = False
    sizes: frozenset[int] = frozenset()
    bounds: tuple[int, ...] = ()
    changed: Mapping[str, Array] = field(default_factory=dict)
    only_moves: bool = False

    def table(self, name: str) -> int:
        """The number of rows of the constant table that an input selects from; 0 for other inputs."""
        role = self.roles.get(name)
        if role is None or role.kind not in ("index", "class") or role.data not in self.constant_shapes:
            return 0
        return role.length(self.constant_shapes[role.data])

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
    shapes = {name: value.shape for constants in pair.constants for name, value in constants.items()}
    roles = _roles(sides, free | shapes.keys())

    own = [node for node in both if node.domain in DEFAULT_DOMAINS]
    kinds = {node.op_type for node in own}
    open_to_special = next((node.op_type for side in sides for node in reversed(side) if _leaves_open(node)), "")
    from_floats = _reaching(sides[pair.is_raised], _cast_to_integer) & (free - integers)
    rounds = bool(from_floats or kinds & of_kind("rounding"))
    cast_to = {item.i for node in own if node.op_type == "Cast" for item in node.attribute if item.name == "to"}
    cast_to &= INTEGERS
    has_steps = any(node.op_type in of_kind("stepping") for node in both) or rounds or bool(cast_to)
    has_steps |= "CastLike" in kinds

    where = free & set().union(*(_reaching(side, _places("where")) for side in sides))
    where |= {name for name, role in roles.items() if role.kind == "whole number"} & free - integers
    divisors = integers & set().union(*(_reaching(side, _places("divisors")) for side in sides))
    if open_to_special or rounds or cast_to:
        divisors |= free & set().union(*(_reaching(side, _places("divisors"), HANDING_ON) for side in sides))

    held = list(held_in(pair))
    numeric = [value for value in held if value.dtype.kind in "iuf"]
    small = (value for value in numeric if value.dtype in _SIZE_TYPES and value.size <= FEW)
    numbers = {item for value in small for item in value.ravel().tolist()}
    is_placing = bool(kinds & of_kind("placing"))
    lengths = {length for shape in shapes.values() for length in shape if length > 1}
    return Limits(
        where=where,
        divisors=divisors - where,
        roles=roles,
        constant_shapes=shapes,
        open_to_special=open_to_special,
        open_to_overflow=bool(kinds & of_kind("open to overflow")),
        rounds_to_integers=rounds,
        cast_to=cast_to,
        constants=constants_of(numeric),
        lists=[*keys_of(both), *(lists_of(numeric) if has_steps else ())],
        texts=texts_of(value for value in held if value.dtype.kind in "OSUT"),
        takes_empty=conditions().feeds_empty and len(own) == len(both) and not kinds & of_kind("ending on empty"),
        takes_any=takes_any(both),
        has_steps=has_steps,
        sizes=frozenset(numbers | {size for value in held for size in value.shape}),
        bounds=(*_bounds(numbers | _positions(both)), *(sorted(lengths)[:_MOST_BOUNDS] if is_placing else ())),
        changed=dict(_changed(pair.constants, roles)),
        only_moves=all(node.op_type in of_kind("handing on", "taking") for node in both),
    )


def _roles(sides: Sequence[Sequence[NodeProto]], known: Collection[str]) -> dict[str, Role]:
    """The roles of inputs: those in the source, or in the replacement if only there the data's sizes are known."""
    roles: dict[str, Role] = {}
    for side in sides:
        for name, role in roles_of(reversed(side)).items():
            if name not in roles or (roles[name].data not in known and role.data in known):
                roles[name] = role
    return roles


def _changed(
    constants: tuple[Mapping[str, Array], Mapping[str, Array]], roles: Mapping[str, Role]
) -> Iterator[tuple[str, Array]]:
    """The inputs that select from a constant with other values on the other side, and the rows in which it differs."""
    left, right = constants
    for name, role in roles.items():
        table = left.get(role.data)
        if table is None or role.kind not in _SELECTING or not role.length(table.shape):
            continue
        alike = [other for other in right.values() if (other.shape, other.dtype) == (table.shape, table.dtype)]
        if alike and not any(identical(table, other) for other in alike):
            differing = measure(table, alike[0], tolerance_for(element_type_of(table))).elements
            if differing is not None:
                yield name, np.unique(np.nonzero(differing)[role.axis])


def _positions(nodes: Iterable[NodeProto]) -> set[int]:
    """The positions and sizes in attributes."""
    named = (item for node in nodes for item in node.attribute if item.name in ("ends", "k", "split", "starts"))
    return {number for item in named for number in (*item.ints, item.i)}


def _bounds(integers: Iterable[int]) -> tuple[int, ...]:
    sizes = sorted({abs(number) for number in integers})
    return tuple(size for size in sizes if _LARGEST_FED < size < _LARGEST_BOUND)[:_MOST_BOUNDS]


def takes_any(nodes: Iterable[NodeProto]) -> bool:
    """Whether all of these operators accept data of any rank and size, or object to it without a crash."""
    return all(node.op_type in _ANY_RANK and node.domain in DEFAULT_DOMAINS for node in nodes)


def _leaves_open(node: NodeProto) -> bool:
    """Whether the operator's page leaves open what NaN and infinities give, such as which of two values is smaller."""
    if node.domain not in DEFAULT_DOMAINS:
        return False
    scatters = (item.s for item in node.attribute if item.name == "reduction" and node.op_type.startswith("Scatter"))
    return node.op_type in of_kind("open to special") or any(kind in (b"min", b"max") for kind in scatters)


def _places(name: str) -> Callable[[NodeProto], Collection[int]]:
    """The inputs of a node that a column of the table names."""
    return lambda node: column(name).get(node.op_type, ()) if node.domain in _KNOWN_DOMAINS else ()


def _cast_to_integer(node: NodeProto) -> Collection[int]:
    """The input of a node that is cast to an integer type, as a CastLike is assumed to do."""
    to = {item.i for item in node.attribute if item.name == "to"} if node.op_type == "Cast" else set()
    return (0,) if node.op_type == "CastLike" or to & INTEGERS else ()


def _reaching(
    nodes: Sequence[NodeProto], places: Callable[[NodeProto], Collection[int]], through: Collection[str] | None = None
) -> set[str]:
    """The values that reach one of these inputs, through any operators or only through some."""
    reaching: set[str] = set()
    while True:
        count = len(reaching)
        for node in reversed(nodes):
            reaching.update(name for at, name in enumerate(node.input) if at in places(node) and name)
            data = node.output[:1] if node.op_type == "TopK" else node.output
            goes_on = node.op_type not in _IGNORING_VALUES if through is None else node.op_type in through
            if goes_on and any(name in reaching for name in data):
                reaching.update(name for name in (node.input if through is None else node.input[:1]) if name)
            for _, _, graph in subgraphs(node):
                if any(name in reaching for name in node.output):
                    reaching.update(value.name for value in graph.output)
        if len(reaching) == count:
            return reaching
