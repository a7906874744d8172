"""Of models that differ, the smallest part that shows it is written, with what it is fed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper

from reducelower.verification import verify
from tests.models import model, operators, run

CHAIN = "g (float[N, 8] x) => (float[N, 8] y) { a = Abs (x)  b = MatMul (a, w)  c = Softmax (b)  y = Neg (c) }"
WEIGHT = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)


def weighted(text: str, weight: np.ndarray[Any, Any]) -> ModelProto:
    made = model(text, 13)
    made.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    return made


def given(folder: Path, name: str) -> tuple[ModelProto, dict[str, np.ndarray[Any, Any]], list[Any]]:
    """A model that was written, what it is fed, and what onnxruntime makes of that."""
    written = onnx.load(folder / name)
    onnx.checker.check_model(written, full_check=True)
    feeds = dict(np.load(folder / "inputs.npz"))
    return written, feeds, run(written, {value.name: feeds[value.name] for value in written.graph.input})


def test_of_a_changed_weight_the_product_is_written_with_what_it_was_given(tmp_path: Path) -> None:
    changed = WEIGHT.copy()
    changed[2, 3] += 1
    found = verify(weighted(CHAIN, WEIGHT), weighted(CHAIN, changed), keep_failing=tmp_path / "new" / "folder")
    assert found.kept == str(tmp_path / "new" / "folder")
    assert f"the part that shows it is in {found.kept}" in str(found)
    for name, weight in (("before.onnx", WEIGHT), ("after.onnx", changed)):
        written, feeds, (result,) = given(Path(found.kept), name)
        assert operators(written) == ["MatMul"]
        np.testing.assert_allclose(result, feeds["a"] @ weight, rtol=1e-5)


def test_what_no_output_shows_is_written_with_values_that_do(tmp_path: Path) -> None:
    """One column of the product is so large that Softmax gives nothing for the others."""
    weight = WEIGHT.copy()
    weight[:, 0] = 100
    changed = weight.copy()
    changed[2, 3] += 1
    found = verify(weighted(CHAIN, weight), weighted(CHAIN, changed), keep_failing=tmp_path)
    assert (found.verdict, found.first, found.kept) == ("different", None, str(tmp_path))
    (written, feeds, (one,)), (_, _, (other,)) = (given(tmp_path, name) for name in ("before.onnx", "after.onnx"))
    assert operators(written) == ["MatMul"]
    assert abs(one - other).max() == pytest.approx(abs(feeds["a"][:, 2]).max(), rel=1e-5)


def test_of_one_model_in_two_runtimes_the_node_is_written(tmp_path: Path, wrong: str) -> None:
    text = "g (float[N, M] x) => (float[N, 1] y) { a = Abs (x)  b = ReduceMax <axes = [1]> (a)  y = Sqrt (b) }"
    found = verify(model(text, 13), runtimes=[wrong], keep_failing=tmp_path)
    assert found.kept == str(tmp_path)
    written, feeds, (result,) = given(tmp_path, "before.onnx")
    assert operators(written) == ["ReduceMax"]
    np.testing.assert_array_equal(result, feeds["a"].max(axis=1, keepdims=True))


def test_of_equal_models_nothing_is_written(tmp_path: Path) -> None:
    same = weighted(CHAIN, WEIGHT)
    assert verify(same, same, keep_failing=tmp_path / "folder").kept == ""
    assert not (tmp_path / "folder").exists()


def test_an_output_that_one_side_has_no_use_for_is_left_out(tmp_path: Path) -> None:
    """Dropout gives a mask in the first model, and none in the second."""
    before = "g (float[N, 8] x) => (float[N, 8] y) { a, mask = Dropout (x)  b = Abs (a)  y = MatMul (b, w) }"
    after = "g (float[N, 8] x) => (float[N, 8] y) { a = Neg (x)  b = Sqrt (a)  y = MatMul (b, w) }"
    found = verify(weighted(before, WEIGHT), weighted(after, WEIGHT), keep_failing=tmp_path)
    assert (found.verdict, found.kept) == ("different", str(tmp_path))
    for name in ("before.onnx", "after.onnx"):
        given(tmp_path, name)
