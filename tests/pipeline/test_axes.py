"""Axes that make no sense are refused, and only those of ONNX's own reductions."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from reducelower.batch import convert_files
from reducelower.pipeline.axes import what_is_wrong_with_axes

IMPORTS = '<ir_version: 8, opset_import: ["": 17, "my": 1]>'


def model(body: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f"{IMPORTS} g (float[2, 3] x) => (float y) {{ {body} }}")


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_axes_that_the_data_does_not_have(domain: str) -> None:
    made = model("y = ReduceMax <axes = [5]> (x)")
    made.graph.node[0].domain = domain
    assert what_is_wrong_with_axes(made) == "ReduceMax '#0' has axes [5], and its data has 2 dimensions"


def test_an_operator_of_another_domain_means_what_it_means(tmp_path: Path) -> None:
    made = model("a = my.ReduceMax <axes = [5]> (x) y = Neg (a)")
    assert what_is_wrong_with_axes(made) == ""
    onnx.save(made, tmp_path / "model.onnx")
    outcomes = list(convert_files([tmp_path / "model.onnx"], 18, output_dir=tmp_path / "out", verify=False))
    assert [(item.status, item.problems) for item in outcomes] == [(0, ())]


def test_a_constant_of_another_domain_is_none() -> None:
    assert what_is_wrong_with_axes(model("k = Constant <value = int64[1] {5}> () y = ReduceSum (x, k)")) != ""
    assert what_is_wrong_with_axes(model("k = my.Constant <value = int64[1] {5}> () y = ReduceSum (x, k)")) == ""


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
