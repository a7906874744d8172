"""Files by name: local paths, and URLs by fsspec, which are found, fetched and written back completely."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from reducelower.errors import UnreadableModelError
from reducelower.files.external import locations
from reducelower.files.formats import parse

__all__ = [
    "as_path",
    "beside",
    "fetch_model",
    "find",
    "holds_the_same",
    "is_in_memory",
    "is_pattern",
    "is_url",
    "join",
    "put",
    "read_bytes",
    "remote_size",
    "write_bytes",
]

_URL = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*::)*[A-Za-z][A-Za-z0-9+.-]+://")


def is_url(name: str) -> bool:
    """Whether a name is a URL, such as ``s3://bucket/model.onnx``; a single letter before the colon is a Windows
    drive."""
    return _URL.match(name) is not None


def as_path(name: str) -> str:
    """The path of a ``file:`` URL (RFC 8089, as `pathlib.Path.as_uri` writes it); other names are returned unchanged.

    Local files are read and written directly.
    """
    if not name.lower().startswith("file://"):
        return name
    from urllib.parse import urlsplit
    from urllib.request import url2pathname  # slow to import, and hardly ever needed

    return url2pathname(urlsplit(name).path)


def is_in_memory(name: str) -> bool:
    """Whether a URL names a file in this process's memory, where no other process can find it."""
    return is_url(name) and name.rpartition("::")[2].startswith("memory://")


def is_pattern(name: str) -> bool:
    """Whether a name has wildcards."""
    return any(letter in name for letter in "*?[")


def join(folder: str, relative: str) -> str:
    """The name of a file in a folder, which may be a URL."""
    return f"{folder.rstrip('/')}/{relative}" if is_url(folder) else str(Path(folder) / relative)


def beside(url: str, relative: str) -> str:
    """The URL of another file in the same folder."""
    folder, slash, _ = url.rpartition("/")
    return f"{folder}{slash}{relative}"


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


def fetch_model(url: str, folder: Path) -> str:
    """Download a model and its external data to a folder; return its local path.

    Missing external data is skipped: reading the model reports it, as for any model.
    """
    system, path = _opened(url)
    local = folder / PurePosixPath(path.partition("?")[0]).name
    folder.mkdir(parents=True, exist_ok=True)
    _fetch(system, path, local, url)
    data = local.read_bytes()
    if b"location" in data:
        around = path.rpartition("/")[0]
        for location in locations(parse(data, local).message, local):
            there = f"{around}/{location}"
            with _sentences(f"cannot read {url}"):
                exists = system.exists(there)
            if exists:
                (folder / location).parent.mkdir(parents=True, exist_ok=True)
                _fetch(system, there, folder / location, url)
    return str(local)


def remote_size(url: str) -> int | None:
    """The size of a file in bytes; None if it does not exist."""
    system, path = _opened(url)
    with _sentences(f"cannot read {url}"):
        if not system.exists(path):
            return None
        if system.isdir(path):
            raise UnreadableModelError(f"cannot write {url}: it is a folder; name a file in it")
        return int(system.size(path) or 0)


def read_bytes(url: str) -> bytes | None:
    """The content of a small file; None if it does not exist."""
    system, path = _opened(url)
    with _sentences(f"cannot read {url}"):
        return bytes(system.cat_file(path)) if system.exists(path) else None


def holds_the_same(url: str, local: Path) -> bool:
    """Whether a file has the same content as a local one."""
    if remote_size(url) != local.stat().st_size:
        return False
    system, path = _opened(url)
    with _sentences(f"cannot read {url}"), system.open(path, "rb") as there, local.open("rb") as here:
        while block := here.read(1 << 20):
            if there.read(len(block)) != block:
                return False
    return True


def put(local: Path, url: str) -> None:
    """Upload a file, replacing an existing one; atomic on file systems with transactions."""
    with local.open("rb") as content:
        _write(content, url)


def write_bytes(url: str, data: bytes) -> None:
    """Write a small file, as `put` does."""
    from io import BytesIO

    _write(BytesIO(data), url)


def _write(content: Any, url: str) -> None:
    # Of its own, not fsspec's shared instance: a transaction holds for everything that an instance writes.
    system, path = _opened(url, skip_instance_cache=True)
    with _sentences(f"cannot write {url}"):
        with contextlib.suppress(NotImplementedError):
            system.makedirs(path.rpartition("/")[0], exist_ok=True)
        with system.transaction, system.open(path, "wb") as file:
            shutil.copyfileobj(content, file, 1 << 20)


def _fetch(system: Any, path: str, local: Path, url: str) -> None:
    with _sentences(f"cannot read {url}"):
        system.get_file(path, str(local))
        with contextlib.suppress(NotImplementedError):
            # A resumed run compares it.
            changed = int(system.modified(path).timestamp() * 1e9)
            os.utime(local, ns=(changed, changed))


def _opened(url: str, **options: Any) -> tuple[Any, str]:
    """The file system of a URL, and what the file is called there."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise UnreadableModelError(
            f"{url} is a URL, and fsspec is not installed; pip install 'reducelower[remote]'"
        ) from None
    with _sentences(f"cannot open {url}"):
        system, path = url_to_fs(url, **options)
    if system.protocol == "memory":
        from multiprocessing import parent_process  # most models are read without it

        if parent_process() is not None:
            raise UnreadableModelError(
                f"{url} is in the memory of another process; such files take --jobs 1 and no cluster"
            )
    return system, path


@contextlib.contextmanager
def _sentences(what: str) -> Iterator[None]:
    """Turn any exception of a file system into one sentence, since each raises its own types."""
    try:
        yield
    except UnreadableModelError:
        raise
    except FileNotFoundError:
        raise UnreadableModelError(f"{what}: no such file") from None
    except Exception as error:
        lines = str(getattr(error, "strerror", None) or error).strip().splitlines()
        raise UnreadableModelError(f"{what}: {lines[0] if lines else type(error).__name__}") from None
