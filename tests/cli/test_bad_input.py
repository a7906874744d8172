"""Bad input: exit status 1 or 2, one clear sentence on stderr, and nothing else happens."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from onnx import ModelProto, TensorProto, parser

from reducelower.errors import describe
from reducelower.outcome import Outcome
from reducelower.pipeline.task import outcome_of

ABS = "g (float[2, 3] x) => (float[2, 3] y) { y = Abs (x) }"


def text(graph: str, opset: int | None = 18, domain: str = "") -> bytes:
    imports = "" if opset is None else f'"{domain}": {opset}'
    return parser.parse_model(f"<ir_version: 8, opset_import: [{imports}]> {graph}").SerializeToString()


MODEL = text(ABS)


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


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may write anywhere")
@pytest.mark.parametrize(
    ("output", "more"),
    [("folder/out.onnx", ()), ("out.onnx", ("--report", "folder/r.md")), ("out.onnx", ("--report", "folder/new/r.md"))],
    ids=("model", "report", "report in a new folder"),
)
def test_a_read_only_folder_is_one_sentence(
    cli: Callable[..., Any], tmp_path: Path, output: str, more: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir(mode=0o555)
    Path("in.onnx").write_bytes(MODEL)
    before = content(tmp_path)
    ran = cli("convert", "in.onnx", "-o", output, "--opset", 13, *more)
    assert_refused(ran, 2, "cannot write folder/", tmp_path, before)


def test_what_the_system_says_of_a_model_names_it_once() -> None:
    error = PermissionError(errno.EACCES, "Permission denied", "m.onnx")
    assert describe(error, "m.onnx") == (("m.onnx: Permission denied",), 2)
    assert describe(error, "other.onnx") == (("other.onnx: m.onnx: Permission denied",), 2)


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
    def stumble() -> Outcome:
        raise TypeError("can't concat str to bytes")

    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    outcome = outcome_of(str(path), stumble)
    assert (outcome.status, [phrase in problem for problem in outcome.problems]) == (1, [True])
