"""Names of files: paths of this machine, and URLs of whatever fsspec reaches."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["as_path", "beside", "is_url", "join"]

_URL = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*::)*[A-Za-z][A-Za-z0-9+.-]+://")


def is_url(name: str) -> bool:
    """Whether a name is a URL, such as ``s3://bucket/model.onnx``; one letter before a colon is a Windows drive."""
    return _URL.match(name) is not None


def as_path(name: str) -> str:
    """The path that a ``file:`` URL stands for (RFC 8089, as `pathlib.Path.as_uri` writes it); other names as they are.

    Files of this machine need no detour: they are read and written where they lie.
    """
    if not name.lower().startswith("file://"):
        return name
    from urllib.parse import urlsplit
    from urllib.request import url2pathname  # slow to import, and hardly ever needed

    return url2pathname(urlsplit(name).path)


def join(folder: str, relative: str) -> str:
    """The name of a file in a folder, which may be a URL."""
    return f"{folder.rstrip('/')}/{relative}" if is_url(folder) else str(Path(folder) / relative)


def beside(url: str, relative: str) -> str:
    """The URL of a file in the folder of another."""
    folder, slash, _ = url.rpartition("/")
    return f"{folder}{slash}{relative}"
