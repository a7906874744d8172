"""Measure conversions of models of many exporters: `python -m tools.exporters.times [networks] [--least 300]`.

It compares the CPU time of the second conversion in a process with parsing the model and writing it again, and on the
way up with onnx's converter. It needs the packages of `python -m tools.exporters.corpus`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median

import onnx
from onnx import version_converter

import reducelower
from reducelower.errors import ConversionError
from reducelower.model.schemas import opset_of

from .corpus import PARTS, TARGETS


def seconds(work: Callable[[], object], rounds: int = 3) -> float:
    """The shortest CPU time of several rounds."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def of_converter(data: bytes, target: int) -> float | None:
    """The CPU time of onnx's converter; None if it fails."""
    try:
        return seconds(
            lambda: version_converter.convert_version(onnx.load_from_string(data), target).SerializeToString()
        )
    except Exception:  # it raises several kinds of its own
        return None


def main() -> int:
    """Print a line for each target: conversions, microseconds per node, ratio to parsing and writing, and to onnx's."""
    parser = argparse.ArgumentParser(prog="python -m tools.exporters.times", description=(__doc__ or "").split(":")[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="parts to make; default: all")
    parser.add_argument("--least", type=int, default=0, metavar="NODES", help="leave out models with fewer nodes")
    arguments = parser.parse_args()
    lines: dict[int, list[tuple[float, float, float | None]]] = defaultdict(list)
    models = 0
    with tempfile.TemporaryDirectory() as folder:
        for source in (source for part in arguments.parts or PARTS for source in PARTS[part](Path(folder))):
            if len(source.model.graph.node) < arguments.least:
                continue
            models += 1
            data, opset = source.model.SerializeToString(), opset_of(source.model)
            floor = seconds(lambda data=data: onnx.load_from_string(data).SerializeToString())  # type: ignore[misc]
            for target in (*TARGETS, 24):
                try:
                    reducelower.convert_version(data, target)
                except ConversionError:
                    continue
                taken = seconds(lambda data=data, target=target: reducelower.convert_version(data, target))  # type: ignore[misc]
                other = of_converter(data, target) if target > opset else None
                if target != opset:
                    lines[target].append((taken / len(source.model.graph.node), taken / floor, other and other / taken))
    print(f"{models} models\n")
    print(
        "| to opset | conversions | per node | times parsing and writing | at most 10 | at most 40 "
        "| times as fast as onnx's converter, least |"
    )
    print("|--:|--:|--:|--:|--:|--:|--:|")
    for target, found in sorted(lines.items()):
        per_node, times, faster = zip(*found, strict=True)
        ratios = [one for one in faster if one is not None]
        beside = f"{median(ratios):.1f}, {min(ratios):.1f} of {len(ratios)}" if ratios else ""
        shares = " | ".join(f"{sum(one <= most for one in times) / len(times):.0%}" for most in (10, 40))
        print(
            f"| {target} | {len(found)} | {median(per_node) * 1e6:.0f} us | {median(times):.0f} | {shares} | {beside} |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
