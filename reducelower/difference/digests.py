"""External data by its content, so that values count in a comparison and not where they lie."""

from __future__ import annotations

from pathlib import Path

from onnx import ModelProto

from reducelower.files.external import DataFolder, external_tensors
from reducelower.verification.regions.numbering import DIGEST, brief
from reducelower.verification.running.weights import mapped

__all__ = ["digested"]


def digested(model: ModelProto, folder: Path) -> None:
    """Let every tensor with data in a file of the folder say what is in it, not where."""
    around = DataFolder.of(folder)
    for tensor in external_tensors(model):
        digest = brief(mapped(tensor, around))
        del tensor.external_data[:]
        tensor.external_data.add(key=DIGEST, value=digest.hex())
