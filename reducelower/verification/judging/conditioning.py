"""What rounding alone may do to each element of a result, found by moving the inputs in their last places."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, helper

from reducelower.model.graph import subgraphs
from reducelower.model.numbers import FLOATS, HALVES
from reducelower.numerics.measure import Array, Difference, is_float, measure, smallest_and_eps
from reducelower.numerics.tolerance import Tolerance
from reducelower.verification.operators import of_kind
from reducelower.verification.regions.numbering import opsets_of
from reducelower.verification.regions.places import Place
from reducelower.verification.running.runtimes import Session, try_run

__all__ = ["DRAWS", "Move", "disturbed", "disturbed_inside", "explained", "moved_by", "widened", "widened_all"]

_SENSITIVITY = 16.0  # a rewrite may disturb more places than the inputs alone
_STEPS = np.array([-2.0, -1.0, 1.0, 2.0])  # ULP
DRAWS = 4
"""How many times values are moved: by chance one draw may leave an element where it is."""
_MOST_FLIPPED = 0.01
_MASKS = 12  # from this opset version on, Dropout takes whether it is training


_WAVES = of_kind("summing waves")
"""Operators whose results are sums over a whole axis, most of which cancel out."""


@dataclass(frozen=True)
class Move:
    """How far each element of a tensor moves, at most, when last places change.

    A share of the elements may be `flipped`: off by what the farthest moved, though they did not move themselves.
    """

    reach: Array
    flipped: float = _MOST_FLIPPED


def disturbed(feeds: Mapping[str, Any], seed: Sequence[int]) -> Iterator[dict[str, Any]]:
    """The same inputs with every float moved by one or two last places, several times over."""
    if not any(isinstance(value, np.ndarray) and is_float(value) and value.size for value in feeds.values()):
        return
    for draw in range(DRAWS):
        rng = np.random.default_rng([*seed, draw, 1])
        yield {name: _moved(value, rng) for name, value in feeds.items()}


def _moved(value: Any, rng: np.random.Generator) -> Any:
    if not (isinstance(value, np.ndarray) and is_float(value)):
        return value
    _, eps, _ = smallest_and_eps(value.dtype)
    wide = value.astype(np.float64 if value.dtype.itemsize < 8 else np.longdouble)
    with np.errstate(all="ignore"):
        return (wide * (1 + eps * rng.choice(_STEPS, value.shape))).astype(value.dtype)


def disturbed_inside(model: ModelProto, values: Collection[tuple[Place, str]]) -> ModelProto | None:
    """The same model with floats that it computes moved by up to two last places, otherwise each time it is run.

    The values to move are names, each with the graph that computes it; None where none of them is a float.
    """
    wanted: dict[int, dict[str, int]] = {}
    for place, name in values:
        known = place.type_of(name)
        if known is not None and known[0] in FLOATS and name in place.positions:
            wanted.setdefault(id(place.holder), {})[name] = known[0]
    if not wanted:
        return None
    copied = deepcopy(model)
    _disturb(model.graph, copied.graph, wanted, opsets_of(model).get("", 1))
    for original, copy in zip(model.functions, copied.functions, strict=True):
        _disturb(original, copy, wanted, opsets_of(original).get("", 1))
    return copied


def _disturb(
    original: GraphProto | FunctionProto,
    copy: GraphProto | FunctionProto,
    wanted: Mapping[int, Mapping[str, int]],
    opset: int,
) -> None:
    for before, after in zip(original.node, copy.node, strict=True):
        inner = zip(subgraphs(before), subgraphs(after), strict=True)
        for (_, _, graph), (_, _, other) in inner:
            _disturb(graph, other, wanted, opset)
    types = wanted.get(id(original), {})
    if not types:
        return
    nodes: list[NodeProto] = []
    for node in copy.node:
        nodes.append(node)
        for at, name in enumerate(node.output):
            if name in types:
                node.output[at] = f"{name}/exact"
                _, eps, _ = smallest_and_eps(np.dtype(helper.tensor_dtype_to_np_dtype(types[name])))
                nodes += _moving(name, types[name], opset, len(nodes), 2 * eps, is_wave=node.op_type in _WAVES)
    del copy.node[:]
    copy.node.extend(nodes)


def _moving(
    name: str, element_type: int, opset: int, seed: int, span: float, *, is_wave: bool = False
) -> list[NodeProto]:
    """Nodes that give a value with each of its floats moved by up to a share of it, or of the largest one of a wave."""
    exact, share, factor, wide = (f"{name}/{word}" for word in ("exact", "share", "factor", "wide"))
    if element_type in HALVES:  # few kernels take them
        inner = _moving(wide, TensorProto.FLOAT, opset, seed, span, is_wave=is_wave)
        widening = helper.make_node("Cast", [exact], [f"{wide}/exact"], to=TensorProto.FLOAT)
        return [widening, *inner, helper.make_node("Cast", [wide], [name], to=element_type)]
    last = _moved_wave(name) if is_wave else [helper.make_node("Mul", [exact, factor], [name])]
    if opset < _MASKS:
        drawn = helper.make_node("RandomUniformLike", [exact], [share], low=-span, high=span, seed=float(seed))
        return [drawn, helper.make_node("Exp", [share], [factor]), *last]
    # onnxruntime has no RandomUniformLike of today, but the mask of a Dropout is as random.
    settings = {"half": (element_type, 0.5), "true": (TensorProto.BOOL, True)}
    settings |= {"up": (element_type, 1 + span), "down": (element_type, 1 - span)}
    constants = [
        helper.make_node("Constant", [], [f"{name}/{word}"], value=helper.make_tensor("", kind, [], [value]))
        for word, (kind, value) in settings.items()
    ]
    ratio, training, up, down = (f"{name}/{word}" for word in settings)
    drawn = helper.make_node("Dropout", [exact, ratio, training], [f"{name}/dropped", share], seed=seed)
    return [*constants, drawn, helper.make_node("Where", [share, up, down], [factor]), *last]


def _moved_wave(name: str) -> list[NodeProto]:
    """Nodes that move a value by as much as the largest one: the products that make it may add up to zero."""
    exact, factor, size, top, moved, change = (
        f"{name}/{word}" for word in ("exact", "factor", "size", "top", "moved", "change")
    )
    return [
        helper.make_node("Abs", [exact], [size]),
        helper.make_node("ReduceMax", [size], [top], keepdims=1),
        helper.make_node("Mul", [top, factor], [moved]),
        helper.make_node("Sub", [moved, top], [change]),
        helper.make_node("Add", [exact, change], [name]),
    ]


def widened(moves: dict[str, Move], name: str, before: Array, after: Array) -> None:
    """Note how far the elements of one tensor moved, if that is farther than before."""
    if before.shape != after.shape or not (is_float(before) or before.dtype.kind in "iu"):
        return
    wide = np.longdouble if before.dtype.itemsize == 8 else np.float64
    with np.errstate(all="ignore"):
        move = np.abs(before.astype(wide) - after.astype(wide))
    # A value that a last place turns into an infinity excuses nothing.
    move = np.where(np.isfinite(move), move, 0)
    moves[name] = Move(np.maximum(moves[name].reach, move) if name in moves else move)


def moved_by(
    session: Session, feeds: Mapping[str, Any], results: Sequence[Any], seed: Sequence[int], draws: int = DRAWS
) -> dict[str, Move]:
    """How far the elements of each result move, by the number of the result, when inputs are moved so many times."""
    moves: dict[str, Move] = {}
    for other in islice(disturbed(feeds, seed), draws):
        again = try_run(session, other)
        if again is not None:
            widened_all(moves, results, again)
    return moves


def widened_all(moves: dict[str, Move], before: Sequence[Any], after: Sequence[Any]) -> None:
    """The same of every result, by its number."""
    for at, (left, right) in enumerate(zip(before, after, strict=True)):
        if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
            widened(moves, str(at), left, right)


def explained(before: Array, after: Array, tolerance: Tolerance, move: Move | None) -> Difference:
    """Measure again with what the source's own conditioning allows each element.

    An element may be off by a multiple of what last places do to itself. Beyond that, only a small share may be off by
    what they do to the element they move most: where a value is rounded to a step, another form may round to the
    neighbouring one.
    """
    if move is None or move.reach.shape != before.shape or not np.any(move.reach > 0):
        return measure(before, after, tolerance)
    exact = not is_float(before)
    found = measure(before, after, tolerance, allowance=move.reach if exact else _SENSITIVITY * move.reach)
    if not found.mismatch or found.elements is None or found.lost:
        return found
    farthest = measure(before, after, tolerance, allowance=move.reach.max())
    few = found.outside <= move.flipped * before.size
    return farthest if few and not farthest.mismatch else found
