"""What results show of themselves in notebooks."""

from __future__ import annotations

from importlib import import_module

__all__ = ["InNotebooks"]


class InNotebooks:
    """A result that notebooks show as reports do."""

    def _repr_html_(self) -> str:
        """The result as HTML, in pieces of the report, which is built on results and is imported when it is asked."""
        text: str = import_module("reducelower.report.page").html(self)
        return text
