"""Records of what outputs were made from, by which an interrupted run goes on where it ended.

A record is a small JSON file per output, in a folder beside the outputs. On this machine it is on disk before its
output has its name, so that no moment is left at which a run could not tell its own output from another's. Whatever
cannot be read as a record is none.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

from reducelower.files.pending import write_whole
from reducelower.files.urls import is_url
from reducelower.options import Settings
from reducelower.versions import versions_of

__all__ = ["Content", "Origin", "Record", "content_of", "external_facts", "origin_of", "read_record", "write_record"]

_WITHOUT_CONSEQUENCE = ("overwrite", "in_place", "backup", "details")


@dataclass(frozen=True)
class Content:
    """What a file holds: its size in bytes and its SHA-256."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Origin:
    """What an output came of: equal origins give equal bytes.

    Attributes:
        source: SHA-256 of the model file, without its external data.
        settings: SHA-256 of everything that the conversion was told, the content of files it names included.
        tools: versions of reducelower and of what it works with.
    """

    source: str
    settings: str
    tools: Mapping[str, str]


@dataclass(frozen=True)
class Record:
    """What is known about one output.

    Attributes:
        origin: what it came of.
        output: what it holds.
        external: size and time of change (nanoseconds) of each file with external data of the source, by its location.
            Weights are not read to be converted, and neither are they to be recorded.
        replaces: what an earlier output holds that this one takes the place of, in case that does not come to pass.
        brought: as `external`, what may lie beside the output because it was brought there for it or for the one that
            it replaces. This, and no other data, a later run may replace.
    """

    origin: Origin
    output: Content
    external: Mapping[str, Sequence[int]]
    replaces: Content | None = None
    brought: Mapping[str, Sequence[Sequence[int]]] = field(default_factory=dict)


def origin_of(source: str, settings: Settings) -> Origin:
    """What an output would come of; the model is read once, its external data not at all.

    Raises:
        OSError: a file cannot be read.
    """
    told = {item.name: _plain(getattr(settings, item.name)) for item in fields(settings)}
    for name in _WITHOUT_CONSEQUENCE:
        del told[name]
    told["files"] = [_tree(str(path)) for path in (settings.rules, settings.test_data, *settings.inputs.values())]
    text = json.dumps(told, sort_keys=True)
    return Origin(_sha256(Path(source)), hashlib.sha256(text.encode()).hexdigest(), versions_of("onnx", "onnxruntime"))


def content_of(path: Path) -> Content | None:
    """What a local file holds; None where there is none."""
    try:
        return Content(path.stat().st_size, _sha256(path))
    except OSError:
        return None


def external_facts(folder: Path, locations: Sequence[str]) -> dict[str, list[int]]:
    """Size and time of change of files with external data; those that are not there are left out."""
    found = {}
    for location in locations:
        path = folder / location
        if path.is_file():
            status = path.stat()
            found[location] = [status.st_size, status.st_mtime_ns]
    return found


def read_record(place: str) -> Record | None:
    """Read a record from a path or URL; None where there is none that makes sense."""
    try:
        if is_url(place):
            from reducelower.files.remote import read_bytes

            data = read_bytes(place)
        else:
            data = Path(place).read_bytes()
        stored = json.loads(data or b"")
        replaces = Content(**stored["replaces"]) if stored["replaces"] is not None else None
        brought = {name: [list(facts) for facts in known] for name, known in dict(stored.get("brought", {})).items()}
        origin, output = Origin(**stored["origin"]), Content(**stored["output"])
        return Record(origin, output, dict(stored["external"]), replaces, brought)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def write_record(record: Record, place: str) -> None:
    """Write a record to a path or URL, whole or not at all.

    Raises:
        OSError: it cannot be written.
        UnreadableModelError: it cannot be written to a URL.
    """
    text = json.dumps(asdict(record), indent=1, sort_keys=True) + "\n"
    if is_url(place):
        from reducelower.files.remote import write_bytes

        write_bytes(place, text.encode())
        return
    Path(place).parent.mkdir(parents=True, exist_ok=True)
    write_whole(Path(place), text)


def _sha256(path: Path) -> str:
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _tree(name: str) -> list[tuple[str, str]]:
    """Every file below a path with its SHA-256; nothing where the name is none of a file or folder."""
    root = Path(name)
    if not name or not root.exists():
        return []
    paths = sorted(path for path in root.rglob("*") if path.is_file()) if root.is_dir() else [root]
    return [(os.path.relpath(path, root), _sha256(path)) for path in paths]


def _plain(value: Any) -> Any:
    """A setting as JSON has it, the same for equal settings."""
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, AbstractSet):
        return sorted(map(repr, map(_plain, value)))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | None) else repr(value)
