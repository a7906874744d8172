"""Run cases in another process, which is started again after the case that crashed it."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

__all__ = ["Result", "results"]

_ROOT = Path(__file__).resolve().parents[2]
_SECONDS = 120
"""Seconds that a stage of one case may take; a busy machine needs a multiple of the usual second."""


@dataclass(frozen=True)
class Result:
    """The outcome of one case.

    Attributes:
        number: its number in the seed.
        kind: a kind of verdict, ``not drawn``, ``source ends the process``, ``death`` or ``hang``.
        detail: more about it.
        name: a description of the case.
        text: the smallest case that shows a finding.
    """

    number: int
    kind: str
    detail: str = ""
    name: str = ""
    text: str = ""


def results(
    kind: str, seed: int, start: int, count: int, *, shrinks: bool = True, python: str = sys.executable
) -> Iterator[Result]:
    """Run cases one after another and yield their outcomes.

    Args:
        kind: kind of case, of `generating.KINDS`.
        seed: their seed.
        start: number of the first.
        count: how many.
        shrinks: whether to look for a smaller case after a finding.
        python: the interpreter that runs them.
    """
    number, stop = start, start + count
    while number < stop:
        for result in _until_it_ends(python, kind, seed, number, stop, shrinks=shrinks):
            yield result
            number = result.number + 1


def _until_it_ends(python: str, kind: str, seed: int, start: int, stop: int, *, shrinks: bool) -> Iterator[Result]:
    """The results of one process; if it crashes or hangs, its current case is the last."""
    command = [python, "-m", "tools.fuzz.worker", kind, str(seed), str(start), str(stop), str(int(shrinks))]
    process = subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    lines: queue.Queue[str | None] = queue.Queue()
    assert process.stdout is not None
    threading.Thread(target=_forward, args=(process.stdout, lines), daemon=True).start()
    last: dict[str, Any] = {"number": start, "stage": "draw"}
    try:
        while True:
            try:
                line = lines.get(timeout=_SECONDS)
            except queue.Empty:
                yield _ended(last, "hang", f"longer than {_SECONDS} s")
                return
            if line is None:
                break
            message = json.loads(line)
            if message["stage"] == "done":
                yield Result(*(message.get(key, "") for key in ("number", "kind", "detail", "name", "text")))
                last = {"number": message["number"] + 1, "stage": "draw"}
            else:
                last = message
        if process.wait() or last["number"] < stop:
            yield _ended(last, "death", f"the process ended with {process.returncode}")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def _forward(stream: IO[str], lines: queue.Queue[str | None]) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def _ended(last: dict[str, Any], kind: str, detail: str) -> Result:
    if last["stage"] == "found":  # while it looked for a smaller case
        return Result(last["number"], last["kind"], last["detail"], last["name"])
    if last["stage"] in ("draw", "source"):
        return Result(last["number"], "source ends the process", detail)
    return Result(last["number"], kind, detail)
