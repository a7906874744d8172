"""`convert` and `expand`: what is written, what is said, what stays as it was."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

from reducelower.batch import Outcome, Settings, Task, convert_file
from reducelower.options import Target
from reducelower.pipeline.task import outcome_of

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


def with_a_wrong_rule(model: Path, node: str) -> Path:
    """A folder with a rule of one's own for what a mixture of Gaussians reduces."""
    folder = model.parent / "rules" / "versions"
    folder.mkdir(parents=True)
    head = '<domain: "mine", overload: "below 18", opset_import: ["" : 13]> ReduceLogSumExp <keepdims> (data, axes)'
    (folder / "ReduceLogSumExp.onnxtxt").write_text(f"{head} => (reduced)\n{{\n  reduced = {node} (data)\n}}\n")
    return folder.parent


INVALID = "Transpose <perm = [0, 0]>"


def test_an_invalid_result_is_looked_at_once_more_before_it_is_written(model: Path) -> None:
    settings = Settings(Target(13), rules=with_a_wrong_rule(model, INVALID), validate=False)
    outcome = convert_file(Task(str(model), str(model.parent / "out.onnx")), settings)
    assert outcome.status == 1
    assert "the result is not valid" in outcome.problems[0]
    assert "please report" in outcome.problems[0]
    assert not (model.parent / "out.onnx").exists()


def failing(model: Path, error: BaseException) -> Outcome:
    """The outcome of work on a model in which something goes wrong."""

    def fail() -> Outcome:
        raise error

    return outcome_of(str(model), fail)


@pytest.mark.parametrize(
    ("error", "status", "phrase"),
    [
        (KeyError("odd"), 3, "please report"),
        (MemoryError(), 2, "not enough memory"),
        (RecursionError(), 1, "deeper"),
        (OSError(28, "No space left on device", "out.onnx"), 2, "No space left on device"),
    ],
)
def test_no_exception_shows_a_traceback(
    model: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, phrase: str
) -> None:
    monkeypatch.delenv("REDUCELOWER_DEBUG", raising=False)
    outcome = failing(model, error)
    assert outcome.status == status
    assert [phrase in problem for problem in outcome.problems] == [True]
    assert list(model.parent.iterdir()) == [model]


def test_an_interrupt_is_no_outcome(model: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        failing(model, KeyboardInterrupt())
    assert list(model.parent.iterdir()) == [model]


def test_a_traceback_is_shown_on_request(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDUCELOWER_DEBUG", "1")
    assert "Traceback (most recent call last):" in failing(model, KeyError("odd")).problems
