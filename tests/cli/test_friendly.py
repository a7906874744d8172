"""Where people stumble: standard streams, JSON, configuration files, backups, excludes, options that contradict."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import onnx
import onnxruntime
import pytest

from reducelower.cli.inspection import full_text
from reducelower.pipeline.inspection import Inspected, inspect_file
from tests.report.made import json_schema

Cli = Callable[..., Any]

EXAMPLES = Path(__file__).parents[2] / "examples" / "models"
NOTHING = Inspected("m.onnx", {"ai.onnx": 17}, 8, "", 1, {}, {}, {}, (), ())

TEXT = """<ir_version: 10, opset_import: ["": 21]> g (float[2, 3] x) => (float[2, 1] y)
    <int64[1] a = {1}> { y = ReduceL2 (x, a) }"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    onnx.save(onnx.parser.parse_model(TEXT), tmp_path / "model.onnx")
    return tmp_path


def opset(path: Path) -> int:
    return int(onnx.load(path).opset_import[0].version)


# Same numbers by default


def test_what_replaces_an_operator_that_is_unwanted_does_not_overflow(cli: Cli, tmp_path: Path) -> None:
    source = EXAMPLES / "gaussian_mixture_20.onnx"
    output = tmp_path / "out.onnx"
    assert cli("convert", source, "-o", output, "--opset", 13, "--without", "ReduceLogSumExp").status == 0
    session = onnxruntime.InferenceSession(output, providers=["CPUExecutionProvider"])
    _, probabilities = session.run(None, {"X": np.full((1, 4), 15, np.float32)})
    assert np.isfinite(probabilities).all()
    assert probabilities.sum() == pytest.approx(1)


@pytest.mark.parametrize("drop", ["the shape of the output", "the type of the output", "every shape"])
def test_a_model_that_states_no_shapes_converts(cli: Cli, folder: Path, drop: str) -> None:
    model = onnx.load("model.onnx")
    if drop == "the type of the output":
        model.graph.output[0].ClearField("type")
    else:
        model.graph.output[0].type.tensor_type.ClearField("shape")
    if drop == "every shape":
        model.graph.input[0].type.tensor_type.ClearField("shape")
    onnx.save(model, "model.onnx")
    ran = cli("convert", "model.onnx", "-o", "out.onnx", "--opset", 13)
    assert (ran.status, ran.err) == (0, "")
    assert onnx.load("out.onnx").graph.output == model.graph.output


def test_an_output_of_no_shape_that_nothing_computes_is_still_found(cli: Cli, folder: Path) -> None:
    model = onnx.load("model.onnx")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    model.graph.output[0].name = "nowhere"
    onnx.save(model, "model.onnx")
    ran = cli("convert", "model.onnx", "-o", "out.onnx", "--opset", 13)
    assert ran.status == 1
    assert "'nowhere', which nothing defines" in ran.err


def test_the_ir_version_alone_can_be_changed(cli: Cli, folder: Path) -> None:
    assert cli("check", "model.onnx", "--ir-version", 9).status == 1
    assert cli("convert", "model.onnx", "-o", "out.onnx", "--ir-version", 9).status == 0
    expected = onnx.load("model.onnx")
    expected.ir_version = 9
    assert onnx.load("out.onnx") == expected


# Standard streams


def piped(arguments: list[str], data: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "reducelower", *arguments], input=data, capture_output=True, check=False
    )


def test_a_model_goes_from_standard_input_to_standard_output(folder: Path) -> None:
    ran = piped(["convert", "-", "-o", "-", "--opset", "13"], Path("model.onnx").read_bytes())
    assert ran.returncode == 0
    assert onnx.load_from_string(ran.stdout).opset_import[0].version == 13
    assert b"-: opset 21 -> 13" in ran.stderr
    assert b"/tmp" not in ran.stderr


def test_problems_of_standard_input_name_it(folder: Path) -> None:
    ran = piped(["convert", "-", "-o", "out.onnx", "--opset", "13"], b"no model")
    assert ran.returncode == 2
    assert ran.stderr.startswith(b"error: - is not an ONNX model")


def test_a_report_goes_to_standard_output_as_json(cli: Cli, folder: Path) -> None:
    ran = cli("convert", "model.onnx", "-o", "out.onnx", "--opset", 13, "--report", "-")
    jsonschema.validate(json.loads(ran.out), json_schema())
    assert "written" in ran.err


# JSON


@pytest.mark.parametrize(
    "arguments",
    [
        ["convert", "model.onnx", "-o", "out.onnx", "--opset", "13"],
        ["expand", "model.onnx", "-o", "out.onnx", "--rules", "stable"],
        ["raise", "model.onnx", "-o", "out.onnx"],
        ["verify", "model.onnx", "model.onnx"],
    ],
    ids=lambda arguments: str(arguments[0]),
)
def test_json_is_one_object_a_model(cli: Cli, folder: Path, arguments: list[str]) -> None:
    ran = cli(*arguments, "--json")
    (line,) = ran.out.splitlines()
    schema = json_schema()
    jsonschema.validate(json.loads(line), {**schema["$defs"]["model"], "$defs": schema["$defs"]})
    assert json.loads(line)["path"] == "model.onnx"


def test_a_refused_model_has_its_object_too(cli: Cli, folder: Path) -> None:
    ran = cli("convert", "model.onnx", "-o", "out.onnx", "--opset", 13, "--without", "Gemm", "--json", "--no-verify")
    assert json.loads(ran.out)["verdict"] == "converted"
    Path("bad.onnx").write_bytes(b"no model")
    ran = cli("convert", "bad.onnx", "-o", "other.onnx", "--opset", 13, "--json")
    assert (ran.status, json.loads(ran.out)["verdict"]) == (2, "unreadable")


# Runtimes


def test_names_of_runtimes_have_no_case(cli: Cli, folder: Path) -> None:
    assert cli("targets", "OpenVINO").out == cli("targets", "openvino").out


# Configuration


def test_a_file_of_its_own_counts_more_and_holds_for_folders_below(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("pyproject.toml").write_text("[tool.reducelower]\nopset = 13\n")
    Path("reducelower.toml").write_text("[convert]\nopset = 12\ntolerance = {float = '1e-3'}\n")
    Path("deep/er").mkdir(parents=True)
    monkeypatch.chdir("deep/er")
    assert cli("convert", folder / "model.onnx", "-o", "out.onnx").status == 0
    assert opset(Path("out.onnx")) == 12


# Inspecting


def test_inspect_says_what_is_in_a_model(cli: Cli, folder: Path) -> None:
    ran = cli("inspect", "model.onnx")
    assert ran.status == 0
    lines = {line[2:14].strip(): line[14:] for line in ran.out.splitlines()[1:]}
    assert lines["opset"] == "ai.onnx 21"
    assert lines["IR version"] == "10"
    assert lines["inputs"] == "float[2,3] x"
    assert lines["operators"] == "ReduceL2 1"
    assert lines["reaches"].startswith("opsets ")


@pytest.mark.parametrize(
    ("size", "said"), [(1023, "1023 bytes"), (1536, "1.5 KiB"), (3 << 20, "3.0 MiB"), (5000 << 30, "5000.0 GiB")]
)
def test_inspect_says_sizes_as_people_read_them(size: int, said: str) -> None:
    assert f"weights.bin ({said})" in full_text(replace(NOTHING, external={"weights.bin": size}))


@pytest.mark.parametrize(("count", "said"), [(40, "Op39 1"), (41, "Op39 1, and 1 more")])
def test_inspect_names_the_most_frequent_operators(count: int, said: str) -> None:
    text = full_text(replace(NOTHING, operators={f"Op{at}": 1 for at in range(count)}))
    assert " ".join(text.split()).endswith(f"{said} reaches no other opset")


def test_inspect_says_what_a_runtime_refuses_and_where() -> None:
    (tvm,) = inspect_file(str(EXAMPLES / "branches_21.onnx"), runtimes=["tvm"]).runtimes
    (fault,) = tvm.newest.faults
    assert (fault.kind, fault.says, fault.operators, fault.nodes, fault.first) == (
        "refused",
        "Reductions inside the branches of an If do not compile.",
        ("If",),
        1,
        "node_cond__0",
    )


def test_inspect_counts_operators_in_subgraphs_and_names_external_data(cli: Cli, folder: Path) -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]> g (bool c, float[2] x) => (float[2] y) {
        y = If (c) <then_branch = t () => (float[2] a) { a = Add (x, w) }, else_branch = e () => (float[2] b)
            { b = Neg (x) }> }""")
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(2, np.float32), "w"))
    onnx.save(model, "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    found = json.loads(cli("inspect", "model.onnx", "--json", "--for", "mnn").out)
    assert found["operators"] == {"Add": 1, "If": 1, "Neg": 1}
    assert found["external"] == {"weights.bin": Path("weights.bin").stat().st_size}
    assert found["weights"] == {"float": 2}


def test_inspect_names_what_a_runtime_gets_wrong_and_where(cli: Cli, folder: Path) -> None:
    found = json.loads(cli("inspect", "model.onnx", "--json", "--for", "onnxruntime", "--for", "openvino").out)
    assert {item["name"] for item in found["runtimes"]} == {"onnxruntime", "openvino"}
    faults = [fault for item in found["runtimes"] for fault in item["newest"]["faults"] if not fault["feature"]]
    assert faults
    assert all(fault["operators"] == ["ReduceL2"] for fault in faults)
    reached = found["reaches"]
    for target in (reached[0], reached[-1]):
        assert cli("convert", "model.onnx", "-o", f"{target}.onnx", "--opset", target, "--no-verify").status == 0
