"""Reports of real conversions, for tests of their forms."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import onnx
from onnx import ModelProto

from reducelower.batch import Settings, Task, check_file, convert_file
from reducelower.options import Target
from reducelower.report import Outcome, Report

HOSTILE = "</script><script>alert(1)</script>\x01\u202e\"'<img src=x onerror=alert(2)>|`@someone` #1 **b** ]]>&amp;"


def json_schema(name: str = "schema.json") -> dict[str, Any]:
    """A schema that reports conform to."""
    schema: dict[str, Any] = json.loads((files("reducelower.report") / name).read_text("utf-8"))
    return schema


def model(text: str, opset: int = 18) -> ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> {text}')


def hostile() -> ModelProto:
    """A model whose every name is an attack."""
    given = model("g (float[N, 3] x) => (float[N, 1] y) <int64[1] a = {1}> { y = ReduceL2 (x, a) }")
    node = given.graph.node[0]
    node.name = node.output[0] = given.graph.output[0].name = HOSTILE
    node.input[0] = given.graph.input[0].name = f"in {HOSTILE}"
    given.graph.input[0].type.tensor_type.shape.dim[0].dim_param = HOSTILE
    given.graph.output[0].type.tensor_type.shape.dim[0].dim_param = HOSTILE
    return given


REFUSED = 'g (string[2] x) => (bool[2] y) { y = RegexFullMatch <pattern = "a+"> (x) }'


def convert(path: Path, **settings: object) -> Outcome:
    target = Target(13, frozenset({"ReduceL2", "ReduceLogSumExp"}))
    chosen = Settings(target, details=True, overwrite=True, **settings)  # type: ignore[arg-type]
    return convert_file(Task(str(path), str(path.parent / "out.onnx")), chosen)


def converted(folder: Path, given: ModelProto, name: str = "model.onnx", **settings: object) -> Outcome:
    onnx.save(given, folder / name)
    return convert(folder / name, **settings)


def checked(folder: Path, given: ModelProto) -> Outcome:
    onnx.save(given, folder / "model.onnx")
    return check_file(str(folder / "model.onnx"), Settings(Target(13), details=True))


def everything(folder: Path, models: Path) -> Report:
    """A run with every verdict that a conversion can have."""
    (folder / "unreadable.onnx").write_bytes(b"no model")
    custom = model("g (float[2, 3] x) => (float[2, 1] y) { y = ReduceL2 <axes = [1]> (x) }", 11)
    custom.opset_import.add(domain="mine", version=1)
    custom.graph.node.add(op_type="Unknown", domain="mine", input=["x"], output=["z"], name="custom")
    reports = [
        converted(folder, hostile(), "hostile.onnx"),
        converted(folder, model(REFUSED, 20), "refused.onnx"),
        converted(folder, custom, "custom.onnx"),
        convert(folder / "unreadable.onnx"),
    ]
    for name in ("skl_gmm_20", "torch_cond_dyn_21"):
        reports.append(converted(folder, onnx.load(models / f"{name}.onnx"), f"{name}.onnx"))
    return Report("convert", tuple(reports))
