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
- ``files``: texts by file name.
- ``each``: parameters and their values, filled into texts at ``$name``; every two of different parameters meet. One
  that is called like a field stands for it.
- ``then``: what is typed next, each with the fields of a step.

The fields of a step:

- ``run``: what is typed behind ``reducelower``; ``status``: how it ends, or it is 0.
- ``says`` and ``err``: parts of standard output and standard error, however these are wrapped; ``unsaid``: parts of
  neither.
- ``out``: all of standard output. Without ``err`` a run of status 0 says nothing on standard error. One of status 2 is
  one sentence there, and unless a row expects more of it nothing else happens.
- ``opset``: the opset versions of files; ``has`` and ``lacks``: operators that are or are not in graphs of files.
- ``written`` and ``unwritten``: files that are or are not there afterwards; ``keeps``: those that stay as they were;
  ``same``: files that hold what others do.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from string import Template
from typing import Any

import onnx
import pytest
from onnx import parser

from reducelower.model.graph import all_nodes
from reducelower.model.schemas import opset_of
from tests.conftest import Ran
from tests.table import Row, combinations, rows

Cli = Callable[..., Ran]

STEP = (
    "run",
    "status",
    "says",
    "err",
    "unsaid",
    "out",
    "opset",
    "has",
    "lacks",
    "written",
    "unwritten",
    "keeps",
    "same",
)
ROWS = rows(*Path(__file__).parent.glob("*.toml"), fields=("models", "files", "each", "then", *STEP))


@pytest.mark.parametrize("claim", ROWS)
def test_session(claim: str, cli: Cli, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = ROWS[claim]
    for number, chosen in enumerate(combinations(row.get("each", {}))):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        for name, text in row.get("models", {}).items():
            _place(name).write_bytes(_model(_filled(text, chosen), models))
        for name, text in row.get("files", {}).items():
            _place(name).write_text(_filled(text, chosen))
        for step in (row, *row.get("then", ())):
            assert not set(step) - {"models", "files", "each", "then", *STEP}
            try:
                _take({**step, **{name: chosen[name] for name in STEP if name in chosen}}, chosen, cli)
            except AssertionError as error:
                error.add_note(f"{step.get('run', '$run')} with {chosen}")
                raise


def _place(name: str) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _model(text: str, models: Path) -> bytes:
    imports, is_text, graph = text.partition(": g ")
    if not is_text:
        return (models / f"{text}.onnx").read_bytes()
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": {imports}]> g {graph}').SerializeToString()


def _filled(text: str, chosen: Mapping[str, Any]) -> str:
    return Template(text).safe_substitute(chosen)


def _take(step: Row, chosen: Mapping[str, Any], cli: Cli) -> None:
    def parts(field: str) -> Iterator[str]:
        given = step.get(field, ())
        return (_filled(part, chosen) for part in ([given] if isinstance(given, str) else given))

    around = _content()
    ran = cli(*shlex.split(_filled(step["run"], chosen)))
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
        assert len(ran.err.splitlines()) == 1
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


def _content() -> dict[str, tuple[bytes, int]]:
    """The files below the current folder, and when they were changed."""
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in Path().rglob("*") if path.is_file()}


def _operators(name: str) -> set[str]:
    return {node.op_type for node in all_nodes(onnx.load(name))}
