"""Which operators a runtime does not take: models of one node, from onnx's own node tests, at every opset version.

    python -m tests.conformance.operators --runtime opencv --interpreter ~/venvs/opencv/bin/python

Not part of the test run: it needs the runtime. Each case of onnx is tried as it is and brought to each older version of
its operator that reducelower can bring it to. What it prints goes into facts: the operators of which nothing
was taken at any version that the runtime reads, and those of which nothing was taken at some.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

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


def cases() -> Iterator[tuple[str, int, ModelProto, dict[str, Array]]]:
    """Operator, opset version, model and inputs, of every case of onnx with a single node of tensors."""
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
        for since in (version for version in versions(operator) if 7 <= version <= own):
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


def main() -> None:
    """Try every case and print what is not taken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runtime", required=True)
    parser.add_argument("--interpreter", default=sys.executable)
    parser.add_argument("--time-limit", type=float, default=30.0)
    given = parser.parse_args()
    reads = load_runtime(given.runtime).reads
    tried: dict[str, dict[int, list[bool]]] = {}
    with Worker(Subject.of_runtime(given.runtime, given.interpreter), given.time_limit) as worker:
        for operator, opset, model, inputs in cases():
            taken = tried.setdefault(operator, {}).setdefault(opset, [])
            if opset in reads and True not in taken and len(taken) < _MOST:
                taken.append(
                    any(
                        worker.run(each.SerializeToString(), fed).kind == "outputs"
                        for each, fed in ((model, inputs), with_constants(model, inputs))
                    )
                )
    groups: dict[str, list[str]] = {}
    for operator, by_opset in sorted(tried.items()):
        known = {opset: any(taken) for opset, taken in by_opset.items() if taken}
        absent = [opset for opset, taken in known.items() if not taken]
        if absent:
            where = "everywhere" if len(absent) == len(known) else f"of {sorted(known)} at {sorted(absent)}"
            groups.setdefault(where, []).append(operator)
    for where, operators in groups.items():
        print(f"{where}: {operators}")


if __name__ == "__main__":
    main()
