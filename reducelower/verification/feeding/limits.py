"""What a region may be fed: which inputs are indices, shapes or divisors, and which values operators leave open."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from onnx import NodeProto, TensorProto

from reducelower.model.graph import subgraphs, walk
from reducelower.model.numbers import SIGNED, UNSIGNED
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.verification.feeding.held import FEW, constants_of, held_in, keys_of, tables_of, texts_of, vectors_of
from reducelower.verification.feeding.roles import HANDING_ON, Role, roles_of, vectors
from reducelower.verification.feeding.shapes import window
from reducelower.verification.operators import column, of_kind
from reducelower.verification.regions.pairs import Pair
from reducelower.verification.running.conditions import conditions

__all__ = ["INTEGERS", "Limits", "limits_of", "takes_any"]

_KNOWN_DOMAINS = DEFAULT_DOMAINS | {"ai.onnx.ml"}
_IGNORING_VALUES = of_kind("ignoring values")
_PLACING = of_kind("placing")
_OPEN_TO_SPECIAL = of_kind("open to special")
_ENDING_ON_EMPTY = of_kind("ending on empty")
_ANY_RANK = of_kind("any rank")
_MOVING = of_kind("handing on", "taking")
_STEPPING = of_kind("stepping")

INTEGERS = frozenset({*SIGNED, *UNSIGNED, TensorProto.INT4, TensorProto.UINT4})
"""Integer types, by number."""

_SIZE_TYPES = (np.int32, np.int64)  # the types of positions and sizes; a zero point is neither
_LARGEST_FED = 7  # the largest size that is fed to every region
_LARGEST_BOUND = 140_000
_MOST_BOUNDS = 4


@dataclass
class Limits:
    """What may not be fed to a region, and what to try on it.

    Attributes:
        where: inputs that say where or how much: indices, axes, shapes, sizes, counts, or values that become such.
        divisors: inputs by which integers, or values that become integers, are divided; they are never fed zero.
        roles: what inputs in `where` say about other values.
        vectors: inputs of rank 1, for where their rank is not declared.
        constant_shapes: the shapes of constants, by name.
        open_to_special: an operator whose page leaves open what NaN and infinities give; empty if there is none.
        open_to_overflow: whether an operator's page leaves open what integers become that their type does not hold.
        rounds_to_integers: whether floats are rounded to integers, which is undefined beyond the range of integers.
        cast_to: the integer types that values are cast to.
        constants: small numbers that either side holds, to try values on both sides of each.
        tables: if values are compared, some of the numbers in large constants.
        integer_vectors: if values are compared, small constants of several integers; inputs are filled with each.
        keys: the keys that operators map to other values; each is fed.
        texts: the strings that either side holds.
        takes_empty: whether empty tensors may be fed.
        takes_any: whether data of unknown rank may have any rank, and the replacement must accept empty data.
        smallest_size: the smallest size that is fed, that of the largest window. Smaller data yields empty tensors, on
            which some operators end the process in onnxruntime 1.31.
        has_steps: whether floats are rounded or compared, so that a slight difference shows in few of many values.
        sizes: sizes of constants, and integers among them: the sizes of inputs may have to fit these.
        bounds: those of these integers, without signs, that are larger than the sizes fed anyway.
        rows: sizes of constants, if positions in data are looked up: to reach every row, data has to be as long.
        only_moves: whether both sides only move elements, whatever their values.
    """

    where: set[str] = field(default_factory=set)
    divisors: set[str] = field(default_factory=set)
    roles: dict[str, Role] = field(default_factory=dict)
    vectors: set[str] = field(default_factory=set)
    constant_shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    open_to_special: str = ""
    open_to_overflow: bool = False
    rounds_to_integers: bool = False
    cast_to: set[int] = field(default_factory=set)
    constants: tuple[float, ...] = ()
    tables: tuple[float, ...] = ()
    integer_vectors: tuple[tuple[int, ...], ...] = ()
    keys: tuple[float, ...] = ()
    texts: tuple[str, ...] = ()
    takes_empty: bool = True
    takes_any: bool = True
    smallest_size: int = 1
    has_steps: bool = False
    sizes: frozenset[int] = frozenset()
    bounds: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()
    only_moves: bool = False

    def table(self, name: str) -> int | None:
        """The number of rows of the constant table that an input selects from; None for other inputs."""
        role = self.roles.get(name)
        if role is None or role.kind not in ("index", "class") or role.data not in self.constant_shapes:
            return None
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
    limits = Limits()
    free = {item.name for item in pair.inputs}
    integers = {item.name for item in pair.inputs if item.element_type in INTEGERS}
    source = pair.replacement if pair.is_raised else pair.nodes
    limits.rounds_to_integers = _casts_to_integers(walk(source), free - integers)
    both: list[NodeProto] = []
    for nodes in (pair.nodes, pair.replacement):
        flat = list(walk(nodes))
        both += flat
        limits.where |= _reaching(flat, column("where")) & free
        limits.divisors |= _reaching(flat, column("divisors")) & integers
        roles = roles_of(reversed(flat)).items()
        # The source decides which class is ignored. A role whose data has known sizes yields only to one of an input.
        known_data = {role.data for role in limits.roles.values()} & (free | pair.constants[0].keys())
        limits.roles |= {
            name: role
            for name, role in roles
            if (role_before := limits.roles.get(name, role)).ignored == role.ignored
            and (role_before.data not in known_data or role.data in free)
        }
        limits.vectors |= vectors(flat)
        for node in reversed(flat):
            _add_operator(node, limits)
        if limits.open_to_special or limits.rounds_to_integers or limits.cast_to:
            limits.divisors |= _reaching(flat, column("divisors"), HANDING_ON) & free
    whole_numbers = {name for name, role in limits.roles.items() if role.kind == "whole number"}
    limits.where |= whole_numbers & free - integers
    limits.divisors -= limits.where
    limits.constant_shapes = {name: value.shape for constants in pair.constants for name, value in constants.items()}
    limits.takes_empty = conditions().feeds_empty and all(
        node.op_type not in _ENDING_ON_EMPTY and node.domain in DEFAULT_DOMAINS for node in both
    )
    limits.takes_any = takes_any(both)
    limits.only_moves = all(node.op_type in _MOVING for node in both)
    _add_constants(pair, both, limits)
    return limits


def _add_constants(pair: Pair, both: Sequence[NodeProto], limits: Limits) -> None:
    """Note the constants and attributes of both sides."""
    held = list(held_in(pair))
    numeric = [value for value in held if value.dtype.kind in "iuf"]
    limits.texts = texts_of(value for value in held if value.dtype.kind in "OSUT")
    limits.constants = constants_of(numeric)
    limits.keys = keys_of(both)
    if limits.has_steps:
        limits.tables = tables_of(numeric)
        limits.integer_vectors = vectors_of(numeric)
    numbers = {
        item for value in numeric if value.dtype in _SIZE_TYPES and value.size <= FEW for item in value.ravel().tolist()
    }
    limits.sizes = frozenset(numbers | {size for value in held for size in value.shape})
    limits.bounds = _bounds(numbers | _positions(both))
    if any(node.op_type in _PLACING and node.domain in DEFAULT_DOMAINS for node in both):
        lengths = {length for shape in limits.constant_shapes.values() for length in shape if length > 1}
        limits.rows = tuple(sorted(lengths)[:_MOST_BOUNDS])


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
    scatters = (item.s for item in node.attribute if item.name == "reduction" and node.op_type.startswith("Scatter"))
    return node.op_type in _OPEN_TO_SPECIAL or any(kind in (b"min", b"max") for kind in scatters)


def _add_operator(node: NodeProto, limits: Limits) -> None:
    limits.has_steps |= node.op_type in _STEPPING
    if node.domain not in DEFAULT_DOMAINS:
        return
    limits.smallest_size = max(limits.smallest_size, window(node))
    if not limits.open_to_special and _leaves_open(node):
        limits.open_to_special = node.op_type
    limits.open_to_overflow |= node.op_type in of_kind("open to overflow")
    if node.op_type == "Cast":
        limits.cast_to |= {item.i for item in node.attribute if item.name == "to"} & INTEGERS
    limits.rounds_to_integers |= node.op_type in of_kind("rounding")
    limits.has_steps |= limits.rounds_to_integers or bool(limits.cast_to) or node.op_type == "CastLike"


def _casts_to_integers(nodes: Iterable[NodeProto], floats: Collection[str]) -> bool:
    """Whether values computed from floats are cast to an integer type, as a CastLike is assumed to do."""
    from_floats = set(floats)
    for node in nodes:
        if node.op_type not in _IGNORING_VALUES and not from_floats.isdisjoint(node.input):
            to = {item.i for item in node.attribute if item.name == "to"} if node.op_type == "Cast" else set()
            if node.op_type == "CastLike" or not to.isdisjoint(INTEGERS):
                return True
            from_floats.update(node.output)
    return False


def _reaching(
    nodes: Sequence[NodeProto], slots: Mapping[str, frozenset[int]], through: Collection[str] | None = None
) -> set[str]:
    """The values that reach one of these inputs, through any operators or only through some."""
    reaching: set[str] = set()
    while True:
        count = len(reaching)
        for node in reversed(nodes):
            places = slots.get(node.op_type, ()) if node.domain in _KNOWN_DOMAINS else ()
            reaching.update(name for at, name in enumerate(node.input) if at in places and name)
            data = node.output[:1] if node.op_type == "TopK" else node.output
            goes_on = node.op_type not in _IGNORING_VALUES if through is None else node.op_type in through
            if goes_on and any(name in reaching for name in data):
                reaching.update(name for name in (node.input if through is None else node.input[:1]) if name)
            for _, _, graph in subgraphs(node):
                if any(name in reaching for name in node.output):
                    reaching.update(value.name for value in graph.output)
        if len(reaching) == count:
            return reaching
