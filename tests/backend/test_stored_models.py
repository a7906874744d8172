"""The models that come with onnx (simple, pytorch-operator, pytorch-converted) rise and still yield what they did."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import ModelProto, TensorProto, numpy_helper

from reducelower.model.schemas import DEFAULT_DOMAINS, opset_of
from tools.node_cases import Case, convert, runs_as_expected

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
FOLDERS = ("simple", "pytorch-operator", "pytorch-converted")
MODELS = sorted(path.parent for folder in FOLDERS for path in (DATA / folder).glob("*/model.onnx"))
TARGETS = (13, 21)  # what is at the other boundaries, the node cases show


def _values(folder: Path, kind: str) -> tuple[object, ...]:
    found = []
    for number in range(len(list(folder.glob(f"{kind}_*.pb")))):
        data = (folder / f"{kind}_{number}.pb").read_bytes()
        found.append(numpy_helper.to_array(TensorProto.FromString(data)))
    return tuple(found)


def _case(folder: Path) -> Case | None:
    model = ModelProto.FromString((folder / "model.onnx").read_bytes())
    sets = folder / "test_data_set_0"
    if any(entry.domain not in DEFAULT_DOMAINS for entry in model.opset_import) or not sets.exists():
        return None
    if any(value.type.WhichOneof("value") != "tensor_type" for value in (*model.graph.input, *model.graph.output)):
        return None
    name = f"{folder.parent.name}/{folder.name}"
    return Case(name, "", opset_of(model), model, _values(sets, "input"), _values(sets, "output"), 1e-3, 1e-5)


@pytest.mark.parametrize("folder", MODELS, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_stored_models_rise(folder: Path) -> None:
    case = _case(folder)
    if case is None:
        pytest.skip("other domains, other types, or no data")
    if not runs_as_expected(case):
        pytest.skip("no runtime here reproduces what is stored")
    for target in TARGETS:
        if target > case.opset:
            result = convert(case, target)
            assert result.state == "ok", f"to {target}: {result.state}: {result.reason}"


def test_there_are_stored_models() -> None:
    assert len(MODELS) > 100
