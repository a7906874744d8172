"""Count the verdicts of `verify` on random conversions that are right: `python -m tools.verification.alarms`.

The conversions are those of `tools.fuzz`, whose judge shares with `verify` only how models are run.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from contextlib import closing
from functools import partial

from reducelower import Target, legalize
from reducelower.batch.processes import run_in_processes
from reducelower.verification import verify
from tools.fuzz.case import runnable
from tools.fuzz.drawing import NotDrawableError
from tools.fuzz.generating import KINDS, generate
from tools.fuzz.judging import judge
from tools.node_cases import cases

__all__ = ["verdict_of"]


def verdict_of(kind: str, seed: int, number: int) -> tuple[str, str]:
    """The verdict on a case, and why; an empty string if the conversion is not right."""
    try:
        case = generate(kind, seed, number)
    except NotDrawableError:
        return "", ""
    if judge(case).kind != "equal":
        return "", ""
    plan = None
    if case.action.kind == "convert":
        # As in the command: the plan says where a result may be better than its source.
        legalized = legalize(case.model, Target(case.action.opset))
        made, plan = legalized.model, legalized.plan
    else:
        made = case.action.apply(case.model)
    try:
        verification = verify(runnable(case.model), runnable(made), inputs=case.feeds, plan=plan, budget=60)
    except Exception as error:
        return "crash", f"{case.name}: {type(error).__name__}: {error}"
    if case.action.kind == "expand" and case.action.rules == "spec" and verification.losing:
        return "loses range, as asked", case.name
    text = verification.unseen[0] if verification.verdict == "not shown" and verification.unseen else str(verification)
    if verification.verdict == "equivalent" and verification.departing:
        return "equivalent, and the runtime departs", f"{case.name}: {text}"
    return verification.verdict, f"{case.name}: {text}"


def main() -> int:
    """Print every right conversion that is not called equivalent; return 1 if one is called different."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--count", type=int, default=2000, help="how many right conversions")
    parser.add_argument("--kind", choices=KINDS, default="nodes", help="single nodes, or graphs of 5 to 40 nodes")
    options = parser.parse_args()
    began = time.monotonic()
    verdicts: Counter[str] = Counter()
    cases()  # read once, so that every process that is forked has them
    numbers = range(options.start, options.start + 100 * options.count)
    # A runtime may crash on a model, without a fault of the conversion.
    verdicts_of = run_in_processes(
        partial(verdict_of, options.kind, options.seed), numbers, 1, lambda number, how: ("died", how)
    )
    with closing(verdicts_of):
        for number, (verdict, text) in zip(numbers, verdicts_of, strict=False):
            if verdict:
                verdicts[verdict] += 1
                if verdict != "equivalent":
                    print(f"{verdict}: {number}: {text[:600]}", flush=True)
            if verdicts.total() == options.count:
                break
    print(f"{options.kind}, seed {options.seed}, to {number + 1}: {dict(verdicts)}, {time.monotonic() - began:.0f} s")
    return 1 if verdicts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
