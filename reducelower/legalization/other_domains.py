"""Leave nothing of some domains other than ONNX's own: the user's rules say what their operators become."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from onnx import ModelProto

from reducelower.legalization.versions import imports_of
from reducelower.model.document import Document

__all__ = ["own_functions", "remove_imports"]


def own_functions(source: Document, domains: Iterable[str]) -> Mapping[str, frozenset[str]]:
    """The model's own functions in each of the domains; calls of these stay."""
    functions = source.message.functions
    return {domain: frozenset(each.name for each in functions if each.domain == domain) for domain in domains}


def remove_imports(model: ModelProto, unwanted: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    """Remove the imports of domains of which nothing remains; return a sentence for each that was imported."""
    notes = []
    for domain, functions in sorted(unwanted.items()):
        imported = list(imports_of(model, domain))
        for imports, entry in imported if not functions else ():
            imports.remove(entry)
        if imported:
            notes.append(f"Nothing of {domain} remains.")
    return tuple(notes)
