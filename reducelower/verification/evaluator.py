"""onnx's reference evaluator, with operators put right that it computes otherwise than their pages say (onnx 1.23).

Of what would take more than a few lines, `doubts.wrong_in_reference` says that it is no evidence.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from onnx.reference.ops import op_gather_elements, op_max_pool, op_pow

from reducelower.numerics.measure import Array

__all__ = ["Evaluator"]


class Pow(op_pow.Pow):
    """numpy takes the root for a power of one half, which is not the same of minus infinity (IEEE 754-2019, 9.2.1)."""

    def _run(self, a: Array, b: Array) -> tuple[Array]:
        with np.errstate(all="ignore"):
            found = np.where((a == -np.inf) & (b == 0.5), np.inf, np.power(a, b))
        return (found.astype(a.dtype),)


class GatherElements(op_gather_elements.GatherElements):
    """numpy chooses among 32 at most, takes real numbers alone, and wraps what is out of range."""

    def _run(self, data: Array, indices: Array, axis: int = 0) -> tuple[Array]:
        places: list[Any] = list(np.indices(indices.shape, sparse=True))
        places[axis] = indices
        return (data[tuple(places)],)


class MaxPool(op_max_pool.MaxPool):
    """Where all steps are one, it takes pads axis by axis, which come first before, then behind all axes."""

    def _run(self, x: Array, **said: Any) -> tuple[Array, ...]:  # type: ignore[override]
        found: tuple[Array, ...] = self._max_pool(x, **said)  # type: ignore[no-untyped-call]  # onnx leaves it untyped
        return found


class Evaluator(ReferenceEvaluator):
    """The evaluator, with these operators in functions and graphs inside, too."""

    def __init__(self, proto: Any, *, new_ops: list[type[OpRun]] | None = None, **given: Any) -> None:
        """Load a model, a graph or a function, as it does."""
        super().__init__(proto, new_ops=new_ops or [Pow, GatherElements, MaxPool], **given)
