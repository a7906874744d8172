"""Prepare a source model for conversion, and say what --repair would do to an invalid one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reducelower.files import LoadedModel
from reducelower.legalization.whole.dead_branches import without_dead_branches
from reducelower.model.document import Document
from reducelower.pipeline.diagnosis import what_is_wrong_with_source

if TYPE_CHECKING:
    from reducelower.legalization.repair import Repaired

__all__ = ["repaired", "sound", "what_would_help", "without_dead"]

_NEVER_TAKEN = "Put branches that are taken in the place of those that never are, which the checker refuses."


def sound(source: LoadedModel) -> tuple[LoadedModel, tuple[str, ...], str]:
    """The model to convert, notes about repairs, and the remaining defect (or "").

    Runtimes ignore the stated types of inner values, so types that contradict the nodes are dropped.
    """
    source, cut, defect = without_dead(source, full=True)
    if not defect:
        return source, cut, ""
    from reducelower.legalization.whole.stated_types import drop_stale

    mended, notes = repaired(source, drop_stale(source.model), cut)
    if len(notes) > len(cut) and not what_is_wrong_with_source(mended.document, external=source.is_partial, full=True):
        return mended, notes, ""
    return source, (), defect + what_would_help(source)


def without_dead(source: LoadedModel, *, full: bool = False) -> tuple[LoadedModel, tuple[str, ...], str]:
    """The model without never-taken branches if the checker refuses only these, the notes, and the remaining defect."""
    defect = what_is_wrong_with_source(source.document, external=source.is_partial, full=full)
    pruned = without_dead_branches(source.model) if defect else None
    if pruned is None:
        return source, (), defect
    candidate = replace(source, document=source.document.with_message(pruned))
    if what_is_wrong_with_source(candidate.document, external=source.is_partial, full=full):
        return source, (), defect
    return candidate, (_NEVER_TAKEN,), ""


def repaired(source: LoadedModel, mended: Repaired, notes: tuple[str, ...] = ()) -> tuple[LoadedModel, tuple[str, ...]]:
    """The repaired model in place of the source, and the notes with the repairs added."""
    return replace(source, document=Document.of_message(mended.model)), (
        *notes,
        *(f"Repaired: {done}." for done in mended.done),
    )


def what_would_help(source: LoadedModel) -> str:
    """A sentence about what --repair would do to an invalid model; empty if that would not make it valid."""
    from reducelower.legalization.repair import repair

    mended = repair(source.model)
    if not mended.done or what_is_wrong_with_source(Document.of_message(mended.model), external=source.is_partial):
        return ""
    return f"; --repair fixes that: it would have {', and '.join(mended.done)}"
