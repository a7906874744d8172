"""Copy a file's content, in the kernel if possible: Python's `shutil` does not copy ranges."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

__all__ = ["copy_range", "fill"]

_CHUNK = 1 << 26
_BUFFER = 1 << 20

_NO_KERNEL_COPY = (errno.ENOSYS, errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.EBADF, errno.EPERM)


def fill(descriptor: int, source: Path, system: Any = os) -> None:
    """Fill an empty file with the content and modification time of another.

    After an OSError the file has to be discarded. `system` has the calls of `os`.
    """
    with source.open("rb", buffering=0) as origin:
        status = os.fstat(origin.fileno())
        copy_range(origin.fileno(), descriptor, 0, status.st_size, system)
    if os.utime in os.supports_fd:
        os.utime(descriptor, ns=(status.st_atime_ns, status.st_mtime_ns))


def copy_range(origin: int, descriptor: int, start: int, end: int, system: Any = os) -> None:
    """Copy a range of an open file to the current position of another; they share blocks if the file system can.

    Raises:
        OSError: the range no longer exists.
    """
    position = start
    in_kernel = hasattr(system, "copy_file_range")
    while position < end:
        length = min(_CHUNK, end - position)
        if in_kernel:
            try:
                copied = system.copy_file_range(origin, descriptor, length, offset_src=position)
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
