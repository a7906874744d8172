"""What operators need at boundaries that is not text: a module per family, imported for what a model has.

Each names the pages it follows and their versions; that of an operator is https://onnx.ai/onnx/operators/onnx__NAME.html.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module

__all__ = ["FAMILIES", "load"]

FAMILIES: Mapping[str, str] = {
    "affine_grid": "AffineGrid",
    "control": "If Loop Scan",
    "convolution": "Col2Im DeformConv",
    "einsum": "Einsum",
    "elementwise": "Cast CastLike",
    "fourier": "DFT STFT",
    "pooling": "AveragePool LpPool MaxPool",
    "resize": "Resize Upsample",
    "sampling": "GridSample",
    "shaping": "Reshape Split",
}
"""The operators that each module registers rewrites for."""


@cache
def _families() -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for family, op_types in FAMILIES.items():
        for op_type in op_types.split():
            found.setdefault(op_type, []).append(family)
    return found


@cache
def load(op_type: str) -> None:
    """Import the modules that register rewrites for an operator, so that it can be looked up among them."""
    for family in _families().get(op_type, ()):
        import_module(f"{__name__}.{family}")
