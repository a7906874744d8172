"""Gathers the results of a region over its sets of inputs, and turns them into a finding."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reducelower.model.schemas import element_type_name
from reducelower.model.spelled import attribute_text, constant_text
from reducelower.model.text import short
from reducelower.numerics.measure import is_float
from reducelower.plan import CHOSEN
from reducelower.verification.feeding.filling import Case
from reducelower.verification.feeding.limits import Limits
from reducelower.verification.findings import DISTANCES, STATUSES, SiteStatus, SiteVerification
from reducelower.verification.regions.pairs import Pair
from reducelower.verification.running.runtimes import Session
from reducelower.verification.running.source import CannotRunError

__all__ = ["Tally", "describe", "finding_of", "largest_kept", "magnitude"]

_STEPS = 24
"""Halvings: the range of double has 2048 octaves, and the bound is exact to a thousandth of one."""


def largest_kept(before: Session, after: Session, feeds: Mapping[str, Any], lost: float, kept: float) -> float:
    """The largest magnitude of inputs, to three digits, at which everything that is finite before is finite after.

    Args:
        before: runs the operator.
        after: runs the form.
        feeds: inputs that lose something; their absolute values are scaled.
        lost: the magnitude of these.
        kept: a magnitude at which nothing was lost.

    Returns:
        The magnitude; 0 if the absolute values alone lose nothing, or if a side does not run.
    """

    def loses(top: float) -> bool:
        scaled = {name: _scaled(value, top / lost) for name, value in feeds.items()}
        pairs = zip(before.run(scaled, None), after.run(scaled, None), strict=True)
        return any(
            isinstance(one, np.ndarray)
            and isinstance(other, np.ndarray)
            and is_float(one)
            and one.shape == other.shape
            and bool((np.isfinite(one) & ~np.isfinite(other)).any())
            for one, other in pairs
        )

    low, high = kept, lost
    try:
        if not loses(high) or loses(low):
            return 0.0
        for _ in range(_STEPS):
            middle = float(np.sqrt(low) * np.sqrt(high))
            low, high = (low, middle) if loses(middle) else (middle, high)
    except CannotRunError:
        return 0.0
    return low


def _scaled(value: Any, factor: float) -> Any:
    if not isinstance(value, np.ndarray) or not is_float(value):
        return value
    return (np.abs(value.astype(np.float64)) * factor).astype(value.dtype)


_SEVERITY = {status: at for at, status in enumerate(STATUSES)}
_SHOWN = 400  # characters of inputs in a finding
_LONGEST = 60  # characters of an attribute


@dataclass
class Tally:
    """The results so far. No text names a value of the model, since like regions share them.

    Attributes:
        example: a text for each input of the first case with the worst status.
        failing: that case, if the sides differ on it.
        refused: why the source rejected inputs.
        kept, lost: the magnitudes of inputs that lost no range, and of those that did.
        first_lost: the smallest lost magnitude from 1 on, with its case, without NaN and infinities.
        limits: what counts as equal, in words.
        bound: the largest magnitude that loses nothing; 0 if it is not known.
        is_defined_so: whether the operator's own definition loses whatever is lost.
    """

    status: SiteStatus = "equal"
    reason: str = ""
    example: tuple[str, ...] = ()
    failing: Case | None = None
    runtime: str = ""
    cases: int = 0
    values: int = 0
    max_ulp: int = 0
    max_absolute: float = 0.0
    max_relative: float = 0.0
    refused: list[str] = field(default_factory=list)
    kept: list[float] = field(default_factory=list)
    lost: list[float] = field(default_factory=list)
    first_lost: tuple[float, Case] | None = None
    notes: dict[str, None] = field(default_factory=dict)
    limits: dict[str, None] = field(default_factory=dict)
    bound: float = 0.0
    is_defined_so: bool = True

    def note(self, status: SiteStatus, reason: str, case: Case | None = None) -> None:
        """Keep the worst status, with the first reason for it."""
        if _SEVERITY[status] > _SEVERITY[self.status]:
            self.status = status
            self.reason = f"{reason} ({case.label})" if case else reason
            if status == "different" and case and any(np.size(value) == 0 for value in case.feeds.values()):
                self.reason += "; with --assume-nonempty, no input without elements is tried"
            self.example = tuple(map(_shown, case.feeds.values())) if case else ()
            self.failing = case if status == "different" else None

    def lose(self, magnitude: float, case: Case) -> None:
        """Note that a case of this magnitude loses range."""
        self.lost.append(magnitude)
        if magnitude >= 1 and not case.is_special and (self.first_lost is None or magnitude < self.first_lost[0]):
            self.first_lost = magnitude, case


def finding_of(pair: Pair, tally: Tally, limits: Limits) -> SiteVerification:
    """The finding for a region, from its results and the limits of its inputs."""
    notes = tally.notes | dict.fromkeys(limits.assumptions if tally.cases else ())
    examples = (f"{item.name} = {text}" for item, text in zip(pair.inputs, tally.example, strict=False))
    return SiteVerification(
        op_type=pair.site.op_type,
        rule=pair.site.rule,
        signature=describe(pair),
        nodes=((pair.site.graph, pair.site.node),),
        example_inputs=_cut("; ".join(examples)),
        notes=tuple(notes),
        holds=_holds(tally) if tally.status == "loses range" else "",
        is_chosen=CHOSEN in pair.site.rule or (not pair.site.rule and tally.is_defined_so),
        limit="; ".join(tally.limits),
        **{name: getattr(tally, name) for name in _TAKEN_OVER},
    )


_TAKEN_OVER = ("status", "reason", "runtime", "cases", "values", *DISTANCES)


def _holds(tally: Tally) -> str:
    """The magnitudes of inputs that lose nothing, in words; up to those tried, if no bound was found."""
    if not tally.lost or not tally.kept:
        return ""
    large = [top for top in tally.lost if top >= 1]
    small = [top for top in tally.lost if 0 < top < 1]
    above = max((top for top in tally.kept if top < min(large)), default=None) if large else None
    below = min((top for top in tally.kept if top > max(small)), default=None) if small else None
    found = [f"from {below:.3g} on"] if below is not None else []
    top = tally.bound or above
    found += [f"up to {_rounded_down(top):.3g}"] if top else []
    return " and ".join(found)


def _rounded_down(number: float) -> float:
    """To three digits, and never above the bound."""
    step: float = 10.0 ** (math.floor(math.log10(number)) - 2)
    return math.floor(number / step) * step


def magnitude(values: Iterable[Any]) -> float:
    """The largest finite magnitude among floats; 0 if there are none."""
    tops = [0.0]
    for value in values:
        if isinstance(value, np.ndarray) and is_float(value):
            wide = np.abs(value.astype(np.float64))
            tops.append(float(wide[np.isfinite(wide)].max(initial=0)))
    return max(tops)


def describe(pair: Pair) -> str:
    """What like regions have in common, for a reader: operator, types, ranks, constants, attributes, opset version."""
    inputs = []
    for name in pair.node.input:
        free = next((item for item in pair.inputs if item.name == name), None)
        if free is not None:
            kind = element_type_name(free.element_type) if free.element_type else "float?"
            rank = "rank ?" if free.dims is None else f"rank {len(free.dims)}"
            inputs.append(f"{kind} {rank}")
        elif name in pair.constants[0]:
            value = pair.constants[0][name]
            inputs.append(constant_text(value))
        else:
            inputs.append("-")
    attributes = [f"{item.name}={short(attribute_text(item), _LONGEST)}" for item in pair.node.attribute]
    text = f"{pair.site.op_type}({', '.join([*inputs, *attributes])})"
    if len(pair.nodes) > 1:
        text += f" and {len(pair.nodes) - 1} more"
    return f"{text} at opset {pair.before.opsets.get('', 1)}"


def _shown(value: Any) -> str:
    with np.printoptions(threshold=40, edgeitems=3):
        return _cut(" ".join(np.array2string(np.asarray(value)).split()))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
