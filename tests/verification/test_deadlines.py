"""Runs that take too long are told to stop."""

from __future__ import annotations

import os
import sys
import threading
import time

import pytest

from reducelower.verification.running.clock import terminated_after


class Options:
    """As much of `onnxruntime.RunOptions` as is used."""

    terminate = False


def _is_stopped(options: Options, patience: float = 10.0) -> bool:
    """A run that looks at its options from time to time."""
    end = time.monotonic() + patience
    while not options.terminate and time.monotonic() < end:
        time.sleep(0.005)
    return options.terminate


def test_what_takes_too_long_is_stopped() -> None:
    options = Options()
    with terminated_after(options, 0.05):
        assert _is_stopped(options)


def test_what_is_over_in_time_is_not_stopped_later() -> None:
    early, late = Options(), Options()
    with terminated_after(early, 0.1):
        pass
    with terminated_after(late, 0.2):
        assert _is_stopped(late)
    assert not early.terminate


@pytest.mark.parametrize("seconds", [3600, 1e12], ids=["an hour", "longer than systems can wait"])
def test_a_nearer_deadline_does_not_wait_for_a_far_one(seconds: float) -> None:
    far, near = Options(), Options()
    with terminated_after(far, seconds), terminated_after(near, 0.05):
        assert _is_stopped(near)
    assert not far.terminate


def test_many_runs_at_once_are_stopped() -> None:
    found: list[bool] = []

    def run(seconds: float) -> None:
        options = Options()
        with terminated_after(options, seconds):
            found.append(_is_stopped(options))

    runs = [threading.Thread(target=run, args=(0.05 * number,)) for number in range(8)]
    for thread in runs:
        thread.start()
    for thread in runs:
        thread.join()
    assert found == [True] * 8


def test_without_a_limit_there_is_none() -> None:
    options = Options()
    with terminated_after(options, None):
        pass
    assert not options.terminate


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")
def test_a_run_in_a_forked_process_is_stopped() -> None:
    with terminated_after(Options(), 3600):
        child = os.fork()
        if child == 0:
            options = Options()
            with terminated_after(options, 0.05):
                os._exit(0 if _is_stopped(options) else 1)
        assert os.waitpid(child, 0)[1] == 0


def test_what_has_no_time_left_is_stopped_before_it_starts() -> None:
    options = Options()
    with terminated_after(options, 0.0):
        assert options.terminate
