"""External data in a folder of many outputs: each model reads its own, and nobody's file is taken for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, SparseTensorProto, TensorProto, numpy_helper

import reducelower
from reducelower.batch import convert_files
from tests.files.external_models import WEIGHTS, model_with

Cli = Callable[..., Any]

OTHERS = bytes(len(WEIGHTS))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def heavy(folder: Path, name: str, weights: bytes, *, at: int = 1, location: str = "w.bin") -> Path:
    """A model with weights beside it that were changed at that time."""
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / location
    data.parent.mkdir(exist_ok=True)
    data.write_bytes(weights)
    os.utime(data, (at, at))
    return model_with(folder, name=name, location=location)


def values(path: Path) -> bytes:
    return onnx.load(path).graph.initializer[0].raw_data


def test_models_of_one_folder_keep_their_own_data(tmp_path: Path, out: Path) -> None:
    heavy(tmp_path / "models" / "a", "m.onnx", WEIGHTS)
    heavy(tmp_path / "models" / "b", "m.onnx", OTHERS)
    outcomes = list(convert_files([tmp_path / "models"], 13, output_dir=out, verify=False))
    assert [item.status for item in outcomes] == [0, 0]
    assert [values(out / name / "m.onnx") for name in "ab"] == [WEIGHTS, OTHERS]


CACHED = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[2,3] x) => (float[2,1] y) <float[2,3] w = {1, 2, 3, 4, 5, 6}, int64[1] a = {1}>
    { z = Add(x, w) y = ReduceL2(z, a) }"""


def _cached(folder: Path, outside: tuple[str, ...], *, data: str = "blobs/4567") -> Path:
    """A model with some initializers outside, in the layout of a model hub's cache: all that is shown are links."""
    model, content = onnx.parser.parse_model(CACHED), b""
    for tensor in model.graph.initializer:
        if tensor.name in outside:
            raw = onnx.numpy_helper.to_array(tensor).tobytes()
            told = {"location": "m.onnx_data", "offset": len(content), "length": len(raw)}
            for field in ("float_data", "int64_data"):
                tensor.ClearField(field)
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in told.items():
                tensor.external_data.add(key=key, value=str(value))
            content += raw
    shown = folder / "snapshots" / "main"
    for path in (shown / "m.onnx", folder / "blobs" / "0123", folder / data):
        path.parent.mkdir(parents=True, exist_ok=True)
    (folder / "blobs" / "0123").write_bytes(model.SerializeToString())
    (folder / data).write_bytes(content)
    (shown / "m.onnx").symlink_to(folder / "blobs" / "0123")
    (shown / "m.onnx_data").symlink_to(folder / data)
    return shown / "m.onnx"


@pytest.mark.parametrize("outside", [("w",), ("a",), ("w", "a")], ids=str)
def test_a_model_in_a_cache_of_links_is_converted_and_verified(
    tmp_path: Path, out: Path, outside: tuple[str, ...]
) -> None:
    (outcome,) = convert_files([_cached(tmp_path, outside)], 13, output_dir=out)
    assert (outcome.status, outcome.problems) == (0, ())
    assert outcome.verification is not None
    assert outcome.verification.equivalent
    onnx.checker.check_model(onnx.load(out / "m.onnx"), full_check=True)


def test_a_model_in_a_cache_of_links_is_the_same_as_itself(tmp_path: Path, cli: Cli) -> None:
    path = _cached(tmp_path, ("w", "a"))
    assert cli("verify", path, path).status == 0


def test_the_library_follows_the_link_of_the_file_that_it_is_given(tmp_path: Path) -> None:
    path = _cached(tmp_path, ("a",))
    made = reducelower.convert_version(onnx.load(path, load_external_data=False), 13, base_dir=path)
    assert [list(node.attribute[-1].ints) for node in made.graph.node if node.op_type == "ReduceL2"] == [[1]]


def test_data_that_lies_elsewhere_is_not_read(tmp_path: Path) -> None:
    path = _cached(tmp_path, ("a",), data="elsewhere/4567")
    for place in (path, path.parent):
        with pytest.raises(reducelower.ConversionError, match="a link that leads out of the model's folder"):
            reducelower.convert_version(onnx.load(path, load_external_data=False), 13, base_dir=place)


def test_data_of_a_model_in_memory_is_not_looked_for_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _cached(tmp_path, ("a",))
    model = onnx.load(path, load_external_data=False)
    node = model.graph.node.add(op_type="Constant", output=["s"])
    node.attribute.add(name="sparse_value", type=AttributeProto.SPARSE_TENSOR).sparse_tensor.CopyFrom(
        SparseTensorProto(values=model.graph.initializer[1], indices=numpy_helper.from_array(np.array([0])), dims=[1])
    )
    del model.graph.initializer[1]
    model.graph.node[1].input[1] = "s"
    model.graph.node.sort(key=lambda node: node.op_type != "Constant")
    elsewhere = reducelower.convert_version(model, 13)
    monkeypatch.chdir(path.parent)
    assert reducelower.convert_version(model, 13) == elsewhere
