"""Measure all speed and size figures of reducelower and its peers in one run.

    python benchmarks/bench.py [--quick] [--only nodes,command] [--out out/bench.json]

It prints a table; each line has its goal and whether it was met. It writes the same as JSON, with the versions and the
machine. `--quick` runs everything once on tiny sizes, to see that it runs; its figures mean nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import commands
import nodes
import running
import weights
from measuring import Line

from reducelower.versions import versions_of

_PACKAGES = ("onnx", "onnxruntime", "onnxscript", "numpy", "protobuf")

_HEADINGS = ("measured", "ours", "beside", "ratio", "goal", "held")


def _groups(folder: Path, *, quick: bool) -> Mapping[str, Callable[[], Iterator[Line]]]:
    return {
        "exporters": lambda: nodes.exporters(quick=quick),
        "nodes": lambda: nodes.conversion(quick=quick),
        "linear": lambda: nodes.linearity(quick=quick),
        "expand": lambda: nodes.expansion(quick=quick),
        "raise": lambda: nodes.raising(quick=quick),
        "refusals": lambda: nodes.refusals(quick=quick),
        "command": lambda: commands.command(folder, quick=quick),
        "many": lambda: commands.many_models(folder, quick=quick),
        "inline": lambda: weights.inline(folder, quick=quick),
        "in-memory": lambda: weights.in_memory(folder, quick=quick),
        "external": lambda: weights.external(folder, quick=quick),
        "latency": lambda: running.latency(quick=quick),
        "verification": lambda: running.verification(quick=quick),
    }


def _machine() -> dict[str, str]:
    versions = {**versions_of(*_PACKAGES), "Python": platform.python_version()}
    versions["system"] = f"{platform.system()} {platform.release()} {platform.machine()}"
    versions["processor"] = f"{_processor()}, {os.cpu_count()} cores"
    return versions


def _processor() -> str:
    facts = Path("/proc/cpuinfo")
    if facts.is_file():
        for line in facts.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _cells(line: Line) -> tuple[str, ...]:
    held = "" if line.held is None else "yes" if line.held else "NO"
    return line.name, line.ours, line.peer, f"{line.ratio:.2f}x", line.goal, held


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="Measure reducelower and its peers.")
    parser.add_argument("--quick", action="store_true", help="run tiny sizes once, only to see that everything runs")
    parser.add_argument("--only", default="", help="groups to run, separated by commas")
    parser.add_argument("--out", type=Path, default=Path("out/bench.json"), help="file for machine-readable results")
    parser.add_argument("--scratch", type=Path, help="folder for temporary files (24 GB of names, 5 GB of data)")
    options = parser.parse_args()
    machine = _machine()
    print("\n".join(f"{name}: {value}" for name, value in machine.items()))
    print("| " + " | ".join(_HEADINGS) + " |\n|" + "---|" * len(_HEADINGS), flush=True)
    lines: list[Line] = []
    with tempfile.TemporaryDirectory(prefix="reducelower-bench-", dir=options.scratch) as folder:
        groups = _groups(Path(folder), quick=options.quick)
        chosen = options.only.split(",") if options.only else groups
        if unknown := set(chosen) - set(groups):
            parser.error(f"no such group: {', '.join(sorted(unknown))}; there are {', '.join(groups)}")
        for name in chosen:
            for line in groups[name]():
                lines.append(line)
                print("| " + " | ".join(_cells(line)) + " |", flush=True)
    missed = sum(line.held is False for line in lines)
    goals = sum(line.held is not None for line in lines)
    print(f"\n{goals - missed} of {goals} goals held")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    report = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": options.quick,
        "machine": machine,
        "lines": [asdict(line) for line in lines],
    }
    options.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
