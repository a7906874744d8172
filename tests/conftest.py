"""What tests of files and of the command line share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Ran:
    """What a run of the command line gave."""

    status: int
    out: str
    err: str


@pytest.fixture(scope="session")
def models() -> Path:
    """The folder of models that exporters wrote."""
    return DATA / "models"


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run the command line in this process; what libraries print past Python is captured too."""
    monkeypatch.delenv("REDUCELOWER_DEBUG", raising=False)

    def run(*arguments: object) -> Ran:
        from reducelower.commandline import run as run_command_line

        status = run_command_line([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return Ran(status, out, err)

    return run
