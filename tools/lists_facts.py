"""Facts about runtimes whose makers list the operators they take, with a remark for some.

    python tools/lists_facts.py TARGET VERSION=COMMIT=DATE=list.md ...

The files are, at a commit or release, which stands in the address of each fact:

- coreml: `tools/ci_build/github/apple/coreml_supported_mlprogram_ops.md` of https://github.com/microsoft/onnxruntime
- onnxruntime-webgpu and onnxruntime-webnn: `docs/*-operators.md` of the npm package onnxruntime-web
- rknn: `doc/*OP_Support*.md` of https://github.com/airockchip/rknn-toolkit2
- tidl: `docs/supported_ops_rts_versions.md` of https://github.com/TexasInstruments/edgeai-tidl-tools
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from documented import Release, Row, not_listed, of_remark, others_than, table_rows, write

from reducelower.model.schemas import all_operators
from reducelower.runtimes.facts import Is
from reducelower.runtimes.ranges import Ranges

Remarks = Mapping[str, Sequence[tuple[str, Is, Mapping[str, Any]]] | None]

TARGETS = Path(__file__).parents[1] / "rules" / "targets"

_FROM_FRONT = ("Only two spatial dimensions are supported.", "refused")
_NOT_CONSTANT = ["dynamic", "fed"]
_MORE_INPUTS_CONSTANT = ("Inputs but the first must be constant.", "refused", {"last": _NOT_CONSTANT, "inputs": "2-"})


@dataclass(frozen=True)
class Source:
    """Where a list stands, and how it is read.

    Attributes:
        address: with the commit and the version in it.
        column: of the remarks.
        refuses: matches a row, as text, that lists what is not supported.
        opsets: column of the opset versions at which an operator is taken, if there is one.
        lacks: what is said of operators that are not listed, or listed as not supported.
        remarks: what each remark means, by a pattern for `operator: remark`; None for one that says nothing of nodes.
        reads: opset versions.
        also: operators that a list leaves out though they make no node there: constants, and what reads no values.
        own: the version that the file is about.
        outcome: what becomes of what the list does not take.
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


COREML: Remarks = {
    r"(Average|Max|GlobalAverage|GlobalMax)Pool: Only 2D": [(*_FROM_FRONT, {"rank": "-3, 5-"})],
    r"Conv: Only 1D/2D": [("Only one and two spatial dimensions are supported.", "refused", {"rank": "5-"})],
    r"ConvTranspose: ": [
        ("Pads must be stated.", "refused", {"attributes": ["auto_pad=SAME_UPPER", "auto_pad=SAME_LOWER"]}),
        ("An output shape is not supported.", "refused", {"attributes": ["output_shape"]}),
        ("The attribute output_padding is not supported.", "refused", {"attributes": ["output_padding!=0"]}),
        _MORE_INPUTS_CONSTANT,
    ],
    r"DepthToSpace: If 'mode'": [
        ("With the mode CRD, sizes must be known.", "refused", {"sizes_known": False, "attributes": ["mode=CRD"]}),
    ],
    r"GatherND: batch_dims": [("batch_dims must be 0.", "refused", {"attributes": ["batch_dims!=0"]})],
    r"Gemm: Input B": [_MORE_INPUTS_CONSTANT],
    r"GridSample: ": [
        ("Only two spatial dimensions are supported.", "refused", {"rank": "-3, 5-"}),
        ("There is no cubic interpolation.", "refused", {"attributes": ["mode=cubic", "mode=bicubic"]}),
    ],
    r"Pow: Only": [
        ("Both operands must be float.", "refused", {"element_types": ["float16", "double", "int32", "int64"]}),
        ("Both operands must be float.", "refused", {"second_types": ["float16", "double", "int32", "int64"]}),
    ],
    r"Slice: ": [_MORE_INPUTS_CONSTANT],
    r"Split: ": [_MORE_INPUTS_CONSTANT],
    r"Tile: ": [("Only five dimensions are supported.", "refused", {"rank": "6-"})],
    r"(MatMul|Range|Reciprocal|Resize): ": None,
}

RKNN: Remarks = {
    r"EyeLike: only support constant": None,
    r"(GRU|LogSoftmax|RoiAlign|Slice|Softmax|Tile): ": None,
    r"If: only support constant": None,
    r"Resize: mode": [("There is no cubic interpolation.", "refused", {"attributes": ["mode=cubic"]})],
}

WEBGPU: Remarks = {
    r"ConvTranspose: ": [("Only one and two spatial dimensions are supported.", "refused", {"rank": "5-"})],
    # The list also says so of Conv, for which the package has a kernel, and of align_corners where Resize makes data
    # smaller, which no fact can ask.
    r"(AveragePool|Conv|MaxPool|Reshape|Resize|Shape|Transpose): ": None,
}

_IMAGES = ("Only two spatial dimensions are supported.", "refused", {"rank": "-3, 5-"})
_POWER = ("Only p=2 is supported.", "refused", {"attributes": ["p!=2"]})
_LAST_CONSTANT = ("The last input must be constant.", "refused", {"last": _NOT_CONSTANT, "inputs": "2-"})
_RECURRENT = [
    ("layout=1 is not supported.", "refused", {"attributes": ["layout=1"]}),
    ("The attribute clip is not supported.", "refused", {"attributes": ["clip"]}),
]

WEBNN: Remarks = {
    r"(AveragePool|GlobalAveragePool|GlobalMaxPool): Only supports 4-D": [_IMAGES],
    r"BatchNormalization: ": [("Training is not supported.", "refused", {"attributes": ["training_mode=1"]})],
    r"(Conv|ConvInteger|ConvTranspose): ": [
        ("Only one and two spatial dimensions are supported.", "refused", {"rank": "5-"}),
    ],
    r"(CumSum|Expand|Split|Squeeze|Tile|Trilu): ": [_LAST_CONSTANT],
    r"GatherND: ": [("batch_dims must be 0.", "refused", {"attributes": ["batch_dims!=0"]})],
    r"(GlobalLpPool|LpPool): ": [_IMAGES, _POWER],
    r"GRU: ": _RECURRENT,
    r"LSTM: ": [*_RECURRENT, ("input_forget=1 is not supported.", "refused", {"attributes": ["input_forget=1"]})],
    r"MaxPool: ": [
        _IMAGES,
        ("storage_order=1 is not supported.", "refused", {"attributes": ["storage_order=1"]}),
        ("The output of indices is not supported.", "refused", {"outputs": "2-"}),
    ],
    r"Pad: ": [("The mode wrap is not supported.", "refused", {"attributes": ["mode=wrap"]})],
    r"Reduce\w+: ": [("Axes must be constant.", "refused", {"axes": ["dynamic"]})],
    r"Reshape: ": [
        _LAST_CONSTANT,
        ("A shape with a zero is not supported.", "refused", {"holds_zero": True}),
    ],
    r"Resize: ": [
        _IMAGES,
        _LAST_CONSTANT,
        ("There is no cubic interpolation.", "refused", {"attributes": ["mode=cubic"]}),
        ("Antialiasing is not supported.", "refused", {"attributes": ["antialias=1"]}),
        ("exclude_outside=1 is not supported.", "refused", {"attributes": ["exclude_outside=1"]}),
        ("The aspect ratio cannot be kept.", "refused", {"attributes": ["keep_aspect_ratio_policy!=stretch"]}),
    ],
    r"Scatter(Elements|ND): ": [("Reductions are not supported.", "refused", {"attributes": ["reduction!=none"]})],
    r"Slice: ": [_MORE_INPUTS_CONSTANT],
    r"Dropout: Only supports test mode": None,
}

_SIX = ("Only six dimensions are supported.", "refused", {"rank": "7-"})

TIDL: Remarks = {
    r"(\w+): .*Only default dilations": [
        ("Dilations are not supported.", "refused", {"attributes": ["dilations!=1"]}),
    ],
    r"PRelu: .*variable slope": [_SIX, ("The slope must be constant.", "refused", {"last": _NOT_CONSTANT})],
    r"(Add|Mul|Sub|Div): ": [_SIX],
    r"BatchNormalization: .*training_mode": [
        ("Training is not supported.", "refused", {"attributes": ["training_mode=1"]}),
    ],
    r"ArgMax: .*keepdims.*select_last_index": [
        ("Reduced dimensions must be kept.", "refused", {"attributes": ["keepdims=0"]}),
        ("Only the axis -3 is supported.", "refused", {"attributes": ["axis!=-3"]}),
        ("select_last_index is not supported.", "refused", {"attributes": ["select_last_index=1"]}),
    ],
    r"(Resize|Upsample): .*(nearest).*linear": [
        ("There is no cubic interpolation.", "refused", {"attributes": ["mode=cubic"]}),
        ("Antialiasing is not supported.", "refused", {"attributes": ["antialias=1"]}),
    ],
    r"(DepthToSpace|SpaceToDepth): .*four-dim": [
        ("Only data of four dimensions are supported.", "refused", {"rank": "-3, 5-"}),
    ],
    r"Pad: .*constant pad": [
        _SIX,
        ("Only the mode constant is supported.", "refused", {"attributes": ["mode!=constant"]}),
    ],
    r"Reduce(Min|Max): .*keepdims": [
        ("Reduced dimensions must be kept.", "refused", {"keepdims": ["0"]}),
        ("Only one axis, the height, is supported.", "refused", {"axes_count": "2-"}),
    ],
    r"ScatterElements: ": [("Reductions are not supported.", "refused", {"attributes": ["reduction!=none"]})],
    r"ScatterND: .*'mul'": [("The reduction mul is not supported.", "refused", {"attributes": ["reduction=mul"]})],
    r"ScatterND: .*'none'": [("Reductions are not supported.", "refused", {"attributes": ["reduction!=none"]})],
    r"Reshape: .*Variable shape": [
        _SIX,
        ("The shape must be constant.", "refused", {"last": _NOT_CONSTANT, "inputs": "2"}),
        ("allowzero is not supported.", "refused", {"attributes": ["allowzero=1"]}),
    ],
    r"Gather: .*greater than 1D": [("Vectors are not supported.", "refused", {"rank": "-1"})],
    r"GridSample: .*zero padding": [
        ("Only zeros are supported as padding.", "refused", {"attributes": ["padding_mode!=zeros"]}),
        ("Only two spatial dimensions are supported.", "refused", {"rank": "-3, 5-"}),
    ],
    r"TopK: .*sorted": [
        ("Unsorted results are not supported.", "refused", {"attributes": ["sorted=0"]}),
        ("k must be constant.", "refused", {"last": _NOT_CONSTANT}),
    ],
    r"(Dequantize|Quantize)Linear: ": [("Only the axis 1 is supported.", "refused", {"attributes": ["axis!=1"]})],
    r"(Conv|ConvTranspose|Gemm|MatMul|AveragePool|MaxPool|GlobalAveragePool): .*<= 4": [
        ("Only four dimensions are supported.", "refused", {"rank": "5-"}),
    ],
    r"(ReduceMean|Erf|Identity|Dropout): .*(Not supported as|fused)": None,
    r": .*<= 6": [_SIX],
    r"": None,
}

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
    """The operators of a list, with what else its row says, and the cells."""
    known = {name.lower(): name for name in all_operators()}
    own = re.split(r"^## .*(?:Pytorch|TFLite|Caffe)", text, maxsplit=1, flags=re.MULTILINE | re.IGNORECASE)[0]
    for cells in table_rows(own):
        place = 1 if target == "tidl" else 0
        names = re.split(r"/|<br>|,", cells[place].removeprefix("ai.onnx:")) if len(cells) > place else []
        for name in (known.get(each.strip().lower(), "") for each in names):
            if name:
                yield name, " ".join(cells), cells


def read(target: str, version: str, commit: str, on: date, text: str) -> Release:
    """What a list says."""
    source = SOURCES[target]
    # What computes shapes runs on the CPU anyway.
    floats = {"element_types": ["bfloat16", "float", "float16"]} if source.outcome == "elsewhere" else {}
    rows: list[Row] = []
    taken = set(source.also)
    for name, said, cells in listed(target, text):
        if re.search(source.refuses, said, re.IGNORECASE):
            continue
        if source.opsets is not None:
            own = re.search(r"ai\.onnx\(([^)]*)\)", cells[source.opsets])
            if own is None:  # it is an operator of another domain that has this name
                continue
            lacking = not_listed(name, Ranges.parse(own[1].replace("+", "-")), source.reads)
            if lacking:
                rows.append(Row.of([name], source.outcome, source.lacks, lacking, **floats))
        taken.add(name)
        remark = cells[source.column] if len(cells) > source.column else ""
        if remark:
            found = of_remark(remark, name, source.remarks)
            rows += [replace(row, outcome="elsewhere") for row in found] if source.outcome == "elsewhere" else found
    rows.append(Row.of(others_than(taken, source.reads), source.outcome, source.lacks, **floats))
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
