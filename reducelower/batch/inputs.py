"""Which models are meant, and where their outputs go."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from reducelower.batch.settings import Task
from reducelower.failures import SettingError

__all__ = ["Input", "find_models", "plan_outputs"]

_WILD = "*?["


@dataclass(frozen=True)
class Input:
    """A model file, and its path relative to the folder or pattern that it was found by."""

    path: Path
    relative: Path
    found: bool = False


def find_models(arguments: Iterable[str], *, skip: str = "") -> list[Input]:
    """Find the model files that arguments name: files as they are, models in folders, and glob patterns.

    Args:
        arguments: files, folders (searched at every depth for ``*.onnx``) and patterns (``**`` is any depth).
        skip: folder to leave out, such as that of the outputs.

    Raises:
        SettingError: a folder or a pattern holds no model.
    """
    found: dict[Path, Input] = {}
    for argument in arguments:
        path = Path(argument)
        if path.is_dir():
            models = [Input(model, model.relative_to(path), True) for model in sorted(path.rglob("*.onnx"))]
            what = f"the folder {argument} holds no .onnx file"
        elif not os.path.lexists(path) and any(letter in argument for letter in _WILD):
            models = _matches(argument)
            what = f"nothing matches {argument}"
        else:
            models, what = [Input(path, Path(path.name))], ""
        models = [model for model in models if not (model.found and _inside(model.path, skip))]
        if not models:
            raise SettingError(what)
        for model in models:
            found.setdefault(model.path, model)
    return list(found.values())


def plan_outputs(models: Sequence[Input], *, output: str | None, output_dir: str | None, in_place: bool) -> list[Task]:
    """Say where each model's output goes.

    Raises:
        SettingError: there is no place, more than one, or one for two models.
    """
    if (output is not None) + (output_dir is not None) + in_place != 1:
        raise SettingError("say where the output goes with one of -o OUT, --output-dir DIR and --in-place")
    if output is not None:
        if len(models) > 1 or models[0].found:
            raise SettingError("-o takes one model; many models need --output-dir DIR")
        return [Task(str(models[0].path), output)]
    if output_dir is None:
        return [Task(str(model.path), str(model.path)) for model in models]
    places: dict[str, str] = {}
    for model in models:
        place = str(Path(output_dir) / model.relative)
        if place in places:
            raise SettingError(
                f"{places[place]} and {model.path} would both be written to {place}; give the folder they share"
            )
        places[place] = str(model.path)
    return [Task(source, place, make_folder=True) for place, source in places.items()]


def _matches(pattern: str) -> list[Input]:
    parts = Path(pattern).parts
    wild = next(number for number, part in enumerate(parts) if any(letter in part for letter in _WILD))
    fixed = Path(*parts[:wild])
    matches = sorted(fixed.glob(str(Path(*parts[wild:]))))
    return [Input(match, match.relative_to(fixed), True) for match in matches if match.is_file()]


def _inside(path: Path, folder: str) -> bool:
    return bool(folder) and Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
