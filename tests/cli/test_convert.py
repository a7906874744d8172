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


def test_in_place_replaces_the_input_and_keeps_its_permissions(cli: Cli, model: Path) -> None:
    model.chmod(0o640)
    assert cli("convert", model, "--in-place", "--opset", 13).status == 0
    assert opset(model) == 13
    assert model.stat().st_mode & 0o777 == 0o640
    assert list(model.parent.iterdir()) == [model]


def test_a_result_that_computes_something_else_is_not_written(
    cli: Cli, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import reducelower.pipeline.raising as raising

    honest = raising.legalized

    def lying(*arguments: Any, **options: Any) -> Any:
        made, plan = honest(*arguments, **options)
        for node in made.message.graph.node:
            if node.op_type == "ReduceLogSumExp":
                node.op_type = "ReduceMax"
        return Document.of_message(made.message), plan

    monkeypatch.setattr(raising, "legalized", lying)
    ran = cli("convert", model, "-o", tmp_path / "out.onnx", "--opset", 13)
    assert ran.status == 1
    assert "does not compute the same" in ran.err
    assert len(ran.err.splitlines()) == 1
    assert not (tmp_path / "out.onnx").exists()


def test_an_invalid_result_is_our_fault_and_not_written(
    cli: Cli, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import reducelower.pipeline.raising as raising

    honest = raising.legalized

    def broken(*arguments: Any, **options: Any) -> Any:
        made, plan = honest(*arguments, **options)
        made.message.graph.node[0].op_type = "Nonsense"
        return Document.of_message(made.message), plan

    monkeypatch.setattr(raising, "legalized", broken)
    ran = cli("convert", model, "-o", tmp_path / "out.onnx", "--opset", 13)
    assert ran.status == 3
    assert "please report" in ran.err
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
    import reducelower.pipeline.raising as raising

    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(raising, "legalized", fail)
    ran = cli("convert", model, "-o", tmp_path / "out.onnx", "--opset", 13, "--no-verify")
    assert ran.status == status
    assert phrase in ran.err
    assert "Traceback" not in ran.err
    assert len(ran.err.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == [model]


def test_a_traceback_is_shown_on_request(
    cli: Cli, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import reducelower.pipeline.raising as raising

    def fail(*_: Any, **__: Any) -> None:
        raise KeyError("odd")

    monkeypatch.setattr(raising, "legalized", fail)
    monkeypatch.setenv("REDUCELOWER_DEBUG", "1")
    assert "Traceback" in cli("convert", model, "-o", tmp_path / "out.onnx", "--opset", 13).err


def test_a_right_conversion_tells_no_details_of_what_overflows_on_both_sides(
    cli: Cli, models: Path, tmp_path: Path
) -> None:
    given = ("convert", models / "torch_ln_ts_18.onnx", "-o", tmp_path / "out.onnx", "--opset", 13, "--force")
    assert [line.split()[0] for line in cli(*given).out.splitlines()][1:] == [
        "rewritten", "verified", "output's", "the", "written",
    ]  # fmt: skip
    assert " ULP apart" in cli(*given, "-v").out


def test_the_latest_opset_has_a_name(cli: Cli, model: Path, tmp_path: Path) -> None:
    assert cli("convert", model, "-o", tmp_path / "m.onnx", "--opset", "latest").status == 0
    assert opset(tmp_path / "m.onnx") == onnx.defs.onnx_opset_version()
