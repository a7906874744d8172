"""Read a model file and locate its external data."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from onnx import ModelProto

from reducelower.errors import UnreadableModelError
from reducelower.files.external import ExternalFile, external_files
from reducelower.files.formats import LARGEST_MESSAGE, parse
from reducelower.files.inline import WORTH_LIFTING, InlineWeights, lift
from reducelower.model.document import Document

__all__ = ["LoadedModel", "read_model"]


@dataclass(frozen=True)
class LoadedModel:
    """A model with the files it came from.

    Attributes:
        path: the file as the user named it.
        document: the model; tensors with external data, and large ones in the model's file, are references.
        external: the files with external data, all inside the model's folder.
        inline: the weights that stayed in the model's own file, if any.
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
    def place(self) -> Path:
        """The file whose folder has the external data and the file of the inline weights."""
        return self.path if self.inline is None or self.external else self.inline.path

    @property
    def data_place(self) -> Path | None:
        """The same, if tensors have their data elsewhere; otherwise None."""
        return self.place if self.external or self.inline is not None else None


def read_model(path: str | os.PathLike[str], *, whole: bool = False) -> LoadedModel:
    """Read a model without its external data.

    Large weights in the file itself stay there, unless `whole` is set.

    Raises:
        UnreadableModelError: the file does not exist, is not an ONNX model, or its external data is missing or outside
            the folder. The message is one sentence: which file, what is wrong, what to do.
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
        is_large = not whole and status.st_size >= WORTH_LIFTING
        return (_read_without_weights(path) if is_large else None) or _read_whole(path)
    except UnreadableModelError:
        raise
    except FileNotFoundError:
        raise UnreadableModelError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise UnreadableModelError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def _read_whole(path: Path) -> LoadedModel:
    data = path.read_bytes()
    document = parse(data, path)
    # Every external tensor names its location under this key, so most models need no walk over their tensors.
    return LoadedModel(path, document, external_files(document.message, path) if b"location" in data else ())


def _read_without_weights(path: Path) -> LoadedModel | None:
    """Read a model but leave its large tensors in the file; None if there are none that can stay."""
    inline = InlineWeights(FileIO(path), Path(os.path.realpath(path)))
    data = lift(inline)
    if data is None:
        return None
    # Drop the bytes: splicing needs protobuf's own serialization, whose field order is known.
    document = Document(parse(data, path).message)
    external = external_files(document.message, path, inline.weight_of)
    # External data is in the folder of the link, inline weights in that of the file: there is no common folder.
    return None if external and path.is_symlink() else LoadedModel(path, document, external, inline)
