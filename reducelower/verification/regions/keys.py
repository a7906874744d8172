"""What tells regions apart, up to names."""

from __future__ import annotations

from typing import Any

from reducelower.verification.regions.numbering import attribute_key, brief, read_by
from reducelower.verification.regions.pairs import Pair, opened
from reducelower.verification.regions.places import Dims

__all__ = ["keyed"]


def keyed(pair: Pair) -> Pair:
    """The pair with its key, and without calls of functions."""
    pair.nodes = opened(pair, pair.nodes, pair.before, pair.constants[0])
    pair.replacement = opened(pair, pair.replacement, pair.after, pair.constants[1])
    pair.key, pair.sizes = _key_of(pair)
    return pair


def _key_of(pair: Pair) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """What makes two sites the same up to names and sizes, and their sizes."""
    numbers: dict[str, int] = {}

    def local(name: str) -> int:
        return numbers.setdefault(name, len(numbers)) if name else -1

    inputs = tuple(
        (
            local(item.name),
            item.element_type,
            len(item.dims) if item.dims is not None else None,
            None if pair.is_reduction and item.name == pair.node.input[0] else _of_one(item.dims),
        )
        for item in pair.inputs
    )
    constants = tuple(
        # Element types of less than a byte, and of eight bits, differ only in their names.
        (
            local(name),
            value.dtype.name,
            value.shape,
            brief(repr(value.tolist()).encode() if value.dtype.hasobject else value.tobytes()),
        )
        for held in pair.constants
        for name, value in held.items()
    )
    nodes = tuple(
        (
            item.domain,
            item.op_type,
            tuple(map(local, item.input)),
            tuple(map(local, item.output)),
            tuple(sorted(map(attribute_key, item.attribute))),
            # Graphs inside a node are compared as they are, so the names that they read from around them count.
            tuple((name, local(name)) for name in read_by(item)[len(item.input) :]),
        )
        for item in (*pair.nodes, *pair.replacement)
    )
    opsets = tuple(tuple(sorted(place.opsets.items())) for place in (pair.before, pair.after))
    outputs = tuple(map(local, pair.outputs))
    key = (pair.site.op_type, pair.site.rule, opsets, inputs, constants, nodes, len(pair.nodes), outputs)
    symbols: dict[str | None, int] = {}
    return key, tuple(_anonymous(item.dims, symbols) for item in pair.inputs)


def _of_one(dims: Dims | None) -> tuple[bool, ...] | None:
    """Which sizes are one, along which others are repeated."""
    return None if dims is None else tuple(dim == 1 for dim in dims)


def _anonymous(dims: Dims | None, symbols: dict[str | None, int]) -> tuple[int | None, ...] | None:
    """Sizes with a negative number for each symbol."""
    if dims is None:
        return None
    return tuple(-1 - symbols.setdefault(dim, len(symbols)) if isinstance(dim, str) else dim for dim in dims)
