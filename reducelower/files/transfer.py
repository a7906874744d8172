"""Copy a file's content: by sharing blocks if the file system can, else by copying."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeAlias

__all__ = ["Appender", "OnCopied", "fill"]

_FICLONE = 0x40049409
"""Linux: let one file share the blocks of another (btrfs, XFS, bcachefs ...)."""

_CHUNK = 1 << 26
_BUFFER = 1 << 20
_WORTH_SYNCING = 1 << 27
"""From this many bytes on it pays to flush them to disk while more are copied."""

_NO_KERNEL_COPY = (errno.ENOSYS, errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.EBADF, errno.EPERM)

OnCopied: TypeAlias = Callable[[int], object]
"""Called with the number of bytes copied since the last call."""


def fill(descriptor: int, source: Path, on_copied: OnCopied) -> None:
    """Fill an empty file with the content and modification time of another; holes stay holes.

    After an OSError the file has to be discarded.
    """
    with source.open("rb", buffering=0) as origin:
        size = os.fstat(origin.fileno()).st_size
        if not _share_blocks(descriptor, origin.fileno()):
            os.ftruncate(descriptor, size)
            with Appender(descriptor) as appender:
                for start, end in _extents(origin.fileno(), size):
                    os.lseek(descriptor, start, os.SEEK_SET)
                    appender.append(origin.fileno(), start, end, on_copied)
        status = os.fstat(origin.fileno())
    if os.utime in os.supports_fd:
        os.utime(descriptor, ns=(status.st_atime_ns, status.st_mtime_ns))


def _share_blocks(descriptor: int, origin: int) -> bool:
    try:
        import fcntl
    except ImportError:
        return False
    try:
        fcntl.ioctl(descriptor, _FICLONE, origin)
    except OSError:
        return False
    return True


def _extents(origin: int, size: int) -> list[tuple[int, int]]:
    """Ranges of a file with data; the whole file if the system cannot tell."""
    if not hasattr(os, "SEEK_DATA"):
        return [(0, size)]
    extents = []
    position = 0
    while position < size:
        try:
            start = os.lseek(origin, position, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole from here to the end
                break
            return [(0, size)]
        position = os.lseek(origin, start, os.SEEK_HOLE)
        extents.append((start, position))
    return extents


class Appender(AbstractContextManager["Appender"]):
    """Copies ranges of open files to another, and flushes that one to disk at the same time.

    So little is left to flush at the end. Leaving the context waits for the flush.
    """

    def __init__(self, descriptor: int) -> None:
        """Append to an open file; others may write to it in between."""
        self._descriptor = descriptor
        self._unsynced = 0
        self._thread: threading.Thread | None = None
        self._error: OSError | None = None

    def append(self, origin: int, start: int, end: int, on_copied: OnCopied) -> None:
        """Copy a range of an open file.

        Raises:
            OSError: the range no longer exists.
        """
        position = start
        in_kernel = hasattr(os, "copy_file_range")
        while position < end:
            length = min(_CHUNK, end - position)
            if in_kernel:
                try:
                    copied = os.copy_file_range(origin, self._descriptor, length, offset_src=position)
                except OSError as error:
                    if error.errno not in _NO_KERNEL_COPY:
                        raise
                    in_kernel = False
                    continue
            else:
                os.lseek(origin, position, os.SEEK_SET)
                copied = os.write(self._descriptor, os.read(origin, min(length, _BUFFER)))
            if not copied:
                raise OSError(errno.EIO, "the file became shorter while it was copied")
            position += copied
            self._sync_meanwhile(copied)
            on_copied(copied)

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Wait, and raise any error of the flush: systems report a disk error only once."""
        if self._thread is not None:
            self._thread.join()
        if self._error is not None and error is None:
            raise self._error

    def _sync_meanwhile(self, copied: int) -> None:
        self._unsynced += copied
        if self._unsynced >= _WORTH_SYNCING and (self._thread is None or not self._thread.is_alive()):
            self._unsynced = 0
            self._thread = threading.Thread(target=self._sync)
            self._thread.start()

    def _sync(self) -> None:
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            self._error = error
