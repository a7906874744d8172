"""Results as HTML in notebooks."""

from __future__ import annotations

from importlib import import_module

__all__ = ["InNotebooks"]


class InNotebooks:
    """A result that notebooks show like a report."""

    def _repr_html_(self) -> str:
        """The result as HTML, by the report, which is imported only now because it imports results."""
        text: str = import_module("reducelower.report.page").html(self)
        return text
