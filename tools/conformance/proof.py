"""Run the conformance suite on a runtime, before and after a conversion for it.

    python -m tools.conformance.proof --runtime openvino
    python -m tools.conformance.proof --runtime openvino --suite nodes
    python -m tools.conformance.proof --runtime tvm --interpreter ~/venvs/tvm/bin/python --for my_tvm.toml

This is not part of the test run, because it needs the runtime. It exits with 1 if a case that was right becomes wrong
or refused, or if a wrong or refused case stays so although the conversion neither reports nor refuses it. The suite
``nodes`` has onnx's own node tests, with a tolerance within which runtimes agree.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from reducelower.conformance.case import Case
from reducelower.conformance.judging import judge
from reducelower.conformance.mending import (
    TOOL_REFUSED,
    Change,
    compare,
    corrected,
    fitting,
)
from reducelower.conformance.process import Subject, Worker
from reducelower.conformance.running import How, probe
from reducelower.conformance.suite import suite
from reducelower.conformance.target_file import target_text
from reducelower.runtimes import load_runtime
from reducelower.runtimes.ranges import release
from tools.conformance.nodes import WRONG, judge_roughly, judged_cases

MEASURED = Path(__file__).parents[2] / "docs" / "measured"


def sample(cases: Sequence[Case], count: int) -> list[Case]:
    """That many cases, spread evenly over operators, opsets and element types; larger samples contain smaller ones."""
    # The forms of a type are shuffled, so that equal steps do not always choose the same ones.
    shuffled = random.Random(0).sample(cases, len(cases))
    in_order = sorted(shuffled, key=lambda case: (case.operator, case.opset, case.features.element_types))
    # Halves, quarters, eighths: positions in the order of their reversed digits.
    places = sorted(range(len(cases)), key=lambda at: f"{at:032b}"[::-1])
    chosen = {in_order[at].name for at in places[:count]}
    return [case for case in cases if case.name in chosen]


def _advance(what: str) -> Callable[[int, int], None]:
    def advance(done: int, total: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{what}: {done}/{total}", end="" if done < total else "\n", file=sys.stderr)

    return advance


def step(change: Change) -> str:
    """Both verdicts."""
    after = TOOL_REFUSED if change.after.kind == TOOL_REFUSED else change.after.word
    return f"{change.before.word} -> {after}{', and told' if change.is_reported_wrong else ''}"


def is_left(change: Change) -> bool:
    """Whether the conversion left the model as it was."""
    return change.made is not None and change.made.model == change.case.model


def report(changes: Sequence[Change]) -> None:
    """Print how many cases changed in which way, and every case that is not right afterwards."""
    for name, count in sorted(Counter(map(step, changes)).items()):
        print(f"{count:6}  {name}")
    print(f"{sum(map(is_left, changes)):6}  models left as they were")
    for title, wanted in (
        ("must not be", [change for change in changes if change.is_bad]),
        ("refused by the conversion", [change for change in changes if change.after.kind == TOOL_REFUSED]),
    ):
        if wanted:
            print(f"\n{title}:")
        grouped: dict[tuple[str, str], list[Change]] = {}
        for change in wanted:
            grouped.setdefault((step(change), change.after.detail), []).append(change)
        for (name, detail), group in grouped.items():
            print(f"  {len(group)}x {name}: {detail}")
            for change in group[:3]:
                print(f"      {change.case.name}{' (model unchanged)' if is_left(change) else ''}")


def summary(changes: Sequence[Change], runtime: str, target: str, today: str, suite_size: int) -> dict[str, object]:
    """The counts of a comparison for the page about runtimes: before, after, and cases that are no longer right.

    Args:
        changes: the outcomes of each case before and after.
        runtime: name of the runtime.
        target: the value of ``--for``.
        today: the date.
        suite_size: the number of cases in the suite, of which only a sample may have run.
    """
    before = Counter(change.before.word for change in changes)
    after = Counter(TOOL_REFUSED if change.after.kind == TOOL_REFUSED else change.after.word for change in changes)
    return {
        "runtime": runtime,
        "target": target,
        "version": changes[0].before.version,
        "date": today,
        "cases": len(changes),
        "of": suite_size,
        "before": [before["right"], before["wrong"], before["refused"]],
        "after": [after["right"], after["wrong"], after["refused"], after[TOOL_REFUSED]],
        "told": sum(change.is_reported_wrong for change in changes),
        "worse": sum(change.before.word == "right" and change.after.word != "right" for change in changes),
    }


def keep_summary(found: dict[str, object], file: Path) -> None:
    """Add a comparison to those on the page about runtimes, in place of an older one of the same target."""
    entries = [entry for entry in json.loads(file.read_text("utf-8")) if entry["target"] != found["target"]]
    entries = sorted([*entries, found], key=lambda entry: (entry["runtime"], release(entry["version"])))
    lines = ",\n ".join(json.dumps(entry) for entry in entries)
    file.write_text(f"[{lines}]\n", encoding="utf-8")


def keep_wrong_nodes(changes: Sequence[Change], target: str) -> None:
    """Record which of onnx's own node tests come out wrong without a conversion, for tests/runtimes/test_nodes.py."""
    kept = json.loads(WRONG.read_text("utf-8"))
    kept[target] = sorted(change.case.name for change in changes if change.before.word == "wrong")
    WRONG.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def main() -> None:
    """Run the comparison and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runtime", required=True)
    parser.add_argument("--interpreter", default=sys.executable, help="a Python that has the runtime")
    parser.add_argument("--for", dest="target", help="target name or file; the runtime's own by default")
    parser.add_argument(
        "--results", type=Path, help="file that keeps the outcomes before and after, so that nothing runs twice"
    )
    parser.add_argument("--mend", type=Path, help="file for the target with a list of the forms that do not help")
    parser.add_argument("--keep", action="store_true", help="put the counts on the page about runtimes")
    parser.add_argument("--suite", choices=("reductions", "nodes"), default="reductions")
    parser.add_argument("--operators", help="comma-separated; all by default")
    parser.add_argument("--match", default="", help="only cases whose name contains this")
    parser.add_argument("--sample", type=int, metavar="N", help="only N cases, from all operators, opsets and types")
    parser.add_argument("--time-limit", type=float, default=60.0)
    options = parser.parse_args()
    operators = options.operators and options.operators.split(",")
    if options.suite == "nodes":
        cases = [case for case in judged_cases() if not operators or case.operator in operators]
    else:
        cases = suite(operators)
    cases = [case for case in cases if options.match in case.name]
    suite_size = len(cases)
    if options.sample:
        cases = sample(cases, options.sample)
    subject = Subject.of_runtime(options.runtime, options.interpreter)
    judging = judge_roughly if options.suite == "nodes" else judge
    how = How(options.results, _advance("before"), judging)
    name = options.target or options.runtime
    with Worker(subject, options.time_limit) as worker:
        probed = probe(worker, cases, how)
        how = replace(how, advance=_advance("after"))
        if options.mend:
            runtime, changes = corrected(worker, probed, load_runtime(name), how)
            options.mend.write_text(target_text(runtime))
        else:
            changes = compare(worker, probed, fitting(load_runtime(name)), how)
    report(changes)
    if options.keep:
        counts = summary(changes, options.runtime, name, date.today().isoformat(), suite_size)
        keep_summary(counts, MEASURED / f"{options.suite}.json")
        if options.suite == "nodes":
            keep_wrong_nodes(changes, name)
    sys.exit(any(change.is_bad for change in changes))


if __name__ == "__main__":
    main()
