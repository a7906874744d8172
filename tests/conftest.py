"""What tests share, which combinations of parameters run, and what they ask of the installed onnx."""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from onnx import defs

from reducelower.legalization.memo import forget
from tests.forked import prepare
from tests.pairwise import thinned

DATA = Path(__file__).parent / "data"

# No test sees what another one's run found to hold, and none writes to the user's folder: this is none.
os.environ["REDUCELOWER_CACHE"] = os.devnull
# What the processes that tests start import is compiled once, not by each of them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


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
def two_models(models: Path, tmp_path: Path) -> Path:
    """A folder with one model, and one in a folder inside."""
    root = tmp_path / "models"
    (root / "deep").mkdir(parents=True)
    shutil.copy(models / "torch_mean_dyn_18.onnx", root / "mean.onnx")
    shutil.copy(models / "skl_gmm_20.onnx", root / "deep" / "gmm.onnx")
    return root


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run the command line in this process; what libraries print past Python is captured too."""
    monkeypatch.delenv("REDUCELOWER_DEBUG", raising=False)
    prepare()

    def run(*arguments: object) -> Ran:
        from reducelower.cli import run as run_command_line

        status = run_command_line([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return Ran(status, out, err)

    return run


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer the whole products of parameters."""
    parser.addoption("--every", action="store_true", help="run every combination of three or more parameters")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out combinations in which nothing meets anew, and skip what the installed onnx is too old for.

    Of a test with three or more parameters, each stated by a mark of its own, as many cases are kept as it takes for
    every two values to meet.
    """
    if not config.getoption("--every"):
        items[:] = _thinned(items)
    newest = defs.onnx_opset_version()
    for item in items:
        needed = max(_opset_versions(item), default=0)
        if needed > newest:
            reason = f"needs opset version {needed}, and the installed onnx knows those up to {newest}"
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_finish() -> None:
    """Keep what was collected, which lives to the end, out of all searches for garbage, and of what forks copy."""
    gc.collect()
    gc.freeze()


def _thinned(items: list[pytest.Item]) -> list[pytest.Item]:
    found: list[pytest.Item] = []
    for _, group in itertools.groupby(items, key=lambda item: item.nodeid.partition("[")[0]):
        cases = list(group)
        rows = {_values(item): item for item in cases}
        # Where cases differ in what no mark states, such as parameters of fixtures, all stay.
        is_product = len(rows) == len(cases) and len(next(iter(rows))) > 2
        found += [rows[row] for row in thinned(list(rows))] if is_product else cases
    return found


def _values(item: pytest.Item) -> tuple[tuple[int, ...], ...]:
    """What tells the values that a case has of each of its marks from others."""
    found = []
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0].split(",") if isinstance(mark.args[0], str) else mark.args[0]
        found.append(tuple(id(item.callspec.params[name.strip()]) for name in names))  # type: ignore[attr-defined]
    return tuple(found)


def _opset_versions(item: pytest.Item) -> Iterator[int]:
    """The opset versions in marks of a test, which give them as numbers or name the parameters that do."""
    for mark in item.iter_markers("opset"):
        for given in mark.args:
            value = item.callspec.params[given] if isinstance(given, str) else given  # type: ignore[attr-defined]
            yield from value if isinstance(value, tuple) else (value,)
