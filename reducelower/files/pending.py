"""A file that appears completely or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from typing import Any

__all__ = ["PendingFile", "sync_folder", "write_whole"]

_DESCRIPTORS = Path("/proc/self/fd")


class PendingFile(contextlib.AbstractContextManager["PendingFile"]):
    """A new file that gets its name only when it is complete.

    On Linux the file has no name until then, so nothing is left over however the process ends. Elsewhere it has a
    hidden temporary name. At its exit, a context discards an unpublished file. `system` has the calls of `os`.
    """

    def __init__(self, destination: Path, system: Any = os) -> None:
        self.destination = destination
        self._system = system
        self._temporary: Path | None = None
        self.descriptor = self._open()

    def publish(self, *, overwrite: bool) -> None:
        """Flush the file to disk, then give it its name.

        With `overwrite`, an existing file is replaced and its permissions are kept; otherwise FileExistsError is
        raised. If the disk fails, the old file is unchanged.
        """
        if not (overwrite and self.destination.exists()):
            self._system.fsync(self.descriptor)
            try:
                self._link(self.destination)
            except FileExistsError:
                if not overwrite:
                    raise
            else:
                self.close()
                return
        # The file exists, possibly because another process was faster.
        self._replace()
        self.close()

    def write(self, data: bytes) -> None:
        """Append to the file; a system call writes at most 2 GiB, and less if interrupted."""
        rest = memoryview(data)
        while rest:
            rest = rest[self._system.write(self.descriptor, rest) :]

    def close(self) -> None:
        """Close the file; it disappears if it has no name."""
        self._close_descriptor()
        if self._temporary is not None:
            with contextlib.suppress(OSError):
                self._temporary.unlink()
            self._temporary = None

    def __exit__(self, *error: object) -> None:
        """Discard the file unless it was published."""
        self.close()

    def _replace(self) -> None:
        self._take_permissions()
        self._system.fsync(self.descriptor)
        if self._temporary is None:
            temporary = self._temporary_name()
            self._link(temporary)
            self._temporary = temporary
        self._close_descriptor()
        self._system.replace(self._temporary, self.destination)
        self._temporary = None

    def _close_descriptor(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def _open(self) -> int:
        folder = self.destination.parent
        nameless = getattr(self._system, "O_TMPFILE", 0)
        if nameless and _DESCRIPTORS.is_dir():
            try:
                return os.open(folder, nameless | os.O_RDWR | os.O_CLOEXEC, 0o666)
            except OSError as error:
                if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOSYS):
                    raise
        temporary = self._temporary_name()
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(temporary, flags, 0o666)
        self._temporary = temporary
        return descriptor

    def _temporary_name(self) -> Path:
        return self.destination.parent / f".reducelower-{os.urandom(8).hex()}.tmp"

    def _link(self, name: Path) -> None:
        if self._temporary is None:
            # With any `src_dir_fd`, Python calls linkat, which follows the link under /proc.
            self._system.link(_DESCRIPTORS / str(self.descriptor), name, src_dir_fd=0, follow_symlinks=True)
            return
        try:
            self._system.link(self._temporary, name)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            if name.exists():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(name)) from None
            self._system.replace(self._temporary, name)
            self._temporary = None

    def _take_permissions(self) -> None:
        status = self.destination.stat()
        if hasattr(os, "fchown"):
            with contextlib.suppress(OSError):
                os.fchown(self.descriptor, status.st_uid, status.st_gid)
        if hasattr(os, "fchmod"):
            self._system.fchmod(self.descriptor, status.st_mode & 0o7777)


def write_whole(path: Path, text: str, *, overwrite: bool = True) -> None:
    """Write a text file completely or not at all, following links; lone surrogates are escaped.

    Missing folders are created. Without `overwrite`, an existing file raises FileExistsError.

    Raises:
        OSError: it could not be written; the exception names this file, not the temporary one.
    """
    destination = Path(os.path.realpath(path))
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        with PendingFile(destination) as file:
            file.write(text.encode("utf-8", "backslashreplace"))
            file.publish(overwrite=overwrite)
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries, but not the files, to disk if the system supports this."""
    if os.name != "posix":
        return
    with contextlib.suppress(OSError):  # a network file system may not support it, and a cluster's folder is not here
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
