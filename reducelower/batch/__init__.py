"""Many model files in one run, locally or on any `concurrent.futures.Executor`.

`convert_files` and `check_files` continue after a bad model; its outcome says what happened.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reducelower.batch.many import check_file, check_files, convert_file, convert_files
    from reducelower.options import Settings
    from reducelower.outcome import Outcome
    from reducelower.pipeline.task import Task

__all__ = ["Outcome", "Settings", "Task", "check_file", "check_files", "convert_file", "convert_files"]

_HOME = {
    **dict.fromkeys(("check_file", "check_files", "convert_file", "convert_files"), "batch.many"),
    "Outcome": "outcome",
    "Task": "pipeline.task",
    "Settings": "options",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use: converting one file needs only a part of this."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"reducelower.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
