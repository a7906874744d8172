"""On a terminal there are bars, colours and lines of its width; elsewhere plain lines."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reducelower.cli import run as reducelower_here
from tests.forked import ended, forked, reducelower

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pseudo-terminals are given to forks")


@pytest.fixture(scope="module", autouse=True)
def _imported(models: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What a first run imports is there when it is forked."""
    output = tmp_path_factory.mktemp("first") / "out.onnx"
    reducelower_here(["convert", str(models / "skl_gmm_20.onnx"), "-o", str(output), "--opset", "13", "--quiet"])


def on_a_terminal(*arguments: object, columns: int = 120) -> str:
    """What a user sees, without the codes that colour it."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", sent(*arguments, columns=columns))


def sent(*arguments: object, columns: int = 120, times: int = 1, **variables: str) -> str:
    """What goes to a terminal."""
    import pty

    def run() -> int:
        os.environ |= {"COLUMNS": str(columns), "LINES": "40", "TERM": "xterm", **variables}
        for name in [name for name, value in variables.items() if not value]:
            del os.environ[name]
        return _run(times, *arguments)

    own, terminal = pty.openpty()
    process = forked(run, (terminal, terminal, terminal))
    os.close(terminal)
    seen = b""
    try:
        while data := os.read(own, 4096):
            seen += data
    except OSError:  # Linux says so when the other side is gone
        pass
    os.close(own)
    assert ended(process) in (0, 2)
    return seen.decode()


def _run(times: int, *arguments: object) -> int:
    """Be the command line, so many times, in a process of its own."""
    return [reducelower_here(list(map(str, arguments))) for _ in range(times)][-1]


def test_the_outcome_is_a_few_lines_and_has_no_table(models: Path, tmp_path: Path) -> None:
    seen = sent("convert", models / "skl_gmm_20.onnx", "-o", tmp_path / "o.onnx", "--opset", 13)
    told = seen.rpartition("\x1b[?25h")[2]  # where the cursor is back, the bar is gone
    assert len(told.strip().splitlines()) == 5
    assert "│" not in told


def test_details_come_before_the_verdict(models: Path, tmp_path: Path) -> None:
    seen = on_a_terminal("convert", models / "skl_gmm_20.onnx", "-o", tmp_path / "o.onnx", "--opset", 13, "-v")
    assert re.search(r"equal +0 ULP +ReduceLogSumExp", seen)
    assert seen.index(" 0 ULP ") < seen.index("  verified ") < seen.index("  written ")


def test_nothing_of_the_bar_is_left_when_the_outcome_is_printed(models: Path, tmp_path: Path) -> None:
    text = sent("convert", models / "skl_gmm_20.onnx", "-o", tmp_path / "o.onnx", "--opset", 13)
    assert "\x1b[?25h" in text  # the cursor is back, which goes while bars are shown
    assert text.rindex("\x1b[?25h") < text.index("skl_gmm_20.onnx: opset")


GREEN, RED = "\x1b[32m", "\x1b[31m"


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"TERM": "dumb", "FORCE_COLOR": "1"}, True)],
)
def test_a_terminal_shows_verdicts_in_colour(
    variables: dict[str, str], coloured: bool, models: Path, tmp_path: Path
) -> None:
    words = ("convert", models / "skl_gmm_20.onnx", "-o", tmp_path / "o.onnx", "--opset", 13)
    # The output exists the second time.
    text = sent(*words, times=2, **{"NO_COLOR": "", "FORCE_COLOR": "", **variables})
    assert (f"{GREEN}  verified    equal on 3 sets" in text) == coloured
    assert (f"{RED}error:\x1b[0m" in text) == coloured


@pytest.mark.parametrize(("name", "coloured"), [("", False), ("FORCE_COLOR", True)])
def test_a_pipe_gets_colours_only_where_they_are_forced(
    name: str, coloured: bool, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    if name:
        monkeypatch.setenv(name, "1")
    ran = reducelower(["check", str(models / "skl_gmm_20.onnx"), "--opset", "20"], models)
    assert (ran.returncode, GREEN in ran.stdout) == (0, coloured)


def test_many_models_have_a_bar_and_a_sum(models: Path, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    for at in range(5):
        shutil.copy(models / "torch_mean_dyn_18.onnx", folder / f"mean{at}.onnx")
    (folder / "[red]broken.onnx").write_bytes(b"no model")
    seen = on_a_terminal("convert", folder, "--output-dir", tmp_path / "out", "--opset", 13, "--no-verify")
    assert "6/6" in seen
    assert "6 models: 5 converted, 1 not read or written; 5 nodes rewritten" in seen
    assert "[red]broken.onnx" in seen


def test_quiet_is_quiet_on_a_terminal_too(models: Path, tmp_path: Path) -> None:
    assert not on_a_terminal(
        "convert", models / "skl_gmm_20.onnx", "-o", tmp_path / "out.onnx", "--opset", 13, "-q", "--no-verify"
    )


def test_short_work_shows_no_bar(models: Path, tmp_path: Path) -> None:
    words = ["convert", models / "skl_gmm_20.onnx", "-o", tmp_path / "out.onnx", "--opset", 13, "--no-verify"]
    assert "models" not in on_a_terminal(*words).replace(str(models), "")


def test_many_models_show_the_time_that_is_left(models: Path, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    for at in range(30):
        shutil.copy(models / "torch_mean_dyn_18.onnx", tmp_path / "models" / f"mean{at}.onnx")
    seen = on_a_terminal("convert", tmp_path / "models", "--output-dir", tmp_path / "out", "--opset", 13)
    assert re.search(r"100% +0:00:\d\d +30/30", seen)


@pytest.mark.parametrize("columns", [40, 60, 120])
def test_text_ends_where_the_terminal_does(columns: int, models: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.onnx"
    model = models / "skl_gmm_20.onnx"
    seen = on_a_terminal("expand", model, "-o", output, "--no-verify", columns=columns)
    assert "warning" in seen
    told = [line.rstrip("\r") for line in seen.replace(str(output), "").split("\n") if line.startswith("  ")]
    assert told and all(len(line) <= columns for line in told)


def test_elsewhere_lines_stay_whole_and_no_steps_are_shown(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("convert", models / "skl_gmm_20.onnx", "-o", tmp_path / "out.onnx", "--opset", 12)
    monkeypatch.setenv("COLUMNS", "40")
    out, err = tmp_path / "out", tmp_path / "err"
    with out.open("w") as said, err.open("w") as problems, Path(os.devnull).open() as nothing:
        streams = nothing.fileno(), said.fileno(), problems.fileno()
        assert ended(forked(lambda: _run(1, *words), streams)) == 0
    assert err.read_text() == ""
    assert any(40 < len(line) <= 80 for line in out.read_text().splitlines() if "onnx" not in line)


def test_the_width_is_that_of_the_terminal_itself(models: Path, tmp_path: Path) -> None:
    import fcntl
    import pty
    import struct
    import termios

    own, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 50, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    code = "from reducelower.cli import console; console.prepare(); print(console.width())"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=terminal, stdout=terminal, env=environment)
    process.wait()
    assert os.read(own, 100).split() == [b"50"]
    os.close(terminal)
    os.close(own)
