"""Settings for named values and sizes: those in a configuration file apply only to models that have the names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from onnx import ModelProto

from reducelower.legalization.whole.set_sizes import names_of_sizes
from reducelower.model.document import Document
from reducelower.model.inference.declared import names_in
from reducelower.options import Settings

__all__ = ["for_model"]


def for_model(settings: Settings, document: Document) -> Settings:
    """The settings, without entries of a configuration file for names that the model lacks."""
    changes: dict[str, Any] = {}
    for field in settings.optional & _NAMES.keys():
        entries: Mapping[str, Any] = getattr(settings, field) or {}
        names = _NAMES[field](document.message) if entries else ()
        changes[field] = {name: value for name, value in entries.items() if name in names}
    return replace(settings, **changes)


def _symbols(model: ModelProto) -> Collection[str]:
    from reducelower.verification import free_sizes

    return free_sizes(model)


_NAMES: Mapping[str, Callable[[ModelProto], Collection[str]]] = {
    "dims": _symbols,
    "set_sizes": names_of_sizes,
    "element_types": names_in,
    "ranks": names_in,
}
"""By setting, the names that a model has. (Files with inputs are checked when they are read.)"""
