"""What inputs may be that say where, how many or what shape: the possible values of such inputs of a region."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from onnx import NodeProto

from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.numerics.measure import Array
from reducelower.verification.operators import column, of_kind

__all__ = ["HANDING_ON", "Role", "roles_of", "vectors"]

HANDING_ON = of_kind("converting")
"""What they give is what they are given, in another type or shape."""

_TAKING = of_kind("taking")
_JOINING = of_kind("joining")

# What each element says by itself, whatever stands beside it.
_OF_ELEMENTS = frozenset({"class", "count", "diagonal", "end", "index", "index of elements", "whole number"})

_RESIZED = {"part": 2, "scales": 1, "sizes": 1}  # numbers for each axis
_ENDS = (0.0, (0.0, 0.4)), (1.0, (0.6, 1.2))
_FAR = 10_000
_IGNORED = 0.2  # of the classes
_DOMAINS = DEFAULT_DOMAINS | {"ai.onnx.ml"}


@dataclass(frozen=True)
class Role:
    """What an input says of another value, the data, along one of its axes.

    The kind is ``index``, ``index of elements``, ``places`` (rows of indices, one for each axis from this one on),
    ``class`` (an index that does not count from the back), ``count``, ``pad``, ``parts`` (sizes that make up an
    axis), ``shape``, ``new shape`` (one size of which may be left to be inferred), ``axes``, ``end``, ``diagonal``,
    ``step``, ``start`` (of a range), ``grid`` (sizes of one for each matrix), ``whole number`` (which floats may be
    too), ``share`` (more than none and less than all), or what Resize takes: ``scales``, ``sizes`` or ``part`` (from
    where to where). A class may be the one that
    the operator is told to ignore, too. Distinct are indices that are written to: pages leave open what is there
    where two are the same.
    """

    kind: str
    data: str
    axis: int = 0
    ignored: int | None = None
    is_distinct: bool = False

    def length(self, shape: tuple[int, ...]) -> int:
        """The size of the other value along the axis; 0 where it has no such axis."""
        return shape[self.axis] if -len(shape) <= self.axis < len(shape) else 0

    def values(
        self, of: tuple[int, ...] | None, shape: tuple[int, ...], rng: np.random.Generator, held: Sequence[float] = ()
    ) -> Array | None:
        """Possible values of a shape, as int64 or double, for data of a shape; None where nothing is known.

        A range starts on either side of what is `held`.
        """
        if self.kind == "start":
            near = [0.0, *(number for number in held if abs(number) < _FAR)]
            return rng.choice(np.array(near), shape) + rng.integers(-18, 19, shape) / 2
        if self.kind == "pad":
            return _pads(of, shape, rng)
        if self.kind == "whole number":
            return rng.integers(-9, 10, shape)
        if self.kind == "step":
            return rng.choice(np.array([1, -1, 2, -2]), shape)
        if self.kind == "share":
            return rng.choice(np.array([0.25, 0.5, 0.75]), shape)
        if of is None:
            return None
        if self.kind in ("shape", "new shape"):
            return _new_shape(of, shape[0], rng, infer=self.kind == "new shape") if len(shape) == 1 else None
        if self.kind == "grid":
            return np.array([*of[:1], *rng.integers(1, 6, shape[0] - 1)]) if len(shape) == 1 and shape[0] else None
        if self.kind in _RESIZED:
            return _resized(self.kind, of, rng) if shape == (len(of) * _RESIZED[self.kind],) else None
        if self.kind == "axes":
            axes = rng.permutation(len(of))[: prod(shape)] - len(of) * rng.integers(0, 2)
            return axes.reshape(shape) if axes.size == prod(shape) else None
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
        found = rng.integers(*ends.get(self.kind, (-length, length)), shape) if length else None
        if found is not None and self.ignored is not None:
            found = np.where(rng.random(shape) < _IGNORED, self.ignored, found)
        return found

    def _places(self, sizes: tuple[int, ...], shape: tuple[int, ...], rng: np.random.Generator) -> Array | None:
        """Rows of indices, each column within its own axis, counted from either end."""
        columns = np.array(sizes[: shape[-1]] if shape else [])
        if not shape or len(columns) < shape[-1] or not columns.all():
            return None
        count, room = prod(shape[:-1]), prod(sizes[: shape[-1]])
        drawn = rng.choice(room, count, replace=not self.is_distinct or count > room)
        rows = np.stack(np.unravel_index(drawn, columns), -1) if shape[-1] else np.zeros((count, 0), np.int64)
        return rows.reshape(shape) - columns * rng.integers(0, 2, shape)


def _parts(length: int, shape: tuple[int, ...], rng: np.random.Generator) -> Array | None:
    """So many sizes that make up a length, some of them zero; or one size, of equal parts."""
    if not shape:
        return rng.integers(1, max(length, 1) + 1, shape)
    if len(shape) != 1 or (length and not shape[0]):
        return None
    ends = np.sort(rng.integers(0, length + 1, max(shape[0] - 1, 0)))
    return np.diff([0, *ends, length]) if shape[0] else np.zeros(0, np.int64)


def _resized(kind: str, of: tuple[int, ...], rng: np.random.Generator) -> Array:
    """How to resize a value along all axes but the first two, of which kernels take no other size."""
    kept = np.arange(len(of)) < min(2, len(of) - 1)
    if kind == "scales":
        return np.where(kept, 1.0, rng.choice(np.array([0.4, 0.6, 0.75, 1.5, 1.7, 2.0, 2.6, 3.0]), len(of)))
    if kind == "sizes":
        return np.where(kept, of, rng.integers(1, 3 * np.array(of) + 2))
    return np.concatenate([np.where(kept, end, rng.uniform(*ends, len(of))) for end, ends in _ENDS])


def _pads(of: tuple[int, ...] | None, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """From -1 to 2, and most often less than the size, which a reflection needs."""
    found = rng.integers(-1, 3, shape)
    if of is None or shape != (2 * len(of),) or rng.random() < 0.25:
        return found
    return np.clip(found, -np.tile(of, 2) // 2, np.maximum(np.tile(of, 2) - 1, 0))


def _new_shape(of: tuple[int, ...], length: int, rng: np.random.Generator, *, infer: bool) -> Array:
    """A shape of as many elements in so many dimensions."""
    if length >= len(of):
        sizes = np.array([*of, *[1] * (length - len(of))], np.int64)
    else:
        sizes = np.array([*of[: length - 1], prod(of[length - 1 :])] if length else [], np.int64)
    if infer and sizes.size and sizes.all():
        sizes = rng.permutation(sizes)
        if rng.random() < 0.5:
            sizes[rng.integers(sizes.size)] = -1
    return sizes


def vectors(nodes: Iterable[NodeProto]) -> set[str]:
    """What has a number for each channel, which kernels take in other ranks, too, and read otherwise."""
    known = ((node, column("of_channels").get(node.op_type)) for node in nodes if node.domain in DEFAULT_DOMAINS)
    return {name for node, places in known if places is not None for name in node.input[places] if name}


def roles_of(nodes: Iterable[NodeProto]) -> dict[str, Role]:
    """By name, what the inputs of nodes say, also through what hands them on; the nodes from last to first."""
    found: dict[str, Role] = {}
    for node in nodes:
        if node.domain not in _DOMAINS:
            continue
        kind = "Upsample" if node.op_type == "Resize" and len(node.input) == 2 else node.op_type
        known: Mapping[int, tuple[str, str, int]] = column("roles").get(kind, {})
        for place, (what, attribute, default) in known.items():
            axis = next((item.i for item in node.attribute if item.name == attribute), default)
            ignored = next((item.i for item in node.attribute if item.name == "ignore_index"), None)
            role = Role(what, node.input[0], axis, ignored, _writes_once(node))
            found.update((name, role) for name in node.input[place : place + 1] if name)
        told = next((found[name] for name in node.output if name in found), None)
        if told is not None and (node.op_type in HANDING_ON or (node.op_type in _TAKING and _is_of_elements(told))):
            found.setdefault(node.input[0], told)
        elif told is not None and node.op_type in _JOINING and _is_of_elements(told):
            for name in node.input:
                found.setdefault(name, told)
    return found


def _writes_once(node: NodeProto) -> bool:
    """Whether an operator writes to places in data, of which none may be named twice."""
    reduces = any(item.name == "reduction" and item.s != b"none" for item in node.attribute)
    return node.op_type.startswith("Scatter") and not reduces


def _is_of_elements(role: Role) -> bool:
    return role.kind in _OF_ELEMENTS
