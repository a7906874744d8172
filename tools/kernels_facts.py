"""Make facts about onnxruntime's DirectML execution provider from onnxruntime's own table of kernels.

    python tools/kernels_facts.py VERSION=COMMIT=DATE=OperatorKernels.md

The file is `docs/OperatorKernels.md` of https://github.com/microsoft/onnxruntime at a commit, which is part of the
address of each fact. A kernel is for one version of an operator. One that is listed as 7+ is not used for a node whose
operator changed at opset 22: see `KernelRegistry::VerifyKernelDef` in `onnxruntime/core/framework/kernel_registry.cc`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path

from documented import Release, Row, missing_types, others_than, table_rows, write

from reducelower.model.schemas import schema
from reducelower.runtimes.ranges import Ranges

TARGET = Path(__file__).parents[1] / "rules" / "targets" / "onnxruntime-directml.toml"

ADDRESS = "https://github.com/microsoft/onnxruntime/blob/{commit}/docs/OperatorKernels.md"

READS = "7-25"
"""Opset versions that onnxruntime 1.24 reads."""

LACKS = "There is no DirectML kernel; onnxruntime runs the operator on the CPU."

LACKS_TYPE = "The DirectML kernel does not take the element type; onnxruntime runs the operator on the CPU."

# Operators that compute shapes run on the CPU anyway.
FLOATS = ["bfloat16", "double", "float", "float16"]

NO_NODE = {"Constant", "Dropout", "Identity", "Shape", "Size"}
"""Operators that need no kernel: constants, nodes that onnxruntime removes, and operators that read no values."""

Kernels = Mapping[str, Sequence[tuple[Ranges, Mapping[str, frozenset[str]]]]]
"""The kernels by operator: for which versions each is, and the element types of each type variable."""


def kernels(text: str) -> Kernels:
    """The kernels of ONNX's own operators in the part of the page about DirectML."""
    part = text.partition('<a name="dmlexecutionprovider"/>')[2].partition("*com.microsoft")[0]
    kernels_of: dict[str, list[tuple[Ranges, Mapping[str, frozenset[str]]]]] = {}
    name = ""
    for cells in table_rows(part):
        if len(cells) < 2 or not (span := re.fullmatch(r"\[?(\d+)(?:, (\d+)\])?\+?", cells[-2])):
            continue
        name = cells[0] if len(cells) > 2 else name
        of = re.findall(r"\*\*(\w+)\*\* = ((?:[^<]|<(?!br))*)", cells[-1])
        types = {variable: frozenset(re.findall(r"\btensor\(\w+\)", listed)) for variable, listed in of}
        kernels_of.setdefault(name, []).append((Ranges(((int(span[1]), int(span[2] or span[1])),)), types))
    return kernels_of


def rows_of(name: str, of: Sequence[tuple[Ranges, Mapping[str, frozenset[str]]]]) -> Iterator[Row]:
    """The opset versions for which an operator has no kernel, and the element types that the others lack."""
    read = Ranges.parse(READS)
    forms = {opset: form for opset in range(1, 40) if opset in read and (form := schema(name, opset)) is not None}
    lacking = []
    typed: dict[tuple[str, frozenset[str]], tuple[list[int], set[str]]] = {}
    for opset, form in forms.items():
        types = next((types for versions, types in of if form.since_version in versions), None)
        if types is None:
            lacking.append(opset)
            continue
        values = {"element_types": form.inputs[:1], "second_types": form.inputs[1:2], "output_types": form.outputs[:1]}
        seen = set()
        for condition, value in ((condition, value) for condition, found in values.items() for value in found):
            if value.type_str not in seen and types.get(value.type_str):
                opsets, allowed = typed.setdefault((condition, types[value.type_str]), ([], set()))
                opsets.append(opset)
                allowed.update(value.types)
            seen.add(value.type_str)
    if lacking:
        yield Row.of([name], "elsewhere", LACKS, str(Ranges.of(lacking)), element_types=FLOATS)
    for (condition, taken), (opsets, allowed) in typed.items():
        others = [each for each in ["double", *missing_types(())] if f"tensor({each})" in allowed - taken]
        if others:
            everywhere = len(opsets) + len(lacking) == len(forms)
            when = {condition: others}
            yield Row.of([name], "elsewhere", LACKS_TYPE, "" if everywhere else str(Ranges.of(opsets)), **when)


def read(version: str, commit: str, on: date, text: str) -> Release:
    """The facts in a table."""
    by_operator = kernels(text)
    rows = [row for name, of in by_operator.items() for row in rows_of(name, of) if name not in NO_NODE]
    rows.append(Row.of(others_than({*by_operator, *NO_NODE}, READS), "elsewhere", LACKS, element_types=FLOATS))
    return Release(version, ADDRESS.format(commit=commit), on, rows, READS)


if __name__ == "__main__":
    version, commit, on, path = sys.argv[1].split("=", 3)
    listed = read(version, commit, date.fromisoformat(on), Path(path).read_text(encoding="utf-8"))
    write(TARGET, "kernels_facts.py", [listed], own=version)
