"""Copy a file's content, in the kernel where that is possible: Python's `shutil` knows nothing of ranges and holes."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

__all__ = ["OnCopied", "copy_range", "fill"]

_CHUNK = 1 << 26
_BUFFER = 1 << 20

_NO_KERNEL_COPY = (errno.ENOSYS, errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.EBADF, errno.EPERM)

OnCopied: TypeAlias = Callable[[int], object]
"""Called with the number of bytes copied since the last call."""


def fill(descriptor: int, source: Path, on_copied: OnCopied) -> None:
    """Fill an empty file with the content and modification time of another; holes stay holes.

    After an OSError the file has to be discarded.
    """
    with source.open("rb", buffering=0) as origin:
        size = os.fstat(origin.fileno()).st_size
        os.ftruncate(descriptor, size)
        for start, end in _extents(origin.fileno(), size):
            os.lseek(descriptor, start, os.SEEK_SET)
            copy_range(origin.fileno(), descriptor, start, end, on_copied)
        status = os.fstat(origin.fileno())
    if os.utime in os.supports_fd:
        os.utime(descriptor, ns=(status.st_atime_ns, status.st_mtime_ns))


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


def copy_range(origin: int, descriptor: int, start: int, end: int, on_copied: OnCopied) -> None:
    """Copy a range of an open file to the position of another; file systems that can let both share its blocks.

    Raises:
        OSError: the range no longer exists.
    """
    position = start
    in_kernel = hasattr(os, "copy_file_range")
    while position < end:
        length = min(_CHUNK, end - position)
        if in_kernel:
            try:
                copied = os.copy_file_range(origin, descriptor, length, offset_src=position)
            except OSError as error:
                if error.errno not in _NO_KERNEL_COPY:
                    raise
                in_kernel = False
                continue
        else:
            os.lseek(origin, position, os.SEEK_SET)
            copied = os.write(descriptor, os.read(origin, min(length, _BUFFER)))
        if not copied:
            raise OSError(errno.EIO, "the file became shorter while it was copied")
        position += copied
        on_copied(copied)
