"""Compare ways to run conversions in processes: `python benchmarks/workers.py` prints the table of docs/design.md.

`batch/processes`, Python's ProcessPoolExecutor and loky (if installed) convert the same small models with two workers.
A job that a library loses is tried again, alone. In some runs every tenth model kills its worker, which takes loky five
minutes. Linux only, because /proc shows which processes are left.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from reducelower.batch.many import convert_file, crashed
from reducelower.batch.processes import run_in_processes
from reducelower.options import Settings, Target
from reducelower.outcome import Outcome
from reducelower.pipeline.task import Task

MODEL = Path(__file__).parents[1] / "examples" / "models" / "mean_18.onnx"
SETTINGS = Settings(Target(13), verify=False)
MANY, SOME, WORKERS = 1200, 300, 2
LASTING = 3


def convert(task: Task) -> Outcome:
    """Convert one model; a model whose name says so kills its worker."""
    if Path(task.source).name.startswith("deadly"):
        os.kill(os.getpid(), signal.SIGKILL)
    return convert_file(task, SETTINGS)


def stay(folder: str) -> None:
    """Record the process id, and work for a moment."""
    Path(folder, str(os.getpid())).touch()
    time.sleep(0.1)


def in_pool(
    pool: Callable[[int], Executor], work: Any, jobs: Sequence[Any], processes: int, lost: Any
) -> Iterator[Any]:
    """The results of a library for the jobs; those that it loses are tried again, alone."""
    with pool(processes) as executor:
        futures = [executor.submit(work, job) for job in jobs]
        results = [future.exception() or future.result() for future in futures]
    for job, result in zip(jobs, results, strict=True):
        again = result
        if isinstance(result, Exception):
            with pool(1) as executor:
                future = executor.submit(work, job)
                again = lost(job, str(future.exception())) if future.exception() else future.result()
        yield again


def ways() -> Iterator[tuple[str, Callable[..., Iterator[Any]]]]:
    """The ways to run jobs in processes, by name."""
    yield "here", run_in_processes
    yield "ProcessPoolExecutor", partial(in_pool, ProcessPoolExecutor)
    with contextlib.suppress(ImportError):
        from loky import ProcessPoolExecutor as Loky

        yield "loky", partial(in_pool, Loky)


def converted(run: Callable[..., Iterator[Any]], count: int, deadly: int) -> tuple[float, int]:
    """Seconds for converting models, some of which kill their worker, and how many others are reported as failed."""
    with TemporaryDirectory() as folder:
        tasks = []
        for at in range(count):
            name = f"{'deadly' if deadly and at % deadly == 0 else 'model'}{at}.onnx"
            shutil.copy(MODEL, Path(folder, name))
            tasks.append(Task(str(Path(folder, name)), str(Path(folder, f"out_{name}"))))
        start = time.monotonic()
        outcomes = list(run(convert, tasks, WORKERS, crashed))
        seconds = time.monotonic() - start
    failed = [outcome for outcome in outcomes if outcome.status and "deadly" not in outcome.source]
    return seconds, len(failed)


def left_behind(name: str) -> int:
    """The number of workers that still run three seconds after their parent was killed."""
    with TemporaryDirectory() as folder:
        parent = subprocess.Popen([sys.executable, __file__, name, folder])
        while len(list(Path(folder).iterdir())) < LASTING:
            time.sleep(0.1)
        parent.kill()
        parent.wait()
        time.sleep(3)
        alive = [int(path.name) for path in Path(folder).iterdir() if Path("/proc", path.name).exists()]
        for process in alive:
            os.kill(process, signal.SIGKILL)
    return len(alive)


def main() -> None:
    """Print the table with a column for each way; given a name and a folder, keep workers busy until killed."""
    by_name = dict(ways())
    if len(sys.argv) > 1:
        name, folder = sys.argv[1:]
        list(by_name[name](stay, [folder] * 1000, LASTING, crashed))
        return
    alone, _ = converted(lambda work, jobs, *_: map(work, jobs), MANY, 0)
    rows: list[list[str]] = [[""], [f"{MANY:,} small models with two workers, against {alone:.1f} s with one"]]
    rows += [
        [f"{SOME} models, every tenth of which kills its worker"],
        [f"of the {SOME * 9 // 10} others, reported as failed"],
    ]
    rows += [[f"workers still running 3 s after their parent was killed, of {LASTING}"]]
    for name, run in by_name.items():
        seconds, failed = converted(run, SOME, 10)
        figures = [
            name,
            f"{converted(run, MANY, 0)[0]:.1f} s",
            f"{seconds:.1f} s",
            failed or "none",
            left_behind(name) or "none",
        ]
        for row, figure in zip(rows, figures, strict=True):
            row.append(str(figure))
    for at, row in enumerate(rows):
        print(f"| {' | '.join(row)} |")
        if at == 0:
            print("|---" * len(row) + "|")


if __name__ == "__main__":
    main()
