"""What tests of files and of the command line share, and what they ask of the installed onnx."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from onnx import defs

from reducelower.legalization.memo.memory import forget

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Ran:
    """What a run of the command line gave."""

    status: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def _nothing_known() -> None:
    """Let no test see what another one's run learned about nodes."""
    forget()


@pytest.fixture(scope="session")
def models() -> Path:
    """The folder of models that exporters wrote."""
    return DATA / "models"


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run the command line in this process; what libraries print past Python is captured too."""
    monkeypatch.delenv("REDUCELOWER_DEBUG", raising=False)

    def run(*arguments: object) -> Ran:
        from reducelower.cli import run as run_command_line

        status = run_command_line([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return Ran(status, out, err)

    return run


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs an opset version that the installed onnx does not know yet."""
    newest = defs.onnx_opset_version()
    for item in items:
        needed = max(_opset_versions(item), default=0)
        if needed > newest:
            reason = f"needs opset version {needed}, and the installed onnx knows those up to {newest}"
            item.add_marker(pytest.mark.skip(reason=reason))


def _opset_versions(item: pytest.Item) -> Iterator[int]:
    """The opset versions in marks of a test, which give them as numbers or name the parameters that do."""
    for mark in item.iter_markers("opset"):
        for given in mark.args:
            value = item.callspec.params[given] if isinstance(given, str) else given  # type: ignore[attr-defined]
            yield from value if isinstance(value, tuple) else (value,)
