"""A Dask cluster does the work: asked for on the command line, with workers that are lost on the way."""

from __future__ import annotations

import os
import runpy
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reducelower import __version__
from reducelower.batch import Outcome, Settings, Task
from reducelower.batch.many import crashed, run_all
from reducelower.errors import SettingError
from reducelower.options import Target

pytestmark = pytest.mark.xdist_group("a cluster")

Cli = Callable[..., Any]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A scheduler and two workers, which stand elsewhere than the tests; a model may cost one worker."""
    distributed, dask = pytest.importorskip("distributed"), pytest.importorskip("dask")
    place = tmp_path_factory.mktemp("dask")
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", local_directory=str(place)
        ) as cluster,
    ):
        yield cluster


@pytest.fixture
def folder(models: Path, tmp_path: Path) -> Path:
    root = tmp_path / "models"
    (root / "deep").mkdir(parents=True)
    for at in range(6):
        shutil.copy(models / "torch_mean_dyn_18.onnx", root / f"mean{at}.onnx")
    shutil.copy(models / "skl_gmm_20.onnx", root / "deep" / "gmm.onnx")
    return root


def content(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*.onnx"))}


def test_a_cluster_writes_what_this_machine_writes(
    cli: Cli, cluster: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where the workers are not
    here = cli("convert", "models", "--output-dir", "here", "--opset", 13)
    assert here.status == 0, here.err
    there = cli("convert", "models", "--output-dir", "there", "--opset", 13, "--scheduler", cluster.scheduler_address)
    assert there.err == ""
    assert there.status == 0
    assert content(tmp_path / "there") == content(tmp_path / "here")
    assert len(content(tmp_path / "there")) == 7
    assert there.out.count("verified") == 7


def test_the_example_of_a_cluster(cluster: Any, tmp_path: Path) -> None:
    example = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "cluster.py"))
    outcomes = example["main"](cluster.scheduler_address, str(tmp_path / "out"))
    assert len(outcomes) == 3
    assert all(item.status == 0 and item.verification.equivalent for item in outcomes)


def test_settings_with_paths_reach_workers_elsewhere(
    cli: Cli, cluster: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(Path(__file__).parents[2] / "rules" / "spec", tmp_path / "own")
    options = ("--opset", 13, "--without", "ReduceLogSumExp", "--no-verify", "--scheduler", cluster.scheduler_address)
    ran = cli("convert", "models/deep", "--output-dir", "out", "--rules", "own", *options)
    assert (ran.status, ran.err) == (0, "")


def test_checks_run_on_a_cluster(cli: Cli, cluster: Any, folder: Path) -> None:
    (folder / "broken.onnx").write_bytes(b"no model")
    ran = cli("check", folder, "--opset", 13, "--scheduler", cluster.scheduler_address)
    assert ran.status == 2
    assert ran.out.count("does not fit opset 13") == 7
    assert ran.err.count("is not an ONNX model") == 1


def _dies_once(task: Task, marker: str, settings: Settings) -> Outcome:
    """Convert, and lose the first worker that has done so before it can say it."""
    import os
    import signal
    from pathlib import Path

    from reducelower.batch import convert_file

    outcome = convert_file(task, settings)
    if not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return outcome


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_what_a_lost_worker_had_written_is_ours(cluster: Any, folder: Path, tmp_path: Path) -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    from reducelower.batch.cluster import dask_executor
    from reducelower.batch.inputs import find_models, plan_outputs

    found = find_models([str(folder)])
    tasks = plan_outputs(found, output=None, output_dir=str(tmp_path / "out"), in_place=False, resume=True)
    work = partial(_dies_once, marker=str(tmp_path / "marker"), settings=Settings(Target(13), verify=False))
    with dask_executor(cluster.scheduler_address) as executor:
        outcomes = list(run_all(work, tasks, 1, crashed, executor=executor))
    assert (tmp_path / "marker").exists()
    assert [(item.status, item.problems) for item in outcomes] == [(0, ())] * 7
    assert sum(item.kept for item in outcomes) >= 1
    assert len(content(tmp_path / "out")) == 7


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_model_that_kills_every_worker_is_the_only_one_lost(cluster: Any) -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    from reducelower.batch.cluster import dask_executor

    with dask_executor(cluster.scheduler_address) as executor:
        jobs = [Task(name) for name in ("good", "deadly", "fine")]
        outcomes = list(run_all(_kills, jobs, 1, crashed, executor=executor))
    assert [item.status for item in outcomes] == [0, 3, 0]
    assert "the executor gave up on it (KilledWorker: " in outcomes[1].problems[0]


def _kills(task: Task) -> Outcome:
    if task.source == "deadly":
        os.kill(os.getpid(), signal.SIGKILL)
    return Outcome(task.source)


def test_nobody_at_the_address_is_one_sentence_within_bounds() -> None:
    pytest.importorskip("distributed")
    from reducelower.batch.cluster import dask_executor

    with socket.socket() as silent:  # it listens and never answers
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        addresses = [f"tcp://127.0.0.1:{silent.getsockname()[1]}", "tcp://127.0.0.1:1", "nonsense://x", "tcp://"]
        for address in addresses:
            start = time.monotonic()
            with pytest.raises(SettingError) as raised, dask_executor(address, patience=1.0):
                pass
            assert time.monotonic() - start < 30
            assert str(raised.value).startswith(f"no Dask scheduler answers at {address} within 1 s")
            assert len(str(raised.value).splitlines()) == 1


def test_a_cluster_of_another_version_is_refused() -> None:
    from reducelower.batch.cluster import check_workers

    found = {"tcp://one": __version__, "tcp://two": "99.0", "tcp://three": None}
    workers = {place: {"packages": {"reducelower": version}} for place, version in found.items()}
    client = SimpleNamespace(get_versions=lambda packages: {"workers": workers})
    with pytest.raises(SettingError, match=f"reducelower is 99.0, missing, and here it is {__version__}; install"):
        check_workers(client, "tcp://there")


def test_without_dask_a_sentence_says_so(
    folder: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    ran = cli("convert", folder, "--output-dir", tmp_path / "out", "--opset", 13, "--scheduler", "tcp://127.0.0.1:1")
    assert (ran.status, ran.err) == (2, "error: --scheduler needs Dask; pip install 'reducelower[dask]'\n")


@pytest.mark.parametrize(("options", "reason"), [(["--jobs", 2], "--jobs"), (["-o", "out.onnx"], "--output-dir")])
def test_what_goes_ill_with_a_cluster(folder: Path, cli: Cli, options: list[object], reason: str) -> None:
    outputs = [] if "-o" in options else ["--output-dir", folder / "out"]
    ran = cli("convert", folder / "mean0.onnx", *outputs, *options, "--opset", 13, "--scheduler", "tcp://127.0.0.1:1")
    assert ran.status == 2
    assert reason in ran.err
