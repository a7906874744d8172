"""Records of the sources of outputs, so that an interrupted run can be resumed.

A record is a small JSON file for each output, in a folder next to the outputs. It is written after the output has its
name. If a run ends in between, the next one makes the output again and recognizes it by its content. An unreadable
record is ignored.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, replace
from io import FileIO
from pathlib import Path
from typing import Any

from reducelower.errors import UnreadableModelError
from reducelower.files import LoadedModel
from reducelower.files.pending import write_whole
from reducelower.files.writing import is_there
from reducelower.options import Settings
from reducelower.outcome import Outcome
from reducelower.pipeline.conversion import convert
from reducelower.pipeline.task import Task
from reducelower.versions import versions_of

__all__ = ["convert_unless_done"]

_WITHOUT_CONSEQUENCE = ("overwrite", "in_place", "details", "cache")


@dataclass(frozen=True)
class _Record:
    """The record of one output.

    Attributes:
        origin: SHA-256 of everything that the output depends on, see `_origin_of`; empty if there was something to say
            about the output, which the next run makes again in order to say it.
        sha256: SHA-256 of the output.
        external: see `_stamp`, for each external data file of the source, by location.
        brings: whether that data was copied beside the output. Only such data may be replaced by a later run.
    """

    origin: str
    sha256: str
    external: Mapping[str, Sequence[int]]
    brings: bool

    def is_current(self, origin: str, source: Path, output: Path) -> bool:
        """Whether the output would be the same now, with the external data in the folders of source and output."""
        folders = (source, output) if self.brings else (source,)
        stamps = [(folder / name, stamp) for folder in folders for name, stamp in self.external.items()]
        return self.origin == origin and all(_stamp(path) == stamp for path, stamp in stamps)


def convert_unless_done(task: Task, settings: Settings) -> Outcome:
    """Convert one local model, unless its output exists and was made from the same model and settings.

    An output recorded by an earlier run is replaced if the model or the settings have changed. An output without a
    record is not replaced, unless this run writes the same bytes or the settings allow overwriting. The same holds for
    external data next to it.
    """
    origin, earlier, digest = _origin_of(task.source, settings), _read(Path(task.record)), _sha256(Path(task.output))
    folder = Path(os.path.realpath(task.output)).parent
    is_ours = earlier is not None and earlier.sha256 == digest
    if earlier is not None and is_ours and earlier.is_current(origin, Path(task.source).parent, folder):
        return Outcome(task.source, "kept", task.output)
    records: list[_Record] = []

    def record(descriptor: int, source: LoadedModel) -> None:
        stamps = {file.location: _stamp(file.path) for file in source.external}
        new = _Record(origin, _sha256(descriptor), stamps, settings.external_data != "keep")
        records.append(new)
        if settings.overwrite:
            return
        if digest and not is_ours and new.sha256 != digest:
            raise _unrecorded(task.output)
        copied = earlier.external if earlier is not None and earlier.brings else {}
        for file in source.external if new.brings else ():
            place = folder / file.location
            if place.exists() and not is_there(file, place) and _stamp(place) != copied.get(file.location):
                raise _unrecorded(f"{place}, the external data,")

    # Overwriting is decided in `record`, when the new output is complete.
    outcome = convert(task, replace(settings, overwrite=True), on_complete=record)
    if outcome.output:
        new = replace(records[0], origin="") if outcome.remarks else records[0]
        write_whole(Path(task.record), json.dumps(asdict(new), indent=1, sort_keys=True) + "\n")
    return outcome


def _unrecorded(what: str) -> UnreadableModelError:
    return UnreadableModelError(f"{what} exists already, and no run has recorded it; --force replaces it")


def _read(place: Path) -> _Record | None:
    """Read a record; None if it does not exist or is invalid."""
    try:
        stored = json.loads(place.read_bytes())
        return _Record(**{**stored, "external": dict(stored["external"])})
    except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _origin_of(source: str, settings: Settings) -> str:
    """SHA-256 of everything that determines an output's bytes: the model file without external data, all settings that
    matter with the content of files they name, and the versions of reducelower and its libraries."""
    entries = {name: value for name, value in asdict(settings).items() if name not in _WITHOUT_CONSEQUENCE}
    entries["files"] = [_tree(str(path)) for path in (settings.rules, settings.test_data, *settings.inputs.values())]
    whole = [_sha256(Path(source)), entries, dict(versions_of("onnx", "onnxruntime"))]
    return hashlib.sha256(json.dumps(whole, sort_keys=True, default=_plain).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """A JSON form, equal for equal settings, of a setting that JSON cannot express."""
    return sorted(map(repr, value)) if isinstance(value, AbstractSet) else repr(value)


def _tree(name: str) -> list[tuple[str, str]]:
    """Every file below a path with its SHA-256; empty if the path does not exist."""
    root = Path(name)
    if not name or not root.exists():
        return []
    paths = sorted(path for path in root.rglob("*") if path.is_file()) if root.is_dir() else [root]
    return [(os.path.relpath(path, root), _sha256(path)) for path in paths]


def _sha256(file: Path | int) -> str:
    """The SHA-256 of a file, given as a path or descriptor; empty if the path is not a file."""
    if isinstance(file, Path) and not file.is_file():
        return ""
    with FileIO(file, closefd=isinstance(file, Path)) as content:
        content.seek(0)
        return hashlib.file_digest(content, "sha256").hexdigest()


def _stamp(path: Path) -> list[int]:
    """Size and modification time (nanoseconds) of a file with weights, which are not read; empty without the file."""
    return [path.stat().st_size, path.stat().st_mtime_ns] if path.is_file() else []
