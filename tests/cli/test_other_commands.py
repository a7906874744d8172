"""`verify`, `rules`, help, versions, and what a start imports."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import jsonschema
import numpy as np
import onnx
import pytest

import reducelower

Cli = Callable[..., Any]

COMMANDS = ("convert", "expand", "raise", "repair", "check", "inspect", "verify", "diff", "targets", "probe", "rules")


def test_verify_tells_equal_from_different(cli: Cli, models: Path, tmp_path: Path) -> None:
    model, output = models / "torch_mean_dyn_18.onnx", tmp_path / "out.onnx"
    cli("convert", model, "-o", output, "--opset", 13, "--no-verify")
    same = cli("verify", model, output)
    assert (same.status, same.err) == (0, "")
    assert "  verified    equal on 2 sets of inputs (no difference)\n" in same.out
    other = cli("verify", model, models / "torch_sum_dyn_18.onnx")
    assert other.status == 1
    assert "  different   " in other.out


def test_verify_takes_values_for_inputs(cli: Cli, models: Path, tmp_path: Path) -> None:
    import onnx

    model = models / "torch_mean_dyn_18.onnx"
    value = onnx.load(model).graph.input[0]
    shape = [size.dim_value or 2 for size in value.type.tensor_type.shape.dim]
    np.save(tmp_path / "x.npy", np.ones(shape, np.float32))
    assert cli("verify", model, model, "--input", f"{value.name}={tmp_path / 'x.npy'}").status == 0
    wrong = cli("verify", model, model, "--input", f"{value.name}s={tmp_path / 'x.npy'}")
    assert wrong.status == 2
    assert f"did you mean {value.name!r}" in wrong.err


RULE = """
<domain: "mine", overload: "floating", opset_import: ["" : 18]>
ReduceMin <keepdims, noop_with_empty_axes> (data, axes) => (reduced)
{
  negative = Neg (data)
  largest = ReduceMax <keepdims = @keepdims, noop_with_empty_axes = @noop_with_empty_axes> (negative, axes)
  reduced = Neg (largest)
}
"""


def test_rules_are_tried(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "ReduceMin.onnxtxt").write_text(RULE)
    ran = cli("rules", "--test", tmp_path)
    assert ran.status == 0
    assert {line.split()[1] for line in ran.out.splitlines()} == {"float", "double", "float16", "bfloat16"}
    assert all(" exact, " in line for line in ran.out.splitlines())
    assert cli("rules", "ReduceMin", "--test", tmp_path).out == ran.out
    assert cli("rules", "ReduceMax", "--test", tmp_path).status == 2


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("reduced = Neg (largest)", "reduced = Abs (largest)"),
        ("<keepdims = @keepdims, ", "<"),
        (", noop_with_empty_axes = @noop_with_empty_axes", ""),
        ("ReduceMax", "ReduceMean"),
    ],
)
def test_rules_that_compute_something_else_are_wrong(cli: Cli, tmp_path: Path, right: str, wrong: str) -> None:
    (tmp_path / "ReduceMin.onnxtxt").write_text(RULE.replace(right, wrong, 1))
    ran = cli("rules", "--test", tmp_path)
    assert ran.status == 1
    assert "ReduceMin  float " in ran.out
    assert "wrong" in ran.out
    assert "ReduceMin, double: " in ran.err


@pytest.mark.parametrize(
    ("command", "flag", "default"),
    [("verify", "--seed", "0"), ("verify", "--verify-budget", "60.0"), ("check", "--jobs", "1")],
)
def test_help_shows_the_default_of_an_option(cli: Cli, command: str, flag: str, default: str) -> None:
    said = re.sub(r"\s+", " ", cli(command, "--help").out)
    assert f"[default: {default};" in said.partition(f"{flag} ")[2].partition(" --")[0]


def test_help_lists_the_commands(cli: Cli) -> None:
    out = cli("--help").out
    assert all(re.search(rf"^  {command}  ", out, re.MULTILINE) for command in COMMANDS)


def started(*arguments: str, code: str = "") -> subprocess.CompletedProcess[str]:
    program = code or (
        "import sys, json, reducelower.cli as c; status = c.run(sys.argv[1:]); "
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr); sys.exit(status)"
    )
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)


def test_a_conversion_imports_nothing_it_does_not_use(models: Path, tmp_path: Path) -> None:
    source, output = str(models / "torch_mean_dyn_18.onnx"), str(tmp_path / "out.onnx")
    ran = started("convert", source, "-o", output, "--opset", "13", "--no-verify")
    assert ran.returncode == 0
    modules = set(json.loads(ran.stderr))
    assert "onnx" in modules
    unused = {"onnxruntime", "onnxscript", "onnx_ir", "rich", "multiprocessing", "xml", "jinja2", "reducelower.report"}
    assert modules & unused == set()


def test_versions_and_help_import_no_onnx() -> None:
    for arguments in (["--version"], ["convert", "--help"]):
        assert not set(json.loads(started(*arguments).stderr)) & {"onnx", "numpy", "rich"}


def test_the_process_ends_with_everything_said(models: Path) -> None:
    command = [sys.executable, "-m", "reducelower", "check", str(models / "skl_gmm_20.onnx"), "--opset", "13"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "ReduceLogSumExp" in ran.stdout


def test_what_libraries_print_is_no_part_of_the_output(tmp_path: Path) -> None:
    """onnx's checker warns of experimental operators on standard output, past Python."""
    text = '<ir_version: 3, opset_import: ["": 8]> g (float[1,3,4,4] x) => (float[1,3,4,4] y) { y = Relu (x) }'
    model = onnx.parser.parse_model(text)
    model.graph.node[0].op_type = "ImageScaler"
    model.graph.node[0].attribute.add(name="scale", type=onnx.AttributeProto.FLOAT, f=1)
    onnx.save(model, tmp_path / "m.onnx")
    for command in (["inspect"], ["convert", "--opset", "9", "-o", str(tmp_path / "out.onnx")]):
        command = [sys.executable, "-m", "reducelower", *command, str(tmp_path / "m.onnx"), "--json"]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert json.loads(ran.stdout)["path"]


def test_an_inspected_model_that_contradicts_itself_does_not_stop_the_others(cli: Cli, tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["": 18]>
        g (float[A,B] x) => (float[{}] y) {{ w = Unique (x) z = Softmax (w) y = Identity (z) }}"""
    for name, shape in (("a", "C"), ("b", "1,1,1"), ("c", "C")):
        onnx.save(onnx.parser.parse_model(text.format(shape)), tmp_path / f"{name}.onnx")
    ran = cli("inspect", tmp_path, "--json", "--for", "mnn")
    found = {Path(each["path"]).name: each["problem"] for each in map(json.loads, ran.out.splitlines())}
    assert ran.status == 1
    assert {name: bool(problem) for name, problem in found.items()} == {
        "a.onnx": False,
        "b.onnx": True,
        "c.onnx": False,
    }


def test_the_module_runs_and_a_reader_that_leaves_is_no_fault(models: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        command = [sys.executable, "-m", "reducelower", "check", str(models / "skl_gnb_13.onnx"), "--opset", "13"]
        ran = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "closed"),
    [
        ("convert - -o {out} --opset 15", "<&-"),
        ("convert {model} -o - --opset 15", ">&-"),
        ("convert {model} -o {out} --opset 15 --json", ">&-"),
    ],
)
def test_a_stream_that_is_closed_is_no_place_for_a_result(
    models: Path, tmp_path: Path, arguments: str, closed: str
) -> None:
    words = arguments.format(model=f"'{models}/mlp_21.onnx'", out=f"'{tmp_path}/out.onnx'")
    command = f"'{sys.executable}' -m reducelower {words} {closed}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert done.stderr.startswith("error: standard ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_streams_that_are_closed_from_the_start_are_no_fault(models: Path, tmp_path: Path, closed: str) -> None:
    model, output = models / "skl_gnb_13.onnx", tmp_path / "out.onnx"
    arguments = f"convert '{model}' -o '{output}' --opset 15 --no-verify"
    command = f"'{sys.executable}' -m reducelower {arguments} {closed}"
    ran = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (ran.returncode, "Traceback" in ran.stderr) == (0, False)
    assert output.stat().st_size > 100
    missing = f"'{sys.executable}' -m reducelower check '{tmp_path}/none.onnx' --opset 15 {closed}"
    assert subprocess.run(missing, shell=True, capture_output=True, check=False).returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize(
    "arguments",
    [
        "convert {model} -o - --opset 15 --no-verify",
        "convert {model} -o {out} --opset 15 --no-verify",
        "check {model} --opset 15 --json",
        "inspect {model}",
        "rules",
    ],
)
def test_results_that_a_full_disk_does_not_take_are_an_error(models: Path, tmp_path: Path, arguments: str) -> None:
    words = arguments.format(model=f"'{models}/skl_gnb_13.onnx'", out=f"'{tmp_path}/out.onnx'")
    command = f"'{sys.executable}' -m reducelower {words} > /dev/full"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "error: cannot write to standard output: No space left on device"
    assert "Traceback" not in done.stderr


def test_version_has_a_short_flag(cli: Cli) -> None:
    assert cli("-V").out == cli("--version").out


def test_help_of_a_command_can_be_asked_for_as_a_command(cli: Cli) -> None:
    assert cli("help", "convert").out == cli("convert", "--help").out
    assert cli("help").out == cli("--help").out


def test_version_boundaries_are_in_the_schema_too(cli: Cli) -> None:
    schema = json.loads((Path(reducelower.__file__).parent / "report" / "schema.json").read_text("utf-8"))
    lines = cli("rules", "Clip", "--json").out.splitlines()
    assert lines
    for line in lines:
        jsonschema.validate(json.loads(line), {"$ref": "#/$defs/boundary", "$defs": schema["$defs"]})


@pytest.mark.parametrize(
    ("command", "kind"), [("check", "model"), ("inspect", "inspected"), ("targets", "runtime"), ("rules", "rule")]
)
def test_json_is_an_object_a_line_that_the_schema_describes(cli: Cli, models: Path, command: str, kind: str) -> None:
    schema = json.loads((Path(reducelower.__file__).parent / "report" / "schema.json").read_text("utf-8"))
    given = [models / "skl_gmm_20.onnx"] if command in ("check", "inspect") else []
    given += {"check": ["--opset", "13"], "inspect": ["--for", "mnn", "--for", "onnxruntime"]}.get(command, [])
    lines = cli(command, *given, "--json").out.splitlines()
    assert lines
    for line in lines:
        jsonschema.validate(json.loads(line), {"$ref": f"#/$defs/{kind}", "$defs": schema["$defs"]})


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_json(name: str) -> None:
    from reducelower.cli.main import app

    command = app.get_command(click.Context(app), name)
    assert command is not None
    assert any("--json" in parameter.opts for parameter in command.params)


def test_rules_shows_every_boundary_of_an_operator_and_where_it_comes_from(cli: Cli) -> None:
    lines = cli("rules", "ReduceMean").out.splitlines()
    table = [line.split()[:4] for line in lines[: lines.index("")]]
    assert table == [
        ["18", "to", "17", "text"],
        ["17", "to", "18", "text"],
        ["13", "to", "12", "schemas"],
        ["12", "to", "13", "schemas"],
        ["11", "to", "10", "text"],
        ["10", "to", "11", "schemas"],
    ]
    assert any("below 11 if negative(axes)" in line for line in lines)


def test_rules_of_boundaries_are_tried(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "versions").mkdir()
    rule = tmp_path / "versions" / "Shape.onnxtxt"
    rule.write_text(
        '<domain: "mine", overload: "below 15 if start == 1 and absent(end)", opset_import: ["" : 14]>\n'
        "Shape <start, first: ints = [1], end: ints = [64]> (data) => (shape)\n"
        "{\n  sizes = Shape (data)\n  shape = Slice (sizes, first, end)\n}\n"
    )
    right = cli("rules", "--test", tmp_path)
    assert right.status == 0
    assert " right in " in right.out
    rule.write_text(rule.read_text().replace("[1]", "[0]"))
    wrong = cli("rules", "--test", tmp_path)
    assert wrong.status == 1
    assert "test_shape_start_1" in wrong.err


@pytest.mark.parametrize(
    ("operator", "way", "says"),
    [
        ("Mod", "10 to 9", "all else is refused"),
        ("Mish", "18 to 17", "the function body in its schema"),
        ("Celu", "12 to 11", "Celu(x) = Max(x, 0) + alpha * (Exp(Min(x, 0) / alpha) - 1)"),
        ("SequenceAt", "11 to 10", "refused: opset 10 does not have it"),
    ],
)
def test_rules_say_what_stands_in_the_place_of_an_operator(cli: Cli, operator: str, way: str, says: str) -> None:
    told = [json.loads(line) for line in cli("rules", operator, "--json").out.splitlines()]
    (last,) = [each["says"] for each in told if each.get("way") == way]
    assert last.endswith(says)


def test_no_rule_stands_in_the_place_of_an_operator_that_was_always_there(cli: Cli) -> None:
    told = [json.loads(line) for line in cli("rules", "Relu", "--json").out.splitlines()]
    assert all("refused" not in each.get("says", "") for each in told)
