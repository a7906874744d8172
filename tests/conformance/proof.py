"""What a conversion does for a runtime: the conformance suite before and after it, run on the runtime itself.

    python -m tests.conformance.proof --runtime openvino
    python -m tests.conformance.proof --runtime tvm --interpreter ~/venvs/tvm/bin/python --for my_tvm.toml
    python -m tests.conformance.proof --runtime openvino --transform my_module:rewrite

Not part of the test run: it needs the runtime. It exits with 1 where a case that was right comes out wrong or is
refused, or one that was wrong or refused stays so without a reason given by the conversion. `--transform` names a
function from model bytes to model bytes; a ConversionError that it raises is the conversion's refusal.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from importlib import import_module
from pathlib import Path

from onnx import load_model_from_string

from reducelower.api import legalize
from reducelower.conformance.case import Case
from reducelower.conformance.judging import Verdict
from reducelower.conformance.page import MEASURED
from reducelower.conformance.process import Subject, Worker
from reducelower.conformance.results import Result
from reducelower.conformance.running import probe, verdicts
from reducelower.conformance.suite import suite
from reducelower.errors import ConversionError
from reducelower.options import Target
from reducelower.runtimes import load_runtime
from reducelower.runtimes.versions import release

Transform = Callable[[bytes], bytes]

_TOOL_REFUSED = "refused by the conversion"


@dataclass(frozen=True)
class Change:
    """One case before and after.

    Attributes:
        case: the case.
        before: what came of it as it is.
        after: what came of it converted; ``refused`` with the kind ``refused by the conversion`` where it was not.
        same: whether the conversion left the model as it was.
    """

    case: Case
    before: Result
    after: Verdict
    same: bool

    @property
    def step(self) -> str:
        """Both verdicts."""
        after = _TOOL_REFUSED if self.after.kind == _TOOL_REFUSED else self.after.word
        return f"{self.before.word} -> {after}"

    @property
    def is_bad(self) -> bool:
        """Whether it should not be so: right no more, or not healed and no reason given."""
        if self.before.word == "right":
            return self.after.word != "right"
        return self.after.word != "right" and self.after.kind != _TOOL_REFUSED


def for_target(name: str) -> Transform:
    """What ``--for NAME`` does, without verification."""
    target = Target(runtime=load_runtime(name))

    def transform(model: bytes) -> bytes:
        return bytes(legalize(load_model_from_string(model), target).model.SerializeToString(deterministic=True))

    return transform


def compare(
    subject: Subject, cases: Sequence[Case], transform: Transform, *, keep: Path | None, jobs: int, time_limit: float
) -> list[Change]:
    """Run every case as it is, convert it, and run what came out if it is another model."""
    with Worker(subject, time_limit) as first:
        first.start()
        tolerance = first.tolerance
    before = probe(subject, cases, keep=keep, jobs=jobs, time_limit=time_limit, advance=_advance("before"))
    converted: dict[str, Case] = {}
    refused: dict[str, Verdict] = {}
    for case in cases:
        try:
            model = transform(case.model)
        except ConversionError as error:
            refused[case.name] = Verdict("refused", _TOOL_REFUSED, " ".join(str(item) for item in error.refusals))
        else:
            converted[case.name] = replace(case, model=model)
    changed = [converted[case.name] for case in cases if case.name in converted and _differs(case, converted)]
    after = dict(refused)
    advance = _advance("after")
    for done, (case, verdict) in enumerate(verdicts(subject, changed, tolerance, jobs=jobs, time_limit=time_limit), 1):
        after[case.name] = verdict
        advance(done, len(changed))
    found = []
    for case, result in zip(cases, before.results, strict=True):
        verdict = after.get(case.name, Verdict(result.word, result.kind, result.detail))
        found.append(Change(case, result, verdict, case.name not in after))
    return found


def _differs(case: Case, converted: dict[str, Case]) -> bool:
    return converted[case.name].model != case.model


def _advance(what: str) -> Callable[[int, int], None]:
    def advance(done: int, total: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{what}: {done}/{total}", end="" if done < total else "\n", file=sys.stderr)

    return advance


def report(changes: Sequence[Change]) -> None:
    """Print how many cases went which way, and everything that did not end right."""
    for step, count in sorted(Counter(change.step for change in changes).items()):
        print(f"{count:6}  {step}")
    print(f"{sum(change.same for change in changes):6}  models left as they were")
    for title, wanted in (
        ("must not be", [change for change in changes if change.is_bad]),
        ("refused by the conversion", [change for change in changes if change.after.kind == _TOOL_REFUSED]),
    ):
        if wanted:
            print(f"\n{title}:")
        grouped: dict[tuple[str, str], list[Change]] = {}
        for change in wanted:
            grouped.setdefault((change.step, change.after.detail), []).append(change)
        for (step, detail), group in grouped.items():
            print(f"  {len(group)}x {step}: {detail}")
            for change in group[:3]:
                print(f"      {change.case.name}{' (model unchanged)' if change.same else ''}")


def summary(changes: Sequence[Change], runtime: str, target: str, today: str) -> dict[str, object]:
    """What the page about runtimes says of a comparison: counts before and after, and of what was right no more."""
    before = Counter(change.before.word for change in changes)
    after = Counter(_TOOL_REFUSED if change.after.kind == _TOOL_REFUSED else change.after.word for change in changes)
    return {
        "runtime": runtime,
        "target": target,
        "version": changes[0].before.version,
        "date": today,
        "cases": len(changes),
        "before": [before["right"], before["wrong"], before["refused"]],
        "after": [after["right"], after["wrong"], after["refused"], after[_TOOL_REFUSED]],
        "worse": sum(change.before.word == "right" and change.after.word != "right" for change in changes),
    }


def keep_summary(found: dict[str, object]) -> None:
    """Put a comparison among those that the page about runtimes shows, in place of an older one of its target."""
    entries = [entry for entry in json.loads(MEASURED.read_text("utf-8")) if entry["target"] != found["target"]]
    entries = sorted([*entries, found], key=lambda entry: (entry["runtime"], release(entry["version"])))
    lines = ",\n ".join(json.dumps(entry) for entry in entries)
    MEASURED.write_text(f"[{lines}]\n", encoding="utf-8")


def _record(change: Change) -> str:
    return json.dumps(
        {
            "case": change.case.name,
            "before": [change.before.word, change.before.kind, change.before.detail],
            "after": [change.after.word, change.after.kind, change.after.detail],
            "same": change.same,
        }
    )


def main() -> None:
    """Run the comparison and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runtime", required=True)
    parser.add_argument("--interpreter", default=sys.executable, help="the Python that has the runtime")
    parser.add_argument("--for", dest="target", help="target name or file; the runtime's own by default")
    parser.add_argument("--transform", help="module:function from model bytes to model bytes, instead of --for")
    parser.add_argument("--results", type=Path, help="file that keeps what came before the conversion")
    parser.add_argument("--changes", type=Path, help="file to write every case's before and after to")
    parser.add_argument("--keep", action="store_true", help="put the counts on the page about runtimes")
    parser.add_argument("--operators", help="comma-separated; all by default")
    parser.add_argument("--match", default="", help="only cases whose name contains this")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--time-limit", type=float, default=60.0)
    given = parser.parse_args()
    if given.transform:
        module, _, function = given.transform.partition(":")
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
        transform: Transform = getattr(import_module(module), function)
    else:
        transform = for_target(given.target or given.runtime)
    cases = [case for case in suite(given.operators and given.operators.split(",")) if given.match in case.name]
    subject = Subject.of_runtime(given.runtime, given.interpreter)
    changes = compare(subject, cases, transform, keep=given.results, jobs=given.jobs, time_limit=given.time_limit)
    report(changes)
    if given.changes:
        given.changes.write_text("".join(_record(change) + "\n" for change in changes))
    if given.keep:
        found = summary(changes, given.runtime, given.target or given.runtime, date.today().isoformat())
        keep_summary(found)
    sys.exit(any(change.is_bad for change in changes))


if __name__ == "__main__":
    main()
