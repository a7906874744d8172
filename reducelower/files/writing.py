"""Write a model file completely or not at all, and its external data."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from reducelower.errors import UnreadableModelError
from reducelower.files.external import ExternalFile
from reducelower.files.formats import LARGEST_MESSAGE
from reducelower.files.inline import splice
from reducelower.files.pending import PendingFile
from reducelower.files.reading import LoadedModel
from reducelower.files.wire import Piece
from reducelower.model.document import Document

__all__ = ["is_there", "resolve_destination", "write_model"]


def resolve_destination(
    destination: str | os.PathLike[str], *, source: LoadedModel, overwrite: bool = False, in_place: bool = False
) -> Path:
    """Resolve the path of an output, following links, and check that it may be written. The folder need not exist.

    Raises:
        UnreadableModelError: a file must not or cannot be written there.
    """
    path = Path(destination)
    try:
        real = Path(os.path.realpath(path))
        status = real.stat() if os.path.lexists(real) else None
        places = [Path(os.path.realpath(place)) for place in _places(source.external, real.parent)]
        is_source = status is not None and real.samefile(source.path)
        hits_data = status is not None and any(real.samefile(file.path) for file in source.external)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UnreadableModelError(f"cannot write {path}: {reason}") from None
    if hits_data:
        raise UnreadableModelError(f"cannot write {path}: it holds the external data of {source.path}")
    if any(real in (place, *place.parents) for place in places):
        raise UnreadableModelError(
            f"cannot write {path}: the external data of {source.path} has that name; give the output another one"
        )
    if status is None:
        return real
    if stat.S_ISDIR(status.st_mode):
        raise UnreadableModelError(f"cannot write {path}: it is a folder; name a file in it")
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableModelError(f"cannot write {path}: it is not a regular file")
    if is_source and not in_place:
        raise UnreadableModelError(f"{path} is the input itself; --in-place replaces it")
    if not is_source and not overwrite:
        raise UnreadableModelError(f"{path} exists already; --force replaces it")
    return real


def write_model(
    document: Document,
    destination: str | os.PathLike[str],
    *,
    source: LoadedModel,
    overwrite: bool = False,
    in_place: bool = False,
    external_data: str = "copy",
    on_complete: Callable[[int, LoadedModel], object] | None = None,
    system: Any = os,
) -> Path:
    """Write a model and the external data that it needs, and create missing folders.

    All content is on disk before the output has its name. An error leaves files unchanged, with one exception: external
    data gets its names before the output, so if giving the output its name fails, the data is there, and complete.

    Args:
        document: the model.
        destination: the output file.
        source: where the model comes from.
        overwrite: replace an existing file, keeping its permissions.
        in_place: the output may be the input itself.
        external_data: ``copy`` the data to another folder, sharing blocks with the original if the file system can
            (onnx, from 1.21 on, refuses links), or ``keep``, which leaves this to the user.
        on_complete: called with the descriptor of the complete output, before it has a name, and the source; an
            exception leaves everything unchanged.
        system: has the calls of `os` that write.

    Returns:
        The path of the file, with links resolved.

    Raises:
        UnreadableModelError: it could not be written; the message is one sentence that says why.
    """
    real = resolve_destination(destination, source=source, overwrite=overwrite, in_place=in_place)
    try:
        real.parent.mkdir(parents=True, exist_ok=True)
        with PendingFile(real, system) as output:
            for piece in _content(document, destination, source):
                if isinstance(piece, bytes):
                    output.write(piece)
                elif source.inline is not None:
                    output.copy(source.inline.descriptor, piece.start, piece.stop)
            if source.inline is not None and not source.inline.is_unchanged():
                raise UnreadableModelError(f"{source.path} changed while it was converted; run again")
            if on_complete is not None:
                on_complete(output.descriptor, source)
            if external_data != "keep":
                _copy_data(_places(source.external, real.parent), overwrite, system)
            output.publish(overwrite=overwrite or in_place)
    except FileExistsError:  # another process was faster
        raise UnreadableModelError(f"{destination} exists already; --force replaces it") from None
    except OSError as error:
        raise UnreadableModelError(f"cannot write {destination}: {error.strerror or error}") from None
    return real


def _content(document: Document, destination: str | os.PathLike[str], source: LoadedModel) -> list[Piece]:
    """The pieces of the file: bytes, and weights to copy from the source file."""
    try:
        data = document.data
    except Exception:  # some versions of protobuf have no public EncodeError
        if document.message.ByteSize() <= LARGEST_MESSAGE:
            raise
        raise _too_large(destination) from None
    if source.inline is None:
        return [data]
    pieces = splice(data, source.inline)
    if sum(map(len, pieces)) > LARGEST_MESSAGE:
        raise _too_large(destination)
    return pieces


def _too_large(destination: str | os.PathLike[str]) -> UnreadableModelError:
    limit = "the model would be over 2 GiB, protobuf's limit; store its weights as external data first"
    return UnreadableModelError(f"cannot write {os.fspath(destination)}: {limit}")


def _places(files: Iterable[ExternalFile], folder: Path) -> dict[Path, ExternalFile]:
    """The paths of external data for an output in a folder, each once, even if spelled in several ways."""
    return {folder / file.location: file for file in files}


def _copy_data(places: Mapping[Path, ExternalFile], overwrite: bool, system: Any) -> None:
    """Copy external data to its places; every file is complete before the first gets its name."""
    with ExitStack() as stack:
        complete: list[PendingFile] = []
        for target, file in places.items():
            if is_there(file, target):
                continue
            if target.exists() and not overwrite:
                raise UnreadableModelError(f"{target}, the external data, exists already; --force replaces it")
            target.parent.mkdir(parents=True, exist_ok=True)
            pending = stack.enter_context(PendingFile(target, system))
            with file.path.open("rb", buffering=0) as origin:
                status = os.fstat(origin.fileno())
                pending.copy(origin.fileno(), 0, status.st_size)
            if os.utime in os.supports_fd:  # by size and time, a later run sees that it is there
                os.utime(pending.descriptor, ns=(status.st_atime_ns, status.st_mtime_ns))
            complete.append(pending)
        for pending in complete:
            pending.publish(overwrite=overwrite)


def is_there(file: ExternalFile, target: Path) -> bool:
    """Whether a file is in place: the same file, or a copy by an earlier run (same size and modification time)."""
    if not target.exists():
        return False
    if target.samefile(file.path):
        return True
    here, there = file.path.stat(), target.stat()
    return (here.st_size, here.st_mtime_ns) == (there.st_size, there.st_mtime_ns)
