"""Make facts about runtimes whose makers list the supported operators, some with a remark.

    python tools/lists_facts.py TARGET VERSION=COMMIT=DATE=list.md ...

These are the files, at a commit or release, which is part of the address of each fact:

- coreml: `tools/ci_build/github/apple/coreml_supported_mlprogram_ops.md` of https://github.com/microsoft/onnxruntime
- onnxruntime-webgpu and onnxruntime-webnn: `docs/*-operators.md` of the npm package onnxruntime-web
- rknn: `doc/*OP_Support*.md` of https://github.com/airockchip/rknn-toolkit2
- tidl: `docs/supported_ops_rts_versions.md` of https://github.com/TexasInstruments/edgeai-tidl-tools
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from documented import Release, Row, not_listed, of_remark, others_than, table_rows, write
from remarks import COREML, RKNN, TIDL, WEBGPU, WEBNN, Remarks

from reducelower.model.schemas import all_operators
from reducelower.runtimes.facts import Is
from reducelower.runtimes.ranges import Ranges

TARGETS = Path(__file__).parents[1] / "rules" / "targets"


@dataclass(frozen=True)
class Source:
    """The address of a list, and how to read it.

    Attributes:
        address: with placeholders for the commit and the version.
        column: the column of the remarks.
        refuses: matches a row, as text, that lists what is not supported.
        opsets: column of the opset versions at which an operator is supported, if there is one.
        lacks: the sentence for operators that are not listed, or listed as not supported.
        remarks: the meaning of each remark, by a pattern for `operator: remark`; None if it is not about nodes.
        reads: opset versions.
        also: supported operators that the list leaves out: constants, and operators that read no values.
        own: the version that the target file is about.
        outcome: the outcome for operators that are not supported.
        until: the last version, if versions after it are measured.
    """

    address: str
    column: int
    lacks: str
    remarks: Remarks
    reads: str
    also: frozenset[str] = frozenset({"Constant", "Shape", "Size"})
    own: str = ""
    until: str = ""
    prefer: int | None = None
    outcome: Is = "elsewhere"
    refuses: str = r"not supported\s*$|not supported as an individual"
    opsets: int | None = None


SOURCES: Mapping[str, Source] = {
    "coreml": Source(
        "https://github.com/microsoft/onnxruntime/blob/{commit}/tools/ci_build/github/apple/coreml_supported_mlprogram_ops.md",
        1,
        "onnxruntime does not hand the operator to Core ML, but runs it on the CPU.",
        COREML,
        "7-21",
    ),
    "onnxruntime-webgpu": Source(
        "https://unpkg.com/onnxruntime-web@{commit}/docs/webgpu-operators.md",
        2,
        "There is no WebGPU kernel; onnxruntime runs the operator in WebAssembly.",
        WEBGPU,
        "7-26",
        also=frozenset({"Constant", "Dropout", "Identity", "Shape", "Size"}),
        refuses="^$",
        opsets=1,
    ),
    "onnxruntime-webnn": Source(
        "https://unpkg.com/onnxruntime-web@{commit}/docs/webnn-operators.md",
        3,
        "onnxruntime does not hand the operator to WebNN, but runs it in WebAssembly.",
        WEBNN,
        "7-26",
        refuses="^$",
        opsets=1,
    ),
    "rknn": Source(
        "https://github.com/airockchip/rknn-toolkit2/tree/{commit}/doc",
        1,
        "The compiler does not take the operator.",
        RKNN,
        "7-19",
        until="2.3.0",
        own="2.5.0",
        prefer=13,
        outcome="absent",
    ),
    "tidl": Source(
        "https://github.com/TexasInstruments/edgeai-tidl-tools/blob/{commit}/docs/supported_ops_rts_versions.md",
        3,
        "TIDL does not take the operator; the runtime around it runs it on the CPU.",
        TIDL,
        "7-19",
        own="11.0",
    ),
}


def listed(target: str, text: str) -> Iterator[tuple[str, str, list[str]]]:
    """The operators of a list, with the rest of the row as text, and its cells."""
    by_lower_name = {name.lower(): name for name in all_operators()}
    own = re.split(r"^## .*(?:Pytorch|TFLite|Caffe)", text, maxsplit=1, flags=re.MULTILINE | re.IGNORECASE)[0]
    for cells in table_rows(own):
        place = 1 if target == "tidl" else 0
        names = re.split(r"/|<br>|,", cells[place].removeprefix("ai.onnx:")) if len(cells) > place else []
        for name in (by_lower_name.get(each.strip().lower(), "") for each in names):
            if name:
                yield name, " ".join(cells), cells


def read(target: str, version: str, commit: str, on: date, text: str) -> Release:
    """The facts in a list."""
    source = SOURCES[target]
    # Operators that compute shapes run on the CPU anyway.
    floats = {"element_types": ["bfloat16", "float", "float16"]} if source.outcome == "elsewhere" else {}
    rows: list[Row] = []
    accepted = set(source.also)
    for name, said, cells in listed(target, text):
        if re.search(source.refuses, said, re.IGNORECASE):
            continue
        if source.opsets is not None:
            own = re.search(r"ai\.onnx\(([^)]*)\)", cells[source.opsets])
            if own is None:  # an operator of another domain has this name
                continue
            lacking = not_listed(name, Ranges.parse(own[1].replace("+", "-")), source.reads)
            if lacking:
                rows.append(Row.of([name], source.outcome, source.lacks, lacking, **floats))
        accepted.add(name)
        remark = cells[source.column] if len(cells) > source.column else ""
        if remark:
            facts = of_remark(remark, name, source.remarks)
            rows += [replace(row, outcome="elsewhere") for row in facts] if source.outcome == "elsewhere" else facts
    rows.append(Row.of(others_than(accepted, source.reads), source.outcome, source.lacks, **floats))
    return Release(version, source.address.format(commit=commit), on, rows, source.reads, source.prefer)


if __name__ == "__main__":
    target, *given = sys.argv[1:]
    lists = [
        read(target, version, commit, date.fromisoformat(on), Path(path).read_text(encoding="utf-8"))
        for version, commit, on, path in (argument.split("=", 3) for argument in given)
    ]
    write(
        TARGETS / f"{target}.toml",
        "lists_facts.py",
        lists,
        own=SOURCES[target].own or lists[-1].version,
        until=SOURCES[target].until,
    )
