"""Weights: inside the file and beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from commands import reducelower
from measuring import Line, at_most, duration, peak_memory, per_turn, run_child, take_turns
from models import external_model, inline_model
from onnx import load_from_string

from reducelower import convert_version

__all__ = ["external", "in_memory", "inline"]

_NO_VERIFY = ("--opset", "18", "--no-verify", "--force", "--quiet")


def inline(folder: Path, *, quick: bool) -> Iterator[Line]:
    """A model with its weights inside the file: time compared with ``cp``, memory compared with the file's size."""
    size, rounds = (8 << 20, 1) if quick else (1_500_000_000, 7)
    model, copy, output = folder / "inline.onnx", folder / "copy.onnx", folder / "converted.onnx"
    inline_model(model, size)
    convert = reducelower("convert", model, "-o", output, *_NO_VERIFY)

    def settle() -> None:
        """Remove the last outputs and sync the disk, so that no contender pays for another one."""
        copy.unlink(missing_ok=True)
        output.unlink(missing_ok=True)
        os.sync()

    times = take_turns(
        {
            "cp": partial(run_child, ["cp", "--reflink=never", str(model), str(copy)]),
            # The command's output is on disk when it ends; cp leaves that to the system.
            "cp and sync": partial(run_child, ["sh", "-c", f"cp --reflink=never '{model}' '{copy}' && sync '{copy}'"]),
            "ours": partial(run_child, convert),
        },
        rounds,
        before=settle,
    )
    what = f"inline weights, {model.stat().st_size / 1e9:.3g} GB"
    yield at_most(f"{what}: time", times["ours"], times["cp"], "cp", 2)
    yield at_most(f"{what}: time", times["ours"], times["cp and sync"], "cp, then sync", None)
    peak = peak_memory(convert)
    ratio = peak / model.stat().st_size
    yield Line(
        f"{what}: peak memory",
        f"{peak / 1e6:.0f} MB",
        f"{model.stat().st_size / 1e6:.0f} MB the file",
        ratio,
        "<= 0.3x",
        ratio <= 0.3,
    )
    for path in (model, copy, output):
        path.unlink(missing_ok=True)


def in_memory(folder: Path, *, quick: bool) -> Iterator[Line]:
    """A model of 300 MB of weights as bytes, compared with parsing and writing it, as other tools do."""
    size, rounds = (8 << 20, 1) if quick else (300_000_000, 5)
    path = folder / "weights.onnx"
    inline_model(path, size)
    data = path.read_bytes()
    path.unlink()
    times = take_turns(
        {
            "ours": partial(convert_version, data, 18),
            "floor": lambda: load_from_string(data).SerializeToString(),
        },
        rounds,
    )
    yield at_most(
        f"bytes to bytes, {len(data) / 1e6:.0f} MB", times["ours"], times["floor"], "parse and serialize", 0.5
    )


def external(folder: Path, *, quick: bool) -> Iterator[Line]:
    """A model with 20 GB of external data, to the same folder and to another."""
    size = 1 << 24 if quick else 20_000_000_000 // 4096 * 4096
    model, elsewhere = folder / "external.onnx", folder / "elsewhere"
    external_model(model, size)
    elsewhere.mkdir()
    for place, output in (("same folder", folder / "external18.onnx"), ("elsewhere", elsewhere / "external18.onnx")):
        seconds = per_turn(partial(run_child, reducelower("convert", model, "-o", output, *_NO_VERIFY)), 1)
        what = f"external data, {size / 1e9:.3g} GB sparse, {place}"
        yield Line(what, duration(seconds), "10 s", seconds / 10, "<= 1x", seconds <= 10)
