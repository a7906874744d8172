"""The command line in a process of its own that has imported everything already: a fork of the one that tests."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from threading import Thread

__all__ = ["ended", "forked", "is_plain", "prepare", "program", "reducelower", "said", "started"]

_LONGEST = 300  # seconds


def is_plain(line: str) -> bool:
    """Whether a line of a shell is a call of reducelower and nothing else, which can be forked here."""
    return sys.platform == "linux" and re.fullmatch(r"reducelower [^|&;<>*?$`~#()\[\]]*", line) is not None


def reducelower(words: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """What reducelower says and how it ends in a folder."""

    def run_there() -> int:
        os.chdir(folder)
        return _run(words)

    return said(run_there)


def said(work: Callable[[], int]) -> subprocess.CompletedProcess[str]:
    """What a fork says that does some work, and how it ends."""
    prepare()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, Path(os.devnull).open("rb") as taken:
        status = ended(forked(work, (taken.fileno(), out.fileno(), err.fileno())))
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="surrogateescape"))
    return subprocess.CompletedProcess((), status, *texts)


_ASKING = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as asked:
    asked.connect({address!r})
    socket.send_fds(asked, [b" "], [0, 1, 2])
    asked.sendall(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode())
    asked.shutdown(socket.SHUT_WR)
    sys.exit(int(asked.recv(9)))
"""


def program(path: Path) -> None:
    """Write a program for shells that does what reducelower does, in a fork of this process."""
    text = f'#!/bin/sh\nexec "{sys.executable}" -m reducelower "$@"\n'
    if sys.platform == "linux":
        text = _ASKING.format(python=sys.executable, address=_address())
    path.write_text(text)
    path.chmod(0o755)


@cache
def _address() -> str:
    """Where a thread waits for what programs are called with."""
    prepare()
    listener = socket.socket(socket.AF_UNIX)
    address = f"\0reducelower {os.getpid()}"
    listener.bind(address)
    listener.listen()
    Thread(target=_serve, args=(listener,), daemon=True).start()
    return address


def _serve(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        Thread(target=_answer, args=(connection,), daemon=True).start()


def _answer(connection: socket.socket) -> None:
    """Run what one program is called with, its standard streams those of that program, and send the status back."""
    with connection:
        _, streams, *_ = socket.recv_fds(connection, 1, 3)
        with connection.makefile("rb") as file:
            words, folder, environment = json.loads(file.read())

        def run_there() -> int:
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(environment)
            return _run(words)

        status = ended(forked(run_there, (streams[0], streams[1], streams[2])))
        for stream in streams:
            os.close(stream)
        connection.sendall(str(status).encode())


_ROOMS = ("adapters", "batch.many", "cli", "difference", "legalization", "pipeline", "report", "verification")


@cache
def prepare() -> None:
    """Import what commands import as they go and verify a conversion once, so that not every fork begins with that."""
    import onnx.parser
    import rich.table  # noqa: F401

    from reducelower import Target, api
    from reducelower.legalization.memo import forget
    from reducelower.verification import verify

    for room in _ROOMS:
        package = import_module(f"reducelower.{room}")
        for _, name, _ in walk_packages(getattr(package, "__path__", ()), f"{package.__name__}."):
            import_module(name)
    graph = "g (float[N, 2] x) => (float[N, 1] y) { a = Constant <value_ints = [1]> () y = ReduceL2 (x, a) }"
    given = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {graph}')
    made = api.legalize(given, Target(13, frozenset({"ReduceL2"})))
    assert verify(given, made.model, plan=made.plan).equivalent
    forget()


def started(words: Sequence[str]) -> int:
    """The number of a process in which reducelower runs, in the folder of this one, and says nothing."""
    prepare()
    with Path(os.devnull).open("r+b") as nothing:
        return forked(lambda: _run(words), (nothing.fileno(), nothing.fileno(), nothing.fileno()))


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
