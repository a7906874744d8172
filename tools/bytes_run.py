"""Run the command line on broken models, in worker processes with limited time and memory, and print findings.

    python -m tools.bytes_run --count 200000 --jobs 2

A broken model may be converted or refused. Anything else is a finding: a traceback, an internal error, more than one
line per problem, output without success, a crash of the process, or a model that takes too long. The number of a
finding makes the same model again.
"""

from __future__ import annotations

import argparse
import collections
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

from reducelower.batch.processes import run_in_processes
from tools.mutation import mutated, seeds

__all__ = ["Finding", "run_numbers"]

SECONDS = 20
MEMORY = 4 << 30

COMMANDS: tuple[tuple[str, ...], ...] = (
    ("convert", "--opset", "13"),
    ("convert", "--opset", "11"),
    ("convert", "--opset", "21"),
    ("convert", "--opset", "9", "--ir-version", "keep", "--freeze-defaults"),
    ("expand", "--rules", "stable"),
    ("expand", "--rules", "core"),
)

Finding = tuple[int, str]
"""The number of a model, and what the command line did wrong with it."""


def command_of(number: int, folder: Path, *, verify: bool) -> list[str]:
    """The arguments of the command line for the model of a number."""
    name, *options = COMMANDS[number % len(COMMANDS)]
    checks = [] if verify else ["--no-verify"]
    return [name, str(folder / "in.onnx"), "-o", str(folder / "out.onnx"), "-q", *options, *checks]


def judge(number: int, models: Sequence[bytes], folder: Path, *, verify: bool) -> tuple[int, str]:
    """Run the command line on one broken model: its exit status, and what it did wrong; empty if nothing."""
    from reducelower.cli import run

    (folder / "in.onnx").write_bytes(mutated(models, number))
    output, said = folder / "out.onnx", folder / "said.txt"
    with said.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        start = time.process_time()  # on a busy machine, wall-clock time includes waiting
        try:
            status = run(command_of(number, folder, verify=verify))
        except BaseException as error:
            return -1, f"{type(error).__name__}: {error}"
        seconds = time.process_time() - start
        sys.stdout.flush()
        sys.stderr.flush()
    lines = said.read_text("utf-8", "backslashreplace").splitlines()
    return status, _complaint(status, lines, output.exists(), seconds)


def _complaint(status: int, lines: list[str], has_output: bool, seconds: float) -> str:
    if status not in (0, 1, 2):
        return f"status {status}: {' '.join(lines)[:300]}"
    if status == 0:
        # Even with -q, there is a warning if a model is written without being verified.
        lines = [line for line in lines if not line.startswith("warning: ")]
    if any(not line.startswith("error: ") for line in lines):
        return f"chatter: {' '.join(lines)[:300]}"
    if (status == 0) != has_output or (status == 0) != (not lines):
        return f"status {status} with output: {has_output}, {len(lines)} lines"
    return f"{seconds:.1f} s" if seconds > SECONDS / 2 else ""


@cache
def _limited() -> list[bytes]:
    """The models to break, once the process has its limits."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return seeds()


def _work(number: int, *, verify: bool) -> tuple[int, int, str]:
    models = _limited()
    # Each output is synced to disk before it gets its name. A folder in memory, if there is one, makes that fast.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="bytes_run", dir=memory) as name:
        # No handlers, so that nothing in Python can catch the signals. The limits are on CPU time, then on time.
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        signal.alarm(20 * SECONDS)
        found = judge(number, models, Path(name), verify=verify)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
    return number, *found


def run_numbers(
    numbers: Sequence[int], *, verify: bool = False, jobs: int = 1
) -> tuple[collections.Counter[int], list[Finding]]:
    """Run the command line on the broken models of these numbers, and print findings as they come.

    Returns:
        The counts of exit statuses, and the findings.
    """
    statuses: collections.Counter[int] = collections.Counter()
    findings: list[Finding] = []
    # Spawned, so that what the command line prints is not captured by who runs this.
    results = run_in_processes(
        partial(_work, verify=verify), numbers, jobs, lambda number, how: (number, -1, how), method="spawn"
    )
    for number, status, complaint in results:
        statuses[status] += 1
        if complaint:
            findings.append((number, complaint))
            print(number, complaint, flush=True)
    return statuses, findings


def main() -> None:
    """Run the requested number of models."""
    parser = argparse.ArgumentParser(description="Run the command line on broken models.")
    parser.add_argument("--count", type=int, default=200_000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--verify", action="store_true")
    options = parser.parse_args()
    began = time.monotonic()
    numbers = range(options.start, options.start + options.count)
    statuses, _ = run_numbers(numbers, verify=options.verify, jobs=options.jobs)
    print(f"# {statuses.total()} {dict(statuses)} {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
