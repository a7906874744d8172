"""What programs read: valid whatever the names, by the schema, by the shape of JUnit, by the table of the page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import onnx
import pytest
from onnx import helper

import reducelower.report

Cli = Callable[..., Any]

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads(Path(reducelower.report.__file__).with_name("schema.json").read_text())
LINE = jsonschema.Draft202012Validator({**SCHEMA["$defs"]["model"], "$defs": SCHEMA["$defs"]})
ODD = "q\"'\n\t<&>]]>\u00e9\U0001f600\x1b[31m\x08\x01\ufffe\u202e`|::%0A"
CONTROLS = re.compile("[\x01\x08\x1b\ufffe]")
COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One model that can be converted, one that cannot and one that cannot be read, of odd names."""
    root = tmp_path / "models"
    root.mkdir()
    for op_type, name in (("ReduceLogSum", "m\"'\n<\u00e9>\x1b.onnx"), ("Nonsense" + ODD, "bad.onnx")):
        graph = helper.make_graph(
            [helper.make_node(op_type, ["x" + ODD], ["y" + ODD], name="n" + ODD)],
            "g" + ODD,
            [helper.make_tensor_value_info("x" + ODD, 1, [3, "d" + ODD])],
            [helper.make_tensor_value_info("y" + ODD, 1, None)],
        )
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], producer_name=ODD), root / name)
    (root / "none.onnx").write_bytes(b"x\0")
    return root


def _counts_are_right(text: str) -> None:
    root = ElementTree.fromstring(text)
    sums = dict.fromkeys(("tests", "failures", "errors"), 0)
    for suite in root:
        cases = suite.findall("testcase")
        assert suite.tag == "testsuite"
        assert int(suite.attrib["tests"]) == len(cases) > 0
        for name, tag in COUNTED.items():
            assert int(suite.attrib[name]) == sum(case.find(tag) is not None for case in cases)
        assert all(case.attrib["name"] and "classname" in case.attrib and len(case) <= 1 for case in cases)
        sums = {name: count + int(suite.attrib[name]) for name, count in sums.items()}
    assert {name: int(root.attrib[name]) for name in sums} == sums


def _are_valid(paths: dict[str, Path]) -> None:
    texts = {kind: path.read_text("utf-8") for kind, path in paths.items()}
    jsonschema.validate(json.loads(texts["json"]), SCHEMA)
    _counts_are_right(texts["xml"])
    assert not any(map(CONTROLS.search, texts.values()))


def test_every_form_is_valid(cli: Cli, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (source,) = (path for path in folder.iterdir() if path.name.startswith("m"))
    paths = {kind: tmp_path / f"report.{kind}" for kind in ("json", "xml", "md", "html")}
    reports = [word for path in paths.values() for word in ("--report", path)]
    commands = (
        ("convert", folder, "--output-dir", out, "--opset", 13),
        ("check", folder, "--opset", 13),
        ("verify", source, out / source.name),
        ("diff", source, out / source.name),
    )
    for command in commands:
        ran = cli(*command, *reports)
        assert not CONTROLS.search(ran.out + ran.err)
        _are_valid(paths)
    for command in (commands[0] + ("--force",), *commands[2:]):
        for line in cli(*command, "--json").out.splitlines():
            LINE.validate(json.loads(line))
    annotations = cli(*commands[1], "--format", "github").out
    assert not CONTROLS.search(annotations)
    assert all(
        re.match("::(error|warning) file=[^,:]+,title=reducelower::.", line) for line in annotations.splitlines()
    )


def test_inspect_prints_the_fields_of_the_page(cli: Cli, folder: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "ci.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", page, re.MULTILINE))
    types = {
        "string": str,
        "integer": int,
        "object": dict,
        "array": list,
        "object, or null where it is not valid": dict,
    }
    lines = [json.loads(line) for line in cli("inspect", folder, "--json").out.splitlines()]
    assert len(lines) == 2
    for found in lines:
        assert list(found) == list(rows)
        for name, value in found.items():
            assert isinstance(value, types[rows[name].partition(",")[0].strip()]) or (
                name == "blocked" and found["problem"]
            )
