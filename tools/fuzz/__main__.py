"""Run any number of random cases::

    python -m tools.fuzz --seed 1 --count 10000 [--kind nodes|graphs] [--start 0]

Each finding is printed with the smallest case that shows it; the exit status is 1 if there is one. Case number N of a
seed is always the same: ``--start N --count 1`` makes it again.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tools.fuzz.generating import KINDS
from tools.fuzz.judging import FINDINGS
from tools.fuzz.processes import results


def main() -> int:
    """Run the cases of a seed; print findings, and how often each outcome came."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__.split("::")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000, help="how many cases")
    parser.add_argument("--start", type=int, default=0, help="number of the first case")
    parser.add_argument("--kind", choices=KINDS, default="nodes", help="single nodes, or graphs of 5 to 40 nodes")
    parser.add_argument("--as-drawn", action="store_true", help="print cases as they were drawn, not smaller ones")
    parser.add_argument("--refusals", action="store_true", help="print refused cases too")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    began = time.monotonic()
    for result in results(options.kind, options.seed, options.start, options.count, shrinks=not options.as_drawn):
        counts[result.kind] += 1
        if result.kind in FINDINGS:
            print(
                f"\n== {result.kind}: {result.name or result.number}\n{result.detail[:1000]}\n{result.text}", flush=True
            )
        elif options.refusals and result.kind == "refused":
            print(f"refused: {result.name}: {result.detail}")
    shown = ", ".join(f"{kind} {count}" for kind, count in counts.most_common())
    print(f"\n{options.kind}, seed {options.seed}, {options.start} to {options.start + options.count - 1}: {shown}")
    print(f"{time.monotonic() - began:.0f} s")
    return 1 if FINDINGS & set(counts) else 0


if __name__ == "__main__":
    sys.exit(main())
