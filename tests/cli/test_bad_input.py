"""Bad input: exit status 1 or 2, one clear sentence on stderr, and nothing else happens."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from onnx import ModelProto, TensorProto, parser

from reducelower.batch import Settings, Task
from reducelower.options import Target
from reducelower.pipeline.conversion import convert_here

ABS = "g (float[2, 3] x) => (float[2, 3] y) { y = Abs (x) }"


def text(graph: str, opset: int | None = 18, domain: str = "") -> bytes:
    imports = "" if opset is None else f'"{domain}": {opset}'
    return parser.parse_model(f"<ir_version: 8, opset_import: [{imports}]> {graph}").SerializeToString()


def reduce_sum(axes: str, node: str = "y = ReduceSum (x, a)", opset: int = 18) -> bytes:
    return text(f"g (float[2, 3] x) => (float[m, n] y) <{axes}> {{ {node} }}", opset)


def external(location: str) -> bytes:
    model = ModelProto.FromString(text("g (float[2, 3] x) => (float[2, 3] y) { y = Add (x, w) }"))
    tensor = model.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[2, 3])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    return model.SerializeToString()


MODEL = text(ABS)

# name: content of model.onnx, exit status, part of the sentence
BAD_MODELS: dict[str, tuple[bytes, int, str]] = {
    "empty": (b"", 2, "is empty"),
    "truncated": (text(f"g{'g' * 300} (float[2, 3] x) => (float[2, 3] y) {{ y = Abs (x) }}")[:-40], 2, "is cut short"),
    "prose": (b"this is not a model, it is a sentence", 2, "is not an ONNX model"),
    "a word": (b"junk\n", 2, "is not an ONNX model, or is damaged; export or download it again"),
    "random bytes": (bytes(range(7, 256)), 2, "is not an ONNX model"),
    "almost empty message": (b"\x08\x08", 2, "is not an ONNX model: it holds no graph"),
    "a tensor": (TensorProto(dims=[2], data_type=1, raw_data=bytes(8)).SerializeToString(), 2, "is not an ONNX model"),
    "zip archive": (b"PK\x03\x04rest of a checkpoint", 2, "is a zip archive"),
    "Git LFS pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", 2, "run 'git lfs pull'"),
    "web page": (b"<!DOCTYPE html><html></html>", 2, "is a web page"),
    "gzip": (b"\x1f\x8b\x08rest", 2, "unpack it"),
    "pickle of a newer protocol": (b"\x80\x05rest of a checkpoint", 2, "is a Python pickle"),
    "pickle of an old checkpoint": (b"\x80\x02rest of a checkpoint", 2, "is a Python pickle"),
    "TensorFlow Lite": (b"\x1c\0\0\0TFL3rest", 2, "is a TensorFlow Lite model"),
    "no opset import": (text(ABS, None), 1, "no opset_import"),
    "only another domain": (text(ABS, 1, "some.domain"), 1, "opset"),
    "opset 0": (text(ABS, 0), 1, "opset 0"),
    "opset 999": (text(ABS, 999), 1, "opset 999"),
    "axes out of range": (reduce_sum("int64[1] a = {7}"), 1, "ax"),
    "duplicate axes": (reduce_sum("int64[2] a = {1, 1}", "y = ReduceMax (x, a)"), 1, "ax"),
    "axes of a wrong type": (reduce_sum("int32[1] a = {1}"), 1, "int64"),
    "axes attribute of a wrong type": (reduce_sum("", "y = ReduceMax <axes = [1.0]> (x)", 13), 1, "axes"),
    "unknown operator": (text(ABS.replace("Abs", "Abss")), 1, "did you mean 'Abs'"),
    "operator newer than the opset": (text(ABS.replace("Abs", "Gelu"), 13), 1, "it came with opset 20"),
    "undefined input": (text(ABS.replace("(x) }", "(nothing) }")), 1, "'nothing', which nothing defines"),
    "duplicate outputs": (text(ABS.replace("}", "y = Neg (x) }")), 1, "'y' is defined more than once"),
    "cycle": (text(ABS.replace("y = Abs (x)", "b = Neg (y) y = Add (x, b)")), 1, "form a cycle"),
    "undefined output": (text(ABS.replace("y = Abs", "z = Abs")), 1, "'y'"),
    "unknown attribute": (text(ABS.replace("Abs (x)", "Abs <colour = 1> (x)")), 1, "colour"),
    "missing external data": (external("weights.bin"), 2, "there is no such file"),
    "absolute external data": (external("/etc/hostname"), 2, "an absolute path"),
    "external data outside": (external("../weights.bin"), 2, "outside the model's folder"),
    "external data nameless": (external(""), 2, "no file name"),
}


def assert_refused(ran: Any, status: int, phrase: str, folder: Path, before: dict[str, bytes]) -> None:
    assert ran.status == status, ran.err
    assert phrase in ran.err
    lines = ran.err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    assert "Traceback" not in ran.err
    assert ran.out == ""
    assert content(folder) == before


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


@pytest.mark.parametrize("name", BAD_MODELS)
def test_a_bad_model_is_one_sentence_and_no_output(name: str, cli: Callable[..., Any], tmp_path: Path) -> None:
    data, status, phrase = BAD_MODELS[name]
    model = tmp_path / "model.onnx"
    model.write_bytes(data)
    before = content(tmp_path)
    ran = cli("convert", model, "-o", tmp_path / "out.onnx", "--opset", 13)
    assert_refused(ran, status, phrase, tmp_path, before)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_read_only_folder_is_one_sentence(cli: Callable[..., Any], tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o555)
    model = tmp_path / "in.onnx"
    model.write_bytes(MODEL)
    before = content(tmp_path)
    ran = cli("convert", model, "-o", folder / "out.onnx", "--opset", 13)
    assert_refused(ran, 2, "cannot write", tmp_path, before)


def test_names_from_a_model_cannot_drive_the_terminal(cli: Callable[..., Any], tmp_path: Path) -> None:
    model = ModelProto.FromString(MODEL)
    model.graph.node[0].input[0] = "\x1b[2Jline\nbreak" + "long" * 10_000
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    ran = cli("convert", path, "-o", tmp_path / "out.onnx", "--opset", 13)
    assert ran.status == 1
    assert "\x1b" not in ran.err
    assert len(ran.err.splitlines()) == 1
    assert len(ran.err) < 1200


def odd(name: bytes = b"name", element_type: int = TensorProto.FLOAT) -> bytes:
    model = ModelProto.FromString(text(ABS.replace("x", "name")))
    model.graph.value_info.add(name="z").type.tensor_type.elem_type = element_type
    return model.SerializeToString().replace(b"name", name)


@pytest.mark.parametrize(
    ("data", "phrase"), [(odd(name=b"\xff\xfe\xff\xfe"), "UTF-8"), (odd(element_type=127), "element type 127")]
)
def test_what_only_the_engine_stumbles_over_is_refused_too(tmp_path: Path, data: bytes, phrase: str) -> None:
    def stumble(step: str, *_: object) -> None:
        if step == "rewrite":
            raise TypeError("can't concat str to bytes")

    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    outcome = convert_here(Task(str(path), str(tmp_path / "out.onnx")), Settings(Target(13)), on_step=stumble)
    assert (outcome.status, [phrase in problem for problem in outcome.problems]) == (1, [True])


def test_names_that_are_not_utf8_are_refused(cli: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(MODEL.replace(b"Abs", b"\xff\xfeb"))
    ran = cli("convert", path, "-o", tmp_path / "out.onnx", "--opset", 13)
    assert ran.status == 1
    assert "UTF-8" in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize("wrong", ["an output", "an output, which only newer inference finds"])
def test_a_wrong_shape_is_refused_with_what_mends_it(cli: Callable[..., Any], tmp_path: Path, wrong: str) -> None:
    plain = "y = Neg (x)", "float[5]"
    behind = "c = Cast <to = 7> (s)  e = Reshape (x, c)  f = Reshape (e, k)  y = Neg (f)", "float[6]"
    nodes, stated = plain if wrong == "an output" else behind
    head = f"g (float[6] x, float[1] s) => ({stated} y) <int64[2] k = {{2, 3}}>"
    (tmp_path / "m.onnx").write_bytes(text(f"{head} {{ {nodes} }}", opset=13))
    asked = ("convert", tmp_path / "m.onnx", "-o", tmp_path / "out.onnx", "--opset", 14)
    ran = cli(*asked)
    assert ran.status == 1
    assert "--repair fixes that: it would have corrected the types it states of its outputs 'y'" in ran.err
    assert cli(*asked, "--repair").status == 0


def test_a_name_that_is_too_long_is_one_sentence(cli: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "in.onnx").write_bytes(MODEL)
    before = content(tmp_path)
    ran = cli("convert", tmp_path / "in.onnx", "-o", tmp_path / ("m" * 300), "--opset", 13)
    assert_refused(ran, 2, "cannot write", tmp_path, before)
