"""How much memory a verification may take: for inputs, for a run, and for comparing results.

onnxruntime allocates from an arena of that size (`onnx_runtime`). For the reference evaluator,
`sizes.evaluator_bytes` says how much it needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto

from reducelower.verification.running.conditions import conditions
from reducelower.verification.running.source import CannotRunError

__all__ = [
    "TooLargeError",
    "allowed_bytes",
    "check_elements",
    "check_results",
    "held_bytes",
    "most_elements",
]

_GB = 1e9
_DRAWN = 12  # bytes to make one element of an input: a double, and its final type
_JUDGED = 64  # bytes to compare one element of a result


def allowed_bytes() -> float:
    """How many bytes a run may take under the current `Conditions`."""
    allowed = conditions().memory
    return float("inf") if allowed is None else allowed * _GB


def most_elements() -> int:
    """How many elements one input may have under the current `Conditions`."""
    return int(min(allowed_bytes() / _DRAWN, 1 << 40))


def check_elements(count: int) -> None:
    """Raise a TooLargeError for an input of too many elements."""
    if count > most_elements():
        raise TooLargeError.of(count * _DRAWN)


class TooLargeError(CannotRunError):
    """A run that takes more memory than is allowed; it says nothing against the model."""

    @staticmethod
    def of(count: float) -> TooLargeError:
        """The error for a run that takes at least so many bytes."""
        takes, allows = _shown(count), _shown(allowed_bytes())
        # The count is a lower bound. If it reads like the limit, do not show it: users would set it as the next limit.
        reason = (
            f"it takes at least {takes} of memory at these sizes, and --verify-memory allows {allows}"
            if takes != allows
            else f"it takes more memory at these sizes than the {allows} that --verify-memory allows"
        )
        return TooLargeError(reason, unsupported=True)


def _shown(count: float) -> str:
    return f"{count / _GB:.1f} GB" if count >= _GB / 10 else f"{count / 1e6:.0f} MB"


def held_bytes(values: Iterable[Any]) -> int:
    """The size of tensors, also in sequences."""
    return sum(
        value.nbytes if isinstance(value, np.ndarray) else held_bytes(value) if isinstance(value, list) else 0
        for value in values
    )


def check_results(results: Sequence[Any], model: ModelProto) -> None:
    """Raise a TooLargeError if comparing the results of a model takes too much.

    Outputs without a type do not count: `with_outputs` adds them, and they are not compared.
    """
    compared = (value for value, output in zip(results, model.graph.output, strict=True) if output.HasField("type"))
    count = _JUDGED * sum(map(_elements, compared))
    if count > allowed_bytes():
        raise TooLargeError.of(count)


def _elements(value: Any) -> int:
    """The number of elements of a tensor, or of all tensors in a sequence."""
    return sum(map(_elements, value)) if isinstance(value, list) else int(np.size(value))
