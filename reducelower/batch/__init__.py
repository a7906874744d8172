"""Many model files in one run, locally or on any `concurrent.futures.Executor`.

`convert_files` and `check_files` continue after a bad model; its outcome says what happened.
"""

from __future__ import annotations

from reducelower.batch.many import check_file, check_files, convert_file, convert_files
from reducelower.options import Settings
from reducelower.outcome import Outcome
from reducelower.pipeline.task import Task

__all__ = ["Outcome", "Settings", "Task", "check_file", "check_files", "convert_file", "convert_files"]


def __dir__() -> list[str]:
    """The public names, without the modules that hold them."""
    return sorted(__all__)
