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
from collections.abc import Sequence
from pathlib import Path

from onnx.backend.test.loader import load_model_tests

__all__ = ["is_plain", "reducelower"]

_LONGEST = 300  # seconds


def is_plain(line: str) -> bool:
    """Whether a line of a shell is a call of reducelower and nothing else, which can be forked here."""
    return sys.platform == "linux" and re.fullmatch(r"reducelower [^|&;<>*?$`~#()\[\]]*", line) is not None


def reducelower(words: Sequence[str], folder: Path, given: Path = Path(os.devnull)) -> subprocess.CompletedProcess[str]:
    """What reducelower says and how it ends in a folder, with a file on standard input."""
    if "--test" in words:
        load_model_tests(kind="node")  # once for all: it takes seconds
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = os.fork()
        if not process:
            _run(words, folder, given, out.fileno(), err.fileno())
        _, ended = os.waitpid(process, 0)
        said = []
        for file in (out, err):
            file.seek(0)
            said.append(file.read().decode(errors="surrogateescape"))
    return subprocess.CompletedProcess(list(words), os.waitstatus_to_exitcode(ended), *said)


def _run(words: Sequence[str], folder: Path, given: Path, out: int, err: int) -> None:
    """Be the command line; this does not return."""
    status = 1
    try:
        signal.alarm(_LONGEST)
        os.chdir(folder)
        for own, taken in ((os.open(given, os.O_RDONLY), 0), (out, 1), (err, 2)):
            os.dup2(own, taken)
        sys.stdin, sys.stdout, sys.stderr = (
            io.TextIOWrapper(io.FileIO(at, "r" if at == 0 else "w", closefd=False), line_buffering=True)
            for at in range(3)
        )
        from reducelower.cli import run

        status = run(list(words))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
