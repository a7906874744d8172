"""The site builds without a warning, is whole, and needs nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html import unescape
from importlib.util import find_spec
from pathlib import Path

import click
import pytest

import reducelower
from reducelower import batch, ir, rulebook, verification
from reducelower import runtimes as targets
from reducelower.cli.main import app
from reducelower.model.schemas import REDUCTIONS

from .shown import DOCS, ROOT

NEEDED = ("mkdocs", "material", "mkdocstrings_handlers")

pytestmark = pytest.mark.skipif(None in map(find_spec, NEEDED), reason=f"it needs {', '.join(NEEDED)}")

NAMES = {
    "reducelower": tuple(reducelower.__all__),
    **{
        module.__name__.removeprefix("reducelower."): tuple(module.__all__)
        for module in (batch, ir, rulebook, targets, verification)
    },
}
"""Every public name, by the page of the reference that it is on."""

LOADED = re.compile(r'<(?:script|img|link rel="stylesheet")[^>]*(?:src|href)="(?:https?:)?//')


def test_the_site_builds_strictly_and_is_whole(tmp_path: Path) -> None:
    """One test, so that the site is built once."""
    result = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr

    for page in DOCS.rglob("*.md"):
        name = page.relative_to(DOCS).with_suffix("")
        content = html(tmp_path, "" if str(name) == "index" else str(name))
        assert not LOADED.search(content), f"{name} loads something from elsewhere"
        assert "<!-- made:" not in content, f"{name} has a marker left"
        assert "<!-- file:" not in content, f"{name} has a marker left"

    for page, names in NAMES.items():
        content = html(tmp_path, f"reference/{page}")
        missing = [name for name in names if not re.search(rf'id="reducelower\.[\w.]*\b{name}"', content)]
        assert not missing, f"{page}: {missing}"

    face = re.findall(r'id="reducelower\.(\w+)"', html(tmp_path, "reference/reducelower"))
    assert face[:2] == ["convert_version", "verify"]

    commands = shown(tmp_path, "reference/command-line")
    for name in app.list_commands(click.Context(app)):
        assert f"Usage: reducelower {name} " in commands
        assert f'id="reducelower-{name}"' in html(tmp_path, "reference/command-line")

    start = html(tmp_path, "")
    assert f"reducelower {reducelower.__version__}" in start
    assert 'href="changelog/"' in start
    assert "OWNER" not in start
    keys = shown(tmp_path, "reference/configuration")
    for key in ("opset", "verify-budget", "without-type", "external-data"):
        assert key in keys
    assert '[data-md-color-scheme="slate"] .md-typeset img[src$=".svg"]' in (tmp_path / "site.css").read_text("utf-8")
    operators = shown(tmp_path, "support")
    for name in REDUCTIONS:
        assert name in operators


def html(site: Path, page: str) -> str:
    return (site / page / "index.html").read_text(encoding="utf-8")


def shown(site: Path, page: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", html(site, page)))
