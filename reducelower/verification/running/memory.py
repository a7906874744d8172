"""How much memory a verification may take: for inputs, for a run, and for comparing results.

onnxruntime allocates from an arena of that size. For the reference evaluator, `sizes.evaluator_bytes` says how much it
needs.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from onnx import ModelProto

from reducelower.verification.running.conditions import conditions
from reducelower.verification.running.source import CannotRunError, Session

__all__ = [
    "SHRINKING",
    "Judged",
    "TooLargeError",
    "allowed_bytes",
    "arena_exhausted",
    "check_elements",
    "held_bytes",
    "most_elements",
    "with_arena",
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


@dataclass(frozen=True)
class Judged:
    """A session that only returns results small enough to be compared.

    Outputs without a type do not count: `with_outputs` adds them, and they are not compared.
    """

    session: Session
    model: ModelProto

    @cached_property
    def _compared(self) -> list[int]:
        return [at for at, output in enumerate(self.model.graph.output) if output.HasField("type")]

    def run(self, feeds: Mapping[str, Any], timeout: float | None = None) -> list[Any]:
        """Run the session; a TooLargeError if comparing the results takes too much."""
        results = self.session.run(feeds, timeout)
        count = _JUDGED * sum(_elements(results[at]) for at in self._compared)
        if count > allowed_bytes():
            raise TooLargeError.of(count)
        return results


def _elements(value: Any) -> int:
    """The number of elements of a tensor, or of all tensors in a sequence."""
    return sum(map(_elements, value)) if isinstance(value, list) else int(np.size(value))


# A session of onnxruntime uses the arena that was registered last in the process, so one session is made at a time.
_registering = threading.Lock()
SHRINKING = "memory.enable_memory_arena_shrinkage", "cpu:0"
"""Option of a run: at its end, the arena gives back what is unused."""


def _renew() -> None:
    global _registering
    _registering = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)  # the child lacks the thread that may hold the lock


@contextmanager
def with_arena(options: Any, weights: int) -> Iterator[None]:
    """Let the session that is made in the block allocate as much as a run may take, and its weights.

    Args:
        options: of the session.
        weights: the bytes of the weights that it copies.
    """
    import onnxruntime

    allowed = allowed_bytes()
    with _registering:
        if np.isfinite(allowed):
            arena = {"max_mem": int(allowed) + weights, "arena_extend_strategy": _AS_REQUESTED}
            place = onnxruntime.OrtMemoryInfo(
                "Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
            )
            onnxruntime.create_and_register_allocator(place, onnxruntime.OrtArenaCfg(arena))
            options.add_session_config_entry("session.use_env_allocators", "1")
        else:
            options.enable_cpu_mem_arena = False  # the arena takes up to twice what a run needs, and keeps it
        yield


_AS_REQUESTED = 1
"""The arena grows by the requested size instead of doubling."""
_EXHAUSTED = re.compile(r"Available memory of (\d+) is smaller than requested bytes of (\d+)")


def arena_exhausted(message: str) -> TooLargeError | None:
    """The error for a message of onnxruntime that says that the arena is exhausted; None for other messages."""
    match = _EXHAUSTED.search(message)
    return TooLargeError.of(allowed_bytes() - int(match[1]) + int(match[2])) if match else None
