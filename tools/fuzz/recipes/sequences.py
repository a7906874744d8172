"""Sequences and optional values."""

from __future__ import annotations

import numpy as np

from reducelower.model.schemas import element_type_name, parse_element_type
from tools.fuzz.drawing import Draft
from tools.fuzz.recipes.registry import recipe
from tools.fuzz.values import draw_values

_ELEMENTS = ("float", "float", "int64", "double", "int32", "bool", "float16")


def _element_type(draft: Draft) -> int:
    """An element type of a sequence, and of what it holds."""
    element_type = parse_element_type(draft.pick(_ELEMENTS))
    name = element_type_name(element_type)
    draft.types.update(
        S=f"seq(tensor({name}))", T=f"tensor({name})", V=f"tensor({name})", O=f"optional(tensor({name}))"
    )
    return element_type


@recipe("SequenceConstruct")
def construct(draft: Draft) -> None:
    first = draft.data(0)
    for position in range(1, draft.integer(1, 3)):
        draft.tensor(position, first.shape)
    draft.types["S"] = f"seq({draft.types['T']})"


@recipe("SequenceEmpty")
def empty(draft: Draft) -> None:
    draft.attributes["dtype"] = _element_type(draft)


@recipe("SequenceAt", "SequenceErase", "SequenceLength", "ConcatFromSequence")
def of_sequence(draft: Draft) -> None:
    """One to three tensors of one shape, and a position or an axis."""
    name = draft.schema.name
    element_type, shape = _element_type(draft), draft.shape(int(name == "ConcatFromSequence"), 3)
    count = draft.integer(1, 3)
    draft.give(0, [draw_values(draft.rng, element_type, shape, edge=draft.edge) for _ in range(count)])
    draft.types["I"] = "tensor(int64)"
    if name == "ConcatFromSequence":
        rank = len(shape) + draft.maybe("new_axis", (0, 1), 0)
        draft.attributes["axis"] = draft.integer(-rank, rank - 1)
    elif name == "SequenceAt" or (name == "SequenceErase" and draft.flip()):
        draft.whole(1, np.asarray(draft.integer(-count, count - 1)))


@recipe("Optional")
def optional(draft: Draft) -> None:
    _element_type(draft)
    draft.tensor(0, draft.shape(0, 3))
