"""Processes of this machine at one list: order kept, only the jobs that kill a process lost, nobody left behind."""

from __future__ import annotations

import faulthandler
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

import pytest

from reducelower.batch.many import run_all
from reducelower.batch.processes import run_in_processes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what these workers do is found by forked ones only")


def _until(holds: Callable[[], bool], pause: float = 0.02, times: int = 1000) -> bool:
    """Whether something comes true before patience ends."""
    for _ in range(times):
        if holds():
            return True
        time.sleep(pause)
    return False


def _note(folder: Path, name: object) -> None:
    with (folder / str(name)).open("a") as file:
        file.write("done ")


def _squared(job: int, *, poison: Collection[int] = ()) -> int:
    if job in poison:
        os._exit(9)
    return job * job


@pytest.mark.parametrize(
    ("count", "poison"),
    [
        (5, ()), (20, ()), (2, (0,)), (5, (3,)), (20, (9,)), (2, (0, 1)), (20, (0, 1)), (5, (4, 5, 6)), (2, range(10)),
        (20, range(10)),
    ],
    ids=str,
)  # fmt: skip
def test_jobs_that_kill_their_process_are_the_only_ones_lost(count: int, poison: Collection[int]) -> None:
    results = list(run_all(partial(_squared, poison=poison), range(10), count, lambda job, _: -1 - job))
    assert results == [-1 - job if job in poison else job * job for job in range(10)]


def test_a_process_that_ends_without_an_error_is_noticed() -> None:
    def leave(job: int) -> int:
        if job == 2:
            os._exit(0)
        return job

    assert list(run_all(leave, range(6), 2, lambda job, _: -1)) == [0, 1, -1, 3, 4, 5]


def _noting(job: int, folder: Path) -> int:
    _note(folder, job)
    if job == 0:
        assert _until(lambda: len(list(folder.iterdir())) == 6)
        os._exit(1)
    return job


def test_what_was_done_before_a_crash_is_not_done_again(tmp_path: Path) -> None:
    """Job 0 takes its process down when all others have been done."""
    results = list(run_all(partial(_noting, folder=tmp_path), range(6), 2, lambda job, _: -1))
    assert results == [-1, 1, 2, 3, 4, 5]
    assert {path.name for path in tmp_path.iterdir() if path.read_text().count("done") > 1} == {"0"}


def _needing_room(job: int, folder: Path) -> str:
    """Dies on job 1 unless nothing runs beside it, as for want of memory."""
    mine = folder / f"{job}.running"
    mine.touch()
    if job == 1:
        time.sleep(0.2)
    beside = [path.name for path in folder.glob("*.running") if path != mine]
    if job == 1 and beside:
        mine.unlink()
        os._exit(1)
    time.sleep(0.1)
    mine.unlink()
    return f"{job}: done"


def test_the_second_time_nothing_runs_beside_it(tmp_path: Path) -> None:
    results = list(run_all(partial(_needing_room, folder=tmp_path), range(8), 3, lambda job, _: f"{job}: lost"))
    assert results == [f"{job}: done" for job in range(8)]


def _slow(job: int, folder: Path, poison: Collection[int] = ()) -> int:
    _note(folder, job)
    if job in poison:
        os._exit(1)
    time.sleep(0.05)
    return job


def test_a_crash_is_told_long_before_the_end(tmp_path: Path) -> None:
    results = run_all(partial(_slow, folder=tmp_path, poison=(0,)), range(1000), 2, lambda job, _: -1)
    assert next(iter(results)) == -1
    results.close()
    assert len(list(tmp_path.iterdir())) < 100


def test_after_a_crash_all_processes_work_on() -> None:
    """Each job says which process it ran in: two before the crash, two after, and none for a job of its own."""
    results = list(run_all(lambda job: os._exit(1) if job == 5 else os.getpid(), range(200), 2, lambda job, _: 0))
    assert len(set(results) - {0}) <= 4


def test_processes_that_are_spawned() -> None:
    """As on systems where forking is not safe: what they need is sent to them."""
    results = run_in_processes(abs, range(-9, 1), 3, lambda job, _: -1, method="spawn")
    assert list(results) == list(range(9, -1, -1))


def test_interrupts_are_for_the_parent() -> None:
    """The terminal sends them to all processes at once; the parent tells its workers when to stop."""

    def interrupted(job: int) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        return job

    assert list(run_all(interrupted, range(6), 2, lambda job, _: -1)) == list(range(6))


def test_an_interrupt_does_not_wait_for_what_processes_are_at() -> None:
    def hanging(job: int) -> int:
        time.sleep(600)
        return job

    own = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
    threading.Timer(0.5, signal.pthread_kill, [threading.main_thread().ident, signal.SIGINT]).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            list(run_all(hanging, range(6), 2, lambda job, _: -1))
    finally:
        signal.signal(signal.SIGINT, own)
    assert multiprocessing.active_children() == []


def _die(job: int) -> int:
    faulthandler.disable()  # which pytest enables
    os.write(2, b"terminate called\n")
    os.abort()


def test_what_killed_a_process_is_done_otherwise_the_second_time() -> None:
    results = run_all(_die, [1, 2], 1, lambda job, _: -1, again=lambda job: job * 10, is_apart=True)
    assert list(results) == [10, 20]


def test_how_a_process_died_is_told_with_its_last_words() -> None:
    (told,) = run_all(_die, [1], 1, lambda job, why: why, is_apart=True)
    assert "SIGABRT: terminate called" in told


def test_warnings_of_a_process_are_passed_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(run_all(lambda job: os.write(2, b"careful"), [1], 1, lambda job, _: -1, is_apart=True)) == [7]
    assert capsys.readouterr().err == "careful"


def test_nothing_is_kept_of_processes_that_have_ended() -> None:
    class Work:
        def __call__(self, job: int) -> int:
            return _squared(job, poison=(3,))

    work = Work()
    kept = weakref.ref(work)
    assert list(run_all(work, range(6), 2, lambda job, _: 9)) == [0, 1, 4, 9, 16, 25]
    del work
    gc.collect()
    assert kept() is None
    assert multiprocessing.active_children() == []


def test_results_larger_than_a_pipe_holds() -> None:
    results = run_all(lambda job: bytes([job]) * 3_000_000, range(6), 2, lambda job, _: b"")
    assert [(len(result), result[0]) for result in results] == [(3_000_000, job) for job in range(6)]


def test_results_come_as_they_come(tmp_path: Path) -> None:
    """The first result is here before the last job is allowed to end."""

    def waiting(job: int) -> int:
        if job == 3:
            assert _until((tmp_path / "seen").exists)
        return job

    results = run_all(waiting, range(4), 2, lambda job, _: -1)
    assert next(iter(results)) == 0
    (tmp_path / "seen").touch()
    assert list(results) == [1, 2, 3]


NEVER_BEGINS = """
from reducelower.batch.processes import run_in_processes
print(list(run_in_processes(abs, range(10), 2, abs, method="spawn")))
"""


def test_processes_that_never_begin_are_not_started_for_ever(tmp_path: Path) -> None:
    """They are spawned, and import a script that starts processes whoever imports it."""
    script = tmp_path / "script.py"
    script.write_text(NEVER_BEGINS)
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 1
    assert "__main__" in ran.stderr


def _hanging(job: int, folder: Path) -> int:
    _note(folder, job)
    if job:
        subprocess.run(["sleep", "600"], check=False)
    return job


INTERRUPTED = """
import os, signal, sys, time
from functools import partial
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from batch.test_processes import _hanging
from reducelower.batch.many import run_all
signal.signal(signal.SIGINT, signal.default_int_handler)
folder = Path(sys.argv[2])
for result in run_all(partial(_hanging, folder=folder), range(3), 3, abs):
    while len(list(folder.iterdir())) < 3:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
"""


def test_an_interrupt_while_a_result_is_handled_waits_for_no_job(tmp_path: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED, str(Path(__file__).parents[1]), str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert ran.stderr.endswith("KeyboardInterrupt\n")
    assert ran.returncode == -signal.SIGINT


def test_who_wants_no_more_results_waits_for_no_job(tmp_path: Path) -> None:
    results = run_all(partial(_hanging, folder=tmp_path), range(3), 3, lambda job, _: -1)
    assert next(iter(results)) == 0
    results.close()
    assert multiprocessing.active_children() == []


def _large(job: int, folder: Path) -> bytes:
    _note(folder, job)
    return bytes(300_000)


LEAVING = """
import sys
from functools import partial
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from batch.test_processes import _large
from reducelower.batch.many import run_all
results = run_all(partial(_large, folder=Path(sys.argv[2])), range(100_000), 2, abs)
for result in results:
    sys.exit(7)
"""


def test_a_script_that_leaves_half_way_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LEAVING, str(Path(__file__).parents[1]), str(tmp_path)]
    assert subprocess.run(command, check=False, timeout=300).returncode == 7
    assert len(list(tmp_path.iterdir())) < 100


KILLED = """
import sys
from functools import partial
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from batch.test_processes import _slow
from reducelower.batch.many import run_all
for result in run_all(partial(_slow, folder=Path(sys.argv[2])), range(100_000), 3, abs):
    print(result, flush=True)
"""


def test_workers_end_with_a_killed_parent(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(Path(__file__).parents[1]), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"0\n"
        parent.send_signal(signal.SIGKILL)
    done = -1

    def nothing_more() -> bool:
        nonlocal done
        before, done = done, len(list(tmp_path.iterdir()))
        return before == done

    assert _until(nothing_more, pause=0.5, times=40)
    assert done < 1000
