"""Runtimes behind one small protocol: onnxruntime, onnx's reference evaluator, and others in processes of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from reducelower.verification.running.onnx_runtime import OnnxRuntime
from reducelower.verification.running.reference import ReferenceRuntime
from reducelower.verification.running.source import CannotRunError, Session, Source

__all__ = ["RUNTIMES", "OnnxRuntime", "ReferenceRuntime", "Runtime", "Session", "runtime_named", "try_load", "try_run"]


class Runtime(Protocol):
    """Something that runs ONNX models."""

    name: str

    def load(self, source: Source) -> Session:
        """Load a model.

        Raises:
            CannotRunError: the runtime does not accept it, or is not installed.
        """


RUNTIMES: Mapping[str, type[Runtime]] = {runtime.name: runtime for runtime in (OnnxRuntime, ReferenceRuntime)}
"""The runtimes in this process, by name."""


def runtime_named(name: str) -> Runtime:
    """The runtime with this name.

    Args:
        name: one of `RUNTIMES`, or one with an adapter in `reducelower.conformance`, which runs in a process of its
            own; ``NAME:PYTHON`` if another Python has it installed.

    Raises:
        ValueError: there is no such runtime.
    """
    if name in RUNTIMES:
        return RUNTIMES[name]()
    from reducelower.verification.running.foreign import ADAPTERS, ForeignRuntime, is_foreign

    if not is_foreign(name):
        raise ValueError(f"no runtime is called {name!r}; there are {', '.join(sorted({*RUNTIMES, *ADAPTERS}))}")
    return ForeignRuntime(name)


def try_load(runtime: Runtime, source: Source) -> Session | None:
    """The model loaded in a runtime; None if the runtime does not accept it."""
    try:
        return runtime.load(source)
    except CannotRunError:
        return None


def try_run(session: Session | None, feeds: Mapping[str, Any]) -> list[Any] | None:
    """The results of a model; None if it was not loaded or cannot run on these inputs."""
    try:
        return None if session is None else session.run(feeds)
    except CannotRunError:
        return None
