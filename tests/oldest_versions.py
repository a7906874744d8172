"""Print the oldest version that pyproject.toml allows of each dependency, as constraints for pip.

`make test-oldest` installs exactly these and runs the tests.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"


def oldest_versions(requirements: list[str]) -> dict[str, str]:
    """The lower bound of every requirement, by package.

    Raises:
        ValueError: a requirement is not of the form ``name>=version``.
    """
    found = {}
    for requirement in requirements:
        parts = re.fullmatch(r"([\w-]+)>=([\w.]+)", requirement)
        if parts is None:
            raise ValueError(f"{requirement!r} has no lower bound; write it as name>=version")
        found[parts[1]] = parts[2]
    return found


def declared() -> dict[str, str]:
    """The lower bounds that pyproject.toml declares."""
    return oldest_versions(tomllib.loads(PYPROJECT.read_text())["project"]["dependencies"])


if __name__ == "__main__":
    for name, version in declared().items():
        print(f"{name}=={version}")
