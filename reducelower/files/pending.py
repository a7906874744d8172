"""A file that appears whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

__all__ = ["PendingFile", "sync_folder", "write_whole"]

_DESCRIPTORS = Path("/proc/self/fd")


class PendingFile(contextlib.AbstractContextManager["PendingFile"]):
    """A new file beside its destination that gets its name only when it is complete.

    Where the system can (Linux), the file has no name at all until then, so that nothing stays behind however the
    process ends; elsewhere it has a hidden temporary name. As a context manager it discards what was not published.
    """

    def __init__(self, destination: Path) -> None:
        """Open a new file in the folder of its destination."""
        self.destination = destination
        self._temporary: Path | None = None
        self.descriptor = self._open()

    def publish(self, *, overwrite: bool) -> None:
        """Give the file its name, all of it on disk before.

        With `overwrite`, a file of that name is replaced and its permissions stay; otherwise it is a FileExistsError.
        Where the disk fails, the old file is as it was.
        """
        if not (overwrite and self.destination.exists()):
            os.fsync(self.descriptor)
            try:
                self._link(self.destination)
            except FileExistsError:
                if not overwrite:
                    raise
            else:
                self.close()
                return
        # There is a file, or another process that may overwrite was faster.
        self._replace()
        self.close()

    def write(self, data: bytes) -> None:
        """Append to the file; one system call writes at most 2 GiB, and less when it is interrupted."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self.descriptor, rest) :]

    def close(self) -> None:
        """Close the file; without a name of its own it is gone."""
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
        os.fsync(self.descriptor)
        if self._temporary is None:
            temporary = self._temporary_name()
            self._link(temporary)
            self._temporary = temporary
        self._close_descriptor()
        os.replace(self._temporary, self.destination)  # noqa: PTH105 (one system call, named as such)
        self._temporary = None

    def _close_descriptor(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def _open(self) -> int:
        folder = self.destination.parent
        nameless = getattr(os, "O_TMPFILE", 0)
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
            # A source folder of any kind makes Python call linkat, which follows the link under /proc.
            os.link(_DESCRIPTORS / str(self.descriptor), name, src_dir_fd=0, follow_symlinks=True)
            return
        try:
            os.link(self._temporary, name)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            if name.exists():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(name)) from None
            os.replace(self._temporary, name)  # noqa: PTH105 (one system call, named as such)
            self._temporary = None

    def _take_permissions(self) -> None:
        status = self.destination.stat()
        if hasattr(os, "fchown"):
            with contextlib.suppress(OSError):
                os.fchown(self.descriptor, status.st_uid, status.st_gid)
        if hasattr(os, "fchmod"):
            os.fchmod(self.descriptor, status.st_mode & 0o7777)


def write_whole(path: Path, text: str, *, overwrite: bool = True) -> None:
    """Write a file whole or not at all, where a link leads; what UTF-8 does not hold is escaped.

    Without `overwrite`, a file of that name is a FileExistsError.

    Raises:
        OSError: it could not be written; the exception names it, and not what stands in for it on the way.
    """
    try:
        with PendingFile(Path(os.path.realpath(path))) as file:
            file.write(text.encode("utf-8", "backslashreplace"))
            file.publish(overwrite=overwrite)
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def sync_folder(folder: Path) -> None:
    """Put a folder's entries on disk, where the system has a call for it; the data itself is there already."""
    if os.name != "posix":
        return
    with contextlib.suppress(OSError):  # network file systems may not have it, nor is a cluster's folder here
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
