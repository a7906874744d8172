"""Runtimes in a process of their own, with the Python that has them installed (`reducelower.conformance.runtimes`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reducelower.conformance.process import Subject, UnusableError, Worker
from reducelower.conformance.runtimes import RUNTIMES as ADAPTERS
from reducelower.verification.running.conditions import conditions
from reducelower.verification.running.memory import check_results
from reducelower.verification.running.source import CannotRunError, OutOfTimeError, Session, Source, as_declared

__all__ = ["ADAPTERS", "ForeignRuntime", "is_foreign", "why_unusable"]

_TIME_LIMIT = 300.0
"""Seconds for one run where the caller sets no limit; some runtimes compile for minutes."""


def is_foreign(name: str) -> bool:
    """Whether there is an adapter for a runtime named as ``NAME`` or ``NAME:PYTHON``."""
    return name.partition(":")[0] in ADAPTERS


def why_unusable(name: str) -> str:
    """Why a runtime cannot be used here, as a sentence; empty if it can."""
    try:
        with ForeignRuntime(name).worker(_TIME_LIMIT) as worker:
            worker.start()
    except UnusableError as error:
        return str(error)
    return ""


class ForeignRuntime:
    """A runtime in a worker process; a crash or hang only means that it cannot run the model."""

    def __init__(self, name: str) -> None:
        """Take a runtime by ``NAME``, or ``NAME:PYTHON`` if another Python has it installed."""
        self.name, _, interpreter = name.partition(":")
        self._subject = Subject.of_runtime(self.name, interpreter or None)

    def worker(self, time_limit: float) -> Worker:
        """A worker process for the runtime, not yet started."""
        return Worker(self._subject, time_limit)

    def load(self, source: Source) -> Session:
        """Take the model; the runtime reads it with the first inputs."""
        return _ForeignSession(self, source)


class _ForeignSession:
    def __init__(self, runtime: ForeignRuntime, source: Source) -> None:
        self._runtime = runtime
        self._model = source.complete().SerializeToString()
        self._worker = runtime.worker(_TIME_LIMIT)
        self._declared = source.proto

    def run(self, feeds: Mapping[str, Any]) -> list[Any]:
        clock = conditions().clock
        clock.check()
        timeout = clock.left
        name = self._runtime.name
        declared = self._declared.graph
        in_order = {value.name: feeds[value.name] for value in declared.input if value.name in feeds}
        try:
            answer = self._worker.run(self._model, in_order, timeout)
        except UnusableError as error:
            raise CannotRunError(str(error), unsupported=True) from error
        if answer.kind != "outputs":
            message = " ".join(answer.text.split())[:300]
            if answer.kind == "hang" and timeout is not None:
                raise OutOfTimeError(f"{name}: {message}")
            # It may only lack an operator, so this says nothing against the rewrites.
            raise CannotRunError(f"{name}: {message}", unsupported=True)
        if len(answer.outputs) != len(declared.output):
            raise CannotRunError(f"{name} gave {len(answer.outputs)} outputs of {len(declared.output)}")
        results = list(map(as_declared, answer.outputs, declared.output))
        check_results(results, self._declared)
        return results
