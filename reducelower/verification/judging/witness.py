"""Second witnesses for a difference in onnxruntime: the reference evaluator, double precision, and function bodies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from onnx import ModelProto

from reducelower.numerics.measure import Array, element_type_of, holds_special, is_float, measure, smallest_and_eps
from reducelower.numerics.tolerance import tolerance_for
from reducelower.verification.judging.judge import NEAR_THE_END, are_extreme
from reducelower.verification.running.conditions import CPU
from reducelower.verification.running.reference_gaps import wrong_in_reference
from reducelower.verification.running.runtimes import OnnxRuntime, ReferenceRuntime, Session, try_load, try_run
from reducelower.verification.running.source import Source
from reducelower.verification.running.wider import InDouble, modern, with_bodies

__all__ = ["Differing", "Witness", "sides_with"]

_ABOUT = 2.0  # the error of a replacement against the source's own
_ROUGHLY = 0.1
_CLOSE = 1e-4
_MOST = 0.75


@dataclass(frozen=True)
class Differing:
    """A result in which the sides differ.

    Attributes:
        feeds: the inputs.
        left, right: the results of the source and of the replacement.
        at: the number of the output.
        elements: a mask of the values that differ; None if it is not known.
    """

    feeds: Mapping[str, Any]
    left: Array
    right: Array
    at: int
    elements: Array | None

    def within(self, session: Session | None) -> Any:
        """The same output of another session; None if that does not run."""
        results = try_run(session, self.feeds)
        return None if results is None else results[self.at]


class Witness:
    """Both sides of a region in the reference evaluator, in double, and as function bodies; loaded when first asked."""

    def __init__(self, source: ModelProto, result: ModelProto, left: str, right: str) -> None:
        """Take the source, its replacement, and the names of the runtimes that ran them."""
        self._model = source
        self._result = result
        self._are_native = left == right == OnnxRuntime.name
        self._are_together = left == right
        self._right = right

    @cached_property
    def _specified(self) -> Session | None:
        """The source in the reference evaluator; None if that is no evidence or does not load it."""
        return None if wrong_in_reference(self._model) else try_load(ReferenceRuntime(), Source(self._model))

    @cached_property
    def _replaced(self) -> Session | None:
        """The replacement there."""
        return None if wrong_in_reference(self._result) else try_load(ReferenceRuntime(), Source(self._result))

    @cached_property
    def _wider(self) -> Session | None:
        """The source in double."""
        return InDouble.of(self._model)

    @cached_property
    def _wider_replacement(self) -> Session | None:
        """The replacement in double."""
        return InDouble.of(self._result)

    @cached_property
    def _body(self) -> Session | None:
        """The source as function bodies of the specification, in the runtime of the replacement."""
        return self._as_bodies(self._model)

    @cached_property
    def _body_of_replacement(self) -> Session | None:
        return self._as_bodies(self._result)

    def _as_bodies(self, model: ModelProto) -> Session | None:
        body = with_bodies(modern(model))
        if body is None:
            return None
        runtime = OnnxRuntime(CPU) if self._right == OnnxRuntime.name else ReferenceRuntime()
        return try_load(runtime, Source(body)) or try_load(ReferenceRuntime(), Source(body))

    def departure(self, result: Differing) -> str:
        """How onnxruntime diverges from the specification on one of the sides, as a sentence; empty if it does not.

        It does if the evaluator gives for the source what onnxruntime gives for the replacement, or something much
        closer to it, or if the evaluator gives the same for both sides.
        """
        left, right = result.left, result.right
        truth = result.within(self._specified) if self._are_native else None
        if not isinstance(truth, np.ndarray) or truth.dtype != right.dtype:
            return ""
        is_told = result.elements is not None and left.shape == right.shape == truth.shape
        where = result.elements if is_told and result.elements is not None else np.ones(right.shape, np.bool_)
        if is_told and self._holds_more(result, where):
            return ""
        side, shown = "source", right
        is_extreme = are_extreme(result.feeds.values(), right.dtype)
        agrees = sides_with(left, right, truth, where, is_extreme=is_extreme) if is_told else _is_same(truth, right)
        if not agrees:
            given = result.within(self._replaced)
            if not _is_same(truth, given):
                return ""
            side, shown = "replacement" if _is_same(truth, left) else "source", truth
        one, other, exact = (_first(value, where, is_told=is_told) for value in (left, right, shown))
        return (
            f"the runtime diverges from the specification on the {side}: onnxruntime gives {one} before and {other} "
            f"after, onnx.reference gives {exact}"
        )

    def own_loss(self, result: Differing, elements: Array, *, of_last_places: bool) -> str:
        """Why a difference is the source's own loss of digits or range, as a sentence; empty if it is not.

        The replacement may be about as far from the result in double as the source itself is: at each element, or if
        all differences are `of_last_places` of the largest number, at the element at which the source is farthest.
        """
        left, right = result.left, result.right
        if left.shape != right.shape or left.dtype != right.dtype or not is_float(left) or not self._are_together:
            return ""
        truth = result.within(self._wider)
        if not isinstance(truth, np.ndarray) or truth.shape != left.shape or truth.dtype != np.float64:
            return ""
        with np.errstate(over="ignore"):
            rounded = truth.astype(left.dtype)
        if self._holds_more(result, elements & (right != rounded)):
            return ""
        where = np.atleast_1d(elements)
        one, other, exact = (np.atleast_1d(item)[where].astype(np.float64) for item in (left, right, truth))
        with np.errstate(all="ignore"):
            off, error = np.abs(one - exact), np.abs(other - exact)
            near = np.isfinite(one) & (error <= _ABOUT * off)
            overflown = ~np.isfinite(one) & (~np.isfinite(other) | (error <= _ROUGHLY * np.abs(exact)))
            close = error <= tolerance_for(element_type_of(left)).relative * np.abs(exact)
            as_right = (other == exact.astype(left.dtype).astype(np.float64)) | (np.isnan(other) & np.isnan(exact))
            told = np.isfinite(exact) & (close | near | overflown) | as_right
        # The source may have one element right by chance, next to others that lost their digits.
        is_most = bool(told.mean() >= _MOST)
        slight = error <= (_ABOUT if of_last_places else 1) * off[told & np.isfinite(off)].max(initial=0)
        if not (told | (slight & (is_most or of_last_places)) | (~np.isfinite(other) & is_most)).all():
            return ""
        return f"the source loses {int(where.sum())} values to its element type; the result is as exact or closer"

    def overflow_alone(self, result: Differing, elements: Array) -> str:
        """Why a difference on extreme inputs is only one of range, as a sentence; empty if it is not.

        The source overflows, and in double both sides give the same finite numbers. On huge inputs they may differ by
        rounding of the largest: a factor was moved into the weights, for example. On tiny inputs the source divides one
        by them, and the result, which divides by them directly, keeps all that is finite.
        """
        left, right = result.left, result.right
        if not (is_float(left) and left.dtype == right.dtype and left.shape == right.shape and self._are_together):
            return ""
        are_huge = are_extreme(result.feeds.values(), left.dtype)
        if np.isfinite(left).all() or not (are_huge or _have_no_reciprocal(result.feeds.values(), left.dtype)):
            return ""
        one, other = result.within(self._wider), result.within(self._wider_replacement)
        if not (
            isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and one.shape == other.shape == left.shape
        ):
            return ""
        size = np.abs(one)
        bound = tolerance_for(element_type_of(left)).relative * (
            size[np.isfinite(one)].max(initial=0) if are_huge else size
        )
        with np.errstate(all="ignore"):
            apart = np.abs(left.astype(np.float64) - right)
            is_alike = (np.abs(one - other) <= bound) & ~(np.isfinite(apart) & (apart > bound))
        is_alike &= are_huge | np.isfinite(right) | ~np.isfinite(left)
        return f"{int(elements.sum())} values overflow on one side alone" if is_alike[elements].all() else ""

    def _holds_more(self, result: Differing, where: Array) -> bool:
        """Whether the function bodies of the specification also give finite values where the replacement does not.

        The evaluator computes some operators with more loss than their bodies have, such as LogSoftmax.
        """
        left, right = result.left, result.right
        if not is_float(left) or left.dtype != right.dtype:
            return False
        if holds_special(result.feeds.values()):
            return False  # a body says little about infinities that it masks
        lost = where & np.isfinite(left) & ~np.isfinite(right)
        given = result.within(self._body) if lost.any() else None
        return isinstance(given, np.ndarray) and given.shape == left.shape and bool(np.isfinite(given[lost]).any())

    def as_specified(self, result: Differing, elements: Array) -> str:
        """Why a difference is the specification's own, as a sentence; empty if it is not.

        Some operators have a function body in the specification. If the replacement gives the same finite values as the
        body, in the same runtime and element type, it loses the digits that the body loses. It may overflow as the body
        does on inputs so large that sums of a few of them are out of range.
        """
        left, right = result.left, result.right
        given = result.within(self._body)
        if not isinstance(given, np.ndarray) or given.shape != right.shape or left.shape != right.shape:
            return ""
        told = elements & np.isfinite(left.astype(np.float64)) if is_float(left) else elements
        finite = is_float(right) and bool(np.isfinite(right[elements].astype(np.float64)).all())
        if not finite and not (told.any() and are_extreme(result.feeds.values(), right.dtype)):
            return ""
        if not sides_with(left, right, given, elements if finite else told):
            return ""
        return f"{int(elements.sum())} values lose digits, as the specification's body of the operator does"

    def as_body(self, result: Differing, *, of_result: bool) -> Any:
        """What a side gives as function bodies of the specification; None if its operators have none."""
        return result.within(self._body_of_replacement if of_result else self._body)


def _have_no_reciprocal(values: Iterable[Any], dtype: np.dtype[Any]) -> bool:
    """Whether some inputs are so close to zero that one divided by them overflows."""
    floats = [np.abs(item.astype(np.float64)) for item in values if isinstance(item, np.ndarray) and is_float(item)]
    least = min((item[item > 0].min(initial=np.inf) for item in floats), default=np.inf)
    return bool(least * smallest_and_eps(dtype)[2] < 1)


def _is_same(one: Any, other: Any) -> bool:
    """Whether two arrays are the same, up to rounding."""
    if not (isinstance(one, np.ndarray) and isinstance(other, np.ndarray)):
        return False
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    return not measure(one, other, tolerance_for(element_type_of(one))).mismatch


def _first(value: Array, where: Array, *, is_told: bool) -> str:
    """The first of the elements that differ, or the shape if that differs."""
    return str(np.atleast_1d(value)[np.atleast_1d(where)][0]) if is_told else f"shape {list(value.shape)}"


def sides_with(left: Array, right: Array, truth: Array, where: Array, *, is_extreme: bool = False) -> bool:
    """Whether the right side's values of the elements that differ are those of the evaluator, or as close to them."""
    if not is_float(left):
        return bool((right[where] == truth[where]).all())
    wide: Any = np.longdouble if left.dtype.itemsize == 8 else np.float64
    one, other, exact = (np.atleast_1d(item[where]).astype(wide) for item in (left, right, truth))
    least = max(tolerance_for(element_type_of(left)).relative, np.finfo(np.float64).eps)
    with np.errstate(all="ignore"):
        off, error, size = np.abs(one - exact), np.abs(other - exact), np.abs(exact)
        # If values cancel, being off by the last place of the largest is close.
        _, eps, largest = smallest_and_eps(left.dtype)
        last = eps * np.where(np.isfinite(exact), size, 0).max(initial=0)
        close = np.isfinite(exact) & (error <= np.maximum(_CLOSE * size, last))
        if is_extreme:  # one order of additions may overflow, and another not
            close |= (np.minimum(np.abs(other), size) > largest * NEAR_THE_END) & (np.sign(other) == np.sign(exact))
        told = (
            (other == exact)
            | (np.isnan(other) & np.isnan(exact))
            | (close & ((error <= least * size) | (error <= off)))
        )
    # The side that is off may be nearer in a few elements by chance.
    return bool((told | close).all()) and bool(told.mean() >= _MOST)
