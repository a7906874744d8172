"""Models that runtimes run although ONNX's checker refuses them, and what --repair would do to others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from reducelower.files import LoadedModel
from reducelower.legalization.whole.dead_branches import without_dead_branches
from reducelower.model.document import Document
from reducelower.model.validate import find_call_defect
from reducelower.pipeline.diagnosis import what_is_wrong_with_source

if TYPE_CHECKING:
    from reducelower.legalization.repair import Repaired

__all__ = ["cures", "repaired", "sound", "what_would_help"]

_NEVER_TAKEN = "Put branches that are taken in the place of those that never are, which the checker refuses."


def cures(source: LoadedModel) -> Iterator[tuple[LoadedModel, tuple[str, ...]]]:
    """The model as it is, then without what runtimes ignore (branches that are never taken, types of inner values that
    contradict the nodes), each with notes about that."""
    yield source, ()
    if find_call_defect(source.model):
        return  # inference would recurse without end, or take forever
    if (pruned := without_dead_branches(source.model)) is not None:
        yield replace(source, document=Document(pruned)), (_NEVER_TAKEN,)
    from reducelower.legalization.whole.stated_types import drop_stale

    if (mended := drop_stale(source.model)).done:
        yield repaired(source, mended)


def sound(source: LoadedModel) -> tuple[LoadedModel, tuple[str, ...], str]:
    """The first form of the model that is valid, notes about it, and the defect of the model if none is."""
    defects = []
    for candidate, notes in cures(source):
        defect = what_is_wrong_with_source(candidate.document, external=candidate.is_partial, full=True)
        if not defect:
            return candidate, notes, ""
        defects.append(defect)
    return source, (), defects[0] + what_would_help(source)


def repaired(source: LoadedModel, mended: Repaired) -> tuple[LoadedModel, tuple[str, ...]]:
    """The repaired model in place of the source, and notes about the repairs."""
    notes = tuple(f"Repaired: {done}." for done in mended.done)
    return replace(source, document=Document(mended.model)), notes


def what_would_help(source: LoadedModel) -> str:
    """A sentence about what --repair would do to an invalid model; empty if that would not make it valid."""
    from reducelower.legalization.repair import repair

    mended = repair(source.model)
    if not mended.done or what_is_wrong_with_source(Document(mended.model), external=source.is_partial):
        return ""
    return f"; --repair fixes that: it would have {', and '.join(mended.done)}"
