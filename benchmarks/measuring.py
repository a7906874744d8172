"""Measure in rounds, measure child processes with their peak memory, and make the lines of the table."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

__all__ = ["Line", "at_least", "at_most", "duration", "peak_memory", "per_turn", "run_child", "take_turns"]

Name = TypeVar("Name")


@dataclass(frozen=True)
class Line:
    """One line of the table.

    Attributes:
        name: what was measured.
        ours: our figure, with its unit.
        peer: the figure of the peer, with its unit and the peer's name.
        ratio: the ratio that the goal is about.
        goal: the goal in words; empty if a figure is only reported.
        held: whether the ratio meets the goal; None if there is no goal.
    """

    name: str
    ours: str
    peer: str
    ratio: float
    goal: str = ""
    held: bool | None = None


def at_least(name: str, ours: float, peer: float, whose: str, goal: float) -> Line:
    """A line with how many times faster we are than a peer, from seconds."""
    ratio = peer / ours
    return Line(name, duration(ours), f"{duration(peer)} {whose}", ratio, f">= {goal:g}x", ratio >= goal)


def at_most(name: str, ours: float, peer: float, whose: str, goal: float | None) -> Line:
    """A line with our time divided by a peer's; without a goal the ratio is only reported."""
    ratio = ours / peer
    words, held = ("", None) if goal is None else (f"<= {goal:g}x", ratio <= goal)
    return Line(name, duration(ours), f"{duration(peer)} {whose}", ratio, words, held)


def duration(seconds: float) -> str:
    """Seconds in a unit that fits."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    if seconds >= 1e-3:
        return f"{seconds * 1e3:.1f} ms"
    return f"{seconds * 1e6:.1f} us"


def take_turns(
    contenders: Mapping[Name, Callable[[], object]],
    rounds: int,
    *,
    before: Callable[[], object] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[Name, float]:
    """Run contenders in turn, round by round, so that a slow spell of the machine affects all of them.

    Args:
        contenders: what to run, by name.
        rounds: how many rounds; one only shows that they run.
        before: called before each run, and not counted.
        clock: returns seconds; `time.thread_time` for work in this thread only, beside others.

    Returns:
        The median of the seconds per run, by name; the first of several runs does not count.
    """
    times: dict[Name, list[float]] = {name: [] for name in contenders}
    uncounted = int(rounds > 1)
    for number in range(rounds + uncounted):
        for name, run in contenders.items():
            if before is not None:
                before()
            start = clock()
            run()
            seconds = clock() - start
            if number >= uncounted:
                times[name].append(seconds)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def per_turn(run: Callable[[], object], rounds: int) -> float:
    """The median of the seconds that a call takes."""
    return take_turns({"": run}, rounds)[""]


_LAUNCHER = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)
"""


def run_child(command: Sequence[str]) -> None:
    """Run a command to its end.

    Raises:
        RuntimeError: it failed; its output is in the message.
    """
    _output_of(command)


def peak_memory(command: Sequence[str]) -> int:
    """The peak resident memory of a command, in bytes.

    A small process starts it, because Linux counts the parent's memory as the child's own.

    Raises:
        RuntimeError: it failed; its output is in the message.
    """
    return int(_output_of([sys.executable, "-S", "-c", _LAUNCHER, *command]).split()[-1]) * 1024


def _output_of(command: Sequence[str]) -> str:
    # Installed packages are compiled to bytecode; for a checkout this must be allowed.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, check=False)
    output = ran.stdout.decode(errors="replace")
    if ran.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {output}")
    return output
