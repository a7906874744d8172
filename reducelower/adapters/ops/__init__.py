"""Rewrites that are not text: a module for each family of operators, imported if a model has one of them.

Each names the pages that it follows, with versions; an operator's is https://onnx.ai/onnx/operators/onnx__NAME.html.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module

__all__ = ["FAMILIES", "load"]

FAMILIES: Mapping[str, str] = {
    "constants": "Constant",
    "control": "If Loop Scan",
    "convolution": "Col2Im DeformConv",
    "einsum": "Einsum",
    "elementwise": "Cast CastLike",
    "fourier": "DFT MelWeightMatrix STFT",
    "pooling": "AveragePool LpPool MaxPool",
    "resize": "Resize",
    "sampling": "GridSample",
    "shaping": "Reshape Split",
}
"""The operators that each module registers rules for."""


@cache
def _families() -> Mapping[str, list[str]]:
    families: dict[str, list[str]] = {}
    for family, op_types in FAMILIES.items():
        for op_type in op_types.split():
            families.setdefault(op_type, []).append(family)
    return families


@cache
def load(op_type: str) -> None:
    """Import the modules that register rules for an operator."""
    for family in _families().get(op_type, ()):
        import_module(f"{__name__}.{family}")
