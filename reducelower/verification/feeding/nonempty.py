"""Which sizes of zero are fed: none that a conversion assumes not to be there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reducelower.plan import Plan
    from reducelower.verification.result import Verification

__all__ = ["feeding_as_assumed", "feeds_no_empty", "noted"]

_assumed: ContextVar[bool] = ContextVar("feeds_no_empty", default=False)


@contextmanager
def feeding_as_assumed(plan: Plan | None) -> Iterator[None]:
    """Feed no tensors without elements for as long as this lasts, if a plan assumes that there are none."""
    token = _assumed.set(plan is not None and plan.assumes_nonempty)
    try:
        yield
    finally:
        _assumed.reset(token)


def feeds_no_empty() -> bool:
    """Whether tensors without elements are left out."""
    return _assumed.get()


def noted(found: Verification, plan: Plan | None) -> Verification:
    """What was found, with a note that no empty inputs were fed if a plan assumes so."""
    if plan is None or not plan.assumes_nonempty:
        return found
    note = "No inputs without elements were fed, since the result assumes that no dimension is 0."
    return replace(found, notes=(*found.notes, note))
