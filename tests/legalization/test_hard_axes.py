"""Axes that are known at run time only; `cases/axes.toml` has what is computed or overridable."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper, parser

import reducelower
from tests.legalization.models import OPERATORS, reduced, sample
from tests.models import everywhere, yields
from tests.pairwise import pairwise

AXES = ([], [0], [1], [2], [-1], [0, 2], [2, 0], [-3, 1], [0, 1, 2])


def dynamic_model(
    op_type: str, opset: int, keepdims: int | None, noop: int | None, shape: str = "2, 3, 4"
) -> ModelProto:
    attributes = ", ".join(
        f"{name} = {value}"
        for name, value in (("keepdims", keepdims), ("noop_with_empty_axes", noop))
        if value is not None
    )
    model = parser.parse_model(
        f"""
        <ir_version: 8, opset_import: ["" : {opset}]>
        g (float[{shape}] x, int64[K] axes) => (float y)
        {{ y = {op_type} {f"<{attributes}>" if attributes else ""} (x, axes) }}
        """
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model


DYNAMIC_AXES = pairwise((18, 20, 21, 28), (17, 15, 13, 12, 11, 9), OPERATORS, (None, 0), (None, 1))


@pytest.mark.opset("source")
@pytest.mark.parametrize("source", [18, 20, 21, 28])
@pytest.mark.parametrize("target", [17, 15, 13, 12, 11, 9])
def test_dynamic_axes_keep_their_numbers(source: int, target: int) -> None:
    data = sample(np.float32)
    for op_type, keepdims, noop in [row[2:] for row in DYNAMIC_AXES if row[:2] == (source, target)]:
        converted = reducelower.convert_version(dynamic_model(op_type, source, keepdims, noop), target)
        for axes in AXES:
            (y,) = yields(converted, {"x": data, "axes": np.array(axes, np.int64)})
            expected = reduced(op_type, data, axes, keepdims, noop)
            assert y.shape == expected.shape, (op_type, axes, keepdims, noop)
            np.testing.assert_allclose(y, expected, rtol=2e-6, err_msg=f"{op_type}, axes {axes}")


@pytest.mark.parametrize("noop", [None, 1])
@pytest.mark.parametrize(
    "op_type", ["ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceSumSquare"]
)
def test_composites_of_unknown_rank_stay_dynamic_where_reduce_sum_is(op_type: str, noop: int | None) -> None:
    model = dynamic_model(op_type, 18, None, noop)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    converted = reducelower.convert_version(model, 13, rules="spec")
    assert "If" not in everywhere(converted)
    data = sample(np.float32)
    for axes in AXES:
        (y,) = yields(converted, {"x": data, "axes": np.array(axes, np.int64)})
        np.testing.assert_allclose(y, reduced(op_type, data, axes, None, noop), rtol=2e-6)


def test_sparse_initializers_are_no_constants_but_no_obstacle() -> None:
    model = dynamic_model("ReduceMax", 18, None, None)
    del model.graph.input[1]
    sparse = model.graph.sparse_initializer.add(dims=[1])
    sparse.values.CopyFrom(numpy_helper.from_array(np.array([1], np.int64), "axes"))
    sparse.indices.CopyFrom(numpy_helper.from_array(np.array([0], np.int64)))
    converted = reducelower.convert_version(model, 13)
    data = sample(np.float32)
    (y,) = yields(converted, {"x": data})
    np.testing.assert_array_equal(y, data.max(1, keepdims=True))
