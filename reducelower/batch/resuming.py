"""Converts one model unless an earlier run has done so, and records what the output came of."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from reducelower.batch.conversion import convert_here, failed
from reducelower.batch.records import Content, Record, content_of, external_facts, origin_of, read_record, write_record
from reducelower.batch.task import OnStep, Task
from reducelower.errors import UnreadableModelError
from reducelower.files import LoadedModel
from reducelower.files.writing import is_there
from reducelower.options import Settings
from reducelower.outcome import Outcome

__all__ = ["convert_unless_done"]


def convert_unless_done(task: Task, settings: Settings, *, on_step: OnStep | None = None) -> Outcome:
    """Convert one model of this machine, unless its output is there and came of the same model and settings.

    An output that an earlier run recorded is replaced when model or settings have changed since. One that nobody
    recorded stays, unless it holds what this run would write, or the settings allow to overwrite. The same is true of
    external data beside it.
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
    """Whether external data is as it was recorded, at the model and beside the output."""
    locations = list(earlier.external)
    if external_facts(Path(task.source).parent, locations) != dict(earlier.external):
        return False
    if settings.external_data == "keep":
        return True
    there = external_facts(Path(os.path.realpath(task.output)).parent, locations)
    # What was to be replaced and was not: the run ended before that.
    old = any(facts != earlier.external[at] and facts in earlier.brought.get(at, ()) for at, facts in there.items())
    return len(there) == len(locations) and not old


def _brought(
    task: Task, settings: Settings, source: LoadedModel, facts: Mapping[str, list[int]], earlier: Record | None
) -> dict[str, list[list[int]]]:
    """What will lie beside the output for its sake; with it what lies there now, in case the run ends before that.

    Raises:
        UnreadableModelError: something else is in the way.
    """
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
