"""How much memory a verification may take: for what is made, for what a run allocates, and for what is compared.

onnxruntime allocates from an arena that ends there. What the reference evaluator takes, inference tells (`counted`).
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
    "check_elements",
    "held_bytes",
    "most_elements",
    "of_arena",
    "with_arena",
]

_GB = 1e9
_DRAWN = 12  # bytes for each element of an input that is made: a double, and what becomes of it
_JUDGED = 64  # bytes for each element of a result that is compared


def allowed_bytes() -> float:
    """How many bytes a run may take now."""
    allowed = conditions().memory
    return float("inf") if allowed is None else allowed * _GB


def most_elements() -> int:
    """How many elements of one input may be made now."""
    return int(min(allowed_bytes() / _DRAWN, 1 << 40))


def check_elements(count: int) -> None:
    """Raise a TooLargeError where an input of so many elements is not made."""
    if count > most_elements():
        raise TooLargeError.of(count * _DRAWN)


class TooLargeError(CannotRunError):
    """A run that takes more memory than is allowed; it says nothing against the model."""

    @staticmethod
    def of(count: float) -> TooLargeError:
        """For what takes so many bytes, or more."""
        takes, allows = _shown(count), _shown(allowed_bytes())
        # What is known is a lower bound: where it reads like what is allowed, it would be given as the next limit.
        reason = (
            f"it takes at least {takes} of memory at these sizes, and --verify-memory allows {allows}"
            if takes != allows
            else f"it takes more memory at these sizes than the {allows} that --verify-memory allows"
        )
        return TooLargeError(reason, unsupported=True)


def _shown(count: float) -> str:
    return f"{count / _GB:.1f} GB" if count >= _GB / 10 else f"{count / 1e6:.0f} MB"


def held_bytes(values: Iterable[Any]) -> int:
    """How much tensors take, and those in sequences."""
    return sum(
        value.nbytes if isinstance(value, np.ndarray) else held_bytes(value) if isinstance(value, list) else 0
        for value in values
    )


@dataclass(frozen=True)
class Judged:
    """A session whose results are small enough to be compared.

    What is only looked at was made an output without a type (`giving`), and is not.
    """

    session: Session
    model: ModelProto

    @cached_property
    def _compared(self) -> list[int]:
        return [at for at, output in enumerate(self.model.graph.output) if output.HasField("type")]

    def run(self, feeds: Mapping[str, Any], timeout: float | None = None) -> list[Any]:
        """As the session; a TooLargeError where to compare the results takes too much."""
        results = self.session.run(feeds, timeout)
        count = _JUDGED * sum(_elements(results[at]) for at in self._compared)
        if count > allowed_bytes():
            raise TooLargeError.of(count)
        return results


def _elements(value: Any) -> int:
    """How many elements a tensor has, or those of a sequence have together."""
    return sum(map(_elements, value)) if isinstance(value, list) else int(np.size(value))


# onnxruntime takes the arena of a session from the process, where the last that was registered stands.
_registering = threading.Lock()
SHRINKING = "memory.enable_memory_arena_shrinkage", "cpu:0"
"""For the options of a run: what the arena holds and nothing uses is given back at its end."""


def _renew() -> None:
    global _registering
    _registering = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)  # a thread that had it is not there


@contextmanager
def with_arena(options: Any, weights: int) -> Iterator[None]:
    """Let the session that is made meanwhile allocate what a run may take now, and its weights.

    Args:
        options: of the session.
        weights: how many bytes the weights take that it copies.
    """
    import onnxruntime

    allowed = allowed_bytes()
    with _registering:
        if np.isfinite(allowed):
            arena = {"max_mem": int(allowed) + weights, "arena_extend_strategy": _AS_ASKED}
            place = onnxruntime.OrtMemoryInfo(
                "Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
            )
            onnxruntime.create_and_register_allocator(place, onnxruntime.OrtArenaCfg(arena))
            options.add_session_config_entry("session.use_env_allocators", "1")
        else:
            options.enable_cpu_mem_arena = False  # which takes up to twice of what a run needs, and keeps it
        yield


_AS_ASKED = 1
"""The arena grows by what is asked for, rather than to twice its size."""
_EXHAUSTED = re.compile(r"Available memory of (\d+) is smaller than requested bytes of (\d+)")


def of_arena(message: str) -> TooLargeError | None:
    """What a message of onnxruntime says, if it is that the arena is exhausted."""
    found = _EXHAUSTED.search(message)
    return TooLargeError.of(allowed_bytes() - int(found[1]) + int(found[2])) if found else None
