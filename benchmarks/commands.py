"""The command line: start-up, many models."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from measuring import Line, at_most, run_child, take_turns
from models import small_model

__all__ = ["command", "many_models", "reducelower"]


def reducelower(*arguments: str | Path) -> list[str]:
    """The command line of a conversion in a process of its own."""
    return [sys.executable, "-m", "reducelower", *map(str, arguments)]


def command(folder: Path, *, quick: bool) -> Iterator[Line]:
    """A small model end to end, beside a process that only imports onnx."""
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
    yield at_most("convert small.onnx --no-verify", times["ours"], times["import"], "python -c 'import onnx'", 1.6)


def many_models(folder: Path, *, quick: bool) -> Iterator[Line]:
    """A folder of small models, in one process and in two."""
    count = 4 if quick else 1000
    sources = folder / "many"
    sources.mkdir()
    content = small_model()
    for number in range(count):
        (sources / f"model_{number}.onnx").write_bytes(content)

    def convert(jobs: int) -> None:
        options = ("--opset", "18", "--no-verify", "--force", "--quiet", "--jobs", str(jobs))
        run_child(reducelower("convert", sources, "--output-dir", folder / "converted", *options))

    times = take_turns({"one": partial(convert, 1), "two": partial(convert, 2)}, 1 if quick else 3)
    yield at_most(f"{count:,} small models, --jobs 2", times["two"], times["one"], "--jobs 1", 0.6)
