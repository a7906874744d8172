"""What cannot be used is refused with its file, its line and the reason: rules and target files (`broken.toml`)."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from onnx import TensorProto

from reducelower.rulebook import RuleError, load_book
from reducelower.runtimes import TargetError, read_runtime

TABLES = tomllib.loads(Path(__file__).with_name("broken.toml").read_text(encoding="utf-8"))
ROWS = [(name, number) for name, table in TABLES.items() for number in range(len(table["rows"]))]


def _as_rule(op_type: str) -> Callable[[Path, str], None]:
    def read(folder: Path, text: str) -> None:
        (folder / f"{op_type}.onnxtxt").write_text(text)
        load_book(folder).find(op_type, TensorProto.FLOAT)

    return read


def _as(name: str) -> Callable[[Path, str], None]:
    def read(folder: Path, text: str) -> None:
        path = folder / "versions" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        load_book(folder).check()

    return read


READ: Mapping[str, Callable[[Path, str], object]] = {
    "book": _as_rule("ReduceL1"),
    "norm": _as_rule("ReduceL2"),
    "boundary": _as("Shape.onnxtxt"),
    "domain": _as("com.vendor/Scale.onnxtxt"),
    "target": lambda _, text: read_runtime(text),
}


@pytest.mark.parametrize(("name", "number"), ROWS)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, name: str, number: int) -> None:
    table = TABLES[name]
    found, instead, says, *line = table["rows"][number]
    assert found in table["text"]
    text = table["text"].replace(found, instead, 1 if line else -1)
    with pytest.raises((RuleError, TargetError)) as raised:
        READ[table["read"]](tmp_path, text)
    assert all(part in str(raised.value) for part in says.split(" ... "))
    if isinstance(raised.value, RuleError):
        assert raised.value.path is not None
        assert raised.value.path.is_relative_to(tmp_path)
        assert raised.value.line
        if line:
            assert str(raised.value).startswith(f"{raised.value.path}:{line[0]}: ")


@pytest.mark.parametrize("name", TABLES)
def test_what_the_broken_ones_are_made_from_can_be_used(tmp_path: Path, name: str) -> None:
    READ[TABLES[name]["read"]](tmp_path, TABLES[name]["text"])
