"""Records of what outputs were made from, so that an interrupted run can be resumed.

A record is a small JSON file per output, in a folder next to the outputs. On this machine it is on disk before its
output has its name, so a run can always tell its own outputs from others. A file that cannot be read counts as no
record.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from reducelower.batch.conversion import convert_here, failed
from reducelower.batch.task import OnStep, Task
from reducelower.errors import UnreadableModelError
from reducelower.files import LoadedModel
from reducelower.files.pending import write_whole
from reducelower.files.remote import is_url
from reducelower.files.writing import is_there
from reducelower.options import Settings
from reducelower.outcome import Outcome
from reducelower.versions import versions_of

__all__ = ["Record", "content_of", "convert_unless_done", "external_facts", "origin_of", "read_record", "write_record"]

_WITHOUT_CONSEQUENCE = ("overwrite", "in_place", "backup", "details")


@dataclass(frozen=True)
class Content:
    """The size of a file in bytes and its SHA-256."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Origin:
    """What an output was made from: equal origins give equal bytes.

    Attributes:
        source: SHA-256 of the model file, without external data.
        settings: SHA-256 of all settings that matter, with the content of files they name.
        tools: versions of reducelower and of the libraries it uses.
    """

    source: str
    settings: str
    tools: Mapping[str, str]


@dataclass(frozen=True)
class Record:
    """What is known about one output.

    Attributes:
        external: size and time of change (nanoseconds) of each file with external data of the source, by its location.
            Weights are not read to be converted, nor to be recorded.
        replaces: the content of an earlier output that this one replaces, in case the run ends before it does.
        brought: as `external`, what may lie beside the output because a run brought it there for this output or the one
            before. A later run may replace this data and no other.
    """

    origin: Origin
    output: Content
    external: Mapping[str, Sequence[int]]
    replaces: Content | None = None
    brought: Mapping[str, Sequence[Sequence[int]]] = field(default_factory=dict)


def origin_of(source: str, settings: Settings) -> Origin:
    """The origin of an output; the model file is read once, external data not at all."""
    told = {item.name: _plain(getattr(settings, item.name)) for item in fields(settings)}
    for name in _WITHOUT_CONSEQUENCE:
        del told[name]
    told["files"] = [_tree(str(path)) for path in (settings.rules, settings.test_data, *settings.inputs.values())]
    text = json.dumps(told, sort_keys=True)
    return Origin(_sha256(Path(source)), hashlib.sha256(text.encode()).hexdigest(), versions_of("onnx", "onnxruntime"))


def content_of(path: Path) -> Content | None:
    """The content of a local file; None if it does not exist."""
    try:
        return Content(path.stat().st_size, _sha256(path))
    except OSError:
        return None


def external_facts(folder: Path, locations: Sequence[str]) -> dict[str, list[int]]:
    """Size and modification time of files with external data; missing ones are left out."""
    found = {}
    for location in locations:
        path = folder / location
        if path.is_file():
            status = path.stat()
            found[location] = [status.st_size, status.st_mtime_ns]
    return found


def read_record(place: str) -> Record | None:
    """Read a record from a path or URL; None if it does not exist or is invalid."""
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
    """Write a record to a path or URL, completely or not at all."""
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
    """Every file below a path with its SHA-256; empty if the path does not exist."""
    root = Path(name)
    if not name or not root.exists():
        return []
    paths = sorted(path for path in root.rglob("*") if path.is_file()) if root.is_dir() else [root]
    return [(os.path.relpath(path, root), _sha256(path)) for path in paths]


def _plain(value: Any) -> Any:
    """A setting as JSON, equal for equal settings."""
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, AbstractSet):
        return sorted(map(repr, map(_plain, value)))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | None) else repr(value)


def convert_unless_done(task: Task, settings: Settings, *, on_step: OnStep | None = None) -> Outcome:
    """Convert one local model, unless its output exists and was made from the same model and settings.

    An output recorded by an earlier run is replaced if model or settings have changed since. An output without a record
    stays, unless it is equal to what this run writes, or the settings allow overwriting. The same holds for external
    data next to it.
    """
    try:
        return _convert_unless_done(task, settings, on_step)
    except Exception as error:
        return failed(task.source, error)


def _convert_unless_done(task: Task, settings: Settings, on_step: OnStep | None) -> Outcome:
    origin, earlier, found = origin_of(task.source, settings), read_record(task.record), content_of(Path(task.output))
    if (
        earlier is not None
        and (earlier.origin, earlier.output) == (origin, found)
        and _has_weights(task, earlier, settings)
    ):
        return Outcome(task.source, "kept", task.output)
    recorded = earlier is not None and found in (earlier.output, earlier.replaces)

    def record(descriptor: int, source: LoadedModel) -> None:
        made = _content_of_open_file(descriptor)
        if not (found is None or recorded or settings.overwrite or found == made):
            raise UnreadableModelError(f"{task.output} exists already, and no run has recorded it; --force replaces it")
        facts = external_facts(source.folder, [file.location for file in source.external])
        brought = _brought(task, settings, source, facts, earlier)
        replaces = found if recorded and found != made else None
        write_record(Record(origin, made, facts, replaces, brought), task.record)

    # Whether an output, and data beside it, may be replaced is known once the replacement is.
    allowed = replace(settings, overwrite=True)
    return convert_here(task, allowed, on_step=on_step, on_complete=record)


def _has_weights(task: Task, earlier: Record, settings: Settings) -> bool:
    """Whether external data is as recorded, next to the model and next to the output."""
    locations = list(earlier.external)
    if external_facts(Path(task.source).parent, locations) != dict(earlier.external):
        return False
    if settings.external_data == "keep":
        return True
    there = external_facts(Path(os.path.realpath(task.output)).parent, locations)
    # Data that was not replaced, because the run ended before that.
    old = any(facts != earlier.external[at] and facts in earlier.brought.get(at, ()) for at, facts in there.items())
    return len(there) == len(locations) and not old


def _brought(
    task: Task, settings: Settings, source: LoadedModel, facts: Mapping[str, list[int]], earlier: Record | None
) -> dict[str, list[list[int]]]:
    """What this run will put next to the output, and what is there now, in case the run ends before that."""
    brings = settings.external_data != "keep"
    brought: dict[str, list[list[int]]] = {}
    beside = Path(os.path.realpath(task.output)).parent
    for file in source.external:
        location, place = file.location, beside / file.location
        there = external_facts(beside, [location]).get(location)
        recorded = there is not None and earlier is not None and there in earlier.brought.get(location, ())
        if brings and place.exists() and not (recorded or settings.overwrite or is_there(file, place)):
            raise UnreadableModelError(
                f"{place}, the external data, exists already, and no run has recorded it; --force replaces it"
            )
        brought[location] = [facts[location]] if brings and location in facts else []
        if there is not None and recorded and there not in brought[location]:
            brought[location].append(there)
    return brought


def _content_of_open_file(descriptor: int) -> Content:
    with open(descriptor, "rb", buffering=0, closefd=False) as file:
        file.seek(0)
        return Content(os.fstat(descriptor).st_size, hashlib.file_digest(file, "sha256").hexdigest())
