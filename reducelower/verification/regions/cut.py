"""Cuts the region of a claim out of two models: the nodes on both sides, back to the values that both share.

Shared values become the inputs of two small models, with one name on both sides. So do weights, since random values do
as well. A region that fails for some values may hold for those that it is really given: it is then cut out with its own
weights and what is computed from them (`fixed`), and with more of its surroundings (`opened`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from onnx import NodeProto, TensorProto, helper

from reducelower.numerics.measure import Array
from reducelower.verification.inputs.declared import InputSpec
from reducelower.verification.regions.claims import Claim, Level
from reducelower.verification.regions.numbering import read_by, renamed
from reducelower.verification.regions.pairs import SMALL_CONSTANT, Pair
from reducelower.verification.regions.places import Place
from reducelower.verification.running.source import CannotRunError

__all__ = ["cut"]

_FEW_FLOATS = 8
_MOST_NODES = 4000
_MOST_BYTES = 1 << 28  # of weights that only one side has


def cut(claim: Claim, opened: frozenset[int] = frozenset(), *, fixed: bool = False) -> Pair:
    """Cut out the two sides of a claim.

    Args:
        claim: the values that should be equal.
        opened: the numbers of shared values (`Pair.closed`) to compute in the region.
        fixed: keep weights, and what follows from constants alone, instead of making them inputs.

    Raises:
        CannotRunError: one side needs a weight that is too large for a small model.
    """
    level = claim.level
    places = level.left, level.right
    targets = [left for left, _ in claim.pairs], [right for _, right in claim.pairs]
    # A result of one side is no input of the other, which may add something to it.
    results = {place.numbers.get(name, -1) for place, names in zip(places, targets, strict=True) for name in names}
    opened |= results - {-1}
    while True:
        left, right = (_Side(level, *side, opened, fixed) for side in zip(places, targets, strict=True))
        # What one side alone reads may depend on what the other reads: the replacement may read a Cast of it.
        both = frozenset({*left.inputs.values()} & {*right.inputs.values()})
        alone = (left.closed | right.closed) - both - opened
        if not alone:
            break
        opened |= alone
    names: dict[int, str] = {}
    for side, prefix in ((left, ""), (right, "after/")):
        for name, number in side.inputs.items():
            names.setdefault(number, prefix + name)
    outputs = [f"{name}/out" if left.takes(name) else name for name in targets[0]]
    sides = left.renamed(names, outputs, ""), right.renamed(names, outputs, "after/")
    if claim.named.raised_from:
        sides, places = sides[::-1], places[::-1]
    (nodes, constants), (replacement, others) = sides
    inputs = list(_inputs(left, right, names).values())
    closed = left.closed | right.closed
    return Pair(claim, nodes, replacement, inputs, (constants, others), *places, outputs, opened, closed)


class _Side:
    """One side of a region: what computes its targets, back to values that both sides share or that come from outside.

    Attributes:
        inputs: the numbers of its inputs, by name.
        constants: their values, by name.
    """

    def __init__(self, level: Level, place: Place, targets: Sequence[str], opened: frozenset[int], fixed: bool) -> None:
        """Walk back from the targets.

        Raises:
            CannotRunError: that is too much for a small model.
        """
        self.place = place
        self.inputs: dict[str, int] = {}
        self.constants: dict[str, Array] = {}
        self._level, self._targets, self._opened, self._fixed = level, targets, opened, fixed
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
        if number not in self._level.shared or number in self._opened or name in self._targets:
            return False
        return not (self._fixed and self.place.is_fixed(name)) and not self.place.is_of_sizes(name)

    def _value(self, name: str) -> Array | TensorProto | None:
        value = self.place.constant(name)
        if value is None and self._fixed and (self.place.is_fixed(name) or name not in self._targets):
            return self.place.evaluated(name)  # declared sizes count as constants too
        return value

    def _take(self, name: str, value: Array | TensorProto) -> None:
        number = self.place.numbers.get(name, -1)
        # If both sides have a weight, random values do as well. An initializer has no producer.
        is_weight = number in self._level.shared and name not in self._targets and not self._fixed
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

    def renamed(
        self, names: Mapping[int, str], outputs: Sequence[str], prefix: str
    ) -> tuple[list[NodeProto], dict[str, Array]]:
        """The nodes and constants, with other names for inputs and outputs, and a prefix to all other names."""
        new = {name: names[number] for name, number in self.inputs.items()}
        for name in [*self.constants, *(name for node in self._nodes for name in node.output if name)]:
            new.setdefault(name, prefix + name)
        given = [(name, out) for name, out in zip(self._targets, outputs, strict=True)]
        new.update((name, out) for name, out in given if not self.takes(name))
        nodes = [renamed(node, new) for node in self._nodes]
        nodes += [helper.make_node("Identity", [new[name]], [out]) for name, out in given if self.takes(name)]
        return nodes, {new[name]: value for name, value in self.constants.items()}


def _most_held(value: Array) -> int:
    """The most elements of a shared constant that is kept: integers may be indices, counts or shapes."""
    return _FEW_FLOATS if value.dtype.kind == "f" else SMALL_CONSTANT


def _inputs(left: _Side, right: _Side, names: Mapping[int, str]) -> dict[int, InputSpec]:
    """What is known about every input, from the model that knows more; names of sizes mean something in one only."""
    found: dict[int, InputSpec] = {}
    for side in (left, right):
        for name, number in side.inputs.items():
            known = found.get(number)
            if known is not None and known.element_type and known.dims is not None and None not in known.dims:
                continue  # asking the second model may infer all of its types
            other = InputSpec(names[number], *side.place.type_of(name))
            found[number] = other if known is None else max(known, other, key=_tells)
    return found


def _tells(item: InputSpec) -> tuple[bool, bool, int]:
    """How much is known about an input: its type, its rank, sizes."""
    return item.element_type != 0, item.dims is not None, sum(isinstance(dim, int) for dim in item.dims or ())
