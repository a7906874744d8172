"""How the inputs and attributes of each operator fit together: what no schema says.

A recipe takes a draft, which knows the schema, and gives it inputs and attributes. Operators without one are
elementwise: one input of any type and shape, and attributes by their schema.
"""

from tools.fuzz.recipes import (  # noqa: F401  (importing them registers their recipes)
    axes,
    control,
    elementwise,
    indexing,
    matrix,
    quantization,
    recurrent,
    sampling,
    sequences,
    shaping,
    signal,
    text,
    windows,
)
from tools.fuzz.recipes.registry import is_elementwise, recipe_of

__all__ = ["is_elementwise", "recipe_of"]
