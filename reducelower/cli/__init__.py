"""The command line: commands, their options, the console.

Exit status: 0 done, 1 refused, not equivalent or (check) work found, 2 bad usage or unreadable input, 3 a fault of
reducelower itself, 130 interrupted, 143 told to end (SIGTERM).
"""

from __future__ import annotations

from reducelower.cli.main import main, run

__all__ = ["main", "run"]
