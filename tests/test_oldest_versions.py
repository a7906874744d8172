"""The oldest versions that pyproject.toml allows are the ones that the installed packages may not go below."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata

import pytest

from tests.oldest_versions import PYPROJECT, declared, oldest_versions


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


@pytest.mark.parametrize("name", declared())
def test_what_is_installed_is_not_older_than_what_is_declared(name: str) -> None:
    assert numbers(metadata.version(name)) >= numbers(declared()[name])


def test_a_requirement_without_a_lower_bound_is_told() -> None:
    with pytest.raises(ValueError, match="'rich' has no lower bound"):
        oldest_versions(["numpy>=1.26.0", "rich"])


def test_the_oldest_python_declared_is_the_first_of_the_classifiers() -> None:
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    prefix = "Programming Language :: Python :: 3."
    minors = [int(name.removeprefix(prefix)) for name in project["classifiers"] if name.startswith(prefix)]
    assert project["requires-python"] == f">=3.{min(minors)}"
    assert minors == list(range(min(minors), max(minors) + 1))
