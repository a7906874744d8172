"""External data by its content, so that values count in a comparison and not where they lie."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import IO

from onnx import ModelProto

from reducelower.files.external import external_tensors
from reducelower.verification.regions.numbering import DIGEST, brief

__all__ = ["digested"]

_BLOCK = 1 << 20


def digested(model: ModelProto, folder: Path) -> None:
    """Let every tensor with data in a file of the folder say what is in it, not where."""
    for tensor in external_tensors(model):
        entries = {item.key: item.value for item in tensor.external_data}
        with (folder / entries["location"]).open("rb") as file:
            file.seek(int(entries.get("offset", 0)))
            digest = _digest_of(file, int(entries.get("length", -1)))
        del tensor.external_data[:]
        tensor.external_data.add(key=DIGEST, value=digest.hex())


def _digest_of(file: IO[bytes], length: int) -> bytes:
    """What `brief` gives for the next bytes of a file; all that are left where the length is negative."""
    block = file.read(_BLOCK if length < 0 else min(_BLOCK, length))
    if len(block) < _BLOCK:
        return brief(block)
    digest, left = hashlib.blake2b(digest_size=16), length
    while block:
        digest.update(block)
        left -= len(block) if left >= 0 else 0
        block = file.read(_BLOCK if left < 0 else min(_BLOCK, left))
    return digest.digest()
