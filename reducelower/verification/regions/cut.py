"""Cuts the region of a claim out of two models: the nodes on both sides, back to the values that both share.

Shared values become the inputs of two small models, with one name on both sides. So do weights, since random values do
as well. A region that fails for some values may hold for those that it is really given: it is then cut out with its own
weights and what is computed from them (`fixed`), and with more of its surroundings (`opened`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from onnx import NodeProto, TensorProto, helper

from reducelower.model.graph import subgraphs
from reducelower.numerics.measure import Array
from reducelower.verification.inputs.made import InputSpec
from reducelower.verification.operators import RANDOM
from reducelower.verification.regions.claims import Claim, Level
from reducelower.verification.regions.numbering import Numbers, read_by
from reducelower.verification.regions.pairs import SMALL_CONSTANT, Pair, free_input
from reducelower.verification.regions.places import Place
from reducelower.verification.regions.rewrites import renamed
from reducelower.verification.running.source import CannotRunError

__all__ = ["Region", "cut_region"]

_FEW_FLOATS = 8
_MOST_NODES = 4000
_FEW_STEPS = 2
_MOST_BYTES = 1 << 28  # of weights that only one side has


@dataclass(frozen=True)
class Region:
    """A claim, cut out.

    Attributes:
        opened: the numbers of shared values that it computes instead of taking them as inputs.
        closed: the numbers of inputs that nodes compute, so that it could be opened further.
        nodes: those of both models, as they stand there.
    """

    claim: Claim
    pair: Pair
    opened: frozenset[int]
    closed: frozenset[int]
    nodes: tuple[Sequence[NodeProto], Sequence[NodeProto]]


@dataclass
class _Cone:
    """One side of a region: its nodes, its inputs by name and number, and its constants."""

    nodes: list[NodeProto] = field(default_factory=list)
    inputs: dict[str, int] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)


def cut_region(claim: Claim, opened: frozenset[int] = frozenset(), *, fixed: bool = False) -> Region:
    """Cut out the two sides of a claim.

    Args:
        claim: the values that should be equal.
        opened: the numbers of shared values (`Region.closed`) to compute in the region.
        fixed: keep weights, and what follows from constants alone, instead of making them inputs.

    Raises:
        CannotRunError: one side needs a weight that is too large for a small model.
    """
    level = claim.level
    lefts, rights = [left for left, _ in claim.pairs], [right for _, right in claim.pairs]
    # A result of one side is no input of the other, which may add something to it.
    results = {level.left_numbers.get(left, -1) for left in lefts}
    results |= {level.right_numbers.get(right, -1) for right in rights}
    opened |= results - {-1}
    left = _Walk(level, level.left, level.left_numbers, opened, fixed).back_from(lefts)
    right = _Walk(level, level.right, level.right_numbers, opened, fixed).back_from(rights)
    derived = _derived(level, left, right) - opened
    if derived:
        return cut_region(claim, opened | derived, fixed=fixed)
    names: dict[int, str] = {}
    for cone, prefix in ((left, ""), (right, "after/")):
        for name, number in cone.inputs.items():
            names.setdefault(number, prefix + name)
    kinds = _kinds(level, left, right, names)
    outputs = [f"{name}/out" if name in left.inputs or name in left.constants else name for name in lefts]
    sides = []
    for cone, targets, prefix in ((left, lefts, ""), (right, rights, "after/")):
        new = {name: names[number] for name, number in cone.inputs.items()}
        direct = {name for name in targets if name in cone.inputs or name in cone.constants}
        for name in [*cone.constants, *(name for node in cone.nodes for name in node.output if name)]:
            new.setdefault(name, prefix + name)
        new.update((name, out) for name, out in zip(targets, outputs, strict=True) if name not in direct)
        nodes = [renamed(node, new) for node in cone.nodes]
        nodes += [
            helper.make_node("Identity", [new[name]], [out])
            for name, out in zip(targets, outputs, strict=True)
            if name in direct
        ]
        sides.append((nodes, {new[name]: value for name, value in cone.constants.items()}))
    pair = _pair(claim, sides, list(kinds.values()), outputs)
    places = ((level.left, left), (level.right, right))
    closed = {number for place, cone in places for name, number in cone.inputs.items() if name in place.positions}
    return Region(claim, pair, opened, frozenset(closed), (left.nodes, right.nodes))


def _pair(
    claim: Claim, sides: Sequence[tuple[list[NodeProto], dict[str, Array]]], inputs: list[InputSpec], outputs: list[str]
) -> Pair:
    level, site = claim.level, claim.site
    (nodes, left), (replacement, right) = sides
    before, after = level.left, level.right
    if site is not None and site.raised_from:
        nodes, replacement, left, right, before, after = replacement, nodes, right, left, after, before
    return Pair(claim.named, nodes, replacement, inputs, (left, right), before, after, outputs)


class _Walk:
    """The way back from the targets of one side to values that both sides share or that come from outside."""

    def __init__(self, level: Level, place: Place, numbers: Numbers, opened: frozenset[int], fixed: bool) -> None:
        self._level = level
        self._place = place
        self._numbers = numbers
        self._opened = opened
        self._fixed = fixed
        self._seen: set[str] = set()
        self._own: frozenset[str] = frozenset()
        self._chosen: dict[int, NodeProto] = {}
        self._size = 0
        self._cone = _Cone()

    def back_from(self, targets: Sequence[str]) -> _Cone:
        """Everything that computes the targets; a CannotRunError if that is too much for a small model."""
        self._own = frozenset(targets)
        pending = list(targets)
        while pending:
            name = pending.pop()
            if not name or name in self._seen:
                continue
            self._seen.add(name)
            at = self._place.positions.get(name)
            value = self._value(name)
            if value is not None:
                self._take_value(name, value)
            elif at is None or self._is_shared(name):
                self._cone.inputs[name] = self._numbers.get(name, -1)
            else:
                pending += self._take_node(at)
        self._cone.nodes = [self._chosen[at] for at in sorted(self._chosen)]
        return self._cone

    def _is_shared(self, name: str) -> bool:
        number = self._numbers.get(name, -1)
        if number not in self._level.shared or number in self._opened or name in self._own:
            return False
        return not (self._fixed and self._place.is_fixed(name)) and not self._place.is_of_sizes(name)

    def _value(self, name: str) -> Array | TensorProto | None:
        value = _known(self._place, name)
        if value is None and self._fixed and (self._place.is_fixed(name) or name not in self._own):
            return self._place.evaluated(name)  # declared sizes count as constants too
        return value

    def _take_value(self, name: str, value: Array | TensorProto) -> None:
        number = self._numbers.get(name, -1)
        # If both sides have a weight, random values do as well. An initializer has no producer.
        is_weight = number in self._level.visible and name not in self._own and not self._fixed
        if isinstance(value, np.ndarray) and not (is_weight and value.size > _most_held(value)):
            self._size += value.nbytes
            if self._size > _MOST_BYTES:
                raise CannotRunError("its weights are too large for a small model")
            self._cone.constants[name] = value
        elif isinstance(value, TensorProto) and not is_weight:
            why = "is in another file" if value.external_data else "is sparse, and too large to be made dense"
            raise CannotRunError(f"the weight {name!r} {why}")
        else:
            self._cone.inputs[name] = number

    def _take_node(self, at: int) -> list[str]:
        """Take in a node; returns what it reads."""
        node = self._place.holder.node[at]
        if at not in self._chosen:
            if len(self._chosen) >= _MOST_NODES:
                raise CannotRunError(f"it has more than {_MOST_NODES} nodes")
            self._chosen[at] = node
        return list(read_by(node))


def _most_held(value: Array) -> int:
    """The most elements of a shared constant that is kept: integers may be indices, counts or shapes."""
    return _FEW_FLOATS if value.dtype.kind == "f" else SMALL_CONSTANT


def _derived(level: Level, left: _Cone, right: _Cone) -> set[int]:
    """The numbers of inputs that only one side reads, and that a few nodes compute from other inputs.

    They depend on those: the replacement may read a Cast of a value that the source reads.
    """
    found: set[int] = set()
    inputs = {*left.inputs.values(), *right.inputs.values()}
    sides = ((level.left, level.left_numbers, left, right), (level.right, level.right_numbers, right, left))
    for place, numbers, cone, other in sides:
        alone = {number: name for name, number in cone.inputs.items() if number not in {*other.inputs.values()}}
        for number, name in alone.items():
            found |= _of_inputs(place, numbers, name, inputs - {number}) or set()
    return found


def _of_inputs(place: Place, numbers: Numbers, name: str, inputs: set[int], depth: int = 0) -> set[int] | None:
    """The numbers of a value and of those it is computed from in a few steps, if these end in inputs and constants."""
    node = place.producer(name)
    if node is None or node.op_type in RANDOM or name not in numbers or depth == _FEW_STEPS or any(subgraphs(node)):
        return None
    given = [operand for operand in node.input if operand and not place.is_fixed(operand)]
    found = {numbers[name]}
    for operand in given:
        if numbers.get(operand) not in inputs:
            inner = _of_inputs(place, numbers, operand, inputs, depth + 1)
            if inner is None:
                return None
            found |= inner
    return found if given else None


def _known(place: Place, name: str) -> Array | TensorProto | None:
    """The value of a constant that no caller may override."""
    value = place.constant(name)
    return None if value is None or place.is_overridable(name) else value


def _kinds(level: Level, left: _Cone, right: _Cone, names: Mapping[int, str]) -> dict[int, InputSpec]:
    """What is known about every input: from the first model, and from the second what the first does not know."""
    kinds: dict[int, InputSpec] = {}
    for place, cone in ((level.left, left), (level.right, right)):
        for name, number in cone.inputs.items():
            known = kinds.get(number)
            if known is not None and known.element_type and known.dims is not None and None not in known.dims:
                continue  # asking the second model may infer all of its types
            other = free_input(place, name)
            kinds[number] = replace(other, name=names[number]) if known is None else _together(known, other)
    return kinds


def _together(known: InputSpec, other: InputSpec) -> InputSpec:
    """What two models know about the same value; names of sizes mean something in one model only."""
    if not other.element_type:
        return known
    if not known.element_type or known.dims is None:
        return replace(other, name=known.name)
    if other.dims is None or len(other.dims) != len(known.dims):
        return known
    pairs = zip(known.dims, other.dims, strict=True)
    return replace(
        known, dims=tuple(theirs if isinstance(theirs, int) and own is None else own for own, theirs in pairs)
    )
