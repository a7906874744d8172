"""A second witness where two sides differ in onnxruntime: the source in onnx's reference evaluator, and in double."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from onnx import ModelProto

from reducelower.numerics.measure import Array, element_type_of, identical, is_float, measure, smallest_and_eps
from reducelower.numerics.tolerance import tolerance_for
from reducelower.verification.feeding.shapes import dims_on, may_have
from reducelower.verification.judging.judge import are_extreme
from reducelower.verification.regions.places import Dims
from reducelower.verification.running.providers import CPU
from reducelower.verification.running.reference_gaps import wrong_in_reference
from reducelower.verification.running.runtimes import OnnxRuntime, ReferenceRuntime, Session, try_load, try_run
from reducelower.verification.running.source import CannotRunError, Source
from reducelower.verification.running.wider import InDouble, with_bodies

__all__ = ["Differing", "Witness", "sides_with"]

_CLOSER = 4.0
_GARBAGE = 0.1
_CLOSE = 1e-4
_SLIGHT = 0.01
_MOST = 0.75
_NEGLIGIBLE = 1e-3


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
    def _replaced_wider(self) -> Session | None:
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

    def departure(self, result: Differing, stated: Dims | None = None) -> str:
        """How onnxruntime diverges from the specification on the source, as a sentence; empty where it does not.

        Of the source, the evaluator has to give what the replacement gives in onnxruntime, or something much nearer.
        `stated` is what the model states of the output's shape.
        """
        left, right = result.left, result.right
        truth = result.within(self._specified) if self._are_native else None
        if left.shape != right.shape:
            return self._other_shape(result, truth, stated)
        if not isinstance(truth, np.ndarray) or truth.shape != right.shape or truth.dtype != right.dtype:
            return ""
        where = np.ones(right.shape, np.bool_) if result.elements is None else result.elements
        if self._holds_more(result, where):
            return ""
        if left.dtype.hasobject and np.array_equal(left, truth):
            return self._misplaced(result, truth)
        if not sides_with(left, right, truth, where):
            return self._imprecise(result, truth, where)
        first = tuple(np.argwhere(np.atleast_1d(where))[0])
        shown = [str(np.atleast_1d(item)[first]) for item in (left, right, truth)]
        return (
            f"the runtime diverges from the specification on the source: onnxruntime gives {shown[0]}, "
            f"onnx.reference gives {shown[2]} and the replacement {shown[1]}"
        )

    def _other_shape(self, result: Differing, truth: Any, stated: Dims | None) -> str:
        """Whether a runtime gives a shape that a side cannot have, as inference or the model says, or onnx.reference.

        A result without elements there is not compared; any other has to have the same values.
        """
        left, right = result.left, result.right
        known = dims_on(self._model, result.feeds, result.at)
        if known is None and stated is not None:
            known = (None,) * len(stated)  # the sizes may be others than the declared ones
        where, shape, given = "source", left.shape, [left, truth]
        there = result.within(self._replaced) if self._are_native and not right.size else None
        if there is not None and np.shape(there) == left.shape:
            where, shape = "replacement", right.shape
        elif may_have(known, left.shape) or not may_have(known, right.shape):
            given = [truth]
            if not isinstance(truth, np.ndarray) or truth.shape != right.shape:
                return ""
        bound = tolerance_for(element_type_of(right))
        alike = [item for item in given if isinstance(item, np.ndarray) and item.dtype == right.dtype]
        fitting = [item.reshape(right.shape) for item in alike if item.size == right.size]
        if left.dtype != right.dtype or (
            left.size and right.size and all(measure(item, right, bound).mismatch for item in fitting)
        ):
            return ""
        return f"the runtime diverges from the specification on the {where}, which cannot have shape {list(shape)}"

    def _imprecise(self, result: Differing, truth: Array, where: Array) -> str:
        """Whether onnxruntime diverges on the replacement, by digits or of infinities: in the evaluator it does not."""
        left, right = result.left, result.right
        given = result.within(self._replaced) if is_float(right) else None
        if not isinstance(given, np.ndarray) or given.shape != truth.shape or given.dtype != truth.dtype:
            return ""
        one, other, exact = (
            np.atleast_1d(item)[np.atleast_1d(where)].astype(np.float64) for item in (right, given, truth)
        )
        bound = tolerance_for(element_type_of(right))
        with np.errstate(all="ignore"):
            right_there = np.abs(other - exact) <= np.maximum(bound.relative * np.abs(exact), bound.absolute)
            slight = np.abs(one - exact) <= _SLIGHT * np.abs(exact)
        is_kept = identical(given, truth) and identical(left, truth) and not np.isfinite(exact).any()
        if not is_kept and not (np.isfinite(exact) & right_there & slight).all():
            return ""
        return (
            f"the runtime diverges from the specification on the replacement: onnxruntime gives {one[0]:.9g}, "
            f"onnx.reference gives {other[0]:.9g} and of the source {exact[0]:.9g}"
        )

    def _misplaced(self, result: Differing, truth: Array) -> str:
        """Whether onnxruntime leaves some of the strings empty that the replacement moves.

        Its Gather of strings copies one of each run (1.31 and 1.32).
        """
        given = result.within(self._replaced)
        if not isinstance(given, np.ndarray) or not np.array_equal(given, truth):
            return ""
        first = tuple(np.argwhere(result.right != truth)[0])
        return (
            f"the runtime diverges from the specification on the replacement: onnxruntime gives "
            f"{result.right[first]!r}, "
            f"onnx.reference gives {given[first]!r} as of the source"
        )

    def runs(self, feeds: Mapping[str, Any], expected: Sequence[Any]) -> bool:
        """Whether the evaluator gives of the replacement, which onnxruntime fails on, what that gives of the source."""
        given = try_run(self._replaced, feeds) if self._are_native else None
        return given is not None and all(
            isinstance(one, np.ndarray)
            and isinstance(other, np.ndarray)
            and (one.dtype, one.shape) == (other.dtype, other.shape)
            and not measure(one, other, tolerance_for(element_type_of(one))).mismatch
            for one, other in zip(expected, given, strict=True)
        )

    def refuses(self, feeds: Mapping[str, Any]) -> bool:
        """Whether the evaluator has the operators of the source, and finds inputs wrong that onnxruntime takes."""
        try:
            return self._are_native and self._specified is not None and not self._specified.run(feeds)
        except CannotRunError as error:
            return not error.unsupported

    def exact(self, result: Differing, *, of_result: bool = False) -> Array | None:
        """The output of the source, or of the replacement, in double; None where that fails or is no evidence."""
        left, right = result.left, result.right
        if left.shape != right.shape or left.dtype != right.dtype or not is_float(left) or not self._are_together:
            return None
        truth = result.within(self._replaced_wider if of_result else self._wider)
        fits = isinstance(truth, np.ndarray) and truth.shape == left.shape and truth.dtype == np.float64
        return truth if fits else None

    def own_loss(self, result: Differing, elements: Array) -> str:
        """Why a difference is the source's own loss of digits or range, as a sentence; empty where it is not.

        Computed in double, the source itself gives what the replacement is nearer to, or what onnxruntime is far from.
        """
        truth = self.exact(result)
        if truth is None or self._holds_more(result, elements):
            return ""
        where = np.atleast_1d(elements)
        sides = result.left, result.right, truth
        one, other, exact = (np.atleast_1d(item)[where].astype(np.float64) for item in sides)
        with np.errstate(all="ignore"):
            off = np.abs(one - exact)
            error = np.abs(other - exact)
            garbage = np.isfinite(one) & (off > _GARBAGE * np.abs(exact))
            garbage &= ~np.isfinite(other) | (error <= _CLOSER * off)
            overflown = ~np.isfinite(one) & (~np.isfinite(other) | (error <= _GARBAGE * np.abs(exact)))
            lost = np.isfinite(exact) & (garbage | overflown)
            nearer = np.isfinite(exact) & (error * _CLOSER < off)
            as_right = (other == exact.astype(result.left.dtype).astype(np.float64)) | (
                np.isnan(other) & np.isnan(exact)
            )
        told = lost | nearer | as_right
        # An element may be right by chance, next to others that have lost every digit in the source.
        nothing = error <= _NEGLIGIBLE * off[told].min(initial=np.inf)
        beside = (~np.isfinite(other) | nothing) & (told.mean() >= _MOST)
        if not (told | beside).all():
            return ""
        return f"the source loses {int(where.sum())} values to its element type; the result is as exact or closer"

    def _holds_more(self, result: Differing, where: Array) -> bool:
        """Whether the bodies of the specification, too, give finite values where the replacement does not.

        The evaluator computes some operators in ways that lose more than their bodies do, such as LogSoftmax.
        """
        left, right = result.left, result.right
        if not is_float(left) or left.dtype != right.dtype:
            return False
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
        if not sides_with(left, right, given, elements if finite else told):
            return ""
        return f"{int(elements.sum())} values lose digits, as the specification's body of the operator does"


def sides_with(left: Array, right: Array, truth: Array, where: Array) -> bool:
    """Whether, of the elements that differ, the right side's are what the evaluator gives, or much nearer to it."""
    if not is_float(left):
        return bool((right[where] == truth[where]).all())
    wide: Any = np.longdouble if left.dtype.itemsize == 8 else np.float64
    one, other, exact = (np.atleast_1d(item[where]).astype(wide) for item in (left, right, truth))
    least = max(tolerance_for(element_type_of(left)).relative, np.finfo(np.float64).eps)
    with np.errstate(all="ignore"):
        off, error, size = np.abs(one - exact), np.abs(other - exact), np.abs(exact)
        # What cancels is close where it is off by the last place of the largest.
        last = smallest_and_eps(left.dtype)[1] * np.where(np.isfinite(exact), size, 0).max(initial=0)
        close = np.isfinite(exact) & (error <= np.maximum(_CLOSE * size, last))
        same = (
            (other == exact)
            | (np.isnan(other) & np.isnan(exact))
            | (close & ((error <= least * size) | (error <= off)))
        )
        nearer = np.isfinite(exact) & (error * _CLOSER < off)
        lost = ~np.isfinite(one) & np.isfinite(exact) & (error <= _GARBAGE * size)
    told = same | nearer | lost
    # By chance, the side that is off may be the nearer one of a few elements.
    return bool((told | close).all()) and bool(told.mean() >= _MOST)
