"""Values for a model's inputs, from the files that the command line names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
from onnx import ModelProto

__all__ = ["read_inputs"]


def read_inputs(files: Mapping[str, str], model: ModelProto) -> dict[str, Any]:
    """Read arrays for a model's inputs.

    Args:
        files: ``.npy`` or serialized tensor files, by name of the input.
        model: the model that they are for.

    Raises:
        UnreadableModelError: a file holds no array.
        click.UsageError: the model has no input of a name.
    """
    if not files:
        return {}
    from reducelower.verification import load_array

    names = [value.name for value in model.graph.input]
    for name in files:
        if name not in names:
            from reducelower.commandline.suggestions import did_you_mean

            raise click.UsageError(f"there is no input {name!r}{did_you_mean(name, names)}")
    return {name: load_array(path) for name, path in files.items()}
