"""Remembers which regions held, in the process and on disk, under a key of everything that decides the result.

The key holds both sides, their inputs, and what runs them: this code, onnx, onnxruntime, numpy and the processor. Each
region has a file, named by its key. A file that is damaged or belongs to another user is ignored, and so is a folder
that cannot be written to.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path

import platformdirs

from reducelower.files.pending import write_whole
from reducelower.verification.checking.tally import Tally
from reducelower.verification.findings import HOLDING
from reducelower.versions import versions_of

__all__ = ["Cache", "default_folder", "forget"]

_REMEMBERED = 4096
_held: dict[object, Tally] = {}
"""What held in this process: the models of a folder share most of their rewrites."""
_MOST = 10_000  # files of about 1 kB
_KEPT = 0.75  # share of these that stays, the last used ones, if there are more
_NAMED = re.compile(r"[0-9a-f]{64}\.json$")
_FAULTS = (OSError, ValueError, TypeError)
"""What reading a damaged file may raise."""


def default_folder() -> Path:
    """The folder of the command line: ``REDUCELOWER_CACHE``, or the platform's folder for caches."""
    chosen = os.environ.get("REDUCELOWER_CACHE")
    return Path(chosen) if chosen else platformdirs.user_cache_path("reducelower", appauthor=False)


def forget() -> None:
    """Forget what this process remembers."""
    _held.clear()


def _remember(key: object, found: Tally) -> Tally:
    if len(_held) >= _REMEMBERED:
        _held.clear()
    _held[key] = found
    return found


class Cache:
    """What held, in this process and in a folder, which any number of processes may use at the same time."""

    def __init__(self, folder: Path | None = None, *, stamp: str = "", most: int = _MOST) -> None:
        """Name the folder; it is made when there is something to keep.

        Args:
            folder: where the files are; None for no files.
            stamp: stands for everything that runs models here; computed if empty.
            most: how many files are kept.
        """
        self._folder = folder
        self._stamp = stamp
        self._most = most
        self._is_pruned = False

    def get(self, key: object) -> Tally | None:
        """What was kept under a key; equal keys must have equal texts."""
        if key in _held or self._folder is None:
            return _held.get(key)
        path = self._path(key)
        try:
            if not (_is_own(self._folder) and _is_own(path)):
                return None
            found = Tally(**json.loads(path.read_bytes()))
            if found.status not in HOLDING or found.cases < 1:
                return None
            os.utime(path)
            return _remember(key, found)
        except _FAULTS:
            return None

    def put(self, key: object, found: Tally) -> None:
        """Keep what held, if possible."""
        _remember(key, found)
        if self._folder is None:
            return
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_own(self._folder):
                return
            self._prune()
            write_whole(self._path(key), json.dumps(asdict(found)))

    def _path(self, key: object) -> Path:
        assert self._folder is not None
        whole = repr((self._stamp or _here(), key))
        return self._folder / f"{hashlib.sha256(whole.encode()).hexdigest()}.json"

    def _prune(self) -> None:
        """Delete the files that were used longest ago, if there are too many; once, since a process adds few."""
        if self._folder is None or self._is_pruned:
            return
        files = sorted(_files(self._folder), key=lambda item: item[0])
        for _, path in files[: -int(_KEPT * self._most)] if len(files) >= self._most else ():
            path.unlink(missing_ok=True)
        self._is_pruned = True


def _files(folder: Path) -> Iterator[tuple[float, Path]]:
    for path in folder.iterdir():
        if _NAMED.match(path.name):  # other files in a folder that the user named stay there
            with suppress(FileNotFoundError):
                yield path.stat().st_mtime, path


def _is_own(path: Path) -> bool:
    """Whether a file or folder is the user's own, as far as the platform says."""
    return not hasattr(os, "getuid") or path.stat().st_uid == os.getuid()


@cache
def _here() -> str:
    """Stands for everything on this machine that decides what a region gives."""
    told = [platform.python_version(), _processor(), repr(versions_of("onnx", "onnxruntime", "numpy"))]
    root = Path(__file__).parents[2]
    for path in sorted(root.rglob("*.py")):
        seen = path.stat()
        told.append(f"{path.relative_to(root)} {seen.st_size} {seen.st_mtime_ns}")
    return hashlib.sha256("\n".join(told).encode()).hexdigest()


def _processor() -> str:
    """The processor: kernels use what it can do, and round differently."""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return "\n".join(dict.fromkeys(line for line in lines if line.startswith(("model name", "flags", "Features"))))
    return f"{platform.machine()} {platform.processor()}"
