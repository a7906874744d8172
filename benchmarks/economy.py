"""Compare models before and after a conversion: nodes, control flow, bytes and time in onnxruntime.

    python benchmarks/economy.py [--targets 9,11,13] [--models FOLDER] [--operators] [--rounds 20]

It measures every model in tests/data/models, small transformers if PyTorch and transformers are installed, and those of
a folder (NAME.onnx beside NAME.npz). Nodes of subgraphs count, Constants do not. Time is CPU time in onnxruntime with
its default optimizations on one thread, source and results in turn. If PyTorch's tracing exporter writes the same model
at the target's opset version, the number of its nodes is added.

`--operators` prints for each operator how many nodes an expert would write, and how many are written.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from exported import Exported, of_repository, stored, transformers
from measuring import take_turns
from onnx import ModelProto, parser

import reducelower
from reducelower.model.graph import all_nodes

__all__ = ["OPERATORS", "Measured", "control_flow", "measured", "nodes", "operators"]

_CONTROL = ("If", "Loop", "Scan")


@dataclass(frozen=True)
class Measured:
    """One model at one target.

    Attributes:
        nodes: before and after.
        control: Ifs, Loops and Scans, before and after.
        size: bytes, before and after.
        time: the time of the result, divided by that of the source; None if one does not run.
        traced: nodes that the tracing exporter writes; None if it does not.
    """

    name: str
    opset: int
    target: int
    nodes: tuple[int, int]
    control: tuple[int, int]
    size: tuple[int, int]
    time: float | None
    traced: int | None

    @property
    def growth(self) -> float:
        """The nodes of the result, divided by those of the source."""
        return self.nodes[1] / max(self.nodes[0], 1)


def nodes(model: ModelProto) -> int:
    """Nodes of all graphs and functions, without Constants."""
    return sum(node.op_type != "Constant" for node in all_nodes(model))


def control_flow(model: ModelProto) -> int:
    """The number of nodes for control flow."""
    return sum(node.op_type in _CONTROL for node in all_nodes(model))


def measured(exported: Exported, targets: Sequence[int], rounds: int) -> Iterator[Measured]:
    """One model at all targets below its own opset version to which it can be converted."""
    results = {}
    for target in targets:
        if target < exported.opset:
            with contextlib.suppress(reducelower.ConversionError):
                results[target] = reducelower.convert_version(exported.model, target)
    times = _times({exported.opset: exported.model, **results}, exported.feeds, rounds) if rounds else {}
    own = times.get(exported.opset)
    for target, result in results.items():
        seconds = times.get(target)
        yield Measured(
            exported.name,
            exported.opset,
            target,
            (nodes(exported.model), nodes(result)),
            (control_flow(exported.model), control_flow(result)),
            (exported.model.ByteSize(), result.ByteSize()),
            seconds / own if seconds and own else None,
            _traced(exported, target),
        )


def _times(models: dict[int, ModelProto], feeds: Any, rounds: int) -> dict[int, float]:
    """The median seconds of a run, by opset version, for the models that run."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    runs = {}
    for opset, model in models.items():
        with contextlib.suppress(Exception):  # onnxruntime has a class per status code
            session = onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            session.run(None, feeds)
            runs[opset] = partial(session.run, None, feeds)
    return take_turns(runs, rounds, clock=time.thread_time)


def _traced(exported: Exported, target: int) -> int | None:
    if exported.traced is None:
        return None
    # If the exporter fails at an opset version, it raises any kind of exception, and prints the whole model.
    with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
        return nodes(exported.traced(target))
    return None


_X, _Y, _HEADS, _SHARED = "float[2, 3, 8] x", "float[2, 3, 8] y", "float[2, 4, 6, 8]", "float[2, 2, 6, 8]"
_WEIGHTS = "float[8] s, float[8] b"
_SHORT = "<float s = {0.5}, uint16 z = {7}>"
OPERATORS: Sequence[tuple[str, int, str, int]] = (
    (
        "GridSample", 16,
        "(float[1, 2, 5, 6] x, float[1, 4, 3, 2] g) => (float[1, 2, 4, 3] y) { y = GridSample (x, g) }", 28,
    ),
    ("LayerNormalization", 17, f"({_X}, {_WEIGHTS}) => ({_Y}) {{ y = LayerNormalization (x, s, b) }}", 9),
    ("RMSNormalization", 23, f"({_X}, float[8] s) => ({_Y}) {{ y = RMSNormalization (x, s) }}", 6),
    ("Gelu", 20, f"({_X}) => ({_Y}) {{ y = Gelu (x) }}", 5),
    ("Attention", 23, f"({_HEADS} q, {_HEADS} k, {_HEADS} v) => ({_HEADS} y) {{ y = Attention (q, k, v) }}", 5),
    (
        "Attention with a mask", 23,
        f"({_HEADS} q, {_HEADS} k, {_HEADS} v, bool[6, 6] m) => ({_HEADS} y) {{ y = Attention (q, k, v, m) }}", 8,
    ),
    (
        "causal Attention with shared heads", 23,
        f"({_HEADS} q, {_SHARED} k, {_SHARED} v) => ({_HEADS} y) {{ y = Attention <is_causal = 1> (q, k, v) }}", 8,
    ),
    (
        "RotaryEmbedding", 23,
        f"({_HEADS} x, float[2, 6, 4] c, float[2, 6, 4] s) => ({_HEADS} y) {{ y = RotaryEmbedding (x, c, s) }}", 10,
    ),
    (
        "QuantizeLinear and DequantizeLinear of 16 bits", 21,
        f"({_X}) => ({_Y}) {_SHORT} {{ q = QuantizeLinear (x, s, z) y = DequantizeLinear (q, s, z) }}", 4,
    ),
    (
        "DequantizeLinear of 16 bits", 21,
        f"(uint16[2, 3] x) => (float[2, 3] y) {_SHORT} {{ y = DequantizeLinear (x, s, z) }}", 3,
    ),
    ("QuantizeLinear of 16 bits", 21, f"({_X}) => (uint16[2, 3, 8] y) {_SHORT} {{ y = QuantizeLinear (x, s, z) }}", 5),
    ("DFT", 17, "(float[1, 8, 1] x) => (float[1, 8, 2] y) { y = DFT <axis = 1> (x) }", 3),
    ("Shape with an end", 15, "(float[N, 3, 8] x) => (int64[2] y) { y = Shape <end = 2> (x) }", 2),
)  # fmt: skip
"""Frequent operators: name, opset version, a use, and the number of nodes that an expert would write at 13."""


def operators() -> Iterator[tuple[str, int, int]]:
    """Each name with the expert's number of nodes, and ours."""
    for name, opset, text, expert in OPERATORS:
        model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> g {text}')
        yield name, expert, nodes(reducelower.convert_version(model, 13))


def _print_operators() -> None:
    print(f"{'operator':<46} {'expert':>6} {'ours':>5}")
    for name, expert, ours in operators():
        print(f"{name:<46} {expert:>6} {ours:>5}")


def _print_models(found: Sequence[Measured]) -> None:
    print(
        f"{'model':<28} {'to':>3} {'nodes':>6} {'after':>6} {'times':>6} {'traced':>6} {'If':>4}"
        f" {'bytes':>6} {'time':>6}"
    )
    for one in found:
        print(
            f"{one.name:<28} {one.target:>3} {one.nodes[0]:>6} {one.nodes[1]:>6} {one.growth:>6.2f} "
            f"{one.traced or '':>6} {one.control[1] - one.control[0]:>4} {one.size[1] / one.size[0]:>6.2f} "
            f"{'' if one.time is None else f'{one.time:.2f}':>6}"
        )


def _print_summary(found: Sequence[Measured]) -> None:
    print("\nmedians (and most): nodes, bytes and time of the result as times the source's; control flow added in all")
    for target in sorted({one.target for one in found}):
        for what, kept in (("up to 20", range(21)), ("above 20", range(21, 99))):
            chosen = [one for one in found if one.target == target and one.opset in kept]
            if not chosen:
                continue
            columns = [
                [one.growth for one in chosen],
                [one.size[1] / one.size[0] for one in chosen],
                [one.time for one in chosen if one.time is not None] or [float("nan")],
            ]
            figures = "  ".join(f"{statistics.median(column):.2f} ({max(column):.2f})" for column in columns)
            added = sum(one.control[1] - one.control[0] for one in chosen)
            print(f"from {what} to {target}: {len(chosen)} models  {figures}  {added}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    reading = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reading.add_argument("--targets", default="9,11,13,15,17", help="opset versions, with commas")
    reading.add_argument("--models", type=Path, help="a folder of NAME.onnx and NAME.npz; measure only these")
    reading.add_argument("--rounds", type=int, default=20, help="runs of each model; 0 to measure no time")
    reading.add_argument("--operators", action="store_true", help="print nodes per operator instead of models")
    options = reading.parse_args(arguments)
    if options.operators:
        _print_operators()
        return
    logging.disable(logging.WARNING)
    targets = [int(target) for target in options.targets.split(",")]
    models = stored(options.models) if options.models else (*of_repository(), *transformers((18, 23)))
    lines = [one for exported in models for one in measured(exported, targets, options.rounds)]
    _print_models(lines)
    _print_summary(lines)


if __name__ == "__main__":
    main()
