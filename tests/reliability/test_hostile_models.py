"""Models made to hurt: refused in bounded time and memory, by the command line and by the library."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from onnx import ModelProto, checker, helper, inliner, parser

import reducelower
from reducelower import ConversionError
from tests.reliability.hostile import HOSTILE, OPSET, bomb, chain, model, node

SECONDS = 20
MEMORY = 4 << 30


def is_taken_by_checker(hostile: ModelProto) -> bool:
    try:
        checker.check_model(hostile)
    except checker.ValidationError:
        return False
    return True


# Sizes that overflow 64 bits are an error to the checker from onnx 1.23 on; before, unread weights are carried over.
KEPT = {name for name in ("weights of 2^80 elements",) if is_taken_by_checker(HOSTILE[name]())}


@pytest.mark.parametrize("name", HOSTILE)
def test_the_library_refuses_or_carries_over(name: str) -> None:
    hostile = HOSTILE[name]()
    for target in (9, 13, 21):
        start = time.monotonic()
        try:
            made: ModelProto | None = reducelower.convert_version(hostile, target)
        except ConversionError as refused:
            assert refused.refusals
            made = None
        assert time.monotonic() - start < SECONDS
        assert made is None or made.ByteSize() < 3 * hostile.ByteSize() + 1_000_000
    try:
        reducelower.check(hostile, 13)
        reducelower.expand(hostile, rules="stable")
    except ConversionError as refused:
        assert refused.refusals


RUN = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
from reducelower.cli import main
main(sys.argv[2:])
"""


@pytest.mark.parametrize("name", [name for name in HOSTILE if name not in KEPT])
def test_the_command_line_refuses(name: str, cli: Callable[..., Any], tmp_path: Path) -> None:
    path, output = tmp_path / "model.onnx", tmp_path / "out.onnx"
    path.write_bytes(HOSTILE[name]().SerializeToString())
    start = time.monotonic()
    ran = cli("convert", path, "-o", output, "--opset", 13)
    assert time.monotonic() - start < SECONDS
    assert ran.status in (1, 2), ran.err
    assert all(line.startswith("error: ") and len(line) < 1200 for line in ran.err.splitlines())
    assert ran.err
    assert ran.out == ""
    assert not output.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="limits on memory are Linux's")
@pytest.mark.parametrize(
    "name", ["axes of 2^40 elements", "weights of 2^80 elements", "functions that call functions twice"]
)
def test_what_a_model_claims_takes_no_memory(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(HOSTILE[name]().SerializeToString())
    arguments = ["convert", str(path), "-o", str(tmp_path / "out.onnx"), "--opset", "13"]
    ran = subprocess.run(
        [sys.executable, "-c", RUN, str(MEMORY), *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 1, ran.stderr
    assert "Traceback" not in ran.stderr


def test_what_is_deep_but_not_too_deep_is_converted() -> None:
    for made in (chain(50), bomb(10)):
        converted = reducelower.convert_version(made, 13)
        assert not converted.functions
        assert len(converted.graph.node) == len(inliner.inline_local_functions(made).graph.node)


def test_functions_that_stand_for_too_many_nodes_are_not_run() -> None:
    found = reducelower.verify(bomb(40), bomb(40))
    assert found.verdict == "not shown"
    assert "stand for more than 1,000,000 nodes" in found.why


@pytest.mark.parametrize("order", [("", "local"), ("local", "")])
def test_the_order_of_imports_does_not_matter(order: tuple[str, str]) -> None:
    versions = {"": 18, "local": 1}
    made = model(node("ReduceMax"), imports=[helper.make_opsetid(domain, versions[domain]) for domain in order])
    converted = reducelower.convert_version(made, 13)
    assert [(entry.domain, entry.version) for entry in converted.opset_import] == [
        (domain, {"": 13, "local": 1}[domain]) for domain in order
    ]
    assert converted.graph == reducelower.convert_version(model(node("ReduceMax")), 13).graph


@pytest.mark.parametrize("domains", [("", "ai.onnx"), ("ai.onnx", ""), ("", "")])
def test_the_default_domain_twice_at_one_version_is_accepted(domains: tuple[str, str]) -> None:
    made = model(node("ReduceMax"), imports=[helper.make_opsetid(domain, 18) for domain in domains])
    converted = reducelower.convert_version(made, 13)
    assert {entry.version for entry in converted.opset_import} == {13}


@pytest.mark.parametrize("domains", [("", "ai.onnx"), ("ai.onnx", "")])
def test_the_default_domain_at_two_versions_is_refused(domains: tuple[str, str]) -> None:
    made = model(node("ReduceMax"), imports=[OPSET, helper.make_opsetid(domains[1], 17)])
    with pytest.raises(ConversionError, match="more than once, at opsets 17 and 18"):
        reducelower.convert_version(made, 13)


def test_rules_cannot_recurse(tmp_path: Path, cli: Callable[..., Any]) -> None:
    rules = tmp_path / "rules"
    rules.mkdir()
    for name, body in (("ReduceL1", "ReduceL2"), ("ReduceL2", "ReduceL1")):
        text = '<domain: "rules", opset_import: ["" : 18]>'
        text += f"{name} (data, axes) => (reduced) {{ reduced = {body} (data, axes) }}"
        (rules / f"{name}.onnxtxt").write_text(text)
    path = tmp_path / "model.onnx"
    path.write_bytes(model(node("ReduceL1")).SerializeToString())
    ran = cli("expand", path, "-o", tmp_path / "out.onnx", "--rules", rules)
    assert ran.status in (1, 2)
    assert len(ran.err.splitlines()) == 1
    assert "itself failed" not in ran.err
    assert not (tmp_path / "out.onnx").exists()


def test_a_function_without_its_output_is_no_valid_model(tmp_path: Path, cli: Callable[..., Any]) -> None:
    """onnx's checker takes it."""
    text = """<ir_version: 8, opset_import: ["" : 13, "local" : 1]>
    g (float[2,3] x) => (float[r0,r1] y) { y = local.f (x) }
    <domain: "local", opset_import: ["" : 13]> f (a) => (b) { r = ReduceSumSquare (a) }"""
    path = tmp_path / "model.onnx"
    path.write_bytes(parser.parse_model(text).SerializeToString())
    ran = cli("convert", path, "-o", tmp_path / "out.onnx", "--opset", 21)
    assert ran.status == 1
    assert "nothing gives the output 'b' of its function local::f" in ran.err
