"""Check that random graphs are converted to the same bytes with and without the memo::

    python -m tools.memo_graphs --seed 1 --count 20000

It prints the models for which they differ; the exit status is 1 if there is one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, printer

from reducelower.legalization.engine import attempt
from reducelower.model.document import Document
from reducelower.model.schemas import latest_opset
from reducelower.options import Settings, Target
from tools.fuzz.graphs import draw_graph

COMPOSITE = frozenset({"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"})


def converted(data: bytes, target: Target, *, memo: bool) -> bytes | str:
    """The bytes of the result, or every reason of a refusal."""
    _, made, plan = attempt(Document(data=data), target, Settings(memo=memo), report=False)
    return "\n".join(map(str, plan.refusals)) or made.data


def differing(seed: int, count: int, start: int = 0) -> Iterator[tuple[int, ModelProto, Target]]:
    """The models of a seed that come out differently without the memo: number, model and target."""
    for number in range(start, start + count):
        rng = np.random.default_rng([seed, number])
        opset = int(rng.integers(7, latest_opset() + 1))
        model, _, _ = draw_graph(rng, opset)
        data = model.SerializeToString()
        for goal in {*map(int, rng.integers(7, latest_opset() + 1, 2)), opset}:
            target = Target(goal, COMPOSITE if goal == opset else frozenset())
            if converted(data, target, memo=True) != converted(data, target, memo=False):
                yield number, model, target


def main() -> int:
    """Convert the graphs of a seed."""
    parser = argparse.ArgumentParser(prog="python -m tools.memo_graphs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0, help="number of the first graph")
    options = parser.parse_args()
    differ = 0
    for number, model, target in differing(options.seed, options.count, options.start):
        differ += 1
        print(f"number {number}, to {target}:\n{printer.to_text(model)}", flush=True)
    print(f"{options.count} graphs of seed {options.seed}: {differ} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
