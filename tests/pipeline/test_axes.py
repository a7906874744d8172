"""Axes that make no sense are refused, and only those of ONNX's own reductions."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from reducelower.batch import convert_files

IMPORTS = '<ir_version: 8, opset_import: ["": 17, "my": 1]>'


def model(body: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f"{IMPORTS} g (float[2, 3] x) => (float y) {{ {body} }}")


@pytest.mark.parametrize(("domain", "status"), [("", 1), ("ai.onnx", 1), ("my", 0)])
def test_axes_that_the_data_does_not_have(domain: str, status: int, tmp_path: Path) -> None:
    made = model("a = ReduceMax <axes = [5]> (x) y = Neg (a)")
    made.graph.node[0].domain = domain
    onnx.save(made, tmp_path / "model.onnx")
    (outcome,) = convert_files([tmp_path / "model.onnx"], 18, output_dir=tmp_path / "out", verify=False)
    assert outcome.status == status, outcome.problems
    assert "itself failed" not in "".join(outcome.problems)


@pytest.mark.parametrize(
    ("call", "before", "after"),
    [("ArgMax <axis = 4>", 9, 13), ("Concat <axis = 5>", 1, 13), ("Split <axis = -3>", 1, 13)],
)
def test_an_axis_that_only_newer_versions_look_at_is_refused(
    call: str, before: int, after: int, tmp_path: Path
) -> None:
    kind = "int64" if "Arg" in call else "float"
    made = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {before}]> g (float[2, 3] x) => ({kind}[a, b] y) {{ y = {call} (x) }}'
    )
    onnx.checker.check_model(made, full_check=True)
    onnx.save(made, tmp_path / "model.onnx")
    outcome = next(convert_files([tmp_path / "model.onnx"], after, output_dir=tmp_path / "out", verify=False))
    assert outcome.status == 1
    assert "itself failed" not in outcome.problems[0]
