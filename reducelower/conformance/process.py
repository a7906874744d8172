"""A worker process that runs models, and starts again if a model crashes it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from onnx import helper

from reducelower.conformance import worker
from reducelower.conformance.case import Array
from reducelower.conformance.runtimes import adapter

__all__ = ["Answer", "Subject", "UnusableError", "Worker", "status_text"]

_STARTING = 120.0
"""Seconds that a worker may take to import its runtime; compilers of several gigabytes take that long."""


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
        return cls(name, ("--adapter", str(adapter(name))), interpreter or sys.executable)

    @classmethod
    def of_function(cls, name: str, function: str, interpreter: str | None = None) -> Subject:
        """A Python function ``module:function`` from model bytes and arrays by name to a list of arrays.

        The module is looked for in the current folder as well.
        """
        return cls(name, ("--python", function, "--path", str(Path.cwd())), interpreter or sys.executable)

    @classmethod
    def of_command(cls, name: str, command: str) -> Subject:
        """A command with the placeholders ``{model}``, ``{inputs}`` and ``{outputs}``; the last two are .npz files."""
        return cls(name, ("--command", command))


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
        version: the runtime's version, once it has started.
        tolerance: what its adapter asks for, once it has started; see `judging.judge`.
    """

    def __init__(self, subject: Subject, time_limit: float) -> None:
        self._subject = subject
        self._time_limit = time_limit
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None
        self.name = subject.name
        self.version = ""
        self.tolerance = 0.0

    def __exit__(self, *error: object) -> None:
        self._end()

    def start(self) -> None:
        """Start the process if none is running, and get the runtime's version and the tolerance of its adapter.

        Raises:
            UnusableError: the interpreter does not start, or the runtime cannot be imported in it.
        """
        if self._process is not None:
            return
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the process
        command = [self._subject.interpreter, worker.__file__, *self._subject.arguments]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                start_new_session=True,
                env={**os.environ, "PYTHONHASHSEED": "0"},
            )
        except OSError as error:
            raise UnusableError(f"{self._subject.interpreter} does not start: {error.strerror}") from None
        answer = self._exchange(None, _STARTING)
        if isinstance(answer, Answer):
            raise UnusableError(f"{self._subject.name} does not start: {answer.text or answer.kind}")
        if "unusable" in answer:
            self._end()
            raise UnusableError(f"{self._subject.name} cannot be used: {answer['unusable']}")
        self.version = str(answer["version"])
        self.tolerance = float(answer["tolerance"])

    def run(self, model: bytes, inputs: Mapping[str, Array], time_limit: float | None = None) -> Answer:
        """Run one model, within `time_limit` seconds or else the time limit of the worker.

        Raises:
            UnusableError: the process does not start.
        """
        self.start()
        request: dict[str, Any] = {"model": np.frombuffer(model, np.uint8)}
        request.update((f"input:{name}", value) for name, value in inputs.items())
        answer = self._exchange(request, self._time_limit if time_limit is None else time_limit)
        if isinstance(answer, Answer):
            return answer
        if "error" in answer:
            return Answer("error", text=str(answer["error"]))
        outputs = [_with_type(answer, f"output:{at}") for at in range(len(answer)) if f"output:{at}" in answer]
        return Answer("outputs", tuple(outputs))

    def _exchange(self, request: Mapping[str, Any] | None, seconds: float) -> dict[str, Any] | Answer:
        """Send a request, if any, and read one message; end a process that does not answer."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        late = threading.Event()

        def stop() -> None:
            late.set()
            _kill(process)

        timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), stop)
        timer.start()
        try:
            if request is not None:
                worker.send_message(process.stdin, dict(request))
            message = worker.read_message(process.stdout)
        except OSError:  # it closed its end
            message = None
        finally:
            timer.cancel()
        if message is not None and not late.is_set():
            return message
        # Its output may be closed some time before it ends.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1.0)
        status, last_error = process.poll(), self._last_error()
        self._end()
        if late.is_set():
            return Answer("hang", text=f"no answer within {seconds:g} s")
        return Answer("crash", text=": ".join(filter(None, (status_text(status), last_error))))

    def _last_error(self) -> str:
        """The last line that the process printed."""
        assert self._stderr is not None
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(size - 4000, 0))
        lines = [line for line in self._stderr.read().decode("utf-8", "replace").splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower() or "assert" in line.lower()]
        return (errors or lines or [""])[-1].strip()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            _kill(process)
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
        if self._stderr is not None:
            self._stderr.close()
            self._stderr = None


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a worker and, if the system has process groups, everything it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)


def status_text(status: int | None) -> str:
    """How a process ended, from its status in `subprocess`; None if it has not ended."""
    if status is None:
        return "it stopped answering"
    if status >= 0:
        return f"it ended with exit status {status}"
    try:
        return f"it was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"it was ended by signal {-status}"


def _with_type(answer: Mapping[str, Any], name: str) -> Array:
    """An output in its element type, which numpy may lack."""
    value = np.asarray(answer[name])
    kind = answer.get(f"type:{name}")
    if kind is None:
        return value
    names = {helper.tensor_dtype_to_np_dtype(number).name: number for number in helper.get_all_tensor_dtypes()}
    return value.view(helper.tensor_dtype_to_np_dtype(names[str(kind)]))
