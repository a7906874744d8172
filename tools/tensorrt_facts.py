"""Make facts about TensorRT from its ONNX parser's lists of operators, one for each release.

    python tools/tensorrt_facts.py VERSION=COMMIT=DATE=operators.md ...

Each file is `docs/operators.md` of https://github.com/onnx/onnx-tensorrt at a commit on the branch of the release.
Facts that only the parser's source shows are written by hand at the top of the target file.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from documented import Release, Row, missing_types, of_remark, others_than, table_rows, write

from reducelower.runtimes.facts import Is

TARGET = Path(__file__).parents[1] / "rules" / "targets" / "tensorrt.toml"

ADDRESS = "https://github.com/onnx/onnx-tensorrt/blob/{commit}/docs/operators.md"

TYPES = {
    "FP32": "float", "FP16": "float16", "BF16": "bfloat16", "INT8": "int8", "INT32": "int32", "INT64": "int64",
    "UINT8": "uint8", "BOOL": "bool",
}  # fmt: skip

OF_OTHER_INPUTS = {
    "Constant", "ConstantOfShape", "Dropout", "If", "Loop", "NonMaxSuppression", "OneHot", "RandomNormal",
    "RandomUniform", "Scan",
}  # fmt: skip
"""Operators for which the list does not name the types of the first input."""

NOT_COMPUTED = {"ImageScaler", "ParametricSoftplus", "ScaledTanh", "Scatter", "Upsample", "BlackmanWindow"}
"""Former operators, and one that only makes a constant."""

_CONSTANT = {"last": ["dynamic", "fed"], "inputs": "2-"}

REMARKS: Mapping[str, Sequence[tuple[str, Is, Mapping[str, Any]]] | None] = {
    r"Attention: ": [
        ("Only data of four dimensions are supported.", "refused", {"rank": "-3, 5-"}),
        ("The past and the lengths of keys are not supported.", "refused", {"inputs": "5-"}),
        ("Only the first output is supported.", "refused", {"outputs": "2-"}),
        ("The softcap is not supported.", "refused", {"attributes": ["softcap!=0.0"]}),
        ("The output of products is not supported.", "refused", {"attributes": ["qk_matmul_output_mode!=0"]}),
    ],
    r"MaxPool: 2D or 3D.*dilations": [
        ("Only two and three spatial dimensions are supported.", "refused", {"rank": "-3, 6-"}),
        ("The output of indices is not supported.", "refused", {"outputs": "2-"}),
        ("Dilations are not supported.", "refused", {"attributes": ["dilations!=1"]}),
    ],
    r"MaxPool: 2D or 3D": [
        ("Only two and three spatial dimensions are supported.", "refused", {"rank": "-3, 6-"}),
        ("The output of indices is not supported.", "refused", {"outputs": "2-"}),
    ],
    r"AveragePool: 2D or 3D.*dilations": [
        ("Only two and three spatial dimensions are supported.", "refused", {"rank": "-3, 6-"}),
        ("Dilations are not supported.", "refused", {"attributes": ["dilations!=1"]}),
    ],
    r"AveragePool: 2D or 3D": [
        ("Only two and three spatial dimensions are supported.", "refused", {"rank": "-3, 6-"}),
    ],
    r"LpPool: .dilations": [("Dilations are not supported.", "refused", {"attributes": ["dilations!=1"]})],
    r"Constant: .sparse_value": [
        ("Sparse constants are not supported.", "refused", {"attributes": ["sparse_value"]}),
        ("Texts are not supported.", "refused", {"attributes": ["value_string"]}),
        ("Texts are not supported.", "refused", {"attributes": ["value_strings"]}),
    ],
    r"CumSum: .axis": [("The axis must be constant.", "refused", {"last": ["dynamic", "fed"]})],
    r"DeformConv: ": [
        ("Only one and two spatial dimensions are supported.", "refused", {"rank": "5-"}),
        ("The pads at both ends of an axis must be equal.", "refused", {"uneven": True}),
    ],
    r"(Dequantize|Quantize)Linear: .[xy]_zero_point": [
        ("The zero point must be zero.", "refused", {"shifted": True}),
    ],
    r"EyeLike: .input": [("Sizes must be known.", "refused", {"open_sizes": "1-"})],
    r"GridSample: Input must be 4D": [
        ("Only two spatial dimensions are supported.", "refused", {"rank": "-3, 5-"}),
    ],
    r"InstanceNormalization: .*rank must be >=3": [
        ("Only one to three spatial dimensions are supported.", "refused", {"rank": "-2, 6-"}),
    ],
    r"LayerNormalization: Only the first output": [
        ("Only the first output is supported.", "refused", {"outputs": "2-"}),
    ],
    r"LSTM: .*input_forget": [
        ("input_forget=1 is not supported.", "refused", {"attributes": ["input_forget=1"]}),
        ("layout=1 is not supported.", "refused", {"attributes": ["layout=1"]}),
    ],
    r"Reduce\w+: .axes": [("Axes must be constant.", "refused", {"axes": ["dynamic"]})],
    r"Resize: .*Antialiasing": [
        ("There is no cubic interpolation.", "refused", {"attributes": ["mode=cubic"]}),
        (
            "This transformation of coordinates is not supported.",
            "refused",
            {
                "attributes": [
                    "coordinate_transformation_mode=tf_crop_and_resize",
                    "coordinate_transformation_mode=half_pixel_symmetric",
                ]
            },
        ),
        (
            "The aspect ratio cannot be kept.",
            "refused",
            {"attributes": ["keep_aspect_ratio_policy!=stretch"]},
        ),
        ("Antialiasing is not supported.", "refused", {"attributes": ["antialias=1"]}),
    ],
    r"Resize: ": [
        ("There is no cubic interpolation.", "refused", {"attributes": ["mode=cubic"]}),
        (
            "This transformation of coordinates is not supported.",
            "refused",
            {
                "attributes": [
                    "coordinate_transformation_mode=tf_crop_and_resize",
                    "coordinate_transformation_mode=half_pixel_symmetric",
                ]
            },
        ),
    ],
    r"ReverseSequence: Dynamic": [("Sizes must be known.", "refused", {"open_sizes": "1-"})],
    r"ScatterND: .reduction": [("Reductions are not supported.", "refused", {"attributes": ["reduction!=none"]})],
    r"Slice: .axes": [("Axes that are a model input are not supported.", "refused", {"fed": True, "inputs": "4-"})],
    r"(Squeeze|Unsqueeze): .axes": [("Axes must be constant.", "refused", _CONSTANT)],
    r"TensorScatter: ": [
        ("Only data of four dimensions are supported.", "refused", {"rank": "-3, 5-"}),
        ("Only the axis -2 is supported.", "refused", {"attributes": ["axis!=-2"]}),
    ],
    r"TopK: .sorted": [
        ("Unsorted results are not supported.", "refused", {"attributes": ["sorted=0"]}),
        ("k must be less than 3840.", "refused", {"second_value": "3840-"}),
    ],
    r"TopK: .K": [("k must be constant.", "refused", {"last": ["dynamic", "fed"]})],
    # Remarks about something that cannot be asked of a node, or that does not fail.
    r"(GRU|LSTM|RNN): For bidirectional": None,
    r"Random\w+: .seed": None,
    r"(If|Loop|Dropout|DynamicQuantizeLinear|OneHot|Hardmax|RotaryEmbedding): ": None,
    r"(STFT|Einsum|NonMaxSuppression|Range|Pad): ": None,
    r"InstanceNormalization: ": None,
}


def read(version: str, commit: str, on: date, text: str) -> Release:
    """The facts in a list."""
    head = re.search(r"opset (\d+) to opset (\d+)", text) or re.search(r"up to (?:Opset )?()(\d+)", text)
    assert head is not None
    reads = f"{head[1] or 7}-{head[2]}"
    rows: list[Row] = []
    listed: dict[str, str] = {}
    for name, supported, *rest in table_rows(text):
        if not re.fullmatch("[YN]( .*)?", supported):
            continue
        listed[name] = supported
        if supported == "N":
            continue
        types, remark = [*rest, "", ""][:2]
        accepted = {TYPES[each] for each in re.split(r"[, ]+", types.strip(", ")) if each in TYPES}
        if "int32" in accepted and version.startswith("8."):
            accepted.add("int64")  # converted to int32, as the head of the list says
        if accepted and name not in OF_OTHER_INPUTS | NOT_COMPUTED:
            of = "output_types" if name == "Where" else "element_types"
            says = (
                f"Only {', '.join(sorted(accepted))} are supported."
                if len(accepted) > 1
                else f"Only {min(accepted)} is supported."
            )
            rows.append(Row.of([name], "absent", says, **{of: missing_types(accepted)}))
        if remark:
            rows += of_remark(remark, name, REMARKS)
    lacking = {name for name, word in listed.items() if word == "N"} | others_than(listed, reads)
    rows.append(Row.of(lacking - {"Upsample", "Scatter"}, "absent", "The parser does not know the operator."))
    return Release(version, ADDRESS.format(commit=commit), on, rows, reads)


if __name__ == "__main__":
    given = [argument.split("=", 3) for argument in sys.argv[1:]]
    lists = [
        read(version, commit, date.fromisoformat(on), Path(path).read_text()) for version, commit, on, path in given
    ]
    write(TARGET, "tensorrt_facts.py", lists, own="10.15")
