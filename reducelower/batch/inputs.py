"""Find the models that the arguments name, and decide where their outputs go."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from reducelower.errors import SettingError, UnreadableModelError
from reducelower.files import ExternalFile, read_model
from reducelower.files.formats import WRITTEN
from reducelower.files.writing import is_there
from reducelower.pipeline.task import Task

__all__ = ["Input", "find_models", "plan_outputs"]

_RECORDS = ".reducelower"
"""Folder next to the outputs with the records that a resumed run uses."""


@dataclass(frozen=True)
class Input:
    """A model file, and its path relative to the folder or pattern that found it."""

    path: str
    relative: str
    found: bool = False


def find_models(arguments: Iterable[str], *, skip: str = "", exclude: Sequence[str] = ()) -> list[Input]:
    """Find the model files that arguments name: files, models in folders, and glob patterns.

    Folders are searched at every depth for ``*.onnx``; in patterns, ``**`` is any depth. Files in the folder `skip`
    (the output folder) are left out, and files whose path, relative path or name matches a pattern in `exclude`; there,
    ``*`` matches any characters, including ``/``.

    Raises:
        SettingError: a folder or pattern has no model.
    """
    found: dict[str, Input] = {}
    for argument in arguments:
        every = _models(argument)
        outside = [model for model in every if not skip or not model.found or _is_outside(skip, model.path)]
        models = [model for model in outside if not _is_excluded(model, exclude)]
        if not models:
            raise SettingError(_why_none(argument, every, outside))
        for model in models:
            found.setdefault(_real(model.path), model)
    return list(found.values())


def _why_none(argument: str, every: Sequence[Input], outside: Sequence[Input]) -> str:
    if outside:
        return f"nothing is left of {argument} without what --exclude names"
    if every:
        return f"all models of {argument} lie in the folder of the outputs; give another one"
    return f"nothing matches {argument}" if _is_pattern(argument) else f"the folder {argument} holds no .onnx file"


def _is_outside(folder: str, path: str) -> bool:
    """Whether a file, or the target of a link, lies outside a folder."""
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _real(path: str) -> str:
    """A path with links in its folder resolved, since what '..' means behind a link only the link says.

    The file's own link stays: it may have other data beside it.
    """
    return str(Path(os.path.realpath(Path(path).parent), Path(path).name))


def _is_excluded(model: Input, patterns: Sequence[str]) -> bool:
    names = (model.path, model.relative, model.path.rpartition("/")[2])
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in names)


def plan_outputs(
    models: Sequence[Input],
    *,
    output: str | None,
    output_dir: str | None,
    in_place: bool,
    resume: bool = False,
    external_data: str = "copy",
) -> list[Task]:
    """Decide where each model's output goes.

    With `resume`, records are kept in the output folder, and those of an earlier run are used.

    Raises:
        SettingError: no place is given, or several, or two models or their external data would go to one place.
    """
    tasks = _tasks(models, output, output_dir, in_place, resume)
    if external_data != "keep" and _may_share_data(models, tasks):
        _refuse_shared_data(tasks)
    return tasks


def _tasks(
    models: Sequence[Input], output: str | None, output_dir: str | None, in_place: bool, resume: bool
) -> list[Task]:
    if resume and output_dir is None:
        raise SettingError("--resume keeps records beside many outputs; give --output-dir DIR")
    places = (output is not None) + (output_dir is not None) + in_place
    if places != 1:
        say = "give only" if places else "say where the output goes with"
        raise SettingError(f"{say} one of -o OUT, --output-dir DIR and --in-place")
    if output is not None:
        if len(models) > 1 or models[0].found:
            raise SettingError("-o takes one model; many models need --output-dir DIR")
        _check_name(output, models[0].path)
        return [Task(models[0].path, output)]
    if output_dir is None:
        return [Task(model.path, model.path) for model in models]
    if os.path.isfile(output_dir):  # noqa: PTH113 (writing reports a name that is too long for Path)
        raise SettingError(f"{output_dir} is a file, and --output-dir names a folder")
    tasks: dict[str, Task] = {}
    for model in models:
        place = str(Path(output_dir) / model.relative)
        if place in tasks:
            raise SettingError(
                f"{tasks[place].source} and {model.path} would both be written to {place}; give the folder they share"
            )
        record = str(Path(output_dir, _RECORDS, f"{model.relative}.json")) if resume else ""
        tasks[place] = Task(model.path, place, record=record)
    return list(tasks.values())


def _check_name(output: str, source: str) -> None:
    """Refuse the name of a folder, and an extension that neither models nor the input have."""
    if output.endswith(("/", os.sep)):
        raise SettingError(f"{output} is the name of a folder; name a file in it, or give --output-dir {output}")
    suffix = Path(output).suffix
    if suffix and suffix != Path(source).suffix and suffix.lower() not in WRITTEN:
        known = ", ".join(WRITTEN)
        raise SettingError(f"{output}: no format of models has the extension {suffix}; a model ends in one of {known}")


def _may_share_data(models: Sequence[Input], tasks: Sequence[Task]) -> bool:
    """Whether the external data of different models could go to one place, without reading a model.

    If all models come from one folder and no output is a link, then outputs and their data are arranged like the
    models.
    """
    if len(tasks) < 2:
        return False
    found_from = {Path(model.path).parents[model.relative.count("/")] for model in models}
    roots = {os.path.abspath(folder) for folder in found_from}  # noqa: PTH100 (resolve() would follow links)
    return len(roots) > 1 or any(Path(task.output).is_symlink() for task in tasks)


def _refuse_shared_data(tasks: Iterable[Task]) -> None:
    """Refuse to write different external data to one place: one model would read the data of the other."""
    owners: dict[str, tuple[str, ExternalFile | None]] = {
        os.path.realpath(task.output): (task.source, None) for task in tasks
    }
    for task in tasks:
        try:
            files = read_model(task.source).external
        except UnreadableModelError:
            continue  # the conversion will report it
        for file in files:
            place = os.path.realpath(Path(os.path.realpath(task.output)).parent / file.location)
            other, data = owners.setdefault(place, (task.source, file))
            if other != task.source and (data is None or not is_there(file, data.path)):
                conflict = "both bring external data" if data is not None else "write an output and bring external data"
                raise SettingError(
                    f"{other} and {task.source} would {conflict} to {place}; give each an output folder of its own"
                )


def _models(argument: str) -> list[Input]:
    path = Path(argument)
    if path.is_dir():
        # In some repositories, a folder has the name of the model in it.
        models = (model for model in sorted(path.rglob("*.onnx")) if not model.is_dir())
        return [Input(str(model), model.relative_to(path).as_posix(), True) for model in models]
    if not os.path.lexists(path) and _is_pattern(argument):
        return _matches(argument)
    return [Input(str(path), path.name)]


def _matches(pattern: str) -> list[Input]:
    parts = Path(pattern).parts
    wild = next(number for number, part in enumerate(parts) if _is_pattern(part))
    fixed = Path(*parts[:wild])
    matches = sorted(fixed.glob(str(Path(*parts[wild:]))))
    return [Input(str(match), match.relative_to(fixed).as_posix(), True) for match in matches if match.is_file()]


def _is_pattern(name: str) -> bool:
    """Whether a name has wildcards."""
    return any(letter in name for letter in "*?[")
