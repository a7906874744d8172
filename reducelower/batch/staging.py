"""Convert and check models behind URLs, on local copies."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from reducelower.batch.records import (
    Record,
    convert_unless_done,
    external_facts,
    origin_of,
    read_record,
    write_record,
)
from reducelower.errors import UnreadableModelError
from reducelower.failures import DONE
from reducelower.files import read_model
from reducelower.files.remote import beside, fetch_model, holds_the_same, is_url, put, remote_size
from reducelower.options import Settings
from reducelower.outcome import Outcome
from reducelower.pipeline.conversion import convert_here, failed
from reducelower.pipeline.task import OnStep, Task

__all__ = ["at_hand", "convert_staged", "renamed"]


@contextmanager
def at_hand(name: str) -> Iterator[str]:
    """The local path of a model: its own, or that of a temporary copy.

    Raises:
        UnreadableModelError: it cannot be fetched.
    """
    if not is_url(name):
        yield name
        return
    with TemporaryDirectory(prefix="reducelower-") as folder:
        try:
            yield fetch_model(name, Path(folder))
        except UnreadableModelError as error:
            copy = str(Path(folder) / PurePosixPath(name).name)
            raise UnreadableModelError(*renamed([str(error)], copy, name)) from None


def renamed(sentences: Iterable[str], copy: str, name: str) -> tuple[str, ...]:
    """Sentences about a copy, rewritten to name the original."""
    if copy == name:
        return tuple(sentences)
    folder = f"{Path(copy).parent}{os.sep}"
    return tuple(sentence.replace(copy, name).replace(folder, beside(name, "")) for sentence in sentences)


def convert_staged(task: Task, settings: Settings, *, on_step: OnStep | None = None) -> Outcome:
    """Convert one model whose source or output is a URL; errors are in the outcome."""
    try:
        with at_hand(task.source) as source:
            if is_url(task.output):
                outcome = _convert_to_url(task, source, settings, on_step)
            else:
                convert = convert_unless_done if task.record else convert_here
                outcome = convert(replace(task, source=source), settings, on_step=on_step)
            return replace(outcome, source=task.source, problems=renamed(outcome.problems, source, task.source))
    except Exception as error:
        return failed(task.source, error)


def _convert_to_url(task: Task, source: str, settings: Settings, on_step: OnStep | None) -> Outcome:
    size = remote_size(task.output)
    earlier = read_record(task.record) if task.record else None
    origin = origin_of(source, settings) if task.record else ""
    # What is behind a URL is not read again as long as its size is right.
    recorded = earlier is not None and earlier.size == size
    if earlier is not None and recorded and earlier.origin == origin and _has_weights(source, earlier, task, settings):
        return Outcome(task.source, "kept", task.output)
    replaceable = recorded or settings.overwrite or (settings.in_place and task.output == task.source)
    occupied = UnreadableModelError(f"{task.output} exists already; --force replaces it")
    if size is not None and not replaceable and not task.record:
        raise occupied
    with TemporaryDirectory(prefix="reducelower-") as folder:
        made = Path(folder) / PurePosixPath(task.output).name
        outcome = convert_here(Task(source, str(made)), replace(settings, in_place=False), on_step=on_step)
        if outcome.status != DONE:
            return replace(outcome, problems=renamed(outcome.problems, str(made), task.output))
        # A run that ended between output and record left what this one makes.
        if size is not None and not replaceable and not holds_the_same(task.output, made):
            raise occupied
        if settings.external_data != "keep":
            _put_beside(made, task.output, earlier, overwrite=settings.overwrite)
        put(made, task.output)
        if task.record:
            loaded = read_model(source)
            facts = external_facts(loaded.folder, [file.location for file in loaded.external])
            write_record(Record.of(origin, made, facts, settings), task.record)
    return replace(outcome, output=task.output)


def _has_weights(source: str, earlier: Record, task: Task, settings: Settings) -> bool:
    """Whether external data is as recorded, next to the model and next to the output."""
    if external_facts(Path(source).parent, earlier.external) != earlier.external:
        return False
    return settings.external_data == "keep" or all(
        remote_size(beside(task.output, location)) is not None for location in earlier.external
    )


def _put_beside(made: Path, output: str, earlier: Record | None, *, overwrite: bool) -> None:
    """Upload the external data of an output, if nothing is in the way.

    Data that an earlier run put there may be replaced; only its size is checked.
    """
    missing: dict[str, Path] = {}
    for file in read_model(made).external:
        place = beside(output, file.location)
        if holds_the_same(place, file.path):
            continue
        size = remote_size(place)
        known = earlier.external.get(file.location) if earlier is not None and earlier.brings else None
        recorded = known is not None and size == known[0]
        if size is not None and not (recorded or overwrite):
            raise UnreadableModelError(f"{place}, the external data, exists already; --force replaces it")
        missing[place] = file.path
    for place, path in missing.items():
        put(path, place)
