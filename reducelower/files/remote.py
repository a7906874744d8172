"""Names of files, and models behind URLs, which fsspec finds and fetches; outputs are always local files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from reducelower.errors import UnreadableModelError
from reducelower.files.external import locations
from reducelower.files.formats import parse

__all__ = ["fetched", "find", "is_pattern", "is_url", "renamed"]

_URL = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*::)*[A-Za-z][A-Za-z0-9+.-]+://")


def is_url(name: str) -> bool:
    """Whether a name is a URL, such as ``s3://bucket/model.onnx``; a single letter before the colon is a Windows
    drive."""
    return _URL.match(name) is not None


def is_pattern(name: str) -> bool:
    """Whether a name has wildcards."""
    return any(letter in name for letter in "*?[")


def find(url: str) -> list[tuple[str, str]]:
    """Find the models for a URL: a file, all models in a folder at any depth, or the matches of a pattern.

    Each comes with its URL and its path relative to the folder or to the fixed part of the pattern; a single file has
    just its name.
    """
    system, path = _opened(url)
    with _sentences(f"cannot list {url}"):
        if is_pattern(path) and not system.exists(path):
            wild = next(at for at, part in enumerate(url.split("/")) if is_pattern(part))
            root = "/".join(url.split("/")[:wild])
            matches = [match for match in system.glob(path) if system.isfile(match)]
        elif system.isdir(path):
            root = url.rstrip("/")
            matches = [match for match in system.find(path) if match.endswith(".onnx")]
        else:
            return [(url, PurePosixPath(path.partition("?")[0]).name)]
        start = len(_opened(root)[1].rstrip("/")) + 1
        return [(f"{root}/{match[start:]}", match[start:]) for match in sorted(matches)]


@contextmanager
def fetched(name: str) -> Iterator[str]:
    """The local path of a model: its own, or that of a temporary copy with its external data.

    Missing external data is skipped: reading the model reports it, as for any model.

    Raises:
        UnreadableModelError: it cannot be fetched.
    """
    if not is_url(name):
        yield name
        return
    system, path = _opened(name)
    with TemporaryDirectory(prefix="reducelower-") as folder:
        local = Path(folder) / PurePosixPath(path.partition("?")[0]).name
        with _sentences(f"cannot read {name}"):
            _fetch(system, path, local)
        data = local.read_bytes()
        try:
            needed = locations(parse(data, local).message, local) if b"location" in data else ()
        except UnreadableModelError as error:
            raise UnreadableModelError(*renamed([str(error)], str(local), name)) from None
        with _sentences(f"cannot read {name}"):
            for location in needed:
                remote_path = f"{path.rpartition('/')[0]}/{location}"
                if system.exists(remote_path):
                    (local.parent / location).parent.mkdir(parents=True, exist_ok=True)
                    _fetch(system, remote_path, local.parent / location)
        yield str(local)


def renamed(sentences: Iterable[str], copy: str, name: str) -> tuple[str, ...]:
    """Sentences about a copy, rewritten to name the original."""
    if copy == name:
        return tuple(sentences)
    folder, (parent, slash, _) = f"{Path(copy).parent}{os.sep}", name.rpartition("/")
    return tuple(sentence.replace(copy, name).replace(folder, f"{parent}{slash}") for sentence in sentences)


def _fetch(system: Any, path: str, local: Path) -> None:
    system.get_file(path, str(local))
    with suppress(NotImplementedError):
        # A resumed run compares modification times.
        changed = int(system.modified(path).timestamp() * 1e9)
        os.utime(local, ns=(changed, changed))


def _opened(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path of the file in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise UnreadableModelError(
            f"{url} is a URL, and fsspec is not installed; pip install 'reducelower[remote]'"
        ) from None
    with _sentences(f"cannot open {url}"):
        system, path = url_to_fs(url)
    return system, path


@contextmanager
def _sentences(what: str) -> Iterator[None]:
    """Turn any exception of a file system into one sentence, since each raises its own types."""
    try:
        yield
    except FileNotFoundError:
        raise UnreadableModelError(f"{what}: no such file") from None
    except Exception as error:
        lines = str(getattr(error, "strerror", None) or error).strip().splitlines()
        raise UnreadableModelError(f"{what}: {lines[0] if lines else type(error).__name__}") from None
