"""What is called while something runs, seen from outside: nothing is put in place of what is called."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["calls_of"]

Call = tuple[str, dict[str, Any]]


@contextmanager
def calls_of(*functions: Callable[..., Any]) -> Iterator[list[Call]]:
    """The calls of some functions of Python in this thread: name, and arguments by name, as they come."""
    codes = {inspect.unwrap(function).__code__: function.__name__ for function in functions}
    seen: list[Call] = []

    def see(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code in codes:
            seen.append((codes[frame.f_code], dict(frame.f_locals)))

    sys.setprofile(see)
    try:
        yield seen
    finally:
        sys.setprofile(None)
