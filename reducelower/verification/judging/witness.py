"""A second witness where two sides differ in onnxruntime: the source in onnx's reference evaluator, and in double."""

from __future__ import annotations

from collections.abc import Mapping
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
from reducelower.verification.running.wider import InDouble, with_bodies

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
        left, right: what the runtimes gave of the source and of the replacement.
        at: the number of the output.
        elements: the values that differ, as a mask; None where it is not known which.
    """

    feeds: Mapping[str, Any]
    left: Array
    right: Array
    at: int
    elements: Array | None

    def within(self, session: Session | None) -> Any:
        """The same output of another session; None where it is not available."""
        results = try_run(session, self.feeds)
        return None if results is None else results[self.at]


class Witness:
    """Both sides of a region elsewhere, loaded when first asked: in the reference evaluator, in double, by bodies."""

    def __init__(self, source: ModelProto, result: ModelProto, left: str, right: str) -> None:
        """Take the source, its replacement, and the names of the runtimes that ran them."""
        self._model = source
        self._result = result
        self._are_native = left == right == OnnxRuntime.name
        self._are_together = left == right
        self._right = right

    @cached_property
    def _specified(self) -> Session | None:
        """The source in the reference evaluator; None where that lacks a version of an operator or does not load it."""
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
        """The specification's own bodies of the operators of the source, where the replacement ran."""
        body = with_bodies(self._model)
        if body is None:
            return None
        runtime = OnnxRuntime(CPU) if self._right == OnnxRuntime.name else ReferenceRuntime()
        return try_load(runtime, Source(body)) or try_load(ReferenceRuntime(), Source(body))

    def departure(self, result: Differing) -> str:
        """How onnxruntime diverges from the specification on one of the sides, as a sentence; empty where it does not.

        Of the source, the evaluator has to give what the replacement gives in onnxruntime, or something much nearer; or
        it gives the same of both sides.
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

    def own_loss(self, result: Differing, elements: Array) -> str:
        """Why a difference is the source's own loss of digits or range, as a sentence; empty where it is not.

        The replacement may be about as far from the source in double as the source itself is.
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
        # An element may be right by chance, next to others that have lost their digits in the source.
        slight = error <= off[told & np.isfinite(off)].max(initial=0)
        if not (told | ((~np.isfinite(other) | slight) & (told.mean() >= _MOST))).all():
            return ""
        return f"the source loses {int(where.sum())} values to its element type; the result is as exact or closer"

    def overflow_alone(self, result: Differing, elements: Array) -> str:
        """Why a difference on extreme inputs is one of the range of floats alone, as a sentence; empty where it is not.

        The source overflows where the replacement does not, or each of them somewhere, and in double both give the same
        finite numbers, up to rounding of the largest: a factor was moved into weights, say.
        """
        left, right = result.left, result.right
        if not (is_float(left) and left.dtype == right.dtype and left.shape == right.shape and self._are_together):
            return ""
        if np.isfinite(left).all() or not are_extreme(result.feeds.values(), left.dtype):
            return ""
        one, other = result.within(self._wider), result.within(self._wider_replacement)
        if not (
            isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and one.shape == other.shape == left.shape
        ):
            return ""
        bound = tolerance_for(element_type_of(left)).relative * np.abs(one[np.isfinite(one)]).max(initial=0)
        with np.errstate(all="ignore"):
            apart = np.abs(left.astype(np.float64) - right)
            is_alike = (np.abs(one - other) <= bound) & ~(np.isfinite(apart) & (apart > bound))
        return f"{int(elements.sum())} values overflow on one side alone" if is_alike[elements].all() else ""

    def _holds_more(self, result: Differing, where: Array) -> bool:
        """Whether the bodies of the specification, too, give finite values where the replacement does not.

        The evaluator computes some operators in ways that lose more than their bodies do, such as LogSoftmax.
        """
        left, right = result.left, result.right
        if not is_float(left) or left.dtype != right.dtype:
            return False
        if holds_special(result.feeds.values()):
            return False  # a body says little of infinities that it masks
        lost = where & np.isfinite(left) & ~np.isfinite(right)
        given = result.within(self._body) if lost.any() else None
        return isinstance(given, np.ndarray) and given.shape == left.shape and bool(np.isfinite(given[lost]).any())

    def as_specified(self, result: Differing, elements: Array) -> str:
        """Why a difference is the specification's own, as a sentence; empty where it is not.

        Operators that are functions have a body in the specification. Where the replacement gives finite values that
        are those of the body, where it ran itself and in the element type, it loses the digits that the body loses. It
        may overflow as the body does where inputs are so large that sums of a few of them are out of range.
        """
        left, right = result.left, result.right
        given = result.within(self._body)
        if not isinstance(given, np.ndarray) or given.shape != right.shape or left.shape != right.shape:
            return ""
        told = elements & np.isfinite(left.astype(np.float64)) if is_float(left) else elements
        finite = is_float(right) and bool(np.isfinite(right[elements].astype(np.float64)).all())
        if not finite and not (told.any() and are_extreme(result.feeds.values(), right.dtype)):
            return ""
        if not sides_with(left, right, given, elements if finite else told) and not self._loses_no_more(result, given):
            return ""
        return f"{int(elements.sum())} values lose digits, as the specification's body of the operator does"

    def _loses_no_more(self, result: Differing, body: Array) -> bool:
        """Whether the replacement, in 16 bits, is about as close to the source in double as the body is at its worst.

        A kernel computes inside in float, while body and replacement round each step to 16 bits, each in an order of
        its own.
        """
        truth = result.within(self._wider)
        if not isinstance(truth, np.ndarray) or truth.shape != body.shape or result.right.dtype.itemsize != 2:
            return False
        with np.errstate(all="ignore"):
            error, off = (np.abs(item.astype(np.float64) - truth) for item in (result.right, body))
        return bool(np.isfinite(error).all() and np.isfinite(off).all() and error.max() <= _ABOUT * off.max())


def _is_same(one: Any, other: Any) -> bool:
    """Whether two arrays are the same, up to rounding."""
    if not (isinstance(one, np.ndarray) and isinstance(other, np.ndarray)):
        return False
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    return not measure(one, other, tolerance_for(element_type_of(one))).mismatch


def _first(value: Array, where: Array, *, is_told: bool) -> str:
    """The first of the elements that differ, or the shape, where that differs."""
    return str(np.atleast_1d(value)[np.atleast_1d(where)][0]) if is_told else f"shape {list(value.shape)}"


def sides_with(left: Array, right: Array, truth: Array, where: Array, *, is_extreme: bool = False) -> bool:
    """Whether, of the elements that differ, the right side's are what the evaluator gives, or as close to that."""
    if not is_float(left):
        return bool((right[where] == truth[where]).all())
    wide: Any = np.longdouble if left.dtype.itemsize == 8 else np.float64
    one, other, exact = (np.atleast_1d(item[where]).astype(wide) for item in (left, right, truth))
    least = max(tolerance_for(element_type_of(left)).relative, np.finfo(np.float64).eps)
    with np.errstate(all="ignore"):
        off, error, size = np.abs(one - exact), np.abs(other - exact), np.abs(exact)
        # What cancels is close where it is off by the last place of the largest.
        _, eps, largest = smallest_and_eps(left.dtype)
        last = eps * np.where(np.isfinite(exact), size, 0).max(initial=0)
        close = np.isfinite(exact) & (error <= np.maximum(_CLOSE * size, last))
        if is_extreme:  # what overflows in one order of additions need not in another
            close |= (np.minimum(np.abs(other), size) > largest * NEAR_THE_END) & (np.sign(other) == np.sign(exact))
        told = (
            (other == exact)
            | (np.isnan(other) & np.isnan(exact))
            | (close & ((error <= least * size) | (error <= off)))
        )
    # By chance, the side that is off may be the nearer one of a few elements.
    return bool((told | close).all()) and bool(told.mean() >= _MOST)
