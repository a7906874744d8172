"""How the benchmark measures: rounds that take turns, child processes with their peak memory, lines of a table."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Child", "Line", "at_least", "at_most", "per_turn", "run_child", "take_turns"]


@dataclass(frozen=True)
class Line:
    """One line of the table.

    Attributes:
        name: what was measured.
        ours: our figure, with its unit.
        peer: the figure it is held against, with its unit and whose it is.
        ratio: the ratio that the goal is about.
        goal: the goal in words; empty where a figure is only reported.
        held: whether the ratio keeps to the goal; None where there is none.
    """

    name: str
    ours: str
    peer: str
    ratio: float
    goal: str = ""
    held: bool | None = None


def at_least(name: str, ours: float, peer: float, whose: str, goal: float) -> Line:
    """A line that says how many times faster we are than a peer, from seconds."""
    ratio = peer / ours
    return Line(name, duration(ours), f"{duration(peer)} {whose}", ratio, f">= {goal:g}x", ratio >= goal)


def at_most(name: str, ours: float, peer: float, whose: str, goal: float | None) -> Line:
    """A line that says how many times a peer's time we take; without a goal the ratio is only reported."""
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


def take_turns(contenders: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Run contenders one after the other, round by round, so that a slow spell of the machine hits all of them.

    Returns:
        The median of the seconds per run, by name, after a first run that is not counted.
    """
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            taken = time.perf_counter() - start
            if number:
                times[name].append(taken)
    return {name: statistics.median(taken) for name, taken in times.items()}


def per_turn(run: Callable[[], object], rounds: int) -> float:
    """The median of the seconds that one thing takes."""
    return take_turns({"": run}, rounds)[""]


@dataclass(frozen=True)
class Child:
    """What a child process took."""

    seconds: float
    peak_bytes: int
    status: int


def run_child(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Child:
    """Run a command to its end, with its wall time and peak resident memory.

    Raises:
        RuntimeError: it failed; its output is in the message.
    """
    start = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **(environment or {})},
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {output.decode(errors='replace')}")
    return Child(seconds, usage.ru_maxrss * 1024, process.returncode)
