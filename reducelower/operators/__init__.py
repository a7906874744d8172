"""What operators other than Reduce need at their boundaries: one module per family.

Importing this package registers every rewrite.
"""

from __future__ import annotations

from reducelower.operators import (
    activations,
    arithmetic,
    axes,
    batch_normalization,
    clipping,
    control,
    dropout,
    functions,
    indexing,
    interpolation,
    layer_normalization,
    like,
    ordering,
    padding,
    pooling,
    quantization,
    ramps,
    rearranging,
    recurrent,
    resize,
    sampling,
    shaping,
    slicing,
    softmax,
    splitting,
    topk,
)

__all__ = [
    "activations",
    "arithmetic",
    "axes",
    "batch_normalization",
    "clipping",
    "control",
    "dropout",
    "functions",
    "indexing",
    "interpolation",
    "layer_normalization",
    "like",
    "ordering",
    "padding",
    "pooling",
    "quantization",
    "ramps",
    "rearranging",
    "recurrent",
    "resize",
    "sampling",
    "shaping",
    "slicing",
    "softmax",
    "splitting",
    "topk",
]
