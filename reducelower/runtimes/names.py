"""Aliases of runtimes: names of packages, short names, former names."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

__all__ = ["aliases", "no_such_target", "target_named"]


@cache
def aliases() -> Mapping[str, str]:
    """The target that each other name means, as `names.toml` has them."""
    names = tomllib.loads((files(__package__) / "names.toml").read_text("utf-8"))
    return {alias: target for target, text in names.items() for alias in text.split()}


def target_named(name: str) -> str:
    """The target that a name means, or the name itself in lower case."""
    plain = name.strip().lower().replace("_", "-")
    return aliases().get(plain, plain)


def no_such_target(names: Iterable[str]) -> str:
    """The error text for an unknown name.

    It suggests no similar name, since that would mostly be another runtime.
    """
    return (
        f"no target has this name; there are {', '.join(names)}. `reducelower probe` measures any other runtime and "
        "writes a target file; one can also be written by hand from its documentation"
    )
