"""Sequences and optional values."""

from __future__ import annotations

import numpy as np

from reducelower.model.schemas import element_type_name, parse_element_type
from tools.fuzz.drawing import Draft
from tools.fuzz.recipes.registry import recipe
from tools.fuzz.values import draw_values

_ELEMENTS = ("float", "float", "int64", "double", "int32", "bool", "float16")


def _sequence(draft: Draft, low: int = 0, high: int = 3) -> tuple[int, list[np.ndarray]]:
    """Set a sequence of one to three tensors of one rank as the first input; returns its element type too."""
    element_type = parse_element_type(draft.pick(_ELEMENTS))
    draft.types["S"] = f"seq(tensor({element_type_name(element_type)}))"
    shape = draft.shape(low, high)
    tensors = [draw_values(draft.rng, element_type, shape, edge=draft.edge) for _ in range(draft.integer(1, 3))]
    draft.give(0, tensors)
    return element_type, tensors


def _position(draft: Draft, at: int, low: int, high: int) -> None:
    draft.types["I"] = draft.pick(("tensor(int64)", "tensor(int32)"))
    draft.whole(at, np.asarray(draft.integer(low, high)))


@recipe("SequenceConstruct")
def construct(draft: Draft) -> None:
    first = draft.data(0)
    for position in range(1, draft.integer(1, 3)):
        draft.tensor(position, first.shape)
    draft.types["S"] = f"seq({draft.types['T']})"


@recipe("SequenceEmpty")
def empty(draft: Draft) -> None:
    element_type = parse_element_type("float")
    if draft.flip():
        element_type = draft.attributes["dtype"] = parse_element_type(draft.pick(_ELEMENTS))
    draft.types["S"] = f"seq(tensor({element_type_name(element_type)}))"


@recipe("SequenceAt")
def at(draft: Draft) -> None:
    element_type, tensors = _sequence(draft)
    _position(draft, 1, -len(tensors), len(tensors) - 1)
    draft.types["T"] = f"tensor({element_type_name(element_type)})"


@recipe("SequenceErase")
def erase(draft: Draft) -> None:
    _, tensors = _sequence(draft)
    if draft.flip():
        _position(draft, 1, -len(tensors), len(tensors) - 1)


@recipe("SequenceLength")
def length(draft: Draft) -> None:
    _sequence(draft)
    draft.types["I"] = "tensor(int64)"


@recipe("ConcatFromSequence")
def concat_from_sequence(draft: Draft) -> None:
    element_type, tensors = _sequence(draft, 1)
    draft.types["T"] = f"tensor({element_type_name(element_type)})"
    new_axis = draft.maybe("new_axis", (0, 1), 0)
    rank = tensors[0].ndim + new_axis
    draft.attributes["axis"] = draft.integer(-rank, rank - 1)


@recipe("Optional")
def optional(draft: Draft) -> None:
    element_type = parse_element_type(draft.pick(_ELEMENTS))
    name = element_type_name(element_type)
    draft.types.update(V=f"tensor({name})", O=f"optional(tensor({name}))")
    draft.tensor(0, draft.shape(0, 3))
