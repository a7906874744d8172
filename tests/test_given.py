"""Every public function takes a model in every form that callers have, and gives one of the same form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper

import reducelower

MODEL = onnx.parser.parse_model(
    '<ir_version: 8, opset_import: ["": 18]> g (float[2, 3] x) => (float[2, 1] y) <int64[1] a = {1}> '
    "{ y = ReduceL2 (x, a) }"
)


class Program:
    """What a program of torch has, which is not installed everywhere."""

    model_proto = MODEL


def in_file(folder: Path) -> Path:
    onnx.save(MODEL, folder / "model.onnx")
    return folder / "model.onnx"


def in_onnx_ir(_: Path) -> Any:
    return pytest.importorskip("onnx_ir").serde.deserialize_model(MODEL)


FORMS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "message": (lambda _: MODEL, "ModelProto"),
    "bytes": (lambda _: MODEL.SerializeToString(), "bytes"),
    "path": (in_file, "ModelProto"),
    "path as text": (lambda folder: str(in_file(folder)), "ModelProto"),
    "program": (lambda _: Program(), "ModelProto"),
    "onnx_ir": (in_onnx_ir, "Model"),
}
"""How each form is made, and the type of what is given back."""

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "convert_version": lambda model: reducelower.convert_version(model, 13),
    "expand": reducelower.expand,
    "raise_reductions": reducelower.raise_reductions,
    "legalize": lambda model: reducelower.legalize(model, reducelower.Target(13)).model,
    "repair": lambda model: reducelower.repair(model).model,
}


def as_message(model: Any) -> ModelProto:
    if isinstance(model, ModelProto):
        return model
    if isinstance(model, bytes):
        return ModelProto.FromString(model)
    import onnx_ir

    return onnx_ir.serde.serialize_model(model)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_form_that_comes_is_the_form_that_goes(name: str, form: str, tmp_path: Path) -> None:
    make, kind = FORMS[form]
    made = FUNCTIONS[name](make(tmp_path))
    assert type(made).__name__ == kind
    expected = as_message(FUNCTIONS[name](MODEL))
    assert [node.op_type for node in as_message(made).graph.node] == [node.op_type for node in expected.graph.node]
    assert as_message(made).opset_import[0].version == expected.opset_import[0].version


@pytest.mark.parametrize("form", FORMS)
def test_checks_and_comparisons_take_every_form(form: str, tmp_path: Path) -> None:
    given = FORMS[form][0](tmp_path)
    assert len(reducelower.check(given, 13).sites) == 1
    assert reducelower.verify(given, reducelower.convert_version(given, 13)).equivalent


def test_external_data_of_a_file_is_found(tmp_path: Path) -> None:
    model = ModelProto()
    model.CopyFrom(MODEL)
    axes = numpy_helper.from_array(np.array([1], np.int64), "a")
    model.graph.initializer[0].CopyFrom(axes)
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    (node,) = reducelower.convert_version(tmp_path / "m.onnx", 13).graph.node
    assert [list(item.ints) for item in node.attribute if item.name == "axes"] == [[1]]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(reducelower.UnreadableModelError, match=r"nowhere\.onnx: no such file"):
        reducelower.convert_version(tmp_path / "nowhere.onnx", 13)


def test_a_target_takes_the_name_of_a_runtime() -> None:
    assert reducelower.Target(runtime="mnn") == reducelower.Target(runtime=reducelower.load_runtime("mnn"))
    with pytest.raises(reducelower.TargetError, match="no target has this name"):
        reducelower.Target(runtime="openvin")


def test_a_target_shows_itself_in_a_line() -> None:
    assert "runtime=<mnn " in repr(reducelower.Target(runtime="mnn"))
    assert len(repr(reducelower.Target(runtime="mnn"))) < 200


@pytest.mark.parametrize("name", ["batch", "ir"])
def test_rooms_show_their_functions(name: str) -> None:
    pytest.importorskip("onnx_ir")
    import importlib

    room = importlib.import_module(f"reducelower.{name}")
    assert dir(room) == sorted(room.__all__)


def test_shapes_in_messages_have_no_none() -> None:
    head = '<ir_version: 8, opset_import: ["": 18]>'
    model = onnx.parser.parse_model(f"{head} g (float[N, 2] x, float[N, 1] z) => (float[N, 2] y) {{ y = Sub (x, z) }}")
    (refusal,) = reducelower.check(model, 6).refusals
    assert "None" not in refusal.reason
    assert "[?,2] and [?,1]" in refusal.reason
