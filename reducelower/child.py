"""Child processes with a pipe to each: if one dies, this process goes on and can say how it died."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from multiprocessing.util import Finalize
from typing import IO, Any, NamedTuple
from weakref import WeakSet

__all__ = ["FORKS", "Child", "Death"]

FORKS = sys.platform == "linux"
"""Whether children are forked, which saves importing onnx again; this is only safe on Linux."""

_PATIENCE = 5.0
"""Seconds that a process may take to end after its pipe was closed, for example to write a core dump."""

_LONGEST_MESSAGE = 200

_PIPES: WeakSet[Any] = WeakSet()
"""This process's ends of all pipes. A forked child closes them: otherwise nobody would notice that this one is gone."""


class Death(NamedTuple):
    """How a process ended: its status (None if it had to be killed), and a clause with the last error it printed."""

    status: int | None
    text: str


class Child:
    """A child process, which ends at the latest when this object is forgotten or this process exits.

    Attributes:
        pipe: a `multiprocessing.connection.Connection`, which raises EOFError or OSError once the process is gone.
        end: a function that ends the process and everything in its group; a spawned one is only asked to.
    """

    def __init__(self, process: Any, pipe: Any, stderr: IO[bytes] | None, *, kills: bool) -> None:
        """Own a process that was started; `kills`: it may be killed."""
        self.pipe = pipe
        self._process = process
        self._stderr = stderr
        # Run at exit before multiprocessing waits for its processes.
        self.end = Finalize(self, _end, (process, pipe, kills), exitpriority=10)

    @classmethod
    def of_function(
        cls,
        serve: Callable[..., None],
        *arguments: Any,
        method: str = "fork" if FORKS else "spawn",
        leads_group: bool = True,
    ) -> Child:
        """Fork or spawn a process that calls a function with its end of the pipe and the arguments.

        `leads_group`: what it starts ends with it; otherwise it ends with the group of this process. A spawned process
        is not killed, because half-written files keep their names on the systems that spawn.
        """
        context: Any = multiprocessing.get_context(method)
        pipe, theirs = context.Pipe()
        _PIPES.add(pipe)
        stderr = _unnamed_file() if method == "fork" else None
        descriptor = stderr.fileno() if stderr is not None else -1
        process = context.Process(target=_begin, args=(serve, theirs, arguments, descriptor, leads_group))
        process.start()
        theirs.close()
        return cls(process, pipe, stderr, kills=method == "fork")

    @classmethod
    def of_command(cls, command: Sequence[str]) -> Child:
        """Run a command with one more argument, the descriptor of its end of the pipe.

        Raises:
            OSError: it does not start.
        """
        pipe, theirs = multiprocessing.Pipe()
        _PIPES.add(pipe)
        stderr = _unnamed_file()
        inherits: dict[str, Any] = {"pass_fds": [theirs.fileno()]}
        if sys.platform == "win32":
            os.set_handle_inheritable(theirs.fileno(), True)
            inherits = {"close_fds": False}
        with theirs:
            process = subprocess.Popen(
                [*command, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                start_new_session=True,
                env={**os.environ, "PYTHONHASHSEED": "0"},
                **inherits,
            )
        return cls(process, pipe, stderr, kills=True)

    def death(self) -> Death:
        """How the process died, after its pipe showed that it is gone."""
        status = _wait(self._process, _PATIENCE)
        self.end()
        lines = [line.strip() for line in self._printed().splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower() or "assert" in line.lower()]
        message = (errors or lines or [""])[-1][:_LONGEST_MESSAGE]
        return Death(status, ": ".join(filter(None, (_status_text(status), message))))

    def leave(self) -> None:
        """Let the process end by itself, and pass on what it printed as standard error."""
        self.end.cancel()
        self.pipe.close()
        _wait(self._process, None)
        sys.stderr.write(self._printed())

    def _printed(self) -> str:
        if self._stderr is None:
            return ""
        with self._stderr as file:
            file.seek(0)
            return file.read().decode("utf-8", "replace")


def _unnamed_file() -> IO[bytes]:
    return os.fdopen(os.memfd_create("stderr"), "w+b") if sys.platform == "linux" else tempfile.TemporaryFile()


def _begin(serve: Callable[..., None], pipe: Any, arguments: Sequence[Any], stderr: int, leads_group: bool) -> None:
    """The main function of a process; its parent handles interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if leads_group and hasattr(os, "setpgid"):
        os.setpgid(0, 0)
    for inherited in _PIPES:
        inherited.close()
    _PIPES.clear()
    _PIPES.add(pipe)
    if stderr >= 0:
        os.dup2(stderr, 2)  # for the last words of native code that ends the process
    with contextlib.suppress(EOFError, OSError):  # the parent is gone
        serve(pipe, *arguments)


def _wait(process: Any, seconds: float | None) -> int | None:
    """The status of a process, after it ended or the time is over."""
    if isinstance(process, subprocess.Popen):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        return process.poll()
    process.join(seconds)
    status: int | None = process.exitcode
    return status


def _end(process: Any, pipe: Any, kills: bool) -> None:
    if kills:
        try:
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            process.kill()  # it leads no group, or not yet
    pipe.close()
    _wait(process, None)


def _status_text(status: int | None) -> str:
    if status is None:
        return "it stopped answering"
    if status >= 0:
        return f"it ended with exit status {status}"
    try:
        return f"it was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"it was ended by signal {-status}"
