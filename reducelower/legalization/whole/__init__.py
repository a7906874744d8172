"""Changes to a whole model, for what no rewrite of a single node solves.

`engine` lists those that are tried if something is refused. `features` has those that the user or a runtime asks for.
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
        inner: the values that have another type now; nodes that compute or read them are no sites.
    """

    document: Document
    done: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    inner: frozenset[str] = frozenset()
