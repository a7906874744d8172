"""The page about installing names the dependencies that the package has."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_beside_another_build_everything_but_onnxruntime_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = {re.split(r"[<>=]", item)[0] for item in project["dependencies"]}
    shown = re.search(
        r"pip install --no-deps reducelower\npip install (.*)\n", (ROOT / "docs/install.md").read_text("utf-8")
    )
    assert shown is not None
    assert set(shown[1].split()) == needed - {"onnxruntime"}
