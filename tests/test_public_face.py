"""What `import reducelower` offers is what the documentation lists, and nothing else shows."""

from __future__ import annotations

import subprocess
import sys

import pytest

import reducelower


def test_dir_shows_the_public_names_alone() -> None:
    assert set(dir(reducelower)) == {*reducelower.__all__, "__doc__", "__version__", "ir"}


@pytest.mark.parametrize("name", sorted({*reducelower.__all__, "ir"}))
def test_every_public_name_is_there_and_documented(name: str) -> None:
    assert getattr(reducelower, name).__doc__


def test_nothing_heavy_is_imported_with_the_package() -> None:
    code = "import sys, reducelower; sys.exit(not {'onnx', 'numpy', 'onnxruntime'}.isdisjoint(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'convert'"):
        reducelower.convert  # noqa: B018
