"""Recipes by operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tools.fuzz.drawing import Draft

__all__ = ["Recipe", "is_elementwise", "recipe", "recipe_of"]

Recipe: TypeAlias = Callable[[Draft], None]

_RECIPES: dict[str, Recipe] = {}


def recipe(*op_types: str) -> Callable[[Recipe], Recipe]:
    """Register how nodes of some operators are drawn."""

    def register(made: Recipe) -> Recipe:
        for op_type in op_types:
            assert op_type not in _RECIPES, op_type
            _RECIPES[op_type] = made
        return made

    return register


def is_elementwise(op_type: str) -> bool:
    """Whether an operator has no recipe of its own, so that it is elementwise."""
    return op_type not in _RECIPES


def recipe_of(op_type: str) -> Recipe:
    """The recipe of an operator; by default that of elementwise operators."""
    return _RECIPES.get(op_type, _elementwise)


def _elementwise(draft: Draft) -> None:
    draft.data(0)
