"""Compare what two targets predict for every case of the conformance suite.

    python -m tools.conformance.agreement measured.toml openvino

It prints the cases that fail according to only one of them, by opset version and form. It exits with 1 if a case fails
according to the first and not according to the second.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass

from reducelower.conformance.case import Case
from reducelower.conformance.suite import suite
from reducelower.errors import RefusedError
from reducelower.runtimes import Fact, Runtime, load_runtime

EXTREME = ("huge", "tiny")


@dataclass(frozen=True)
class Disagreement:
    """Cases that fail according to only one of two targets.

    Attributes:
        missed: cases that fail only according to the first.
        more: cases that fail only according to the second.
    """

    missed: tuple[Case, ...]
    more: tuple[Case, ...]


def compare(first: Runtime, second: Runtime, cases: Iterable[Case]) -> Disagreement:
    """The cases for which two targets disagree, at opset versions that both read."""
    missed, more = [], []
    for case in cases:
        if case.opset in first.reads and case.opset in second.reads and case.tag != "empty":
            verdicts = (fails(first, case), fails(second, case))
            if verdicts[0] != verdicts[1]:
                (missed if verdicts[0] else more).append(case)
    return Disagreement(tuple(missed), tuple(more))


def fails(runtime: Runtime, case: Case) -> bool:
    """Whether a case fails according to a target; overflow counts for extreme values only."""
    return any(_is_true(fact, case) for fact in runtime.facts if fact.outcome != "overflows" or case.tag in EXTREME)


def _is_true(fact: Fact, case: Case) -> bool:
    if not fact.concerns(case.operator, case.opset):
        return False
    try:
        return fact.when.matches(case.features)
    except (RefusedError, TypeError):  # it asks for something known at run time only, which is None in the suite
        return False


def main() -> None:
    """Compare two targets, by name or file."""
    first, second = (load_runtime(name) for name in sys.argv[1:3])
    differences = compare(first, second, suite())
    for title, cases in ((f"only {sys.argv[1]}", differences.missed), (f"only {sys.argv[2]}", differences.more)):
        print(f"{title}: {len(cases)}")
        for case in cases:
            print(f"  {case.name}")
    sys.exit(bool(differences.missed))


if __name__ == "__main__":
    main()
