"""Compare the answer of a runtime with what a case expects."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from reducelower.conformance.building import element_type_of
from reducelower.conformance.case import Array, Case
from reducelower.conformance.process import Answer

__all__ = ["Verdict", "Word", "judge", "judge_whole"]

Word = Literal["right", "wrong", "refused"]

_RELATIVE = {"float16": 4e-3, "float32": 2e-5, "float64": 2e-5}
"""The allowed relative error. Double has that of float32: computing it in float32 is imprecise, not wrong, and
`Verdict.kind` says so."""

_DOUBLE_TOLERANCE = 1e-10

_LOOSE_TOLERANCE = 1e-3
"""The allowed error of whole models, relative to the largest value: runtimes add up in different orders."""

_LONGEST = 300
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}")
_TEMPORARY = re.compile(r"(/[^\s'\":]+)+/")


@dataclass(frozen=True)
class Verdict:
    """The result of a case on a runtime.

    Attributes:
        kind: for wrong: ``shape``, ``values``, ``overflow`` (infinity or NaN where the result is finite) or
            ``outputs`` (not as many as there are); for refused: ``error``, ``crash`` or ``hang``; for right: empty,
            ``element type`` (the right values in another element type) or ``precision`` (double computed in float32).
        detail: the actual and the expected value, or what the runtime said.
    """

    word: Word
    kind: str = ""
    detail: str = ""


def judge(case: Case, answer: Answer, tolerance: float = 0.0) -> Verdict:
    """Compare an answer with what the case expects.

    The tolerance is a relative error that is allowed for every element type, unless the type's default is larger. It is
    for runtimes that compute in a narrower type.
    """
    return _judge(case, answer, partial(_compare, tolerance=tolerance))


def judge_whole(case: Case, answer: Answer, tolerance: float = 0.0) -> Verdict:
    """Compare an answer with the outputs of a whole model; the allowed error is relative to a tensor's largest value.

    8-bit integers may be off by one, since they are rounded from values with that error.
    """
    return _judge(case, answer, partial(_compare_loosely, tolerance=tolerance))


def _judge(case: Case, answer: Answer, compare: Callable[[Array, Array], Verdict]) -> Verdict:
    """The verdict on the first wrong output, or else on the first output."""
    if answer.kind != "outputs":
        return Verdict("refused", answer.kind, tidy(answer.text))
    if len(answer.outputs) != len(case.expected):
        return Verdict("wrong", "outputs", f"{len(answer.outputs)} outputs, expected {len(case.expected)}")
    verdicts = [compare(actual, expected) for actual, expected in zip(answer.outputs, case.expected, strict=True)]
    return next((verdict for verdict in verdicts if verdict.word == "wrong"), verdicts[0])


def tidy(text: str) -> str:
    """The text on one line, without addresses and temporary folders, which change from run to run."""
    text = " ".join(text.split())
    return _TEMPORARY.sub("", _ADDRESS.sub("0x…", text))[:_LONGEST]


def _compare(actual: Array, expected: Array, tolerance: float) -> Verdict:
    if actual.shape != expected.shape:
        same = actual.size == expected.size and _close(actual.reshape(expected.shape), expected, tolerance).all()
        values = "; the values are right" if same and expected.size else ""
        return Verdict("wrong", "shape", f"shape {_shape(actual)}, expected {_shape(expected)}{values}")
    close = _close(actual, expected, tolerance)
    if not close.all():
        finite = np.isfinite(expected) if expected.dtype.kind == "f" else np.ones(expected.shape, bool)
        broken = ~np.isfinite(actual) if actual.dtype.kind == "f" else np.zeros(actual.shape, bool)
        kind = "overflow" if (broken & finite).any() else "values"
        at = tuple(int(index[0]) for index in np.nonzero(~close)) if expected.ndim else ()
        return _wrong_value(kind, actual, expected, at)
    if actual.dtype != expected.dtype:
        return Verdict("right", "element type", f"{element_type_of(actual)}, expected {element_type_of(expected)}")
    if expected.dtype == np.float64 and not np.allclose(
        actual, expected, rtol=_DOUBLE_TOLERANCE, atol=0, equal_nan=True
    ):
        return Verdict("right", "precision", "the double came with the precision of float")
    return Verdict("right")


def _compare_loosely(actual: Array, expected: Array, tolerance: float) -> Verdict:
    if actual.shape != expected.shape:
        return Verdict("wrong", "shape", f"shape {_shape(actual)}, expected {_shape(expected)}")
    if expected.dtype.kind not in "fiub" or actual.dtype.kind not in "fiub":
        return Verdict("right") if np.array_equal(actual, expected) else Verdict("wrong", "values", "other values")
    allowed = 1.0 if expected.dtype.itemsize == 1 and expected.dtype.kind in "iu" else 0.0
    if expected.dtype.kind == "f":
        finite = np.abs(expected[np.isfinite(expected)].astype(np.float64))
        allowed = max(tolerance, _LOOSE_TOLERANCE) * float(finite.max(initial=1e-9))
    with np.errstate(all="ignore"):
        far = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
    same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
    far = np.where(same, 0.0, np.where(np.isnan(far), np.inf, far))
    if not far.size or far.max() <= allowed:
        return Verdict("right")
    at = tuple(int(index) for index in np.unravel_index(int(far.argmax()), far.shape))
    return _wrong_value("values", actual, expected, at)


def _wrong_value(kind: str, actual: Array, expected: Array, at: tuple[int, ...]) -> Verdict:
    place = f" at {list(at)}" if at else ""
    return Verdict("wrong", kind, f"{_number(actual[at])}{place}, expected {_number(expected[at])}")


def _close(actual: Array, expected: Array, tolerance: float) -> Array:
    if actual.dtype.kind not in "fiub":
        return np.zeros(expected.shape, bool)
    if expected.dtype.kind != "f":
        return np.asarray(actual == expected)
    relative = max(_RELATIVE[expected.dtype.name], tolerance)
    with np.errstate(all="ignore"):
        # No values in the suite cancel, so the error is relative to the result itself. Results near zero (the logarithm
        # of nearly one) are compared as if they were one. Tiny results are relative to their own size, to differ from
        # zero.
        scale = np.abs(expected.astype(np.float64))
        scale = np.where((scale > 1e-3) & (scale < 1), 1, scale)
        distance = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
        near = (distance <= relative * scale) & np.isfinite(expected)
        return np.asarray(near | (actual == expected) | (np.isnan(actual) & np.isnan(expected)))


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, (np.floating, np.integer)) else str(value)


def _shape(value: Array) -> str:
    return "[" + ",".join(map(str, value.shape)) + "]"
