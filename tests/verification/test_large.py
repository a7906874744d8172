"""Large models are verified as small ones are: on either side of every number of bytes that changes what is done."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from reducelower.files import read_model
from reducelower.model.document import Document
from reducelower.options import Settings
from reducelower.pipeline.verifying import verify_models
from reducelower.verification import Verification, verify
from reducelower.verification.inputs.testdata import TestDataSet

BYTES = {
    "weights beside their model": 1 << 16,
    "tensors that stay in the file": 1 << 19,
    "models with one thread": 1 << 20,
    "files that keep their weights": 1 << 24,
}
EITHER_SIDE = [(name, factor) for name in BYTES for factor in (0.95, 1.05)]
RNG = np.random.default_rng(1)


def drawn(*shape: int) -> np.ndarray:
    return (RNG.standard_normal(shape) / 20).astype(np.float32)


def looking_up(size: int) -> ModelProto:
    """A table of about so many bytes, of which rows are taken."""
    node = helper.make_node("Gather", ["w", "i"], ["y"])
    given = helper.make_tensor_value_info("i", TensorProto.INT64, ["N"])
    return made(node, given, {"w": drawn(size // 256, 64)}, ["N", 64])


def recurring(size: int) -> ModelProto:
    """A GRU, which onnxruntime computes in another order where it packs its weights."""
    width = int((size / 12) ** 0.5)
    node = helper.make_node("GRU", ["x", "w", "r"], ["y"], hidden_size=width)
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["T", 1, 4])
    weights = {"w": drawn(1, 3 * width, 4), "r": drawn(1, 3 * width, width)}
    return made(node, given, weights, ["T", 1, 1, width])


def made(
    node: onnx.NodeProto, given: onnx.ValueInfoProto, weights: dict[str, np.ndarray], shape: list[int | str]
) -> ModelProto:
    held = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(
        [node], "g", [given], [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)], held
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def verified(source: Path, result: Path | ModelProto) -> Verification:
    other = read_model(result) if isinstance(result, Path) else Document.of_message(result)
    return verify_models(read_model(source), other, Settings(), [TestDataSet("", {}, ())])


@pytest.mark.parametrize(("what", "factor"), EITHER_SIDE)
@pytest.mark.parametrize("model_of", [looking_up, recurring])
def test_a_model_is_equivalent_to_itself_whatever_its_size(
    what: str, factor: float, model_of: object, tmp_path: Path
) -> None:
    model = model_of(int(BYTES[what] * factor))  # type: ignore[operator]
    onnx.save(model, tmp_path / "m.onnx")
    for result in (tmp_path / "m.onnx", model):
        found = verified(tmp_path / "m.onnx", result)
        assert (found.verdict, found.sites) == ("equivalent", ())
        assert max(item.max_ulp for item in found.outputs) == 0


@pytest.mark.parametrize("factor", [0.95, 1.05])
def test_weights_in_another_file_are_those_in_the_model(factor: float, tmp_path: Path) -> None:
    model = looking_up(int(BYTES["files that keep their weights"] * factor))
    onnx.save(model, tmp_path / "whole.onnx")
    onnx.save(model, tmp_path / "apart.onnx", save_as_external_data=True, location="data.bin")
    found = verified(tmp_path / "whole.onnx", tmp_path / "apart.onnx")
    assert (found.verdict, found.sites) == ("equivalent", ())
    assert verify(tmp_path / "apart.onnx", tmp_path / "whole.onnx").equivalent


def test_one_number_in_another_file_is_seen(tmp_path: Path) -> None:
    model = looking_up(1 << 20)
    other = ModelProto.FromString(model.SerializeToString())
    values = numpy_helper.to_array(other.graph.initializer[0]).copy()
    values[999, 9] += 1
    other.graph.initializer[0].CopyFrom(numpy_helper.from_array(values, "w"))
    for name, each in (("one", model), ("other", other)):
        onnx.save(each, tmp_path / f"{name}.onnx", save_as_external_data=True, location=f"{name}.bin")
    assert verified(tmp_path / "one.onnx", tmp_path / "other.onnx").verdict == "different"


def test_a_model_and_its_data_may_be_links(tmp_path: Path) -> None:
    """As in a cache that names files by what is in them."""
    (tmp_path / "blobs").mkdir()
    (tmp_path / "snapshot").mkdir()
    onnx.save(looking_up(1 << 17), tmp_path / "m.onnx", save_as_external_data=True, location="data.bin")
    for name in ("m.onnx", "data.bin"):
        (tmp_path / name).rename(tmp_path / "blobs" / f"{name}-digest")
        (tmp_path / "snapshot" / name).symlink_to(f"../blobs/{name}-digest")
    model = tmp_path / "snapshot" / "m.onnx"
    assert verified(model, model).equivalent
    assert verify(model, model).equivalent
