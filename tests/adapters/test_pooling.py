"""The pooling operators make the same windows in every opset."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, checker, helper, parser
from onnx.reference import ReferenceEvaluator

from tests.adapters.single import converted, model_of, yields
from tests.legalization.running import run

DATA = np.random.default_rng(5).normal(size=(1, 2, 7, 9)).astype(np.float32)


def test_dilations_of_one_say_nothing() -> None:
    model = model_of("MaxPool", {"x": DATA}, opset=12, kernel_shape=[2, 2], dilations=[1, 1])
    assert not any(attribute.name == "dilations" for attribute in converted(model, 9).graph.node[0].attribute)


@pytest.mark.opset(22)
@pytest.mark.parametrize("op_type", ["AveragePool", "MaxPool"])
def test_a_stated_shape_that_counts_a_window_in_the_padding_hinders_nothing(op_type: str) -> None:
    model = parser.parse_model(
        f"""
        <ir_version: 8, opset_import: ["": 13]> g (float[1, 1, 6] x) => (float[1, 1, 3] y)
        {{ p = {op_type} <ceil_mode = 1, kernel_shape = [1], strides = [3]> (x) y = Relu (p) }}
        """
    )
    checker.check_model(model, full_check=True)
    data = np.arange(6, dtype=np.float32).reshape(1, 1, 6)
    (result,) = run(converted(model, 22), {"x": data})
    np.testing.assert_array_equal(result, data[:, :, ::3])


@pytest.mark.parametrize("target", [17, 13])
def test_powers_of_dilated_windows_do_not_overflow_in_half_precision(target: int) -> None:
    data = np.full((1, 1, 3, 3), 60, np.float16)
    half = {"y": (TensorProto.FLOAT16, [1, 1, 1, 1])}
    made = model_of("LpPool", {"x": data}, opset=18, kernel_shape=[2, 2], dilations=[2, 2], p=3, outputs=half)
    (result,) = ReferenceEvaluator(converted(made, target)).run(None, {"x": data})
    np.testing.assert_allclose(result, np.full((1, 1, 1, 1), 60 * 4 ** (1 / 3)), rtol=1e-3)


@pytest.mark.opset("opset")
@pytest.mark.parametrize("target", [17, 11, 9])
@pytest.mark.parametrize(
    "attributes",
    [
        {"pads": [1, 0, 2, 1]},
        {"pads": [1, 1, 1, 1], "count_include_pad": 1},
        {"pads": [1, 1, 1, 1], "strides": [2, 3], "ceil_mode": 1},
        {"pads": [1, 1, 1, 1], "strides": [2, 3], "ceil_mode": 1, "count_include_pad": 1},
    ],
)
@pytest.mark.parametrize(("op_type", "opset"), [("AveragePool", 19), ("LpPool", 18)])
def test_padded_dilated_windows_become_a_convolution(
    op_type: str, opset: int, attributes: dict[str, Any], target: int
) -> None:
    if op_type == "LpPool":
        attributes = {**attributes, "p": 3}
        attributes.pop("count_include_pad", None)
    made = model_of(op_type, {"x": DATA}, opset=opset, kernel_shape=[3, 2], dilations=[2, 3], **attributes)
    (expected,) = yields(made, {"x": DATA})
    (result,) = yields(converted(made, target), {"x": DATA})
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


_POOLED: dict[str, Callable[..., np.ndarray]] = {
    "MaxPool": np.maximum,
    "AveragePool": lambda one, other: (one + other) / 2,
    "LpPool": np.hypot,
}
_SPARSE = {"kernel_shape": [2, 1], "strides": [3, 3], "ceil_mode": 1}
"""The window covers part of a stride, and the last stride part of the data: one window more would be all padding."""


@pytest.mark.opset("opset", "target")
@pytest.mark.parametrize(
    ("op_type", "opset", "target", "attributes"),
    [
        *itertools.chain.from_iterable(
            ((*pool, {"auto_pad": "SAME_UPPER"}), (*pool, {"auto_pad": "VALID"}), (*pool, {}))
            for pool in (
                ("MaxPool", 10, 7), ("MaxPool", 13, 9), ("AveragePool", 10, 7), ("AveragePool", 19, 9),
                ("LpPool", 18, 17), ("MaxPool", 22, 21), ("AveragePool", 22, 21), ("LpPool", 22, 21),
                ("MaxPool", 22, 7), ("MaxPool", 10, 4), ("AveragePool", 12, 1), ("MaxPool", 21, 22),
                 ("AveragePool", 21, 22), ("LpPool", 21, 22),
            )
        ),
        *((op_type, opset, target, {"dilations": [2, 1]}) for op_type, opset, target in (
            ("MaxPool", 22, 10), ("MaxPool", 12, 22), ("AveragePool", 19, 18), ("AveragePool", 22, 21),
            ("LpPool", 18, 17), ("LpPool", 22, 11), ("MaxPool", 12, 9),
        )),
        *((op_type, opset, target, {"dilations": [1, 1]}) for op_type, opset, target in (
            ("MaxPool", 10, 9), ("LpPool", 18, 17), ("AveragePool", 19, 18), ("MaxPool", 12, 4),
        )),
    ],
)  # fmt: skip
def test_a_size_that_inference_told_of_a_pool_is_not_contradicted(
    op_type: str, opset: int, target: int, attributes: dict[str, Any]
) -> None:
    data = np.random.default_rng(3).normal(size=(1, 2, 6, 8)).astype(np.float32)
    made = model_of(op_type, {"x": data}, opset=opset, ir_version=10, **_SPARSE, **attributes)
    made.graph.node.append(helper.make_node("Transpose", ["y"], ["z"], perm=[0, 1, 2, 3]))
    made.graph.output[0].name = "z"  # its size is stated behind the pool alone
    checker.check_model(made, full_check=True)
    result = converted(made, target)
    if attributes.get("auto_pad") == "SAME_UPPER":
        return  # it is valid; no runtime runs it, for want of negative padding
    second = attributes.get("dilations", [1, 1])[0]
    pooled = _POOLED[op_type](data[:, :, ::3, ::3], data[:, :, second::3, ::3])
    np.testing.assert_allclose(yields(result, {"x": data})[0], pooled, rtol=1e-5)
