"""Models each in a process of its own, for those on which onnxruntime ends the process that it runs in."""

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
    """A session in another process, which is forked anew after inputs that ended it."""

    def __init__(self, load: Callable[[], Any]) -> None:
        """Load a model in a process, as a `Session`.

        Raises:
            CannotRunError: the runtime does not take it, or ends the process.
        """
        self._load = load
        self._start()

    def run(self, feeds: Mapping[str, Any], timeout: float | None = None) -> list[Any]:
        """Run once, as a `Session` does; that the process ends is a `CannotRunError`."""
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
            found = self._pipe.recv()
        except (EOFError, OSError):
            from reducelower.conformance.process import status_text

            self._process.join()
            status = self._process.exitcode
            # For want of memory the system kills whatever asks for most of it.
            raise CannotRunError(
                f"onnxruntime ends its process: {status_text(status)}", unsupported=status == -signal.SIGKILL
            ) from None
        if isinstance(found, Exception):
            raise found
        return found


def _end(process: Any, pipe: Any) -> None:
    pipe.close()
    process.kill()
    process.join()


def _serve(load: Callable[[], Any], pipe: Any, parents: Any) -> None:
    """What the process does: load the model, then run it until nobody asks any more.

    It closes the parent's end of its pipe, and so notices when the parent is gone, however that ended.
    """
    parents.close()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)  # what C++ says when it ends the process
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
