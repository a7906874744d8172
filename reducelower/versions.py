"""The versions of reducelower and its dependencies, from package metadata, without importing them."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version

from reducelower import __version__

__all__ = ["versions", "versions_of"]

_NEIGHBOURS = ("onnx", "onnxruntime", "onnxscript", "numpy", "protobuf")
_BUILDS = ("", "-gpu", "-directml", "-qnn", "-openvino", "-migraphx", "-rocm", "-training")
"""Builds of onnxruntime: packages with different names that install the same module."""


def versions() -> str:
    """One line for reducelower, and one for each package that it works with."""
    found = versions_of(*_NEIGHBOURS)
    return "\n".join([*(f"{name} {number}" for name, number in found.items()), f"Python {platform.python_version()}"])


def versions_of(*names: str) -> Mapping[str, str]:
    """The versions of reducelower and of packages; for onnxruntime, of every installed build."""
    found = {"reducelower": __version__}
    for name in names:
        builds = [f"{name}{build}" for build in _BUILDS] if name == "onnxruntime" else [name]
        found |= dict(_installed(builds)) or {name: "not installed"}
    return found


def _installed(names: list[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue
