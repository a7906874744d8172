"""Record the verdicts of verification on conversions, and show which verdicts changed since.

The models of some folders are converted to several opset versions, onnx's own node cases to one each, and every result
is verified. Before a change of the proof, record; after it, compare::

    python -m tools.golden_verdicts out/verdicts.json --record
    python -m tools.golden_verdicts out/verdicts.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto

import reducelower
from reducelower.batch.processes import run_in_processes
from reducelower.verification import verify
from tools.node_cases import cases

MODELS = Path(__file__).parents[1] / "tests" / "data" / "models"
TARGETS = (9, 13, 18, 21)
DOWN, UP = 13, 21  # targets of node cases: down if possible, else up
_BUDGET = 60.0


@dataclass(frozen=True)
class Job:
    """A conversion of a file, or of the node case with a number, to an opset version; 0 means expansion."""

    source: str
    target: int

    @property
    def name(self) -> str:
        """The name in the record, which does not depend on where the folders are."""
        place = self.source if self.source.isdigit() else f"{Path(self.source).parent.name}/{Path(self.source).name}"
        return f"{cases()[int(place)].name if place.isdigit() else place} to {self.target or 'core'}"


def jobs(folders: Sequence[Path], every: int) -> Iterator[Job]:
    """The conversions to verify. `every` selects every n-th node case; 0 selects none."""
    for folder in folders:
        for path in sorted(folder.glob("*.onnx")):
            yield from (Job(str(path), target) for target in (*TARGETS, 0))
    for at in range(0, len(cases()), every) if every else ():
        yield Job(str(at), DOWN if cases()[at].opset > DOWN else UP)


def verdict_of(job: Job) -> tuple[str, str]:
    """The verdict on one conversion, and why; the reasons of refusals do not matter here."""
    np.seterr(all="ignore")
    model, inputs = _read(job.source)
    try:
        if job.target:
            made = reducelower.legalize(model, reducelower.Target(job.target))
        else:
            made = reducelower.legalize(model, reducelower.Target(without={"ReduceL2", "ReduceMean"}), rules="core")
    except reducelower.ConversionError:
        return "refused", ""
    try:
        verification = verify(model, made.model, plan=made.plan, inputs=inputs, budget=_BUDGET)
    except Exception as error:
        return "crash", f"{type(error).__name__}: {error}"
    return verification.label, "" if verification.label == "equivalent" else str(verification)[:500]


def _read(source: str) -> tuple[ModelProto, dict[str, object]]:
    """A model with its inputs, from the `.npz` beside it or from its case."""
    if source.isdigit():
        case = cases()[int(source)]
        names = (value.name for value in case.model.graph.input)
        values = dict(zip(names, case.inputs, strict=False))
        return case.model, {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    beside = Path(source).with_suffix(".npz")
    arrays = dict(np.load(beside)) if beside.exists() else {}
    model = onnx.load(source)
    names = {value.name for value in model.graph.input}
    return model, {name: value for name, value in arrays.items() if name in names}


def run(folders: Sequence[Path], every: int) -> dict[str, tuple[str, str]]:
    """The verdicts by the names of the conversions, including crashes of a runtime."""
    wanted = list(jobs(folders, every))
    found = run_in_processes(verdict_of, wanted, 1, lambda job, how: ("died", ""))
    return dict(zip((job.name for job in wanted), found, strict=True))


def main() -> int:
    """Record the verdicts, or print each one that changed; return 1 if one did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="where the verdicts are recorded; not part of the repository")
    parser.add_argument("--record", action="store_true", help="write the file instead of comparing with it")
    parser.add_argument("--models", type=Path, action="append", help="a folder of models; may be given several times")
    parser.add_argument("--every", type=int, default=4, help="verify every n-th node case; 0 for none")
    options = parser.parse_args()
    verdicts = run(options.models or [MODELS], options.every)
    print(dict(Counter(verdict for verdict, _ in verdicts.values())))
    if options.record:
        options.file.parent.mkdir(parents=True, exist_ok=True)
        options.file.write_text(json.dumps(verdicts, indent=1, sort_keys=True), "utf-8")
        return 0
    recorded = json.loads(options.file.read_text("utf-8"))
    changed = [name for name in verdicts if name in recorded and recorded[name][0] != verdicts[name][0]]
    for name in changed:
        print(f"{name}\n  was: {': '.join(recorded[name])}\n  is:  {': '.join(verdicts[name])}")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
