"""Gathers the results of a region over its sets of inputs, and turns them into a finding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reducelower.numerics.measure import Difference
from reducelower.plan import CHOSEN
from reducelower.scope.blanks import fill
from reducelower.verification.feeding.filling import Case
from reducelower.verification.feeding.limits import Limits
from reducelower.verification.findings import DISTANCES, SEVERITY, SiteStatus, SiteVerification
from reducelower.verification.regions.pairs import Pair

__all__ = ["Tally", "finding_of"]

_SHOWN = 400  # characters of inputs in a finding


@dataclass
class Tally:
    """The results so far. No text names a value of the model, since like regions share them.

    Attributes:
        example: a text for each input of the first case with the worst status.
        failing: that case, if the sides differ on it.
        refused: why the source rejected inputs.
        limits: what counts as equal, in words.
        bound: of a region that loses range, the largest magnitude that loses nothing; 0 if it is not known.
    """

    status: SiteStatus = "equal"
    reason: str = ""
    example: Sequence[str] = ()
    failing: Case | None = None
    runtime: str = ""
    cases: int = 0
    values: int = 0
    max_ulp: int = 0
    max_absolute: float = 0.0
    max_relative: float = 0.0
    refused: list[str] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)
    limits: dict[str, None] = field(default_factory=dict)
    bound: float = 0.0

    def note(self, status: SiteStatus, reason: str, case: Case | None = None) -> None:
        """Keep the worst status, with the first reason for it."""
        if SEVERITY[status] > SEVERITY[self.status]:
            self.status = status
            self.reason = f"{reason} ({case.label})" if case else reason
            if status == "different" and case and any(np.size(value) == 0 for value in case.feeds.values()):
                self.reason += "; with --assume-nonempty, no input without elements is tried"
            self.example = tuple(map(_shown, case.feeds.values())) if case else ()
            self.failing = case if status == "different" else None

    def measured(self, found: Difference, limit: str) -> None:
        """Keep the largest distances, and what counts as equal."""
        for name in DISTANCES:
            setattr(self, name, max(getattr(self, name), getattr(found, name)))
        if found.max_ulp:
            self.limits[limit] = None


def _shown(value: Any) -> str:
    with np.printoptions(threshold=40, edgeitems=3):
        return _cut(" ".join(np.array2string(np.asarray(value)).split()))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def finding_of(pair: Pair, tally: Tally, limits: Limits) -> SiteVerification:
    """The finding for a region, from its results and the limits of its inputs."""
    notes = tally.notes | dict.fromkeys(limits.assumptions if tally.cases else ())
    examples = "; ".join(f"{item.name} = {text}" for item, text in zip(pair.inputs, tally.example, strict=False))
    return SiteVerification(
        op_type=pair.site.op_type,
        rule=pair.site.rule,
        nodes=((pair.site.graph, pair.site.node),),
        example_inputs=_cut(fill(examples, pair.names)),
        notes=tuple(fill(note, pair.names) for note in notes),
        bound=_rounded_down(tally.bound) if tally.bound else 0.0,
        is_chosen=CHOSEN in pair.site.rule or (not pair.site.rule and pair.is_reduction),
        limit="; ".join(tally.limits),
        **{name: getattr(tally, name) for name in _TAKEN_OVER},
    )


_TAKEN_OVER = ("status", "reason", "runtime", "cases", "values", *DISTANCES)


def _rounded_down(number: float) -> float:
    """To three digits, and never above the bound."""
    step: float = 10.0 ** (math.floor(math.log10(number)) - 2)
    return math.floor(number / step) * step
