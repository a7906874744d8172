"""Read a model file: what it holds, and where its external data lies."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING

from onnx import ModelProto

from reducelower.errors import UnreadableModelError
from reducelower.files.external import ExternalFile, external_files
from reducelower.files.formats import LARGEST_MESSAGE, is_binary, parse
from reducelower.model.document import Document
from reducelower.model.wire import MalformedError

if TYPE_CHECKING:
    from reducelower.files.inline import InlineWeights

__all__ = ["LoadedModel", "read_model"]

_WORTH_LIFTING = 1 << 24
"""Bytes from which on weights stay in a model's file; below, reading everything takes no time."""


@dataclass(frozen=True)
class LoadedModel:
    """A model together with the files it came from.

    Attributes:
        path: the file as the user named it.
        document: the model; tensors with data in other files, and large ones in its own, hold where that is.
        external: the files that tensors lie in, all of them inside the model's folder.
        inline: the weights that stayed in the model's own file, where any did.
    """

    path: Path
    document: Document
    external: tuple[ExternalFile, ...] = ()
    inline: InlineWeights | None = None

    @property
    def model(self) -> ModelProto:
        """The model as a message."""
        return self.document.message

    @property
    def folder(self) -> Path:
        """The folder that external data locations, and references to the model's own file, start from."""
        if self.inline is not None and not self.external:
            return self.inline.path.parent
        return Path(os.path.abspath(self.path)).parent  # noqa: PTH100 (resolve() would follow the link)

    @property
    def is_partial(self) -> bool:
        """Whether tensors of the model have their data elsewhere."""
        return bool(self.external) or self.inline is not None


def read_model(path: str | os.PathLike[str]) -> LoadedModel:
    """Read a model in any format that `onnx.load` knows by extension, without its external data.

    Raises:
        UnreadableModelError: there is no such file, it is no ONNX model, or its external data is missing or lies
            where it should not. The message is one sentence: which file, what is wrong, what to do.
    """
    path = Path(path)
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise UnreadableModelError(f"{path} is a folder; give a model file inside it")
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableModelError(f"{path} is not a regular file")
        if status.st_size > LARGEST_MESSAGE:
            raise UnreadableModelError(
                f"{path} is over 2 GiB, protobuf's limit; store its weights as external data first"
            )
        if status.st_size >= _WORTH_LIFTING and is_binary(path):
            return _read_without_weights(path)
        return _read_whole(path)
    except FileNotFoundError:
        raise UnreadableModelError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        if isinstance(error, UnreadableModelError):
            raise
        raise UnreadableModelError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def _read_whole(path: Path) -> LoadedModel:
    data = path.read_bytes()
    document = parse(data, path)
    # Every external tensor names its location under this key, so most models need no walk over their tensors.
    return LoadedModel(path, document, external_files(document.message, path) if b"location" in data else ())


def _read_without_weights(path: Path) -> LoadedModel:
    """Read a model and leave its large tensors in the file."""
    from reducelower.files.inline import InlineWeights, lift  # most models are small and need none of this

    inline = InlineWeights(Path(os.path.realpath(path)), FileIO(path))
    try:
        data = lift(inline)
    except MalformedError:
        return _read_whole(path)
    if not inline.weights:
        return _read_whole(path)
    # Without the bytes: what is written is spliced into what protobuf writes, whose order is known.
    document = Document.of_message(parse(data, path).message)
    external = external_files(document.message, path, inline.owns)
    if external and path.is_symlink():
        # One folder cannot be both the one of the link, for external data, and the one of the file.
        return _read_whole(path)
    return LoadedModel(path, document, external, inline)
