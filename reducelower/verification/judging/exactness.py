"""Whether the sides of a region round at all on some inputs: where they do not, no rounding explains a difference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from onnx import ModelProto

from reducelower.numerics.measure import Array, is_float
from reducelower.verification.running.runtimes import OnnxRuntime, Session, try_load, try_run
from reducelower.verification.running.source import Source, giving
from reducelower.verification.running.wider import InDouble

__all__ = ["Exactness"]


@dataclass
class _Steps:
    """A model that gives whatever it computes, in its own types and in double."""

    model: ModelProto

    @cached_property
    def _sessions(self) -> tuple[Session, Session] | None:
        made = dict.fromkeys(name for node in self.model.graph.node for name in node.output if name)
        shown = giving(self.model, made)
        wide = InDouble.of(shown)
        own = None if wide is None else try_load(OnnxRuntime(), Source(shown))
        return None if own is None or wide is None else (own, wide)

    def are_exact(self, feeds: Mapping[str, Any]) -> bool:
        """Whether every value is the same in double."""
        own, wide = (try_run(session, feeds) for session in self._sessions or (None, None))
        if own is None or wide is None:
            return False
        return all(_is_same(one, other) for one, other in zip(own, wide, strict=True))


class Exactness:
    """Both sides of a region step by step, loaded when first asked."""

    def __init__(self, sides: Iterable[ModelProto], runtimes: Sequence[str]) -> None:
        """Take the sides and the names of the runtimes that ran them; nothing is loaded yet."""
        self._sides = [_Steps(model) for model in sides]
        self._is_known = set(runtimes) == {OnnxRuntime.name}

    def holds(self, feeds: Mapping[str, Any]) -> bool:
        """Whether neither side rounds anything, as far as that can be known."""
        return self._is_known and all(side.are_exact(feeds) for side in self._sides)


def _is_same(own: Any, wide: Any) -> bool:
    if not (isinstance(own, np.ndarray) and isinstance(wide, np.ndarray)) or own.shape != wide.shape:
        return False
    return _alike(own.astype(np.float64), wide) if is_float(own) else _alike(own, wide)


def _alike(one: Array, other: Array) -> bool:
    return bool(((one == other) | ((one != one) & (other != other))).all())
