"""Checks values of inputs against what a model declares: those that a user gives, and those its source ran on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import ModelProto

from reducelower.model.schemas import element_type_name
from reducelower.model.text import did_you_mean
from reducelower.numerics.measure import element_type_of
from reducelower.verification.inputs.made import free_sizes, input_specs, tensor_dims

__all__ = ["check_given", "refused_input"]


def check_given(model: ModelProto, inputs: Mapping[str, Any], dims: Mapping[str, int]) -> None:
    """Find values that do not fit their inputs.

    Args:
        model: the model.
        inputs: values by input name.
        dims: sizes of symbolic dimensions, by symbol.

    Raises:
        ValueError: there is no input or no symbolic dimension of a name, or a value has another element type or
            shape than its input declares.
    """
    declared = {value.name: value.type for value in model.graph.input}
    for name in inputs:
        if name not in declared:
            raise ValueError(f"the model has no input called {name!r}{did_you_mean(name, list(declared))}")
    free = free_sizes(model) if dims else []
    for symbol in dims:
        if symbol not in free:
            raise ValueError(f"the model's inputs have no symbolic dimension called {symbol!r}")
    bound: dict[str, tuple[int, str]] = {symbol: (size, "--dim") for symbol, size in dims.items()}
    for name, value in inputs.items():
        kind = declared[name]
        if kind.HasField("tensor_type") and isinstance(value, np.ndarray):
            _check(name, value, kind.tensor_type.elem_type, tensor_dims(kind.tensor_type), bound)


def _check(
    name: str,
    value: np.ndarray[Any, Any],
    element_type: int,
    dims: tuple[int | str | None, ...] | None,
    bound: dict[str, tuple[int, str]],
) -> None:
    wanted, found = element_type_name(element_type), element_type_of(value)
    if element_type and wanted != found:
        raise ValueError(f"input {name!r} takes {wanted}, and {found} was given; convert the array")
    if dims is None:
        return
    shape = value.shape
    text = _shape_text(dims)
    if len(shape) != len(dims):
        raise ValueError(f"input {name!r} has shape {text}, and an array of shape {list(shape)} was given")
    for dim, size in zip(dims, shape, strict=True):
        if isinstance(dim, int) and dim != size:
            raise ValueError(f"input {name!r} has shape {text}, and an array of shape {list(shape)} was given")
        if isinstance(dim, str):
            known, where = bound.setdefault(dim, (size, repr(name)))
            if known != size:
                raise ValueError(
                    f"input {name!r} has shape {text}, and an array of shape {list(shape)} was given, but {dim} is "
                    f"{known} by {where}"
                )


def refused_input(model: ModelProto, feeds: Mapping[str, Any]) -> str:
    """What a converted model declares otherwise, of inputs that its source ran on; empty where it takes all of them.

    What is declared wider than in the source takes as much. A source may declare more than it takes, so what counts is
    what it ran on. Names of sizes bind nothing: onnxruntime does not compare them.
    """
    for spec in input_specs(model)[0]:
        value = feeds.get(spec.name)
        if not isinstance(value, np.ndarray):
            continue
        kind, dims = element_type_name(spec.element_type), spec.dims
        fixed = [(at, dim) for at, dim in enumerate(dims or ()) if isinstance(dim, int) and dim >= 0]
        fits = dims is None or len(dims) == value.ndim
        if element_type_of(value) != kind or not fits or any(value.shape[at] != dim for at, dim in fixed):
            taken = f"{element_type_of(value)}{list(value.shape)}"
            declared = f"{kind}{'' if dims is None else _shape_text(dims)}"
            return f"the source takes {taken} for input {spec.name!r}, which the converted model declares as {declared}"
    return ""


def _shape_text(dims: tuple[int | str | None, ...]) -> str:
    return "[" + ", ".join(str(dim) if dim is not None else "?" for dim in dims) + "]"
