"""Which operators a runtime does not take, or gets wrong: onnx's own node tests, at every opset version.

    python -m tests.conformance.operators opencv=~/venvs/opencv/bin/python tract=~/venvs/tract/bin/python

Not part of the test run: it needs the runtimes. Each case of onnx is tried as it is and brought to each older version
of its operator that reducelower can bring it to. What it prints goes into facts: the operators of which nothing
was taken at any version that the runtime reads, those of which nothing was taken at some, and the cases that come out
wrong at their own version and of which no fact says so. `--keep` records all that come out wrong, for
tests/runtimes/test_nodes.py; without it, an operator is left at the first case that is taken.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np
from onnx import ModelProto, numpy_helper
from onnx.backend.test.loader import load_model_tests

from reducelower import ConversionError, check, convert_version
from reducelower.conformance.case import Array
from reducelower.conformance.process import Subject, Worker
from reducelower.model.schemas import versions
from reducelower.options import Target
from reducelower.runtimes import Runtime, load_runtime

WRONG = Path(__file__).parents[1] / "runtimes" / "measured" / "wrong_nodes.json"
"""What comes out wrong of onnx's own node tests, by runtime."""

_MOST = 5
"""Cases of one operator at one version: where none of so many is taken, the operator is not."""


_CHANCE = {"Bernoulli", "Dropout", "Multinomial", "RandomNormalLike", "RandomUniformLike"}
"""Operators whose results are left to chance."""


@dataclass(frozen=True)
class NodeCase:
    """A case of onnx with a single node of tensors: its name, model, inputs by name and what is expected."""

    name: str
    model: ModelProto
    inputs: dict[str, Array]
    expected: tuple[Array, ...]

    @property
    def operator(self) -> str:
        """The operator."""
        return self.model.graph.node[0].op_type

    @property
    def opset(self) -> int:
        """The opset version of the model."""
        return self.model.opset_import[0].version

    def with_constants(self) -> NodeCase:
        """Its inputs but the first as initializers, as the weights and sizes of most models are."""
        made = ModelProto()
        made.CopyFrom(self.model)
        first, *others = self.inputs
        made.graph.initializer.extend(numpy_helper.from_array(self.inputs[name], name) for name in others)
        del made.graph.input[1:]
        return NodeCase(f"{self.name} with constants", made, {first: self.inputs[first]}, self.expected)


@cache
def node_cases() -> dict[str, NodeCase]:
    """The cases of onnx with a single node of tensors, by name, as they are and with constants."""
    with np.errstate(all="ignore"):
        tests = load_model_tests(kind="node")
    found = []
    for test in tests:
        model = test.model
        if len(model.graph.node) != 1 or model.graph.node[0].domain or model.functions or not test.data_sets:
            continue
        given, expected = test.data_sets[0]
        if not given or any(
            not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub" for array in (*given, *expected)
        ):
            continue  # sequences, texts, and what numpy has no type for
        inputs = {value.name: array for value, array in zip(model.graph.input, given, strict=True)}
        case = NodeCase(test.name.removeprefix("test_"), model, inputs, tuple(expected))
        found += [case, case.with_constants()] if len(inputs) > 1 else [case]
    return {case.name: case for case in found}


def cases(is_wanted: Callable[[str, int], bool]) -> Iterator[tuple[NodeCase, int]]:
    """Every case that is wanted, at every opset version that it can be brought to."""
    for case in node_cases().values():
        for since in (each for each in versions(case.operator) if 7 <= each <= case.opset):
            if not is_wanted(case.operator, since):
                continue
            try:
                made = case if since == case.opset else replace(case, model=convert_version(case.model, since))
            except (ConversionError, ValueError):
                continue
            if [node.op_type for node in made.model.graph.node] == [case.operator]:
                yield made, since


def is_told(case: NodeCase, runtime: Runtime) -> bool:
    """Whether a fact says of a case that it fails, or may for some values."""
    plan = check(case.model, target=Target(case.opset, runtime=runtime))
    return bool(plan.refusals or plan.sites or plan.unmended)


def is_right(case: NodeCase, outputs: Sequence[Array]) -> bool:
    """Whether outputs are what a case expects, as far as runtimes agree that compute in the same precision."""
    return len(outputs) == len(case.expected) and all(
        got.shape == wanted.shape and got.dtype.kind in "fiub" and _is_close(got, wanted)
        for got, wanted in zip(outputs, case.expected, strict=True)
    )


def _is_close(got: Array, wanted: Array) -> bool:
    if wanted.dtype.kind == "f":
        near = 1e-2 if wanted.dtype == np.float16 else 2e-3
        with np.errstate(all="ignore"):
            return bool(np.isclose(got.astype(float), wanted.astype(float), near, near, equal_nan=True).all())
    step = int(wanted.dtype in (np.int8, np.uint8))  # of a quantizer
    with np.errstate(all="ignore"):
        return bool((np.abs(got.astype(object) - wanted.astype(object)) <= step).all())


@dataclass
class Tried:
    """What was tried on a runtime.

    Attributes:
        name: of the runtime, with a version where it is not the one that its facts are about first of all.
        worker: what runs it.
        tries_all: whether every case is run at its own opset version, rather than until one is taken.
        taken: by operator and opset version, whether each case was taken.
        wrong: the cases that came out wrong at their own opset version.
    """

    name: str
    worker: Worker
    tries_all: bool
    taken: dict[str, dict[int, list[bool]]] = field(default_factory=dict)
    wrong: list[NodeCase] = field(default_factory=list)

    def wants(self, operator: str, opset: int) -> bool:
        """Whether another case would tell anything."""
        tried = self.taken.get(operator, {}).get(opset, [])
        is_telling = (self.tries_all and opset == versions(operator)[-1]) or (True not in tried and len(tried) < _MOST)
        return opset in load_runtime(self.name).reads and (is_telling or not tried)

    def run(self, case: NodeCase, opset: int) -> None:
        """Try a case."""
        answer = self.worker.run(case.model.SerializeToString(), case.inputs)
        is_taken = answer.kind == "outputs"
        self.taken.setdefault(case.operator, {}).setdefault(opset, []).append(is_taken)
        if is_taken and opset == case.opset and case.operator not in _CHANCE and not is_right(case, answer.outputs):
            self.wrong.append(case)

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
    """Try every case and print what is not taken, and what comes out wrong and is not told."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runtimes", nargs="+", metavar="NAME=INTERPRETER", help="runtime, and the Python that has it")
    parser.add_argument("--time-limit", type=float, default=30.0)
    parser.add_argument("--keep", action="store_true", help="run every case, and record what comes out wrong")
    given = parser.parse_args()
    with ExitStack() as stack:
        tried = []
        for name, _, interpreter in (text.partition("=") for text in given.runtimes):
            subject = Subject.of_runtime(name.partition("@")[0], interpreter or sys.executable)
            tried.append(Tried(name, stack.enter_context(Worker(subject, given.time_limit)), given.keep))
        for case, opset in cases(lambda operator, opset: any(each.wants(operator, opset) for each in tried)):
            for each in tried:
                if each.wants(case.operator, opset):
                    each.run(case, opset)
        for each in tried:
            for where, operators in each.not_taken().items():
                print(f"{each.name} {where}: {operators}")
            for case in each.wrong:
                if not is_told(case, load_runtime(each.name)):
                    print(f"{each.name} wrong and not told: {case.name}")
            if given.keep:
                kept = json.loads(WRONG.read_text("utf-8"))
                kept[each.name] = sorted(case.name for case in each.wrong)
                WRONG.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
