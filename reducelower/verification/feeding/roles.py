"""Possible values for inputs that say where, how many or what shape, such as indices and axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from onnx import NodeProto

from reducelower.numerics.measure import Array
from reducelower.verification.operators import column, of_kind, row_of

__all__ = ["HANDING_ON", "SELECTING", "Role", "roles_of"]

HANDING_ON = of_kind("converting")
"""Operators that give their input in another type or shape."""

_TAKING = of_kind("taking")
_JOINING = of_kind("joining")

# Roles of which each element has a meaning by itself.
_OF_ELEMENTS = frozenset({"class", "count", "diagonal", "end", "index", "index of elements", "whole number"})

SELECTING = frozenset({"class", "index"})
"""Kinds of roles of which each element is the number of a row of the data."""

_RESIZED = {"part": 2, "scales": 1, "sizes": 1}  # numbers for each axis
_ENDS = (0.0, (0.0, 0.4)), (1.0, (0.6, 1.2))  # of a part: where it starts and ends, as a whole axis and drawn
_FAR = 10_000  # ranges start near smaller constants
_IGNORED = 0.2  # share of the ignored class
_ALONE = 0.2  # share of sizes of 1, at which some modes start elsewhere


@dataclass(frozen=True)
class Role:
    """What an input says about another value, the data, along one of its axes.

    The kind is ``index``, ``index of elements``, ``places`` (rows of indices, one for each axis from this one on),
    ``class`` (an index that is never negative), ``count``, ``pad``, ``parts`` (sizes that add up to the axis),
    ``shape``, ``new shape`` (one size may be -1), ``axes``, ``end``, ``diagonal``, ``step``, ``start`` (of a range),
    ``whole number`` (floats with whole values too), ``boxes`` (on pictures as large as the data or larger), or for
    Resize ``scales``, ``sizes`` or ``part`` (where the part starts and ends).

    Attributes:
        kind: see above.
        data: the other value.
        axis: the axis of the data.
        ignored: a class that the operator ignores; it may be fed too.
        is_distinct: whether no index may occur twice: when two write to one place, pages leave open which one stays.
    """

    kind: str
    data: str
    axis: int = 0
    ignored: int | None = None
    is_distinct: bool = False

    def length(self, shape: tuple[int, ...]) -> int:
        """The size of the data along the axis; 0 if it has no such axis."""
        return shape[self.axis] if -len(shape) <= self.axis < len(shape) else 0

    def values(
        self, of: tuple[int, ...] | None, shape: tuple[int, ...], rng: np.random.Generator, near: Sequence[float] = ()
    ) -> Array | None:
        """Possible values, as int64 or double, for data of the shape `of`; None if nothing is known.

        A range starts on either side of the numbers `near`.
        """
        if self.kind == "start":
            starts = [0.0, *(number for number in near if abs(number) < _FAR)]
            return rng.choice(np.array(starts), shape) + rng.integers(-18, 19, shape) / 2
        if self.kind == "pad":
            return _pads(of, shape, rng)
        if self.kind == "whole number":
            return rng.integers(-9, 10, shape)
        if self.kind == "step":
            return rng.choice(np.array([1, -1, 2, -2]), shape)
        if of is None:
            return None
        if self.kind in ("shape", "new shape"):
            return _new_shape(of, shape[0], rng, infer=self.kind == "new shape") if len(shape) == 1 else None
        if self.kind in _RESIZED:
            return _resizing(self.kind, of, rng) if shape == (len(of) * _RESIZED[self.kind],) else None
        if self.kind == "axes":
            count, is_from_end = prod(shape), bool(rng.integers(0, 2))
            if count > len(of):  # there are not so many; the source refuses one that is out of range
                return np.arange(count).reshape(shape)
            return (rng.permutation(len(of))[:count] - len(of) * is_from_end).reshape(shape)
        if self.kind == "boxes":
            corners = rng.random((*shape[:-1], 2, 2)) * (max(of) << rng.integers(0, 4))
            return np.sort(corners, -2).reshape(shape) if shape[-1:] == (4,) and max(of) else None
        if self.kind == "end":
            return rng.integers(-max(of, default=0) - 1, max(of, default=0) + 2, shape)
        if self.kind == "places":
            return self._places(of[self.axis :], shape, rng)
        length = self.length(of)
        if self.kind == "parts":
            return _parts(length, shape, rng)
        if self.is_distinct and length and len(shape) == len(of) and shape[self.axis] <= length:
            wide = list(shape)
            wide[self.axis] = length
            order = np.argsort(rng.random(wide), self.axis)
            return np.take(order, range(shape[self.axis]), self.axis) - length * rng.integers(0, 2, shape)
        ends = {"count": (1, length + 1), "class": (0, length), "diagonal": (-length, length + 1)}
        indices = rng.integers(*ends.get(self.kind, (-length, length)), shape) if length else None
        if indices is not None and self.ignored is not None:
            indices = np.where(rng.random(shape) < _IGNORED, self.ignored, indices)
        return indices

    def _places(self, sizes: tuple[int, ...], shape: tuple[int, ...], rng: np.random.Generator) -> Array | None:
        """Rows of indices, each column within its own axis, some of them negative."""
        columns = np.array(sizes[: shape[-1]] if shape else [])
        if not shape or len(columns) < shape[-1] or not columns.all():
            return None
        count, room = prod(shape[:-1]), prod(sizes[: shape[-1]])
        drawn = rng.choice(room, count, replace=not self.is_distinct or count > room)
        rows = np.stack(np.unravel_index(drawn, columns), -1) if shape[-1] else np.zeros((count, 0), np.int64)
        return rows.reshape(shape) - columns * rng.integers(0, 2, shape)


def _parts(length: int, shape: tuple[int, ...], rng: np.random.Generator) -> Array | None:
    """Sizes that add up to a length, some of them zero; for a scalar, the size of equal parts."""
    if not shape:
        return rng.integers(1, max(length, 1) + 1, shape)
    if len(shape) != 1 or (length and not shape[0]):
        return None
    ends = np.sort(rng.integers(0, length + 1, max(shape[0] - 1, 0)))
    return np.diff([0, *ends, length]) if shape[0] else np.zeros(0, np.int64)


def _resizing(kind: str, of: tuple[int, ...], rng: np.random.Generator) -> Array:
    """How to resize a value along all axes but the first two, which kernels do not resize."""
    kept = np.arange(len(of)) < min(2, len(of) - 1)
    if kind == "scales":
        return np.where(kept, 1.0, rng.choice(np.array([0.4, 0.6, 0.75, 1.5, 1.7, 2.0, 2.6, 3.0]), len(of)))
    if kind == "sizes":
        ends = np.where(rng.random(len(of)) < _ALONE, 2, 3 * np.array(of) + 2)
        return np.where(kept, of, rng.integers(1, ends))
    return np.concatenate([np.where(kept, end, rng.uniform(*ends, len(of))) for end, ends in _ENDS])


def _pads(of: tuple[int, ...] | None, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Pads from -1 to 2, mostly smaller than the size, as a reflection needs them."""
    pads = rng.integers(-1, 3, shape)
    if of is None or shape != (2 * len(of),) or rng.random() < 0.25:
        return pads
    return np.clip(pads, -np.tile(of, 2) // 2, np.maximum(np.tile(of, 2) - 1, 0))


def _new_shape(of: tuple[int, ...], length: int, rng: np.random.Generator, *, infer: bool) -> Array:
    """A shape of the given rank with as many elements as the data."""
    if length >= len(of):
        sizes = np.array([*of, *[1] * (length - len(of))], np.int64)
    else:
        sizes = np.array([*of[: length - 1], prod(of[length - 1 :])] if length else [], np.int64)
    if infer and sizes.size and sizes.all():
        sizes = rng.permutation(sizes)
        if rng.random() < 0.5:
            sizes[rng.integers(sizes.size)] = -1
        kept = [at for at, pair in enumerate(zip(sizes.tolist(), of, strict=False)) if pair[0] == pair[1]]
        if kept and rng.random() < 0.3:
            sizes[rng.choice(kept)] = 0  # which stands for the size of the data there
    return sizes


def roles_of(nodes: Iterable[NodeProto]) -> dict[str, Role]:
    """The roles of inputs by name, also behind operators that hand them on; takes the nodes from last to first."""
    roles: dict[str, Role] = {}
    for node in nodes:
        kind = "Upsample" if node.op_type == "Resize" and len(node.input) == 2 else row_of(node)
        row: Mapping[int, tuple[Any, ...]] = column("roles").get(kind, {})
        for place, (role_kind, attribute, default, *data) in row.items():
            axis = next((item.i for item in node.attribute if item.name == attribute), default)
            ignored = next((item.i for item in node.attribute if item.name == "ignore_index"), None)
            role = Role(role_kind, node.input[data[0] if data else 0], axis, ignored, _writes_once(node))
            roles.update((name, role) for name in node.input[place : place + 1] if name)
        handed_on = next((roles[name] for name in node.output if name in roles), None)
        if handed_on is None:
            continue
        is_of_elements = handed_on.kind in _OF_ELEMENTS
        if node.op_type in HANDING_ON or (is_of_elements and node.op_type in _TAKING):
            roles.setdefault(node.input[0], handed_on)
        elif is_of_elements and node.op_type in _JOINING:
            for name in node.input:
                roles.setdefault(name, handed_on)
    return roles


def _writes_once(node: NodeProto) -> bool:
    """Whether an operator writes each element of its data at most once, so that no index may occur twice."""
    reduces = any(item.name == "reduction" and item.s != b"none" for item in node.attribute)
    return node.op_type.startswith("Scatter") and not reduces
