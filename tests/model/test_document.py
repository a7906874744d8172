"""A model is parsed once and serialized once on its way from file to file."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import ModelProto, parser

from reducelower.api import legalized
from reducelower.batch import convert_file
from reducelower.files import read_model
from reducelower.model.document import Document
from reducelower.options import Settings, Target
from reducelower.pipeline import conversion, verifying
from reducelower.pipeline.task import Task
from tests.watching import calls_of

MODEL = parser.parse_model(
    """<ir_version: 8, opset_import: ["" : 13]>
    g (float[2,3] x) => (float[2,1] y) { y = ReduceMax<axes = [1]>(x) }"""
)


def test_bytes_stay_the_bytes_and_are_parsed_once() -> None:
    data = MODEL.SerializeToString()
    document = Document(data=data)
    assert document.data is data
    assert document.message is document.message
    assert document.message == MODEL


def test_a_message_stays_the_message_and_is_serialized_once() -> None:
    document = Document(MODEL)
    assert document.message is MODEL
    assert document.data is document.data
    assert ModelProto.FromString(document.data) == MODEL


def test_a_file_is_at_hand_as_both(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(MODEL, path)
    document = read_model(path).document
    assert (document.data, document.message) == (path.read_bytes(), MODEL)


def test_one_document_is_checked_verified_and_written(tmp_path: Path) -> None:
    onnx.save(MODEL, tmp_path / "m.onnx")
    settings = Settings(Target(18), verify=True)
    stages = (conversion.what_is_wrong_with_source, legalized, conversion.what_is_wrong, conversion.write_model)
    with calls_of(*stages, verifying.verify_models) as calls:
        outcome = convert_file(Task(str(tmp_path / "m.onnx"), str(tmp_path / "out.onnx")), settings)
    seen = [(name, list(call.values())[name == "verify_models"]) for name, call in calls]
    assert outcome.output, outcome.problems
    (_, given), _, (_, engine), *after = seen  # the second is asked by the first
    assert given is engine
    assert [name for name, _ in after] == ["what_is_wrong", "verify_models", "write_model"]
    assert len({id(document) for _, document in after}) == 1
    assert (tmp_path / "out.onnx").read_bytes() == after[0][1].data
