"""The command line in a process of its own that has imported everything already: a fork of the one that tests."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

__all__ = ["ended", "forked", "is_plain", "reducelower"]

_LONGEST = 300  # seconds


def is_plain(line: str) -> bool:
    """Whether a line of a shell is a call of reducelower and nothing else, which can be forked here."""
    return sys.platform == "linux" and re.fullmatch(r"reducelower [^|&;<>*?$`~#()\[\]]*", line) is not None


def reducelower(words: Sequence[str], folder: Path, given: Path = Path(os.devnull)) -> subprocess.CompletedProcess[str]:
    """What reducelower says and how it ends in a folder, with a file on standard input."""

    def run_there() -> int:
        os.chdir(folder)
        return _run(words)

    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, given.open("rb") as taken:
        status = ended(forked(run_there, (taken.fileno(), out.fileno(), err.fileno())))
        said = []
        for file in (out, err):
            file.seek(0)
            said.append(file.read().decode(errors="surrogateescape"))
    return subprocess.CompletedProcess(list(words), status, *said)


def _run(words: Sequence[str]) -> int:
    from reducelower.cli import run

    return run(list(words))


def forked(work: Callable[[], int], streams: tuple[int, int, int]) -> int:
    """The number of a process that does some work, with these standard streams, and ends with the status it gives."""
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        signal.alarm(_LONGEST)
        for own, taken in zip(streams, range(3), strict=True):
            os.dup2(own, taken)
        sys.stdin, sys.stdout, sys.stderr = (
            io.TextIOWrapper(io.FileIO(at, "r" if at == 0 else "w", closefd=False), line_buffering=True)
            for at in range(3)
        )
        status = work()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def ended(process: int) -> int:
    """The status with which a process ends."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
