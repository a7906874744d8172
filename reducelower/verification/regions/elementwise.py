"""Regions that compute each element by itself, so that no size matters but one: alike at one size, alike at every."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from onnx import NodeProto

from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.verification.operators import of_kind
from reducelower.verification.regions.places import Dims

__all__ = ["ELEMENTWISE", "any_size", "by_axis", "is_elementwise"]

ELEMENTWISE = of_kind("elementwise")
"""They compute each element from those in the same place, apart from broadcasting."""


def is_elementwise(nodes: Iterable[NodeProto]) -> bool:
    """Whether every node computes each element from those in the same place, apart from broadcasting."""
    return all(node.op_type in ELEMENTWISE and node.domain in DEFAULT_DOMAINS for node in nodes)


def by_axis(dims: Dims | None, kept: Collection[int] = ()) -> Dims | None:
    """Sizes of an input of such nodes, with a symbol per axis, counted from the last, as broadcasting aligns them.

    Sizes of constants that the nodes hold are kept, since they have to fit.
    """
    if dims is None:
        return None
    return tuple(
        dim if isinstance(dim, int) and (dim <= 1 or dim in kept) else f"size {at - len(dims)}"
        for at, dim in enumerate(dims)
    )


def any_size(dims: Dims | None, kept: Collection[int] = ()) -> Dims | None:
    """Sizes of an input with symbols for all numbers but the kept ones, where they mean only that they are equal."""
    if dims is None:
        return None
    return tuple(f"size {dim}" if isinstance(dim, int) and dim > 1 and dim not in kept else dim for dim in dims)
