"""Large models are verified as small ones are: on either side of every number of bytes that changes what is done."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper

from reducelower.files import read_model
from reducelower.model.document import Document
from reducelower.options import Settings
from reducelower.pipeline.verifying import verify_models
from reducelower.verification import Verification, verify
from reducelower.verification.inputs.testdata import TestDataSet
from tests.models import model

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
    return model("(int64[N] i) => (float[N,64] y) { y = Gather (w, i) }", w=drawn(size // 256, 64))


def recurring(size: int) -> ModelProto:
    """A GRU, which onnxruntime computes in another order where it packs its weights."""
    width = int((size / 12) ** 0.5)
    text = f"(float[T,1,4] x) => (float[T,1,1,{width}] y) {{ y = GRU <hidden_size = {width}> (x, w, r) }}"
    return model(text, w=drawn(1, 3 * width, 4), r=drawn(1, 3 * width, width))


def verified(source: Path, result: Path | ModelProto) -> Verification:
    other = read_model(result) if isinstance(result, Path) else Document(result)
    return verify_models(read_model(source), other, Settings(), [TestDataSet("", {}, ())])


@pytest.mark.parametrize(("what", "factor"), EITHER_SIDE)
@pytest.mark.parametrize("model_of", [looking_up, recurring])
def test_a_model_is_equivalent_to_itself_whatever_its_size(
    what: str, factor: float, model_of: object, tmp_path: Path
) -> None:
    made = model_of(int(BYTES[what] * factor))  # type: ignore[operator]
    onnx.save(made, tmp_path / "m.onnx")
    for result in (tmp_path / "m.onnx", made):
        found = verified(tmp_path / "m.onnx", result)
        assert (found.verdict, found.sites) == ("equivalent", ())
        assert max(item.max_ulp for item in found.outputs) == 0


@pytest.mark.parametrize("factor", [0.95, 1.05])
def test_weights_in_another_file_are_those_in_the_model(factor: float, tmp_path: Path) -> None:
    made = looking_up(int(BYTES["files that keep their weights"] * factor))
    onnx.save(made, tmp_path / "whole.onnx")
    onnx.save(made, tmp_path / "apart.onnx", save_as_external_data=True, location="data.bin")
    found = verified(tmp_path / "whole.onnx", tmp_path / "apart.onnx")
    assert (found.verdict, found.sites) == ("equivalent", ())
    assert verify(tmp_path / "apart.onnx", tmp_path / "whole.onnx").equivalent


def test_one_number_in_another_file_is_seen(tmp_path: Path) -> None:
    made = looking_up(1 << 20)
    other = ModelProto.FromString(made.SerializeToString())
    values = numpy_helper.to_array(other.graph.initializer[0]).copy()
    values[999, 9] += 1
    other.graph.initializer[0].CopyFrom(numpy_helper.from_array(values, "w"))
    for name, each in (("one", made), ("other", other)):
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
    link = tmp_path / "snapshot" / "m.onnx"
    assert verified(link, link).equivalent
    assert verify(link, link).equivalent
