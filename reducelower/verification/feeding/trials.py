"""What a site is run on: its cases in the ranks and axes it allows, and the operator's page as a last source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from onnx import ModelProto, TensorProto, helper

from reducelower.numerics.reductions import Reduction, evaluate
from reducelower.verification.feeding.battery import Case, reduction_cases
from reducelower.verification.feeding.limits import Limits
from reducelower.verification.feeding.values import Accepts, fed
from reducelower.verification.inputs.made import InputSpec
from reducelower.verification.regions.pairs import FreeInput, Pair
from reducelower.verification.regions.places import Dims
from reducelower.verification.running.source import CannotRunError

__all__ = ["Definition", "cases", "input_specs_of", "reduction_of"]

_RANKS = (2, 3, 1, 0, 4)  # for data of unknown rank


@dataclass(frozen=True)
class Definition:
    """What a Reduce operator's page says, in the place of a runtime, for a source that none runs."""

    pair: Pair
    reduction: Reduction
    name: ClassVar[str] = "definition"

    def run(self, feeds: Mapping[str, Any], timeout: float | None = None) -> list[Any]:
        """The value in extended precision, rounded to the element type."""
        node, reduction = self.pair.node, self.reduction
        data = feeds.get(node.input[0])
        if data is None:
            raise CannotRunError("no runtime runs it", unsupported=True)
        if len(node.input) > 1 and node.input[1] in feeds:
            reduction = replace(reduction, axes=tuple(feeds[node.input[1]].tolist()))
        truth = evaluate(reduction, data)
        if np.isposinf(truth.bound).any():
            raise CannotRunError("the operator's page leaves its result open", unsupported=True)
        with np.errstate(all="ignore"):
            return [truth.value.astype(data.dtype)]


def reduction_of(pair: Pair, model: ModelProto) -> Reduction:
    """Attributes and constant axes of the original node; axes that are an input are filled in per case."""
    (node,) = model.graph.node
    attributes = {item.name: helper.get_attribute_value(item) for item in node.attribute}
    axes = attributes.get("axes")
    if len(node.input) > 1 and node.input[1] in pair.constants[0]:
        axes = pair.constants[0][node.input[1]].ravel().tolist()
    return Reduction(
        node.op_type,
        tuple(int(axis) for axis in axes) if axes is not None else None,
        bool(attributes.get("keepdims", 1)),
        bool(attributes.get("noop_with_empty_axes", 0)),
    )


def input_specs_of(pair: Pair) -> list[InputSpec]:
    """The inputs of both sides; what is of no known type is taken for floats."""
    return [InputSpec(item.name, item.element_type or TensorProto.FLOAT, item.dims) for item in pair.inputs]


def cases(
    pair: Pair,
    limits: Limits,
    reduction: Reduction | None,
    seed: int,
    static: bool,
    accepts: Accepts,
    suits: Accepts | None = None,
    others: Sequence[Sequence[Dims | None]] = (),
) -> Iterator[tuple[Case, Reduction | None]]:
    """The inputs to run both sides on, each with the reduction it amounts to; None for other operators.

    Where static, they have the declared sizes only. The source, or both sides, run on a set of inputs that they accept,
    or that suits (see `fed`). Operators other than Reduce are tried on `others`, further sizes, with ordinary values.
    """
    specs = input_specs_of(pair)
    data = next((spec for spec in specs if pair.node.input and spec.name == pair.node.input[0]), None)
    if reduction is None or data is None:
        more = [[replace(spec, dims=dims) for spec, dims in zip(specs, each, strict=True)] for each in others]
        yield from ((case, reduction) for case in fed(specs, limits, seed, accepts, suits, more))
        return
    axes_input = pair.node.input[1] if len(pair.node.input) > 1 else ""
    dynamic = next((item for item in pair.inputs if item.name == axes_input), None)
    beside = [spec for spec in specs if spec.name not in (data.name, axes_input)]
    for rank in _ranks(data, reduction):
        for axes in _axes(dynamic, rank):
            settled = reduction if axes is None else replace(reduction, axes=axes)
            for case in reduction_cases(data, settled, rank, seed, static=static):
                feeds = dict(case.feeds)
                if data.name in limits.not_negative:
                    feeds[data.name] = np.abs(feeds[data.name])
                if axes is not None:
                    feeds[axes_input] = np.array(axes, np.int64)
                if beside:
                    feeds |= next(iter(fed(beside, limits, seed, lambda feeds: True))).feeds
                label = case.label if axes is None else f"{case.label}, axes {list(axes)}"
                yield Case(label, feeds), settled


def _ranks(data: InputSpec, reduction: Reduction) -> Sequence[int]:
    least = max((axis + 1 if axis >= 0 else -axis for axis in reduction.axes or ()), default=0)
    if data.dims is not None:
        return (len(data.dims),)
    return tuple(rank for rank in _RANKS if rank >= least) or (least,)


def _axes(dynamic: FreeInput | None, rank: int) -> Iterator[tuple[int, ...] | None]:
    """Values for axes that are an input: each form that the rank and the declared length allow."""
    if dynamic is None:
        yield None
        return
    length = dynamic.dims[0] if dynamic.dims and isinstance(dynamic.dims[0], int) else None
    forms: list[tuple[int, ...]] = [()]
    if rank:
        forms += [(0,), (-1,), (rank - 1,)]
    if rank > 1:
        forms += [(0, rank - 1), (-1, 0)]
    forms += [tuple(range(rank))]
    for axes in dict.fromkeys(forms):
        if length is None or len(axes) == length:
            yield axes
