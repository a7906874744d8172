"""Sessions at the command line: what is typed, the status, what is said and what is written afterwards.

A table is a file in TOML beside this one, a row is named by its claim::

    ["an output that is there is replaced by force alone"]
    models."model.onnx" = "skl_gmm_20"
    files."out.onnx" = "old"
    run = "convert model.onnx -o out.onnx --opset 13 --no-verify"
    status = 2
    keeps = ["out.onnx"]
    then = [{ run = "convert model.onnx -o out.onnx --opset 13 --no-verify --force", opset = { "out.onnx" = 13 } }]

What a row begins with:

- ``models``: models by file name: one of those that exporters wrote, or a graph called g in ONNX text, behind what it
  imports: an opset version, and perhaps versions of other domains.
- ``files``: texts by file name; ``data``: what Python makes of an expression, with the names of numpy: bytes, an array,
  or a dictionary of arrays. ``external``, with a place and perhaps weights, is a model that has its weights there.
- ``links``: what links lead to, by file name; ``ages``: when files were changed, in seconds; ``gone``: files to remove.
- ``each``: parameters and their values, filled into texts at ``$name``; every two of different parameters meet. One
  that is called like a field stands for it.
- ``then``: what is typed next, each with the fields of a step.

The fields of a step, which may change what is there like a row:

- ``run``: what is typed behind ``reducelower``; ``status``: how it ends, or it is 0.
- ``says`` and ``err``: parts of standard output and standard error, however these are wrapped; ``unsaid``: parts of
  neither.
- ``out``: all of standard output. Without ``err`` a run of status 0 says nothing on standard error. One of status 2 is
  one sentence there, or so many ``sentences``, and unless a row expects more of it nothing else happens.
- ``opset``: the opset versions of files; ``has`` and ``lacks``: operators that are or are not in graphs of files.
- ``written`` and ``unwritten``: files that are or are not there afterwards; ``keeps``: those that stay as they were;
  ``same``: files that hold what others do.
- ``holds``: expressions that are true afterwards, with the names of numpy besides these: ``out`` and ``err`` are what
  is said, ``before`` is what was said last, ``text`` is that of a file, ``found`` is the JSON of a file or of a line,
  ``load`` a model, and ``ran`` what a model yields of arrays.
- ``schema``: the part of the report's schema that each line of standard output follows.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from string import Template
from typing import Any

import jsonschema
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

from reducelower.model.graph import all_nodes
from reducelower.model.schemas import opset_of
from tests.conftest import Ran
from tests.files.external_models import external
from tests.report.made import json_schema
from tests.table import VOCABULARY, Row, combinations, rows

Cli = Callable[..., Ran]

PLACED = ("models", "files", "data", "links", "ages", "gone")
STEP = {
    "run", "status", "sentences", "says", "err", "unsaid", "out", "opset", "has", "lacks", "written",
    "unwritten", "keeps", "same", "holds", "schema", *PLACED,
}  # fmt: skip
ROWS = rows(*Path(__file__).parent.glob("*.toml"), fields=STEP | {"each", "then"})


@pytest.mark.parametrize("claim", ROWS)
def test_session(claim: str, cli: Cli, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = ROWS[claim]
    for number, chosen in enumerate(combinations(row.get("each", {}))):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        before = ""
        for step in (row, *row.get("then", ())):
            assert not set(step) - {"each", "then", *STEP}
            try:
                _prepare(step, chosen, models)
                known = {**NAMES, **chosen, "before": before}
                before = _take({**step, **{name: chosen[name] for name in STEP if name in chosen}}, known, cli)
            except AssertionError as error:
                error.add_note(f"{step.get('run', '$run')} with {chosen}")
                raise


def _prepare(step: Row, chosen: Mapping[str, Any], models: Path) -> None:
    """Change the files of the current folder as a step says."""
    for name in step.get("gone", ()):
        Path(name).unlink()
    for name, text in step.get("models", {}).items():
        _place(name).write_bytes(_model(_filled(text, chosen), models))
    for name, text in step.get("files", {}).items():
        _place(name).write_text(_filled(text, chosen))
    for place, text in step.get("data", {}).items():
        name = _filled(place, chosen)
        made = eval(_filled(text, chosen), {**NAMES, **chosen})
        if isinstance(made, Mapping):
            np.savez(_place(name), **made)
        elif isinstance(made, np.ndarray):
            np.save(_place(name), made)
        else:
            _place(name).write_bytes(made)
    for name, target in step.get("links", {}).items():
        _place(name).symlink_to(Path(target).absolute())
    for name, seconds in step.get("ages", {}).items():
        os.utime(name, (seconds, seconds))


def _place(name: str) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _model(text: str, models: Path | None = None) -> bytes:
    imports, is_text, graph = text.partition(": g ")
    if not is_text and models is not None:
        return (models / f"{text}.onnx").read_bytes()
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": {imports}]> g {graph}').SerializeToString()


def _filled(text: str, chosen: Mapping[str, Any]) -> str:
    return Template(text).safe_substitute(chosen)


def _take(step: Row, chosen: Mapping[str, Any], cli: Cli) -> str:
    """What is said on standard output."""

    def parts(field: str) -> Iterator[str]:
        given = step.get(field, ())
        return (_filled(part, chosen) for part in ([given] if isinstance(given, str) else given))

    around = _content()
    words = shlex.split(_filled(step["run"], chosen))
    ran = cli(*words)
    status = step.get("status", 0)
    said, problems = " ".join(ran.out.split()), " ".join(ran.err.split())
    assert ran.status == status, ran
    for part in parts("says"):
        assert part in said
    for part in parts("err"):
        assert part in problems
    for part in parts("unsaid"):
        assert part not in said + problems
    if status == 2:
        assert ran.err.startswith("error: ")
        assert len(ran.err.splitlines()) == step.get("sentences", 1)
    if status == 2 and not {"says", "written"} & set(step):
        assert ran.out == ""
        assert _content() == around
    if status == 0 and "err" not in step:
        assert ran.err == ""
    if "out" in step:
        assert ran.out == _filled(step["out"], chosen)
    assert all(_content()[name] == around[name] for name in step.get("keeps", ()))
    assert {name: opset_of(onnx.load(name)) for name in step.get("opset", {})} == step.get("opset", {})
    for name, operators in step.get("has", {}).items():
        assert set(operators) <= _operators(name)
    for name, operators in step.get("lacks", {}).items():
        assert not set(operators) & _operators(name)
    assert all(Path(name).read_bytes() == Path(other).read_bytes() for name, other in step.get("same", {}).items())
    assert all(map(Path.exists, map(Path, step.get("written", ()))))
    assert not any(map(Path.exists, map(Path, step.get("unwritten", ()))))
    for claimed in parts("holds"):
        assert eval(claimed, {**chosen, "out": ran.out, "err": ran.err}), (claimed, ran)
    if "schema" in step:
        schema = jsonschema.Draft202012Validator({"$ref": step["schema"], "$defs": json_schema()["$defs"]})
        assert ran.out
        for line in ran.out.splitlines():
            schema.validate(json.loads(line))
    return ran.out


def _text(name: str) -> str:
    return Path(name).read_text("utf-8")


def _found(place: str) -> Any:
    """The JSON in a file, or of a line."""
    return json.loads(place if place.startswith("{") else _text(place))


def _ran(name: str, **feeds: np.ndarray) -> list[Any]:
    return list(onnxruntime.InferenceSession(name, providers=["CPUExecutionProvider"]).run(None, feeds))


def _content() -> dict[str, tuple[bytes, int]]:
    """The files below the current folder, and when they were changed."""
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in Path().rglob("*") if path.is_file()}


def _operators(name: str) -> set[str]:
    return {node.op_type for node in all_nodes(onnx.load(name))}


NAMES = {
    **VOCABULARY,
    "all": all,
    "max": max,
    "min": min,
    "defs": onnx.defs,
    "external": external,
    "found": _found,
    "from_list": onnx.numpy_helper.from_list,
    "from_optional": onnx.numpy_helper.from_optional,
    "load": onnx.load,
    "model": _model,
    "ran": _ran,
    "re": re,
    "tensor": lambda value: onnx.numpy_helper.from_array(value).SerializeToString(),
    "text": _text,
}
"""What expressions know."""
