"""Digests of external data, so that a comparison uses the values and not their location."""

from __future__ import annotations

from pathlib import Path

from onnx import ModelProto

from reducelower.files.external import DataFolder, external_tensors
from reducelower.verification.regions.numbering import DIGEST, brief
from reducelower.verification.running.weights import mapped

__all__ = ["digested"]


def digested(model: ModelProto, folder: Path) -> None:
    """Replace the location of every external tensor by a digest of its content."""
    data_folder = DataFolder.of(folder)
    for tensor in external_tensors(model):
        digest = brief(mapped(tensor, data_folder))
        del tensor.external_data[:]
        tensor.external_data.add(key=DIGEST, value=digest.hex())
