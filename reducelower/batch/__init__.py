"""Many model files in one run, here or wherever a `concurrent.futures.Executor` runs them.

`convert_files` and `check_files` go on past a bad model: whatever happens to one is in its outcome.
"""

from __future__ import annotations

from reducelower.batch.checking import Checked, check_file
from reducelower.batch.conversion import Outcome, convert_file
from reducelower.batch.many import check_files, convert_files
from reducelower.batch.task import Task
from reducelower.options import Settings

__all__ = ["Checked", "Outcome", "Settings", "Task", "check_file", "check_files", "convert_file", "convert_files"]
