"""What the reference evaluator is given in place of its own operators is right where those are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

from tests.table import VOCABULARY, rows
from tools.fuzz.comparing import difference
from tools.fuzz.runtimes import run
from tools.fuzz.versions import measured

F = np.float32
ROWS = rows(Path(__file__).with_name("better_judges.toml"), fields={"model", "given", "right"})
NAMES: dict[str, Any] = {**VOCABULARY, "F": F, "ONE": np.ones((1, 1, 1, 1), np.uint8)}


@measured
@pytest.mark.parametrize("claim", ROWS)
def test_it_is_right_where_the_evaluator_is_not(claim: str) -> None:
    row = ROWS[claim]
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 19]> g {row["model"]}')
    feeds = {name: eval(text, NAMES) for name, text in row["given"].items()}
    right = eval(row["right"], NAMES)
    found = run("reference", model, feeds).values
    assert found is not None
    assert not difference(right, found[0])
    with np.errstate(all="ignore"):
        (own,) = ReferenceEvaluator(model).run(None, feeds)
    assert difference(right, own)


def test_axes_are_inserted_together_below_13() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 7, opset_import: ["" : 11]> g (float[2, 3] x) => (float[2, 1, 3, 1] y) '
        "{ y = Unsqueeze <axes = [-3, -1]> (x) }"
    )
    found = run("reference", model, {"x": np.zeros((2, 3), F)}).values
    assert found is not None
    assert found[0].shape == (2, 1, 3, 1)


def test_an_output_without_a_name_is_no_input_that_is_left_out() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 14]> g (float[2] x) => (float[2] y, int64[1] i) '
        "<int64[1] k = {1}, float high = {9}> { , i = TopK (x, k) y = Clip (x, , high) }"
    )
    found = run("reference", model, {"x": np.array([1, 5], F)}).values
    assert found is not None
    np.testing.assert_array_equal(found[0], [1, 5])
