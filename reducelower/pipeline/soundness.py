"""A source model as a conversion takes it, and what --repair would do to one that is not valid."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reducelower.files import LoadedModel
from reducelower.legalization.whole.dead_branches import without_dead_branches
from reducelower.model.document import Document
from reducelower.pipeline.diagnosis import what_is_wrong_with_source

if TYPE_CHECKING:
    from reducelower.legalization.repair import Repaired

__all__ = ["alive", "repaired", "sound", "what_would_help"]

_NEVER_TAKEN = "Put branches that are taken in the place of those that never are, which the checker refuses."


def sound(source: LoadedModel) -> tuple[LoadedModel, tuple[str, ...], str]:
    """A model as a conversion takes it, what was repaired for that, and what is wrong with it all the same.

    Runtimes ignore the types that a model states of inner values, so those that contradict its nodes are dropped.
    """
    source, gone, wrong = alive(source, full=True)
    if not wrong:
        return source, gone, ""
    from reducelower.legalization.whole.stated_types import drop_stale

    mended, notes = repaired(source, drop_stale(source.model), gone)
    if len(notes) > len(gone) and not what_is_wrong_with_source(mended.document, external=source.is_partial, full=True):
        return mended, notes, ""
    return source, (), wrong + what_would_help(source)


def alive(source: LoadedModel, *, full: bool = False) -> tuple[LoadedModel, tuple[str, ...], str]:
    """A model without branches that it never takes, if the checker refuses only these; the note; and what is wrong."""
    wrong = what_is_wrong_with_source(source.document, external=source.is_partial, full=full)
    living = without_dead_branches(source.model) if wrong else None
    if living is None:
        return source, (), wrong
    taken = replace(source, document=source.document.with_message(living))
    if what_is_wrong_with_source(taken.document, external=source.is_partial, full=full):
        return source, (), wrong
    return taken, (_NEVER_TAKEN,), ""


def repaired(source: LoadedModel, mended: Repaired, notes: tuple[str, ...] = ()) -> tuple[LoadedModel, tuple[str, ...]]:
    """A repaired model in the place of the source, and the notes with what was done."""
    return replace(source, document=Document.of_message(mended.model)), (
        *notes,
        *(f"Repaired: {done}." for done in mended.done),
    )


def what_would_help(source: LoadedModel) -> str:
    """What --repair would do to an invalid model, if that would make it valid."""
    from reducelower.legalization.repair import repair

    mended = repair(source.model)
    if not mended.done or what_is_wrong_with_source(Document.of_message(mended.model), external=source.is_partial):
        return ""
    return f"; --repair fixes that: it would have {', and '.join(mended.done)}"
