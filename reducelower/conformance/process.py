"""A worker process that runs models, and starts again if a model crashes it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from onnx import helper

from reducelower.child import Child
from reducelower.conformance import worker
from reducelower.conformance.runtimes import RUNTIMES
from reducelower.model.numbers import Array

__all__ = ["Answer", "Subject", "UnusableError", "Worker"]

_STARTING = 120.0
"""Seconds that a worker may take to import its runtime; compilers of several gigabytes take that long."""

_LONGEST = 1e6
"""Seconds for which the system waits at most."""


class UnusableError(Exception):
    """The runtime cannot be run at all, for example because it is not installed."""


@dataclass(frozen=True)
class Subject:
    """What to probe: a name for the results, the worker's arguments, and its Python interpreter."""

    name: str
    arguments: tuple[str, ...]
    interpreter: str = sys.executable

    @classmethod
    def of_runtime(cls, name: str, interpreter: str | None = None) -> Subject:
        """A runtime that has an adapter.

        Raises:
            KeyError: there is no adapter of that name.
        """
        return cls(name, ("runtime", name, RUNTIMES[name]), interpreter or sys.executable)

    @classmethod
    def of_function(cls, name: str, function: str, interpreter: str | None = None) -> Subject:
        """A Python function ``module:function`` from model bytes and arrays by name to a list of arrays.

        The module is looked for in the current folder as well.
        """
        return cls(name, ("python", function, str(Path.cwd())), interpreter or sys.executable)

    @classmethod
    def of_command(cls, name: str, command: str) -> Subject:
        """A command with the placeholders ``{model}``, ``{inputs}`` and ``{outputs}``; the last two are .npz files."""
        return cls(name, ("command", command, ""))


@dataclass(frozen=True)
class Answer:
    """The result for one model: its outputs in graph order, or how it was refused and what the runtime said."""

    kind: Literal["outputs", "error", "crash", "hang"]
    outputs: tuple[Array, ...] = ()
    text: str = ""


class Worker(contextlib.AbstractContextManager["Worker"]):
    """A process that answers one request after another.

    It starts with the first request, and again after a request that ended it. At the exit of the context, its whole
    process group ends, including everything that the runtime started.

    Attributes:
        version: the version that was given, or that of the runtime once it has started.
        tolerance: the one that was given, or that of the adapter once it has started; see `judging.judge`.
    """

    def __init__(
        self, subject: Subject, time_limit: float, *, version: str | None = None, tolerance: float | None = None
    ) -> None:
        self._subject = subject
        self._time_limit = time_limit
        self._given = version, tolerance
        self._child: Child | None = None
        self.name = subject.name
        self.version = version or ""
        self.tolerance = tolerance or 0.0

    def __exit__(self, *error: object) -> None:
        self._end()

    def start(self) -> None:
        """Start the process if none is running, and get the runtime's version and the tolerance of its adapter.

        Raises:
            UnusableError: the interpreter does not start, or the runtime cannot be imported in it.
        """
        if self._child is not None:
            return
        try:
            self._child = Child.of_command([self._subject.interpreter, worker.__file__, *self._subject.arguments])
        except OSError as error:
            raise UnusableError(f"{self._subject.interpreter} does not start: {error.strerror}") from None
        answer = self._answer(self._child, _STARTING)
        if isinstance(answer, Answer):
            raise UnusableError(f"{self._subject.name} does not start: {answer.text or answer.kind}")
        if "unusable" in answer:
            self._end()
            raise UnusableError(f"{self._subject.name} cannot be used: {answer['unusable']}")
        version, tolerance = self._given
        self.version = version or str(answer["version"])
        self.tolerance = float(answer["tolerance"]) if tolerance is None else tolerance

    def run(self, model: bytes, inputs: Mapping[str, Array], time_limit: float | None = None) -> Answer:
        """Run one model, within `time_limit` seconds or else the time limit of the worker.

        Raises:
            UnusableError: the process does not start.
        """
        self.start()
        assert self._child is not None
        request: dict[str, Any] = {"model": np.frombuffer(model, np.uint8)}
        request.update((f"input:{name}", value) for name, value in inputs.items())
        with contextlib.suppress(OSError):  # it died; reading from the pipe will show this
            self._child.pipe.send_bytes(worker.pack(request))
        answer = self._answer(self._child, self._time_limit if time_limit is None else time_limit)
        if isinstance(answer, Answer):
            return answer
        if "error" in answer:
            return Answer("error", text=str(answer["error"]))
        outputs = [_with_type(answer, f"output:{at}") for at in range(len(answer)) if f"output:{at}" in answer]
        return Answer("outputs", tuple(outputs))

    def _answer(self, child: Child, seconds: float) -> dict[str, Any] | Answer:
        """Read one message; end a process that does not send it."""
        try:
            if child.pipe.poll(min(seconds, _LONGEST)):
                return worker.unpack(child.pipe.recv_bytes())
        except (EOFError, OSError):
            self._child, death = None, child.death()
            return Answer("crash", text=death.text)
        self._end()
        return Answer("hang", text=f"no answer within {seconds:g} s")

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.end()


def _with_type(answer: Mapping[str, Any], name: str) -> Array:
    """An output in its element type, which numpy may lack."""
    value = np.asarray(answer[name])
    kind = answer.get(f"type:{name}")
    if kind is None:
        return value
    names = {helper.tensor_dtype_to_np_dtype(number).name: number for number in helper.get_all_tensor_dtypes()}
    return value.view(helper.tensor_dtype_to_np_dtype(names[str(kind)]))
