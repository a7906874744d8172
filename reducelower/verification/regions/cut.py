"""Cuts the region of a claim out of two models: the nodes on both sides, back to the values that both share.

Shared values become the inputs of two small models, with one name on both sides. So do weights, since random values do
as well. A region that fails for some values may hold for those that it is really given: it is then cut out with its own
weights and what is computed from them (`fixed`). A rewrite needs no cutting: its record has both sides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from reducelower.numerics.measure import Array
from reducelower.types.known import Known
from reducelower.verification.inputs.declared import InputSpec
from reducelower.verification.regions.claims import Claim
from reducelower.verification.regions.numbering import captured, read_by, renamed
from reducelower.verification.regions.pairs import SMALL_CONSTANT, Pair
from reducelower.verification.regions.places import Place
from reducelower.verification.running.source import CannotRunError

__all__ = ["cut", "lemma"]

_FEW_FLOATS = 8
_MOST_NODES = 4000
_MOST_BYTES = 1 << 28  # of weights that only one side has


def cut(claim: Claim, *, linked: bool = False, fixed: bool = False, rings: int = 0) -> Pair:
    """Cut out the two sides of a claim.

    Args:
        claim: the values that should be equal.
        linked: add the nodes that compute inputs from other inputs.
        fixed: keep weights, and what follows from constants alone, instead of making them inputs.
        rings: how many times to add the nodes that compute the inputs.

    Raises:
        CannotRunError: one side needs a weight that is too large for a small model.
    """
    shared, targets = claim.level.shared, _targets(claim)
    # A result of one side is no input of the other, which may add something to it.
    opened = frozenset(place.numbers[name] for place, names in targets for name in names if name in place.numbers)
    while True:
        left, right = (_Side(*each, shared=shared, opened=opened, fixed=fixed) for each in targets)
        # What one side alone reads may depend on what the other reads: the replacement may read a Cast of it.
        both = frozenset({*left.inputs.values()} & {*right.inputs.values()})
        alone = (left.closed | right.closed) - both - opened
        # A node may give several values, of which the rest would be an input.
        alone |= (left.computed | right.computed) & both - opened
        alone |= (left.following | right.following) - opened if linked else frozenset()
        if not alone and not rings:
            return _pair(claim, left, right)
        opened |= alone or left.closed | right.closed
        rings -= not alone


def lemma(claim: Claim, values: Mapping[str, Any]) -> Pair:
    """The rewrite that a claim is, in blanks, with what it did not ask about left free; sizes are free unless 1.

    Types and sizes are those of the operands' values, as far as these are known.
    """
    entry, level = claim.entry, claim.level
    assert entry is not None
    held = {**entry.constants, **{part: numpy_helper.to_array(tensor) for part, tensor in entry.added.items()}}
    sides = [renamed(entry.node, {})], [renamed(node, {}) for node in entry.nodes]
    before, after = ({part: held[part] for part in captured(nodes) if part in held} for nodes in sides)
    claimed = {name for name, _ in claim.pairs}
    return Pair(
        claim,
        *sides,
        [_operand(claim, part, values) for part in claim.operands],
        (before, after),
        level.left,
        level.right,
        [part for part in entry.node.output if claim.names.get(part) in claimed],
        names=claim.names,
        told=frozenset(_told(entry.answers)),
        # It may rest on which sizes of its operands have the same name, if it was told that.
        rests_on_names=any(isinstance(answer, Known) for _, _, answer in entry.answers),
    )


def _operand(claim: Claim, part: str, values: Mapping[str, Any]) -> InputSpec:
    name, level = claim.names[part], claim.level
    value = values.get(name)
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        known = InputSpec(part, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
    else:
        places = (level.left, level.right) if name in level.right.numbers else (level.left,)
        known = _known(part, [(place, name) for place in places])
    return replace(known, dims=None if known.dims is None else tuple(1 if dim == 1 else None for dim in known.dims))


def _told(answers: Iterable[tuple[str, str, object]]) -> Iterator[int]:
    """The sizes that a rewrite was told as numbers, and so may rest on."""
    for question, _, answer in answers:
        dims: object = answer.shape if isinstance(answer, Known) else answer if question == "shape" else ()
        yield from (size for size in dims if isinstance(size, int)) if isinstance(dims, tuple) else ()


def _targets(claim: Claim) -> tuple[tuple[Place, Sequence[str]], tuple[Place, Sequence[str]]]:
    """The claimed values in both graphs."""
    level = claim.level
    return (level.left, [left for left, _ in claim.pairs]), (level.right, [right for _, right in claim.pairs])


def _pair(claim: Claim, left: _Side, right: _Side) -> Pair:
    names: dict[int, str] = {}
    for side, prefix in ((left, ""), (right, "after/")):
        for name, number in side.inputs.items():
            names.setdefault(number, prefix + name)
    outputs = [f"{name}/out" if left.takes(name) else name for name in left.targets]
    sides = [(left.renamed(names, outputs, ""), left.place), (right.renamed(names, outputs, "after/"), right.place)]
    if claim.named.raised_from:
        sides.reverse()
    ((nodes, constants), before), ((replacement, others), after) = sides
    alone = {*right.inputs.values()} - {*left.inputs.values()}
    return Pair(
        claim,
        nodes,
        replacement,
        _inputs(left, right, names),
        (constants, others),
        before,
        after,
        outputs,
        names={names[number]: name for name, number in left.place.numbers.items() if number in alone} if alone else {},
        # Sizes of what the second side alone reads have to fit the rest, and the first side cannot tell which do.
        rests_on_names=bool(alone),
    )


class _Side:
    """One side of a region: what computes its targets, back to values that both sides share or that come from outside.

    Attributes:
        inputs: the numbers of its inputs, by name.
        constants: their values, by name.
    """

    def __init__(
        self,
        place: Place,
        targets: Sequence[str],
        *,
        shared: frozenset[int],
        opened: frozenset[int],
        fixed: bool,
    ) -> None:
        """Walk back from the targets.

        Args:
            place: the graph.
            targets: the names of what is computed.
            shared: the numbers of values that both graphs have, which become inputs.
            opened: those of them that are computed here instead.
            fixed: see `cut`.

        Raises:
            CannotRunError: that is too much for a small model.
        """
        self.place, self.targets = place, targets
        self.inputs: dict[str, int] = {}
        self.constants: dict[str, Array] = {}
        self._shared, self._opened, self._fixed = shared, opened, fixed
        nodes: dict[int, NodeProto] = {}
        pending, seen = list(targets), {""}
        while pending:
            name = pending.pop()
            if name in seen:
                continue
            seen.add(name)
            at, value = place.positions.get(name), self._value(name)
            if value is not None:
                self._take(name, value)
            elif at is None or self._is_shared(name):
                self.inputs[name] = place.numbers.get(name, -1)
            else:
                nodes[at] = place.holder.node[at]
                pending += read_by(nodes[at])
        self._nodes = [nodes[at] for at in sorted(nodes)]
        if len(nodes) > _MOST_NODES:
            raise CannotRunError(f"it has more than {_MOST_NODES} nodes")
        if sum(value.nbytes for value in self.constants.values()) > _MOST_BYTES:
            raise CannotRunError("its weights are too large for a small model")

    def _is_shared(self, name: str) -> bool:
        number = self.place.numbers.get(name, -1)
        if number not in self._shared or number in self._opened or name in self.targets:
            return False
        return not (self._fixed and self.place.is_fixed(name))

    def _value(self, name: str) -> Array | TensorProto | None:
        value = self.place.constant(name)
        if value is None and self._fixed and (self.place.is_fixed(name) or name not in self.targets):
            return self.place.evaluated(name)  # declared sizes count as constants too
        return value

    def _take(self, name: str, value: Array | TensorProto) -> None:
        number = self.place.numbers.get(name, -1)
        # If both sides have a weight, random values do as well. An initializer has no producer.
        is_weight = number in self._shared and name not in self.targets and not self._fixed
        if isinstance(value, np.ndarray) and not (is_weight and value.size > _most_held(value)):
            self.constants[name] = value
        elif isinstance(value, TensorProto) and not is_weight:
            why = "is in another file" if value.external_data else "is sparse, and too large to be made dense"
            raise CannotRunError(f"the weight {name!r} {why}")
        else:
            self.inputs[name] = number

    def takes(self, name: str) -> bool:
        """Whether no node here computes a value."""
        return name in self.inputs or name in self.constants

    @property
    def closed(self) -> frozenset[int]:
        """The numbers of inputs that nodes compute."""
        return frozenset(number for name, number in self.inputs.items() if name in self.place.positions)

    @property
    def computed(self) -> frozenset[int]:
        """The numbers of what the nodes here give."""
        return frozenset(self.place.numbers[name] for node in self._nodes for name in node.output if name)

    @property
    def following(self) -> frozenset[int]:
        """The numbers of inputs that nodes compute from other inputs."""
        nodes, positions = self.place.holder.node, self.place.positions
        read = {name: read_by(nodes[positions[name]]) for name in self.inputs if name in positions}
        return frozenset(self.inputs[name] for name in read if not self.inputs.keys().isdisjoint(read[name]))

    def renamed(
        self, names: Mapping[int, str], outputs: Sequence[str], prefix: str
    ) -> tuple[list[NodeProto], dict[str, Array]]:
        """The nodes and constants, with other names for inputs and outputs, and a prefix to all other names."""
        new = {name: names[number] for name, number in self.inputs.items()}
        for name in [*self.constants, *(name for node in self._nodes for name in node.output if name)]:
            new.setdefault(name, prefix + name)
        given = [(name, out) for name, out in zip(self.targets, outputs, strict=True)]
        new.update((name, out) for name, out in given if not self.takes(name))
        nodes = [renamed(node, new) for node in self._nodes]
        nodes += [helper.make_node("Identity", [new[name]], [out]) for name, out in given if self.takes(name)]
        return nodes, {new[name]: value for name, value in self.constants.items()}


def _most_held(value: Array) -> int:
    """The most elements of a shared constant that is kept: integers may be indices, counts or shapes."""
    return _FEW_FLOATS if value.dtype.kind == "f" else SMALL_CONSTANT


def _inputs(left: _Side, right: _Side, names: Mapping[int, str]) -> list[InputSpec]:
    """What is known about every input; names of sizes mean something in one model only."""
    places: dict[int, list[tuple[Place, str]]] = {}
    for side in (left, right):
        for name, number in side.inputs.items():
            places.setdefault(number, []).append((side.place, name))
    return [_known(names[number], each) for number, each in places.items()]


def _known(name: str, places: Iterable[tuple[Place, str]]) -> InputSpec:
    """What is known about an input in the place that knows most; asking the second may infer all of its types."""
    found = InputSpec(name, 0, None)
    for place, own in places:
        if not found.element_type or found.dims is None or None in found.dims:
            found = max(found, InputSpec(name, *place.type_of(own)), key=_tells)
    return found


def _tells(item: InputSpec) -> tuple[bool, bool, int]:
    """How much is known about an input: its type, its rank, sizes."""
    return item.element_type != 0, item.dims is not None, sum(isinstance(dim, int) for dim in item.dims or ())
