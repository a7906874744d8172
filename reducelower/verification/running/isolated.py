"""Runs each model in a process of its own, since onnxruntime ends its process on some models."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from typing import Any

from reducelower.child import Child
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
        self._child: Child | None = None
        self._start()

    def run(self, feeds: Mapping[str, Any], timeout: float | None = None) -> list[Any]:
        """Run once, as a `Session` does; a CannotRunError if that ends the process."""
        child = self._child or self._start()
        child.pipe.send((feeds, timeout))
        results: list[Any] = self._answer(child)
        return results

    def _start(self) -> Child:
        self._child = Child.of_function(_serve, self._load, leads_group=False)
        self._answer(self._child)
        return self._child

    def _answer(self, child: Child) -> Any:
        try:
            answer = child.pipe.recv()
        except (EOFError, OSError):
            self._child, death = None, child.death()
            # When memory runs out, the system kills the process that uses most.
            raise CannotRunError(
                f"onnxruntime ends its process: {death.text}", unsupported=death.status == -signal.SIGKILL
            ) from None
        if isinstance(answer, Exception):
            raise answer
        return answer


def _serve(pipe: Any, load: Callable[[], Any]) -> None:
    """Load the model in the new process, then run it for each request."""
    try:
        session = load()
        pipe.send(None)
    except Exception as error:
        pipe.send(error)
        return
    while True:
        feeds, timeout = pipe.recv()
        try:
            pipe.send(session.run(feeds, timeout))
        except Exception as error:
            pipe.send(error)
