"""A target: what is legal where the model is going."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Target"]


@dataclass(frozen=True)
class Target:
    """What is legal on the runtime a model is for.

    Attributes:
        opset: opset version of the default domain; None keeps the model's own.
        without: operator types of the default domain that must not remain, such as ``{"ReduceLogSumExp"}``.
        without_types: names of element types (``"double"``, ``"bfloat16"``, as ONNX writes them) that nothing the
            tool adds may use.
    """

    opset: int | None = None
    without: frozenset[str] = frozenset()
    without_types: frozenset[str] = frozenset()
