"""The versions that `--version` shows, read from package metadata: nothing is imported for them."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from reducelower import __version__

__all__ = ["versions"]

_NEIGHBOURS = ("onnx", "onnxruntime", "onnxscript", "numpy", "protobuf")


def versions() -> str:
    """One line for reducelower, one for each package it works with."""
    lines = [f"reducelower {__version__}"]
    lines += [f"{name} {_installed(name)}" for name in _NEIGHBOURS]
    return "\n".join([*lines, f"Python {platform.python_version()}"])


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
