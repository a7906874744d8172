"""What runtimes run and the checker refuses is mended without touching what is computed, and is said to be.

`repaired.toml` and `elsewhere.toml` have the models.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, checker, parser, shape_inference

import reducelower
from reducelower import ConversionError
from tests.models import yields
from tests.table import VOCABULARY, rows

X = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
ROWS = rows(
    Path(__file__).with_name("repaired.toml"),
    fields={"graph", "imports", "spoil", "done", "says", "becomes", "given", "gives", "holds", "refused"},
)
ELSEWHERE = rows(Path(__file__).with_name("elsewhere.toml"), fields={"opsets", "graph", "gives"})


def model(graph: str, imports: str = '"": 17') -> ModelProto:
    return parser.parse_model(f"<ir_version: 8, opset_import: [{imports}]> g {graph}")


@pytest.mark.parametrize("claim", ROWS)
def test_what_is_wrong_is_mended_and_the_callers_model_stays(claim: str) -> None:
    row = ROWS[claim]
    source = model(row["graph"], row.get("imports", '"": 17'))
    for statement in row.get("spoil", ()):
        exec(statement, {"m": source, "g": source.graph})
    if "refused" in row:
        with pytest.raises(shape_inference.InferenceError, match=row["refused"]):
            checker.check_model(source, full_check=True)
    before = source.SerializeToString()
    mended = reducelower.repair(source)
    assert source.SerializeToString() == before
    assert row.get("done", "") in " ".join(mended.done)
    assert list(mended.done) == row.get("says", list(mended.done))
    assert [node.op_type for node in mended.model.graph.node] == row.get("becomes", mended_operators(mended.model))
    if "holds" in row:
        assert eval(row["holds"], {"m": mended.model, "g": mended.model.graph})
    if not mended.done:
        assert mended.model == source
    else:
        checker.check_model(mended.model, full_check=True)
    if "gives" in row:
        names = {**VOCABULARY, "x": X}
        given = {name: eval(text, names) for name, text in row.get("given", {}).items()}
        np.testing.assert_array_equal(yields(mended.model, {"x": X, **given})[0], eval(row["gives"], names))


def mended_operators(made: ModelProto) -> list[str]:
    return [node.op_type for node in made.graph.node]


# What the library does where a conversion meets such a model


def test_a_domain_that_is_not_imported_is_imported() -> None:
    text = """(float[2,3] x, float[3,3] w) => (float[2,3] y) {
        a = com.microsoft.FusedMatMul(x, w) y = Softmax<axis = 0>(a) }"""
    checker.check_model(reducelower.convert_version(reducelower.repair(model(text)).model, 9))


@pytest.mark.parametrize("target", [9, 13, 17, 21])
def test_what_needs_no_opset_version_comes_to_any(target: int) -> None:
    text = "(float[2,3] x) => (float[2,3] y) { y = ai.onnx.ml.Scaler<offset = [1.0], scale = [2.0]>(x) }"
    converted = reducelower.convert_version(model(text, '"ai.onnx.ml": 3'), target)
    checker.check_model(converted, full_check=True)
    assert {entry.domain: entry.version for entry in converted.opset_import} == {"ai.onnx.ml": 3, "": target}
    np.testing.assert_array_equal(yields(converted, {"x": X})[0], (X - 1) * 2)


def elsewhere(case: str) -> tuple[ModelProto, int]:
    imported, written = ELSEWHERE[case]["opsets"]
    return model(ELSEWHERE[case]["graph"], f'"": {imported}'), written


@pytest.mark.parametrize("case", ELSEWHERE)
def test_a_node_in_the_form_of_another_opset_is_moved(case: str) -> None:
    source, written = elsewhere(case)
    mended = reducelower.repair(source)
    (said,) = mended.done
    assert f"{source.graph.node[0].op_type} of opset {written}" in said
    checker.check_model(mended.model, full_check=True)
    meant = ModelProto()
    meant.CopyFrom(source)
    meant.opset_import[0].version = written
    shape = [dim.dim_value for dim in source.graph.input[0].type.tensor_type.shape.dim]
    x = np.linspace(-2, 3, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    by_hand = ELSEWHERE[case].get("gives")
    expected = [eval(by_hand, {**VOCABULARY, "x": x})] if by_hand else yields(meant, {"x": x})
    for found, wanted in zip(yields(mended.model, {"x": x}), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert reducelower.repair(mended.model).done == ()


@pytest.mark.parametrize("case", ELSEWHERE)
def test_a_conversion_passes_no_such_node_on_and_names_repair(case: str) -> None:
    source, written = elsewhere(case)
    opset = source.opset_import[0].version
    for target in (opset - 1, opset, opset + 5):
        with pytest.raises(ConversionError) as refused:
            reducelower.convert_version(source, target)
        (reason,) = refused.value.refusals
        assert f"it is written for opset {written}, and the model imports opset {opset}" in reason.reason
        assert "repair" in reason.hint
        if target >= opset:
            reducelower.convert_version(reducelower.repair(source).model, target)


@pytest.mark.parametrize("case", ["axes of ReduceSum", "axes of ReduceMean too early", "Upsample that was withdrawn"])
def test_the_command_line_says_what_it_is_written_for_and_repairs_it(
    case: str, cli: Callable[..., Any], tmp_path: Path
) -> None:
    source, written = elsewhere(case)
    path, output = tmp_path / "model.onnx", tmp_path / "out.onnx"
    path.write_bytes(source.SerializeToString())
    refused = cli("convert", path, "-o", output, "--opset", 18)
    assert refused.status == 1
    assert f"{source.graph.node[0].op_type} is written for opset {written}" in refused.err
    assert "--repair" in refused.err
    assert cli("convert", path, "-o", output, "--opset", 18, "--repair").status == 0
