"""Read a model file: what it holds, and where its external data lies."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from onnx import ModelProto

from reducelower.errors import UnreadableModelError
from reducelower.files.external import ExternalFile, external_files
from reducelower.files.formats import LARGEST_MESSAGE, parse

__all__ = ["LoadedModel", "read_model"]


@dataclass(frozen=True)
class LoadedModel:
    """A model together with the files it came from.

    Attributes:
        path: the file as the user named it.
        model: the model; external tensors hold their location, never their data.
        external: the files that tensors lie in, all of them inside the model's folder.
    """

    path: Path
    model: ModelProto
    external: tuple[ExternalFile, ...] = ()

    @property
    def folder(self) -> Path:
        """The folder that external data locations start from."""
        return Path(os.path.abspath(self.path)).parent  # noqa: PTH100 (resolve() would follow the link)


def read_model(path: str | os.PathLike[str]) -> LoadedModel:
    """Read a model in any format that `onnx.load` knows by extension, without its external data.

    Raises:
        UnreadableModelError: there is no such file, it is no ONNX model, or its external data is missing or lies
            where it should not. The message is one sentence: which file, what is wrong, what to do.
    """
    path = Path(path)
    data = _content(path)
    model = parse(data, path)
    # Every external tensor names its location under this key, so most models need no walk over their tensors.
    external = external_files(model, path) if b"location" in data else ()
    return LoadedModel(path, model, external)


def _content(path: Path) -> bytes:
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
        return path.read_bytes()
    except FileNotFoundError:
        raise UnreadableModelError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        if isinstance(error, UnreadableModelError):
            raise
        raise UnreadableModelError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
