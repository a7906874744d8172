"""Model files: checked when read, and written completely or not at all.

The engine only sees a `ModelProto`. Everything about bytes, formats, folders and external data is here.
"""

from __future__ import annotations

from reducelower.files.external import DataFolder, ExternalFile, external_tensors
from reducelower.files.reading import LoadedModel, read_model
from reducelower.files.writing import resolve_destination, write_model

__all__ = [
    "DataFolder",
    "ExternalFile",
    "LoadedModel",
    "external_tensors",
    "read_model",
    "resolve_destination",
    "write_model",
]
