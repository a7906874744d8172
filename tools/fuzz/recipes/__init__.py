"""How the inputs and attributes of each operator fit together, which no schema says.

A recipe gets a draft, which has the schema, and sets its inputs and attributes. Operators without a recipe are
elementwise: one input of any type and shape, and attributes by their schema.
"""

from tools.fuzz.recipes import (  # noqa: F401  (importing them registers their recipes)
    axes,
    by_case,
    casts,
    elementwise,
    matrix,
    recurrent,
    sampling,
    sequences,
    shaping,
    windows,
)
from tools.fuzz.recipes.registry import is_elementwise, recipe_of

__all__ = ["is_elementwise", "recipe_of"]
