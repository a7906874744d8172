"""The page of `inspect`: where models run, by runtime and version, with all reasons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reducelower.report.page import rendered, shipped

__all__ = ["as_html"]

_SHADES = {"runs": "heat4", "nothing known against it": "none", "runs after --for": "heat3", "does not run": "heat1"}


def as_html(models: Sequence[Any], detail: Callable[[Any], str]) -> str:
    """A page that needs no other file and no network.

    Args:
        models: what `reducelower.pipeline.inspection` found of each.
        detail: says in a line what is known against a model on a version of a runtime.
    """
    return rendered(
        "inspect.html",
        style=shipped("page.css") + shipped("probe.css"),
        models=models,
        shades=_SHADES,
        detail=detail,
    )
