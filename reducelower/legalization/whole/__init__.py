"""Changes to a whole model, for what no rewrite of a single node solves; each returns a changed copy and what was done.

`attempts` lists the changes that are tried when something is refused, in their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from reducelower.errors import Refusal
from reducelower.model.document import Document
from reducelower.plan import Plan

__all__ = ["Attempt", "Changed"]


class Attempt(NamedTuple):
    """A model and its legal form, which must not be used if the plan has refusals."""

    source: Document
    made: Document
    plan: Plan


@dataclass(frozen=True)
class Changed:
    """A model with a change.

    Attributes:
        document: a changed copy; the given model if nothing had to be done.
        done: what was done and why, in sentences.
        refusals: why more cannot be done.
        inner: the values that changed or were removed; nodes that compute or read them are no sites.
        has_to_help: whether to undo the change if something is still refused after it.
    """

    document: Document
    done: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    inner: frozenset[str] = frozenset()
    has_to_help: bool = False
