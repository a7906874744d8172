"""What held is kept on disk, so that no later run has to run it again, and nothing else is taken for it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto

from reducelower import Target, legalize, verify
from reducelower.verification import SiteVerification, verify_regions
from reducelower.verification.checking.cache import Cache, default_folder, forget
from reducelower.verification.checking.checker import Checker
from reducelower.verification.checking.tally import Tally
from reducelower.verification.running.conditions import under
from tests.models import model

from .clocks import Looked

Cli = Callable[..., Any]

NORMALIZED = "g (float[N, 5] x, float[5] s) => (float[N, 5] y) { y = LayerNormalization (x, s) }"
VALUES = {"x": np.linspace(-2, 2, 10, dtype=np.float32).reshape(2, 5), "s": np.ones(5, np.float32)}


@pytest.fixture(autouse=True)
def another_process() -> Iterator[None]:
    forget()
    yield
    forget()


def checked(source: ModelProto, cache: Cache) -> tuple[SiteVerification, bool]:
    """What a conversion to opset 13 gives in a process that remembers nothing, and whether it was run."""
    forget()
    made = legalize(source, Target(13))
    clock = Looked(None)
    checker = Checker(values=lambda names: {name: VALUES[name] for name in names}, cache=cache)
    with under(clock=clock):
        (found,) = verify_regions(source, made.model, made.plan, checker=checker).findings
    return found, clock.gone > 5


def test_what_held_is_not_run_again_by_another_process(tmp_path: Path) -> None:
    source = model(NORMALIZED, 18)
    first, is_run = checked(source, Cache(tmp_path / "made" / "on demand"))
    assert is_run
    assert first.status == "overflow"
    again, is_run = checked(source, Cache(tmp_path / "made" / "on demand"))
    assert not is_run
    assert again == first
    assert stat.S_IMODE((tmp_path / "made" / "on demand").stat().st_mode) == 0o700


def test_with_other_versions_it_is_run_again(tmp_path: Path) -> None:
    source = model(NORMALIZED, 18)
    checked(source, Cache(tmp_path, stamp="one"))
    assert checked(source, Cache(tmp_path, stamp="other"))[1]
    assert not checked(source, Cache(tmp_path, stamp="other"))[1]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"status": "equal"}', '{"unheard": 1}', '{"cases": "many"}', "\0"])
def test_a_damaged_file_is_as_good_as_none(content: str, tmp_path: Path) -> None:
    source = model(NORMALIZED, 18)
    first, _ = checked(source, Cache(tmp_path))
    (kept,) = tmp_path.iterdir()
    whole = kept.read_text()
    kept.write_text(content)
    assert checked(source, Cache(tmp_path)) == (first, True)
    assert kept.read_text() == whole


def test_what_differs_is_not_kept(tmp_path: Path) -> None:
    one, other = (model(f"g (float[N] x) => (float[N] y) <float k = {{{k}}}> {{ y = Mul (x, k) }}", 18) for k in (1, 2))
    for _ in range(2):
        forget()
        assert verify(one, other, cache=tmp_path).verdict == "different"
        assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("is_folder", [True, False])
def test_what_another_user_wrote_is_not_read(is_folder: bool, tmp_path: Path) -> None:
    source = model(NORMALIZED, 18)
    checked(source, Cache(tmp_path))
    (kept,) = tmp_path.iterdir()
    os.chown(tmp_path if is_folder else kept, 12345, 12345)
    assert checked(source, Cache(tmp_path))[1]


def test_a_folder_that_cannot_be_made_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    source = model(NORMALIZED, 18)
    assert verify(source, legalize(source, Target(13)).model, cache=tmp_path / "file").equivalent
    assert (tmp_path / "file").read_text() == ""


def test_as_many_are_kept_as_there_is_room_for_and_the_last_used_ones(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("stays")
    for at in range(8):
        Cache(tmp_path, stamp="s", most=8).put(at, Tally(cases=1))
        os.utime(Cache(tmp_path, stamp="s")._path(at), (at, at))
    forget()
    assert Cache(tmp_path, stamp="s").get(0) is not None  # and is the last used one now
    Cache(tmp_path, stamp="s", most=8).put(8, Tally(cases=1))
    forget()
    kept = [at for at in range(9) if Cache(tmp_path, stamp="s").get(at) is not None]
    assert kept == [0, 3, 4, 5, 6, 7, 8]
    assert (tmp_path / "mine.txt").read_text() == "stays"


def test_the_folder_is_the_one_of_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REDUCELOWER_CACHE", str(tmp_path / "mine"))
    assert default_folder() == tmp_path / "mine"
    monkeypatch.delenv("REDUCELOWER_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert "reducelower" in str(default_folder())


def test_the_library_writes_nothing_unless_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REDUCELOWER_CACHE", str(tmp_path))
    source = model(NORMALIZED, 18)
    made = legalize(source, Target(13))
    assert verify(source, made.model, plan=made.plan).equivalent
    assert list(tmp_path.iterdir()) == []


def test_the_command_keeps_what_held_unless_told_otherwise(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "cache"
    monkeypatch.setenv("REDUCELOWER_CACHE", str(folder))
    onnx.save(model(NORMALIZED, 18), tmp_path / "model.onnx")
    said = []
    for options in (["--no-cache"], [], [], ["--no-cache"]):
        output = tmp_path / f"out{len(said)}.onnx"
        ran = cli("convert", tmp_path / "model.onnx", "-o", output, "--opset", 13, *options)
        assert ran.status == 0
        said.append(ran.out.replace(output.name, ""))
        assert folder.exists() == (len(said) > 1)
    assert len(list(folder.iterdir())) == 1
    assert len(set(said)) == 1
