"""A file that appears completely or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from typing import Any

__all__ = ["PendingFile", "write_whole"]

_DESCRIPTORS = Path("/proc/self/fd")
_KERNEL_CHUNK = 1 << 26
_CHUNK = 1 << 20


class PendingFile(contextlib.AbstractContextManager["PendingFile"]):
    """A new file that gets its name only when it is complete.

    On Linux the file has no name until then, so nothing is left over however the process ends. Elsewhere it has a
    hidden temporary name. At its exit, a context discards an unpublished file. `system` has the calls of `os`.
    """

    def __init__(self, destination: Path, system: Any = os) -> None:
        self.destination = destination
        self._system = system
        self._hidden: Path | None = None
        self.descriptor = self._open()

    def write(self, data: bytes) -> None:
        """Append to the file; a system call writes at most 2 GiB, and less if interrupted."""
        rest = memoryview(data)
        while rest:
            rest = rest[self._system.write(self.descriptor, rest) :]

    def copy(self, origin: int, start: int, end: int) -> None:
        """Append a range of an open file; they share blocks if the file system can (Python's `shutil` does not).

        Raises:
            OSError: the range no longer exists, or the file cannot take it.
        """
        while start < end:
            try:
                copied = self._system.copy_file_range(origin, self.descriptor, min(_KERNEL_CHUNK, end - start), start)
            except (AttributeError, OSError):  # the system or the file systems cannot; a full disk is found here too
                os.lseek(origin, start, os.SEEK_SET)
                data = os.read(origin, min(_CHUNK, end - start))
                self.write(data)
                copied = len(data)
            if not copied:
                raise OSError(errno.EIO, "the file became shorter while it was copied")
            start += copied

    def publish(self, *, overwrite: bool) -> None:
        """Flush the file to disk, then give it its name.

        With `overwrite`, an existing file is replaced and its permissions are kept; otherwise FileExistsError is
        raised. If the disk fails, the old file is unchanged. Of two writers that publish at once without `overwrite`,
        one gets that error on Linux; elsewhere the last one wins.
        """
        if self.destination.exists():
            if not overwrite:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(self.destination))
            self._take_permissions()
        self._system.fsync(self.descriptor)
        if self._hidden is None:
            try:
                self._link(self.destination)
            except FileExistsError:
                if not overwrite:  # another process was faster
                    raise
            else:
                return
            hidden = self._hidden_name()
            self._link(hidden)
            self._hidden = hidden
        self._close_descriptor()  # Windows does not rename an open file
        self._system.replace(self._hidden, self.destination)
        self._hidden = None

    def __exit__(self, *error: object) -> None:
        """Discard the file unless it was published."""
        self._close_descriptor()
        if self._hidden is not None:
            with contextlib.suppress(OSError):
                self._hidden.unlink()

    def _close_descriptor(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def _open(self) -> int:
        nameless = getattr(self._system, "O_TMPFILE", 0)
        if nameless and _DESCRIPTORS.is_dir():
            try:
                return os.open(self.destination.parent, nameless | os.O_RDWR | os.O_CLOEXEC, 0o666)
            except OSError as error:
                if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOSYS):
                    raise
        hidden = self._hidden_name()
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(hidden, flags, 0o666)
        self._hidden = hidden
        return descriptor

    def _hidden_name(self) -> Path:
        return self.destination.parent / f".reducelower-{os.urandom(8).hex()}.tmp"

    def _link(self, name: Path) -> None:
        """Give the nameless file a name; only with a `src_dir_fd` does Python follow the link in /proc."""
        self._system.link(_DESCRIPTORS / str(self.descriptor), name, src_dir_fd=0, follow_symlinks=True)

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
