"""Work that takes longer than a conversion is done only where it can change something."""

from __future__ import annotations

import pytest
from onnx import ModelProto, parser

import reducelower
from reducelower.legalization import run
from tests.watching import calls_of


def _model(opset: int, body: str) -> ModelProto:
    return parser.parse_model(f'<ir_version: 7, opset_import: ["": {opset}]> g (float[2,3] x) => (y) {{ {body} }}')


@pytest.mark.parametrize(
    ("body", "opset", "goal", "is_inferred"),
    [
        # Inference knows LessOrEqual of opset 12 by its body, and nothing of Compress below 11.
        ("y = LessOrEqual(x, x)", 14, 17, False),
        ("i = Constant<value = bool[1] {1}>() y = Compress<axis = 0>(x, i)", 9, 11, True),
    ],
)
def test_the_whole_model_is_inferred_only_for_operators_that_inference_gets_to_know(
    body: str, opset: int, goal: int, is_inferred: bool
) -> None:
    with calls_of(run.new_objection) as calls:
        reducelower.convert_version(_model(opset, body), goal)
    assert bool(calls) is is_inferred
