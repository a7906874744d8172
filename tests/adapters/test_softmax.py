"""Softmax and its kin on the two sides of opset 13."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from tests.adapters.models import assert_same, floats, int64s, model, one, operators

X = floats(2, 3, 4)
OPERATORS = ("Hardmax", "LogSoftmax", "Softmax")


def _softmax(data: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:
    exponents = np.exp(data - data.max(axis=axis, keepdims=True))
    return exponents / exponents.sum(axis=axis, keepdims=True)


@pytest.mark.parametrize("axis", [None, -1, 0, 1, 2, -2])
@pytest.mark.parametrize("op_type", OPERATORS)
def test_one_axis_is_normalized_below_13(op_type: str, axis: int | None) -> None:
    made = one(op_type, {"x": X}, 13, **({} if axis is None else {"axis": axis}))
    assert_same(made, {"x": X}, 11)
    assert_same(made, {"x": X}, 9)


@pytest.mark.parametrize("axis", [None, -1, 0, 1, 2, -2])
@pytest.mark.parametrize("op_type", OPERATORS)
def test_everything_from_the_axis_on_is_normalized_above_13(op_type: str, axis: int | None) -> None:
    made = one(op_type, {"x": X}, 11, **({} if axis is None else {"axis": axis}))
    assert_same(made, {"x": X}, 13)


def test_softmax_of_numpy_below_13() -> None:
    assert_same(one("Softmax", {"x": X}, 13, axis=1), {"x": X}, 12, _softmax(X, 1))


def test_softmax_of_numpy_above_13() -> None:
    assert_same(one("Softmax", {"x": X}, 12), {"x": X}, 13, _softmax(X, (1, 2)))


@pytest.mark.parametrize("opsets", [(13, 11), (11, 13)])
def test_the_last_axis_needs_no_other_nodes_whatever_the_rank(opsets: tuple[int, int]) -> None:
    feeds = {"x": X, "s": int64s(3, 8)}
    nodes = [
        helper.make_node("Reshape", ["x", "s"], ["r"]),
        helper.make_node("Softmax", ["r"], ["n"], axis=-1),
        helper.make_node("Reshape", ["n", "back"], ["y"]),
    ]
    made = model(nodes, feeds, opsets[0], constants={"back": int64s(2, 3, 4)}, ranked=["s"])
    assert operators(assert_same(made, feeds, opsets[1])) == ["Reshape", "Softmax", "Reshape"]


@pytest.mark.parametrize("opsets", [(13, 11), (11, 13)])
def test_an_axis_that_only_ones_follow_needs_no_other_nodes(opsets: tuple[int, int]) -> None:
    data = floats(2, 3, 1, 1)
    made = one("Softmax", {"x": data}, opsets[0], axis=1)
    assert operators(assert_same(made, {"x": data}, opsets[1])) == ["Softmax"]


def test_dynamic_shapes_are_restored_at_run_time() -> None:
    made = one("Softmax", {"x": X}, 11, ranked=["x"], axis=1)
    assert_same(made, {"x": X}, 13, _softmax(X, (1, 2)))


@pytest.mark.parametrize("target", [13, 15])
@pytest.mark.parametrize("ranked", [[], ["x"]])
@pytest.mark.parametrize("shape", [(2, 3, 0), (0, 3, 4), (2, 0, 0), (0, 0, 0)])
@pytest.mark.parametrize("op_type", OPERATORS)
def test_data_without_elements_keeps_its_shape_above_13(
    op_type: str, shape: tuple[int, ...], ranked: list[str], target: int
) -> None:
    nothing = np.zeros(shape, np.float32)
    made = one(op_type, {"x": nothing}, 12, ranked=ranked, axis=1)
    assert_same(made, {"x": nothing}, target, nothing)
