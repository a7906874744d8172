"""Compare the answer of a runtime with what a case expects."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np

from reducelower.conformance.case import Case
from reducelower.conformance.process import Answer
from reducelower.model.numbers import Array

__all__ = ["Verdict", "Word", "judge"]

Word = Literal["right", "wrong", "refused"]

_RELATIVE = {"float16": 4e-3, "float32": 2e-5, "float64": 2e-5}
"""The allowed relative error. Double has that of float32: computing it in float32 is imprecise, not wrong."""

_LONGEST = 300
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}")
_TEMPORARY = re.compile(r"(/[^\s'\":]+)+/")


@dataclass(frozen=True)
class Verdict:
    """The result of a case on a runtime.

    Attributes:
        kind: for wrong: ``shape``, ``values``, ``overflow`` (infinity or NaN where the result is finite) or
            ``outputs`` (not as many as there are); for refused: ``error``, ``crash`` or ``hang``; for right: empty.
        detail: the actual and the expected value, or what the runtime said.
    """

    word: Word
    kind: str = ""
    detail: str = ""


def judge(case: Case, answer: Answer, tolerance: float = 0.0) -> Verdict:
    """Compare an answer with what the case expects: the verdict on the first wrong output, or else on the first.

    The tolerance is a relative error that is allowed for every element type, unless the type's default is larger. It is
    for runtimes that compute in a narrower type.
    """
    if answer.kind != "outputs":
        return Verdict("refused", answer.kind, tidy(answer.text))
    if len(answer.outputs) != len(case.expected):
        return Verdict("wrong", "outputs", f"{len(answer.outputs)} outputs, expected {len(case.expected)}")
    pairs = zip(answer.outputs, case.expected, strict=True)
    verdicts = [_compare(actual, expected, _allowed(expected, tolerance)) for actual, expected in pairs]
    return next((verdict for verdict in verdicts if verdict.word == "wrong"), verdicts[0])


def tidy(text: str) -> str:
    """The text on one line, without addresses and temporary folders, which change from run to run."""
    text = " ".join(text.split())
    return _TEMPORARY.sub("", _ADDRESS.sub("0x…", text))[:_LONGEST]


def _compare(actual: Array, expected: Array, error: Array) -> Verdict:
    if actual.shape != expected.shape:
        same = actual.size == expected.size and _close(actual.reshape(expected.shape), expected, error).all()
        values = "; the values are right" if same and expected.size else ""
        return Verdict("wrong", "shape", f"shape {_shape(actual)}, expected {_shape(expected)}{values}")
    close = _close(actual, expected, error)
    if not close.all():
        finite = np.isfinite(expected) if expected.dtype.kind == "f" else np.ones(expected.shape, bool)
        broken = ~np.isfinite(actual) if actual.dtype.kind == "f" else np.zeros(actual.shape, bool)
        at = tuple(int(index[0]) for index in np.nonzero(np.logical_not(close))) if expected.ndim else ()
        place = f" at {list(at)}" if at else ""
        text = f"{_number(actual[at])}{place}, expected {_number(expected[at])}"
        return Verdict("wrong", "overflow" if (broken & finite).any() else "values", text)
    return Verdict("right")


def _close(actual: Array, expected: Array, error: Array) -> Array:
    """Where values differ at most by an error; where that is zero, they have to be equal."""
    if actual.dtype.kind not in "fiub" or expected.dtype.kind not in "fiub":
        same_kind = actual.dtype.kind == expected.dtype.kind
        return np.asarray(actual == expected) if same_kind else np.zeros(expected.shape, bool)
    with np.errstate(all="ignore"):
        distance = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
        # Large integers may be equal only because doubles round them.
        near = (distance <= error) & np.greater(error, 0) & np.isfinite(expected)
        return np.asarray(near | (actual == expected) | (np.isnan(actual) & np.isnan(expected)))


def _allowed(expected: Array, tolerance: float) -> Array:
    if expected.dtype.kind != "f":
        return np.array(0.0)
    # No values in the suite cancel, so the error is relative to the result itself. Results near zero (the logarithm of
    # nearly one) are compared as if they were one. Tiny results are relative to their own size, to differ from zero.
    scale = np.abs(expected.astype(np.float64))
    return max(_RELATIVE[expected.dtype.name], tolerance) * np.where((scale > 1e-3) & (scale < 1), 1, scale)


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, (np.floating, np.integer)) else str(value)


def _shape(value: Array) -> str:
    return "[" + ",".join(map(str, value.shape)) + "]"
