"""`convert` and `expand`: what is written, what is said, what stays as it was."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

from reducelower.model.document import Document

Cli = Callable[..., Any]


def opset(path: Path) -> int:
    return next(entry.version for entry in onnx.load(path).opset_import if entry.domain == "")


@pytest.fixture
def model(models: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(models / "skl_gmm_20.onnx", tmp_path / "model.onnx"))


def test_a_report_says_what_was_done(cli: Cli, model: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.onnx"
    ran = cli("convert", model, "-o", output, "--opset", 13)
    assert ran.status == 0
    assert ran.err == ""
    assert opset(output) == 13
    for phrase in (
        "opset 20 -> 13",
        "rewritten   3 nodes: 1 ReduceLogSumExp, 2 ReduceSumSquare\n",
        "verified    equal on 3 sets of inputs (no difference)\n",
        "            both distinct rewrites also hold one by one\n",
        f"written     {output}\n",
    ):
        assert phrase in ran.out


def test_quiet_says_nothing(cli: Cli, model: Path, tmp_path: Path) -> None:
    ran = cli("convert", model, "-o", tmp_path / "out.onnx", "--opset", 13, "-q", "--no-verify")
    assert (ran.status, ran.out, ran.err) == (0, "", "")
    assert opset(tmp_path / "out.onnx") == 13


def test_verbose_lists_every_site(cli: Cli, model: Path, tmp_path: Path) -> None:
    ran = cli("convert", model, "-o", tmp_path / "out.onnx", "--opset", 13, "-v", "--no-verify")
    for name in ("Re_ReduceSumSquare", "Re_ReduceSumSquare1", "Re_ReduceLogSumExp"):
        assert f"{name!r}" in ran.out


def test_without_verification_nothing_is_said_of_it(cli: Cli, model: Path, tmp_path: Path) -> None:
    ran = cli("convert", model, "-o", tmp_path / "out.onnx", "--opset", 13, "--no-verify")
    assert "verified" not in ran.out


def test_up_and_down_again(cli: Cli, models: Path, tmp_path: Path) -> None:
    down, up = tmp_path / "down.onnx", tmp_path / "up.onnx"
    assert cli("convert", models / "torch_cond_dyn_21.onnx", "-o", down, "--opset", 13).status == 0
    assert cli("convert", down, "-o", up, "--opset", 21).status == 0
    assert (opset(down), opset(up)) == (13, 21)


def test_the_same_run_gives_the_same_bytes(cli: Cli, model: Path, tmp_path: Path) -> None:
    outputs = [tmp_path / "first.onnx", tmp_path / "second.onnx"]
    for output in outputs:
        cli("convert", model, "-o", output, "--opset", 13, "--no-verify")
    assert outputs[0].read_bytes() == outputs[1].read_bytes()


def test_in_place_replaces_the_input_and_keeps_its_permissions(cli: Cli, model: Path) -> None:
    model.chmod(0o640)
    assert cli("convert", model, "--in-place", "--opset", 13).status == 0
    assert opset(model) == 13
    assert model.stat().st_mode & 0o777 == 0o640
    assert list(model.parent.iterdir()) == [model]


def test_in_place_leaves_a_refused_model_alone(cli: Cli, models: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    graph = "g (bfloat16[2, 3] x) => (bfloat16[2, 3] y) { y = Relu (x) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {graph}'), path)
    before = path.read_bytes()
    assert cli("convert", path, "--in-place", "--opset", 11).status == 1
    assert path.read_bytes() == before


def test_force_replaces_an_existing_output(cli: Cli, model: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.onnx"
    output.write_bytes(b"old")
    assert cli("convert", model, "-o", output, "--opset", 13, "--no-verify").status == 2
    assert output.read_bytes() == b"old"
    assert cli("convert", model, "-o", output, "--opset", 13, "--no-verify", "--force").status == 0
    assert opset(output) == 13


def test_a_result_that_computes_something_else_is_not_written(
    cli: Cli, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import reducelower.pipeline.conversion as conversion

    honest = conversion.legalized

    def lying(*arguments: Any, **options: Any) -> Any:
        made, plan = honest(*arguments, **options)
        for node in made.message.graph.node:
            if node.op_type == "ReduceLogSumExp":
                node.op_type = "ReduceMax"
        return Document.of_message(made.message), plan

    monkeypatch.setattr(conversion, "legalized", lying)
    ran = cli("convert", model, "-o", tmp_path / "out.onnx", "--opset", 13)
    assert ran.status == 1
    assert "does not compute the same" in ran.err
    assert len(ran.err.splitlines()) == 1
    assert not (tmp_path / "out.onnx").exists()


def test_an_invalid_result_is_our_fault_and_not_written(
    cli: Cli, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import reducelower.pipeline.conversion as conversion

    honest = conversion.legalized

    def broken(*arguments: Any, **options: Any) -> Any:
        made, plan = honest(*arguments, **options)
        made.message.graph.node[0].op_type = "Nonsense"
        return Document.of_message(made.message), plan

    monkeypatch.setattr(conversion, "legalized", broken)
    ran = cli("convert", model, "-o", tmp_path / "out.onnx", "--opset", 13)
    assert ran.status == 3
    assert "please report" in ran.err
    assert not (tmp_path / "out.onnx").exists()


def test_a_result_that_does_not_fit_declared_types_is_refused(cli: Cli, tmp_path: Path) -> None:
    """A value of a function is of another type in each call, so that no declaration is true of it."""
    text = """<ir_version: 8, opset_import: ["" : 21, "l" : 1]>
    g (float[2] x) => (float[2] y, float[2] z) { y = l.F <kind: int = 16> (x) z = l.F <kind: int = 10> (x) }
    <domain: "l", opset_import: ["" : 21]>
    F <kind> (x) => (y) { h = Cast <to: int = @kind> (x) y = Cast <to: int = 1> (h) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    ran = cli("convert", tmp_path / "m.onnx", "-o", tmp_path / "out.onnx", "--opset", 12, "--type", "h=float32")
    assert ran.status == 1
    assert "with the types and ranks declared the result is not valid" in ran.err
    assert not (tmp_path / "out.onnx").exists()


@pytest.mark.parametrize(
    ("error", "status", "phrase"),
    [
        (KeyError("odd"), 3, "please report"),
        (MemoryError(), 2, "not enough memory"),
        (RecursionError(), 1, "deeper"),
        (OSError(28, "No space left on device", "out.onnx"), 2, "No space left on device"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_no_exception_shows_a_traceback(
    cli: Cli,
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    status: int,
    phrase: str,
) -> None:
    import reducelower.pipeline.conversion as conversion

    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(conversion, "legalized", fail)
    ran = cli("convert", model, "-o", tmp_path / "out.onnx", "--opset", 13, "--no-verify")
    assert ran.status == status
    assert phrase in ran.err
    assert "Traceback" not in ran.err
    assert len(ran.err.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == [model]


def test_a_traceback_is_shown_on_request(
    cli: Cli, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import reducelower.pipeline.conversion as conversion

    def fail(*_: Any, **__: Any) -> None:
        raise KeyError("odd")

    monkeypatch.setattr(conversion, "legalized", fail)
    monkeypatch.setenv("REDUCELOWER_DEBUG", "1")
    assert "Traceback" in cli("convert", model, "-o", tmp_path / "out.onnx", "--opset", 13).err


def test_expand_replaces_the_operators_of_the_book(cli: Cli, model: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.onnx"
    ran = cli("expand", model, "-o", output)
    assert ran.status == 0
    kinds = {node.op_type for node in onnx.load(output).graph.node}
    assert not kinds & {"ReduceLogSumExp", "ReduceSumSquare"}
    assert opset(output) == 20


def test_expand_replaces_only_what_it_is_told(cli: Cli, model: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.onnx"
    assert cli("expand", model, "-o", output, "--op", "ReduceLogSumExp").status == 0
    kinds = {node.op_type for node in onnx.load(output).graph.node}
    assert "ReduceLogSumExp" not in kinds
    assert "ReduceSumSquare" in kinds


@pytest.mark.parametrize("extension", ["textproto", "json"])
def test_other_formats_go_by_their_extension(cli: Cli, model: Path, tmp_path: Path, extension: str) -> None:
    middle, output = tmp_path / f"out.{extension}", tmp_path / "out.onnx"
    direct = tmp_path / "direct.onnx"
    cli("convert", model, "-o", direct, "--opset", 13, "--no-verify")
    assert cli("convert", model, "-o", middle, "--opset", 13, "--no-verify").status == 0
    assert cli("convert", middle, "-o", output, "--opset", 13, "--no-verify").status == 0
    assert output.read_bytes() == direct.read_bytes()


def test_a_model_that_is_there_already_is_not_touched(cli: Cli, model: Path) -> None:
    before = model.read_bytes(), model.stat().st_mtime_ns
    ran = cli("convert", model, "--in-place", "--opset", 20)
    assert (ran.status, ran.out) == (0, f"{model}: already at opset 20; nothing to do\n")
    assert (model.read_bytes(), model.stat().st_mtime_ns) == before


def test_a_model_that_is_there_already_is_written_where_it_was_asked_for(cli: Cli, model: Path, tmp_path: Path) -> None:
    ran = cli("convert", model, "-o", tmp_path / "out.onnx", "--opset", 20)
    assert "already at opset 20; nothing to do" in ran.out
    assert (tmp_path / "out.onnx").read_bytes() == model.read_bytes()


def test_a_right_conversion_tells_no_details_of_what_overflows_on_both_sides(
    cli: Cli, models: Path, tmp_path: Path
) -> None:
    given = ("convert", models / "torch_ln_ts_18.onnx", "-o", tmp_path / "out.onnx", "--opset", 13, "--force")
    assert [line.split()[0] for line in cli(*given).out.splitlines()][1:] == [
        "rewritten", "verified", "output's", "the", "written",
    ]  # fmt: skip
    assert " ULP apart" in cli(*given, "-v").out


def test_a_second_model_that_is_not_there_is_the_output(cli: Cli, model: Path, tmp_path: Path) -> None:
    assert cli("convert", model, tmp_path / "second.onnx", "--opset", 13).status == 0
    assert opset(tmp_path / "second.onnx") == 13
    assert cli("convert", model, tmp_path / "second.onnx", "--opset", 13).status == 2


def test_the_folder_of_an_output_is_made(cli: Cli, model: Path, tmp_path: Path) -> None:
    assert cli("convert", model, "-o", tmp_path / "new" / "folder" / "m.onnx", "--opset", 13).status == 0
    assert opset(tmp_path / "new" / "folder" / "m.onnx") == 13


def test_the_latest_opset_has_a_name(cli: Cli, model: Path, tmp_path: Path) -> None:
    assert cli("convert", model, "-o", tmp_path / "m.onnx", "--opset", "latest").status == 0
    assert opset(tmp_path / "m.onnx") == onnx.defs.onnx_opset_version()
