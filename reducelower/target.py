"""A target: what is legal where the model is going."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reducelower.runtimes import Runtime

__all__ = ["Target"]


@dataclass(frozen=True)
class Target:
    """What is legal on the runtime a model is for.

    Attributes:
        opset: opset version of the default domain; None keeps the model's own.
        without: operator types of the default domain that must not remain, such as ``{"ReduceLogSumExp"}``.
        without_types: names of element types (``"double"``, ``"bfloat16"``, as ONNX writes them) that nothing the
            tool adds may use.
        runtime: the runtime that the model is for, from a target file; nodes that come out wrong there or are refused
            are replaced by equivalent ones. Without an opset the model keeps its own or comes to the runtime's
            preferred one, whichever takes fewer rewrites.
    """

    opset: int | None = None
    without: frozenset[str] = frozenset()
    without_types: frozenset[str] = frozenset()
    runtime: Runtime | None = None
