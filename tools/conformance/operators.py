"""Find the operators that a runtime refuses, with onnx's own node tests at every opset version.

    python -m tools.conformance.operators opencv=~/venvs/opencv/bin/python tract=~/venvs/tract/bin/python

This is not part of the test run, because it needs the runtimes. Each case of onnx is tried as it is, and converted to
each older version of its operator that reducelower can reach, until the runtime accepts one. The result goes into
facts: the operators without an accepted case at any version that the runtime reads, and those without one at some.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from onnx import load_model_from_string

from reducelower import ConversionError, convert_version
from reducelower.conformance.case import Case
from reducelower.conformance.process import Subject, Worker
from reducelower.model.schemas import versions
from reducelower.runtimes import load_runtime
from tools.conformance.nodes import node_cases

_MOST = 5
"""Cases to try for one operator at one version. If a runtime accepts none of them, it does not have the operator."""


def cases(is_wanted: Callable[[str, int], bool]) -> Iterator[Case]:
    """Every selected case, at every opset version that it can be converted to."""
    for case in node_cases().values():
        for since in (each for each in versions(case.operator) if 7 <= each <= case.opset):
            if not is_wanted(case.operator, since):
                continue
            try:
                made = convert_version(load_model_from_string(case.model), since)
            except (ConversionError, ValueError):
                continue
            if [node.op_type for node in made.graph.node] == [case.operator]:
                yield replace(case, model=made.SerializeToString(), opset=since)


@dataclass
class Tried:
    """The cases that were tried on a runtime.

    Attributes:
        name: the runtime's name, with a version unless it is the one that its facts are mainly about.
        worker: the process that runs it.
        taken: by operator and opset version, whether the runtime accepted each case.
    """

    name: str
    worker: Worker
    taken: dict[str, dict[int, list[bool]]] = field(default_factory=dict)

    def wants(self, operator: str, opset: int) -> bool:
        """Whether another case could change the result."""
        tried = self.taken.get(operator, {}).get(opset, [])
        return opset in load_runtime(self.name).reads and True not in tried and len(tried) < _MOST

    def run(self, case: Case) -> None:
        """Try a case."""
        answer = self.worker.run(case.model, case.inputs)
        self.taken.setdefault(case.operator, {}).setdefault(case.opset, []).append(answer.kind == "outputs")

    def not_taken(self) -> dict[str, list[str]]:
        """The operators without an accepted case, by opset versions."""
        groups: dict[str, list[str]] = {}
        for operator, by_opset in sorted(self.taken.items()):
            absent = [opset for opset, taken in by_opset.items() if not any(taken)]
            if absent:
                where = "everywhere" if len(absent) == len(by_opset) else f"of {sorted(by_opset)} at {sorted(absent)}"
                groups.setdefault(where, []).append(operator)
        return groups


def main() -> None:
    """Try the cases and print the operators that are refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runtimes", nargs="+", metavar="NAME=INTERPRETER", help="a runtime, and the Python that has it")
    parser.add_argument("--time-limit", type=float, default=30.0)
    options = parser.parse_args()
    with ExitStack() as stack:
        tried = []
        for name, _, interpreter in (text.partition("=") for text in options.runtimes):
            subject = Subject.of_runtime(name.partition("@")[0], interpreter or sys.executable)
            tried.append(Tried(name, stack.enter_context(Worker(subject, options.time_limit))))
        for case in cases(lambda operator, opset: any(each.wants(operator, opset) for each in tried)):
            for each in tried:
                if each.wants(case.operator, case.opset):
                    each.run(case)
        for each in tried:
            for where, operators in each.not_taken().items():
                print(f"{each.name} {where}: {operators}")


if __name__ == "__main__":
    main()
