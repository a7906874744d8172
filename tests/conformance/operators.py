"""Which operators a runtime does not take: models of one node, from onnx's own node tests, at every opset version.

    python -m tests.conformance.operators opencv=~/venvs/opencv/bin/python tract=~/venvs/tract/bin/python

Not part of the test run: it needs the runtimes. Each case of onnx is tried as it is and brought to each older version
of its operator that reducelower can bring it to. What it prints goes into facts: the operators of which nothing
was taken at any version that the runtime reads, and those of which nothing was taken at some.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import numpy as np
from onnx import ModelProto, numpy_helper
from onnx.backend.test.loader import load_model_tests

from reducelower import ConversionError, convert_version
from reducelower.conformance.case import Array
from reducelower.conformance.process import Subject, Worker
from reducelower.model.schemas import versions
from reducelower.runtimes import load_runtime

_MOST = 5
"""Cases of one operator at one version: where none of so many is taken, the operator is not."""


def cases(is_wanted: Callable[[str, int], bool]) -> Iterator[tuple[str, int, ModelProto, dict[str, Array]]]:
    """Operator, opset version, model and inputs, of every case of onnx with a single node of tensors that is wanted."""
    with np.errstate(all="ignore"):
        tests = load_model_tests(kind="node")
    for test in tests:
        model = test.model
        if len(model.graph.node) != 1 or model.graph.node[0].domain or model.functions or not test.data_sets:
            continue
        arrays = test.data_sets[0][0]
        if any(not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub" for array in arrays):
            continue  # sequences, texts, and what numpy has no type for
        inputs = {value.name: array for value, array in zip(model.graph.input, arrays, strict=True)}
        if not inputs:
            continue
        operator, own = model.graph.node[0].op_type, model.opset_import[0].version
        for since in (
            version for version in versions(operator) if 7 <= version <= own and is_wanted(operator, version)
        ):
            try:
                made = model if since == own else convert_version(model, since)
            except (ConversionError, ValueError):
                continue
            if [node.op_type for node in made.graph.node] == [operator]:
                yield operator, since, made, inputs


def with_constants(model: ModelProto, inputs: dict[str, Array]) -> tuple[ModelProto, dict[str, Array]]:
    """A model whose inputs but the first are initializers, as the weights and sizes of most models are."""
    made = ModelProto()
    made.CopyFrom(model)
    first, *others = inputs
    made.graph.initializer.extend(numpy_helper.from_array(inputs[name], name) for name in others)
    del made.graph.input[1:]
    return made, {first: inputs[first]}


@dataclass
class Tried:
    """What was tried on a runtime: by operator and opset version, whether each case was taken."""

    name: str
    worker: Worker
    taken: dict[str, dict[int, list[bool]]] = field(default_factory=dict)

    def wants(self, operator: str, opset: int) -> bool:
        """Whether another case would tell anything."""
        tried = self.taken.get(operator, {}).get(opset, [])
        return opset in load_runtime(self.name).reads and True not in tried and len(tried) < _MOST

    def run(self, operator: str, opset: int, model: ModelProto, inputs: dict[str, Array]) -> None:
        """Try a case, as it is and with constants."""
        tried = self.taken.setdefault(operator, {}).setdefault(opset, [])
        tried.append(
            any(
                self.worker.run(each.SerializeToString(), fed).kind == "outputs"
                for each, fed in ((model, inputs), with_constants(model, inputs))
            )
        )

    def not_taken(self) -> dict[str, list[str]]:
        """The operators of which nothing was taken, by where."""
        groups: dict[str, list[str]] = {}
        for operator, by_opset in sorted(self.taken.items()):
            absent = [opset for opset, taken in by_opset.items() if not any(taken)]
            if absent:
                where = "everywhere" if len(absent) == len(by_opset) else f"of {sorted(by_opset)} at {sorted(absent)}"
                groups.setdefault(where, []).append(operator)
        return groups


def main() -> None:
    """Try every case and print what is not taken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runtimes", nargs="+", metavar="NAME=INTERPRETER", help="runtime, and the Python that has it")
    parser.add_argument("--time-limit", type=float, default=30.0)
    given = parser.parse_args()
    with ExitStack() as stack:
        tried = []
        for name, _, interpreter in (text.partition("=") for text in given.runtimes):
            subject = Subject.of_runtime(name, interpreter or sys.executable)
            tried.append(Tried(name, stack.enter_context(Worker(subject, given.time_limit))))
        for case in cases(lambda operator, opset: any(each.wants(operator, opset) for each in tried)):
            for each in tried:
                if each.wants(*case[:2]):
                    each.run(*case)
        for each in tried:
            for where, operators in each.not_taken().items():
                print(f"{each.name} {where}: {operators}")


if __name__ == "__main__":
    main()
