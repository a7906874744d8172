"""Hands broken models to the command line, in worker processes of limited time and memory, and says what came of it.

    python -m tools.bytes_run --count 200000 --jobs 2

A broken model may be converted or refused. Anything else is a finding, and its number gives the same model again:
a traceback, a fault of ours, more than one line a problem, output without success, a death of the process, a model
that takes too long.
"""

from __future__ import annotations

import argparse
import collections
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

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
"""A number and what is wrong with how its model was taken."""


def command_of(number: int, folder: Path, *, verify: bool) -> list[str]:
    """The arguments that the model of a number is handed over with."""
    name, *options = COMMANDS[number % len(COMMANDS)]
    checks = [] if verify else ["--no-verify"]
    return [name, str(folder / "in.onnx"), "-o", str(folder / "out.onnx"), "-q", *options, *checks]


def judge(number: int, models: Sequence[bytes], folder: Path, *, verify: bool) -> tuple[int, str]:
    """Hand one broken model to the command line: its exit status, and what is wrong; empty if nothing."""
    from reducelower.cli import run

    (folder / "in.onnx").write_bytes(mutated(models, number))
    output, said = folder / "out.onnx", folder / "said.txt"
    output.unlink(missing_ok=True)
    with said.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        start = time.process_time()  # on a machine that is busy, time passes without work
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
        # What could not be shown is said of a model that is written, even with -q.
        lines = [line for line in lines if not line.startswith("warning: ")]
    if any(not line.startswith("error: ") for line in lines):
        return f"chatter: {' '.join(lines)[:300]}"
    if (status == 0) != has_output or (status == 0) != (not lines):
        return f"status {status} with output: {has_output}, {len(lines)} lines"
    return f"{seconds:.1f} s" if seconds > SECONDS / 2 else ""


def _work(numbers: Sequence[int], verify: bool, pipe: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    models = seeds()
    # Each output is put on disk before it has its name: in memory, where there is such a folder, that takes no time.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="bytes_run", dir=memory) as name:
        for number in numbers:
            # Unhandled, so that nothing in Python can swallow it. Time counts as work, and at last as time.
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            signal.alarm(20 * SECONDS)
            pipe.send((number, None, ""))
            pipe.send((number, *judge(number, models, Path(name), verify=verify)))
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.alarm(0)
    pipe.close()


def run_numbers(numbers: Sequence[int], *, verify: bool = False) -> tuple[collections.Counter[int], list[Finding]]:
    """Hand the broken models of these numbers to the command line, in one process after another as they die.

    Returns:
        How often each exit status came, and the findings.
    """
    context = multiprocessing.get_context("spawn")
    statuses: collections.Counter[int] = collections.Counter()
    findings: list[Finding] = []
    left = list(numbers)
    while left:
        ours, theirs = context.Pipe(duplex=False)
        worker = context.Process(target=_work, args=(left, verify, theirs))
        worker.start()
        theirs.close()
        number = left[0]
        finished = 0
        try:
            while True:
                number, status, complaint = ours.recv()
                if status is None:
                    continue
                finished += 1
                statuses[status] += 1
                if complaint:
                    findings.append((number, complaint))
        except EOFError:
            worker.join()
        if finished < len(left):
            findings.append((left[finished], f"the process died: exit code {worker.exitcode}"))
        left = left[finished + 1 :]
    return statuses, findings


def _slice(arguments: tuple[range, bool]) -> tuple[collections.Counter[int], list[Finding]]:
    return run_numbers(arguments[0], verify=arguments[1])


def main() -> None:
    """Run as many as asked, some at a time, and print findings as they come."""
    from concurrent.futures import ThreadPoolExecutor

    parser = argparse.ArgumentParser(description="Hand broken models to the command line.")
    parser.add_argument("--count", type=int, default=200_000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--verify", action="store_true")
    options = parser.parse_args()
    end = options.start + options.count
    pieces = [(range(start, min(start + 2000, end)), options.verify) for start in range(options.start, end, 2000)]
    total: collections.Counter[int] = collections.Counter()
    began = time.monotonic()
    with ThreadPoolExecutor(options.jobs) as pool:
        for statuses, findings in pool.map(_slice, pieces):
            total += statuses
            for finding in findings:
                print(*finding, flush=True)
            print(f"# {sum(total.values())} {dict(total)} {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
