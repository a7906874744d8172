"""The command line: start-up time, and many models."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from measuring import Line, at_most, run_child, take_turns
from models import chain, small_model

__all__ = ["command", "many_models", "reducelower"]


def reducelower(*arguments: str | Path) -> list[str]:
    """The command line of a conversion in a process of its own."""
    return [sys.executable, "-m", "reducelower", *map(str, arguments)]


def command(folder: Path, *, quick: bool) -> Iterator[Line]:
    """A small model end to end, compared with a process that only imports onnx."""
    small = folder / "small.onnx"
    small.write_bytes(small_model())
    convert = reducelower(
        "convert", small, "-o", folder / "small18.onnx", "--opset", "18", "--no-verify", "--force", "--quiet"
    )
    times = take_turns(
        {
            "ours": partial(run_child, convert),
            "import": partial(run_child, [sys.executable, "-c", "import onnx"]),
        },
        1 if quick else 25,
    )
    yield at_most("convert small.onnx --no-verify", times["ours"], times["import"], "python -c 'import onnx'", 1.3)


def many_models(folder: Path, *, quick: bool) -> Iterator[Line]:
    """A folder of small models, in one process and in two, with and without verification."""
    count = 4 if quick else 1000
    sources = folder / "many"
    sources.mkdir()
    for number in range(count):
        (sources / f"model_{number}.onnx").write_bytes(chain(20 + number % 80, 13))

    def convert(jobs: int, *options: str) -> None:
        settings = ("--opset", "18", "--force", "--quiet", "--jobs", str(jobs), *options)
        run_child(reducelower("convert", sources, "--output-dir", folder / "converted", *settings))

    what = f"{count:,} models of 20 to 99 nodes, --jobs 2"
    for option, goal in ((), 0.6), (("--no-verify",), None):
        times = take_turns({jobs: partial(convert, jobs, *option) for jobs in (1, 2)}, 1 if quick else 3)
        yield at_most(" ".join((what, *option)), times[2], times[1], " ".join(("--jobs 1", *option)), goal)
