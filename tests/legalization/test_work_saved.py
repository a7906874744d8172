"""Work that takes longer than a conversion is done only where it can change something."""

from __future__ import annotations

import pytest
from onnx import ModelProto, TensorProto, helper, parser

import reducelower
from reducelower.legalization import run
from reducelower.legalization.whole import stated_types
from tests.runtimes.toaster import runtime
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


def test_stale_types_are_dropped_once_however_many_opsets_are_tried() -> None:
    model = _model(18, "z = Neg(x) m = Mish(z) u = Unsqueeze(m, a) r = ReduceMax(m, a) y = NonZero(u)")
    model.graph.value_info.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [2, 3, 4]))
    model.graph.input.append(helper.make_tensor_value_info("a", TensorProto.INT64, ["n"]))
    wrong = [f"operators = ['{name}']\nis = 'wrong'" for name in ("Unsqueeze", "Reshape", "NonZero")]
    with calls_of(stated_types.drop_stale) as calls, pytest.raises(reducelower.ConversionError):
        reducelower.legalize(model, reducelower.Target(runtime=runtime(*wrong)))
    assert 1 <= len(calls) <= 2, "once for all trials, and once more for the attempt that counts"
