"""One model as a job of a batch, and its outcome: whatever goes wrong is in it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from reducelower.errors import FAULT, ConversionError, UnreadableModelError, describe
from reducelower.files import read_model
from reducelower.legalization.defects import find_defect
from reducelower.outcome import Outcome, stopped

__all__ = ["Task", "outcome_of", "refused"]


@dataclass(frozen=True)
class Task:
    """The paths of a model and of its output, as plain data that can be sent to workers.

    Attributes:
        record: file with the origin of the output, for runs that resume; empty if none is kept.
    """

    source: str
    output: str = ""
    record: str = ""


def outcome_of(source: str, work: Callable[[], Outcome]) -> Outcome:
    """Work on a model, and note how long it took; errors are in the outcome."""
    start = time.monotonic()
    try:
        outcome = work()
    except Exception as error:
        problems, status = describe(error, source)
        refusals = error.refusals if isinstance(error, ConversionError) else ()
        outcome = Outcome(source, stopped(status), refusals=refusals, problems=problems)
        if status == FAULT and (defect := _defect(source)):
            outcome = refused(source, defect)
    return replace(outcome, seconds=time.monotonic() - start)


def refused(source: str, reason: str) -> Outcome:
    """The outcome for a model that cannot be converted."""
    return Outcome(source, "refused", problems=(f"{source}: {reason}",))


def _defect(path: str) -> str:
    """What is wrong with the model itself, so that its effect is not called a fault of reducelower."""
    try:
        return find_defect(read_model(path).model)
    except UnreadableModelError:
        return ""
