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


@pytest.mark.parametrize(
    "arguments", [["-o", "-", "--json"], ["-o", "-", "--report", "-"], ["-o", "out.onnx", "--json", "--report", "-"]]
)
def test_standard_output_takes_one_thing(cli: Cli, folder: Path, arguments: list[str]) -> None:
    ran = cli("convert", "model.onnx", "--opset", 13, *arguments)
    assert ran.status == 2
    assert "would both be written to standard output" in ran.err


def test_standard_input_cannot_be_read_twice(cli: Cli, folder: Path) -> None:
    ran = cli("verify", "-", "-")
    assert (ran.status, "only once" in ran.err) == (2, True)


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


# Options that contradict each other


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["-q", "-v"], "--quiet and --verbose"),
        (["--no-verify", "--verify-strict"], "--no-verify and --verify-strict"),
        (["--no-verify", "--dim", "N=3"], "--no-verify and --dim"),
        (["--no-verify", "--verify-budget", "3"], "--no-verify and --verify-budget"),
        (["--json", "-v"], "--json and --verbose"),
        (["--backup"], "--backup keeps what --in-place replaces"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    cli: Cli, folder: Path, arguments: list[str], named: str
) -> None:
    ran = cli("convert", "model.onnx", "-o", "out.onnx", "--opset", 13, *arguments)
    assert ran.status == 2
    assert named in ran.err
    assert not Path("out.onnx").exists()


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("--target", "--opset N is the opset version"),
        ("--target-opset", "it is called --opset"),
        ("--target_version", "it is called --opset"),
        ("--to", "it is called --opset"),
        ("--helpp", "did you mean '--help'?"),
    ],
)
def test_options_by_other_names_are_suggested(cli: Cli, folder: Path, given: str, meant: str) -> None:
    ran = cli("convert", "model.onnx", "-o", "out.onnx", given, "13")
    assert (ran.status, meant in ran.err) == (2, True)


# Runtimes


def test_names_of_runtimes_have_no_case(cli: Cli, folder: Path) -> None:
    assert cli("targets", "OpenVINO").out == cli("targets", "openvino").out


def test_a_model_is_fitted_to_several_runtimes_at_once(cli: Cli, folder: Path) -> None:
    for name, reads in (("left", "7-13"), ("right", "11-21"), ("far", "20-")):
        Path(f"{name}.toml").write_text(
            f'[runtime]\nname = "{name}"\nversion = "1"\nabout = "A runtime."\n'
            f'[opsets]\nreads = "{reads}"\nprefer = {reads.split("-")[0]}\n'
        )
    ran = cli("convert", "model.onnx", "-o", "out.onnx", "--for", "left.toml", "--for", "right.toml", "--no-verify")
    assert (ran.status, ran.err) == (0, "")
    assert 11 <= opset(Path("out.onnx")) <= 13
    ran = cli("convert", "model.onnx", "-o", "other.onnx", "--for", "left.toml", "--for", "far.toml")
    assert ran.status == 2
    assert "left 1 reads opsets 7-13; far 1 reads opsets 20-" in ran.err


# Many models


def test_models_that_match_a_pattern_are_left_out(cli: Cli, folder: Path) -> None:
    for name in ("models/a.onnx", "models/a_int8.onnx", "models/old/b.onnx"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(Path("model.onnx").read_bytes())
    options = ["--output-dir", "out", "--opset", 13, "--no-verify", "--exclude", "*_int8.onnx", "--exclude", "old/*"]
    assert cli("convert", "models", *options).status == 0
    assert [path.name for path in Path("out").rglob("*.onnx")] == ["a.onnx"]


def test_a_backup_is_kept_of_what_is_replaced(cli: Cli, folder: Path) -> None:
    before = Path("model.onnx").read_bytes()
    assert cli("convert", "model.onnx", "--in-place", "--backup", "--opset", 13).status == 0
    assert opset(Path("model.onnx")) == 13
    assert Path("model.onnx.bak").read_bytes() == before
    assert cli("convert", "model.onnx", "--in-place", "--backup", "--opset", 12).status == 2
    assert Path("model.onnx.bak").read_bytes() == before
    assert opset(Path("model.onnx")) == 13


# Configuration


def test_a_configuration_file_gives_defaults(cli: Cli, folder: Path) -> None:
    Path("pyproject.toml").write_text('[tool.reducelower]\nopset = 13\nwithout = ["ReduceL2"]\n')
    assert cli("convert", "model.onnx", "-o", "out.onnx").status == 0
    assert opset(Path("out.onnx")) == 13
    assert "ReduceL2" not in {node.op_type for node in onnx.load("out.onnx").graph.node}
    assert cli("convert", "model.onnx", "-o", "other.onnx", "--opset", 17).status == 0
    assert opset(Path("other.onnx")) == 17


def test_a_file_of_its_own_counts_more_and_holds_for_folders_below(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("pyproject.toml").write_text("[tool.reducelower]\nopset = 13\n")
    Path("reducelower.toml").write_text("[convert]\nopset = 12\ntolerance = {float = '1e-3'}\n")
    Path("deep/er").mkdir(parents=True)
    monkeypatch.chdir("deep/er")
    assert cli("convert", folder / "model.onnx", "-o", "out.onnx").status == 0
    assert opset(Path("out.onnx")) == 12


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("opste = 13", "there is no option 'opste'; did you mean 'opset'?"),
        ("in-place = true", "in-place cannot be set by a file"),
        ("[check]\nseed = 1", "there is no option 'check.seed'"),
        ("opset = [", "reducelower.toml: "),
        ("opset = 'new'", "'new' is not an opset version"),
        ("opset = 13.0", "'13.0' is not an opset version"),
        ("opset = [13]", "reducelower.toml: opset takes one value, not several"),
        ("opset = 13\njobs = {a = 2}", "jobs takes one value, not several"),
        ("opset = 13\ndim = {x = 'a'}", "reducelower.toml: Invalid value for '--dim': 'a' is not a valid integer"),
        ("freeze-defaults = true\nfreeze_defaults = false", "freeze-defaults and freeze_defaults are the same option"),
        ("[convert]\nir-version = 8\nir_version = 9", "ir-version and ir_version are the same option"),
        ("check = 3", "check is the name of a command, and holds options of it: [check]"),
        ("opset = 13\nverify = 3", "reducelower.toml: verify is either true or false, and not 3"),
        ("opset = 13\nrules = 'none'", "reducelower.toml: Invalid value for '--rules': none: neither"),
    ],
)
def test_what_is_wrong_with_a_configuration_is_said(cli: Cli, folder: Path, content: str, message: str) -> None:
    Path("reducelower.toml").write_text(content)
    ran = cli("convert", "model.onnx", "-o", "out.onnx")
    assert (ran.status, message in ran.err) == (2, True), ran.err


def test_an_option_that_is_called_like_a_command_can_be_set(cli: Cli, folder: Path) -> None:
    Path("reducelower.toml").write_text("opset = 13\nwithout = 'ReduceL2'\nrules = 'spec'\n")
    assert "spec/ReduceL2" in cli("convert", "model.onnx", "-o", "out.onnx", "-v").out


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


def test_a_check_for_nothing_leaves_out_what_is_excluded_and_is_quiet(cli: Cli, folder: Path) -> None:
    excluded = cli("check", folder, "--exclude", "*.onnx")
    assert (excluded.status, excluded.out) == (2, "")
    assert "--exclude" in excluded.err
    assert cli("check", folder, "--quiet").out == ""


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
    found = json.loads(cli("inspect", "model.onnx", "--json").out)
    assert found["operators"] == {"Add": 1, "If": 1, "Neg": 1}
    assert found["external"] == {"weights.bin": Path("weights.bin").stat().st_size}
    assert found["weights"] == {"float": 2}


def test_inspect_names_what_a_runtime_gets_wrong_and_where(cli: Cli, folder: Path) -> None:
    found = json.loads(cli("inspect", "model.onnx", "--json").out)
    assert {item["name"] for item in found["runtimes"]} >= {"onnxruntime", "openvino"}
    faults = [fault for item in found["runtimes"] for fault in item["newest"]["faults"] if not fault["feature"]]
    assert faults
    assert all(fault["operators"] == ["ReduceL2"] for fault in faults)
    reached = found["reaches"]
    for target in (reached[0], reached[-1]):
        assert cli("convert", "model.onnx", "-o", f"{target}.onnx", "--opset", target, "--no-verify").status == 0


def test_check_without_a_goal_says_where_a_model_can_go(cli: Cli, folder: Path) -> None:
    ran = cli("check", "model.onnx")
    assert ran.status == 0
    assert ran.out.startswith("model.onnx: opset 21, IR version 10, 1 node\n  reaches")


def test_an_invalid_model_is_inspected_all_the_same(cli: Cli, folder: Path) -> None:
    model = onnx.load("model.onnx")
    model.graph.node[0].input[0] = "nowhere"
    onnx.save(model, "model.onnx")
    ran = cli("inspect", "model.onnx")
    assert ran.status == 1
    assert "not valid   ReduceL2 uses 'nowhere', which nothing defines" in ran.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "t.xyz"], "no format of models has the extension .xyz"),
        (["-o", "dir/"], "is the name of a folder"),
        (["-o", "o.onnx", "--report", "sub.html/"], "is the name of a folder"),
        (["-o", "o.onnx", "--report", "-", "--report", "-"], "two reports"),
        (["-o", "o.onnx", "--rank", "x=100000"], "not in the range"),
    ],
)
def test_places_and_numbers_that_cannot_be_meant_are_refused(
    cli: Cli, folder: Path, arguments: list[str], message: str
) -> None:
    ran = cli("convert", "model.onnx", "--opset", 18, *arguments)
    assert ran.status == 2
    assert message in ran.err


def test_the_command_line_wins_over_a_file_in_what_contradicts_it(cli: Cli, folder: Path) -> None:
    Path("pyproject.toml").write_text('[tool.reducelower]\nquiet = true\noutput-dir = "d"\n')
    ran = cli("convert", "model.onnx", "--opset", 18, "-o", "o.onnx", "-v")
    assert ran.status == 0
    assert Path("o.onnx").exists()
    assert "written" in ran.out


def test_help_needs_no_configuration(cli: Cli, folder: Path) -> None:
    Path("pyproject.toml").write_text("[tool.reducelower\n")
    assert cli("convert", "--help").status == 0
    assert cli("targets").status == 0
    assert cli("convert", "model.onnx", "-o", "o.onnx", "--opset", 18).status == 2


@pytest.mark.parametrize("content", ["[tool]\nreducelower = 5\n", "tool = 5 # reducelower\n"])
def test_a_configuration_is_a_table(cli: Cli, folder: Path, content: str) -> None:
    Path("pyproject.toml").write_text(content)
    ran = cli("convert", "model.onnx", "-o", "o.onnx", "--opset", 18)
    assert ran.status == 2
    assert "must be a table" in ran.err
