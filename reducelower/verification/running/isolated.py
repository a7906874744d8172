"""Runs each model in a process of its own, since onnxruntime ends its process on some models."""

from __future__ import annotations

import multiprocessing
import os
import signal
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from reducelower.verification.running.source import CannotRunError

__all__ = ["IsolatedSession"]


class IsolatedSession:
    """A session in another process, which is forked again when inputs have ended it."""

    def __init__(self, load: Callable[[], Any]) -> None:
        """Load a model in a process, as a `Session`.

        Raises:
            CannotRunError: the runtime does not accept it, or ends the process.
        """
        self._load = load
        self._start()

    def run(self, feeds: Mapping[str, Any], timeout: float | None = None) -> list[Any]:
        """Run once, as a `Session` does; a CannotRunError if that ends the process."""
        if not self._process.is_alive():
            self._start()
        self._pipe.send((feeds, timeout))
        results: list[Any] = self._answer()
        return results

    def _start(self) -> None:
        context: Any = multiprocessing.get_context("fork")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(self._load, other, self._pipe), daemon=True)
        self._process.start()
        other.close()
        weakref.finalize(self, _end, self._process, self._pipe)
        self._answer()

    def _answer(self) -> Any:
        try:
            answer = self._pipe.recv()
        except (EOFError, OSError):
            from reducelower.conformance.process import status_text

            self._process.join()
            status = self._process.exitcode
            # When memory runs out, the system kills the process that uses most.
            raise CannotRunError(
                f"onnxruntime ends its process: {status_text(status)}", unsupported=status == -signal.SIGKILL
            ) from None
        if isinstance(answer, Exception):
            raise answer
        return answer


def _end(process: Any, pipe: Any) -> None:
    pipe.close()
    process.kill()
    process.join()


def _serve(load: Callable[[], Any], pipe: Any, parents: Any) -> None:
    """Load the model in the new process, then run it for each request.

    Closing the parent's end of the pipe makes it notice when the parent is gone, however that ended.
    """
    parents.close()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)  # C++ writes there when it ends the process
    try:
        session = load()
        pipe.send(None)
    except Exception as error:
        pipe.send(error)
        return
    while True:
        try:
            feeds, timeout = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(session.run(feeds, timeout))
        except Exception as error:
            pipe.send(error)
