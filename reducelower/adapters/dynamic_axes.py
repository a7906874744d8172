"""Reduce over axes that are computed at run time, for opset versions that take them only as an attribute.

The rank has to be known. A mask says which dimensions the axes name, and there is one Reduce node per dimension. From
opset 11 on, an If decides whether it applies. Before, the branches of an If had to agree in shape, so a Reshape moves
the dimension, or one of size 1, to where a fixed Reduce is applied.
"""

from __future__ import annotations

from functools import partial
from math import inf

from onnx import NodeProto, TensorProto, helper

from reducelower.adapters.builder import Writer
from reducelower.errors import RefusedError
from reducelower.model.attributes import value_of
from reducelower.model.numbers import FLOATS, whole_range

__all__ = ["OLDEST", "BodyWantedError", "reduce_by_condition"]

OLDEST = 9
"""The oldest opset version with what the mask needs: Where, and Less on integers."""


class BodyWantedError(RefusedError):
    """A node has to become its body, whose simpler operators can cross the boundary."""


def reduce_by_condition(op: Writer) -> list[NodeProto]:
    """A reduction over axes known at run time, as one conditional reduction per dimension.

    It is a ReduceMax, ReduceMin, ReduceProd or ReduceSum, which leave a dimension of size 1 as it is. Refused where the
    rank is not known, or the target is below `OLDEST`.
    """
    data, axes = op.input(0), op.input(1)
    if op.scope.target_opset < OLDEST:
        raise RefusedError(
            f"its axes {axes!r} are computed at run time, which takes opset {OLDEST} at least",
            f"aim at opset {OLDEST} or above, or make {axes!r} a constant",
        )
    rank = op.scope.rank(data)
    if rank is None:
        raise RefusedError(
            f"its axes {axes!r} are computed at run time, and the rank of {data!r} is not known",
            f"{op.scope.how_to_declare(data, 'rank')}, make {axes!r} a constant, "
            "or aim at an opset with axes as an input",
        )
    if not rank:
        return op.yields("Identity", data)
    if op.scope.shape(axes) == (rank,):
        # As many axes as dimensions, none of them twice: all of them.
        op.scope.release(axes)
        keepdims = int(bool(value_of(op.node, "keepdims", 1)))
        return op.yields(op.node.op_type, data, axes=[*range(rank)], keepdims=keepdims)
    mask = _mask(op, rank)
    return _by_if(op, mask, rank) if op.scope.target_opset >= 11 else _by_reshape(op, mask, rank)


def _mask(op: Writer, rank: int) -> str:
    """One bool per dimension: whether the axes name it."""
    axes, size, zero = op.input(1), op.integers(rank, f"rank_{rank}"), op.integers(0, "zero")
    negative = op.add("Less", axes, zero, tail="is_negative")
    from_front = op.add("Add", axes, size, tail="from_front")
    axis = op.add("Where", negative, from_front, axes, tail="axis")
    column = op.add("Reshape", axis, op.integers([-1, 1], "column_shape"), tail="column")
    hits = op.add("Equal", column, op.integers(list(range(rank)), f"dimensions_{rank}"), tail="hits")
    # As floats, the largest of no hits at all is minus infinity rather than an error.
    numbers = op.add("Cast", hits, tail="hit_numbers", to=TensorProto.FLOAT)
    most = op.add("ReduceMax", numbers, tail="most_hits", axes=[0], keepdims=0)
    mask = op.add("Greater", most, op.constant(0, TensorProto.FLOAT, "zero_float"), tail="named")
    if op.attribute("noop_with_empty_axes", 0):
        return mask
    none = op.add("Equal", op.add("Size", axes, tail="axes_count"), zero, tail="axes_are_empty")
    return op.add("Or", mask, none, tail="reduced")


def _by_if(op: Writer, mask: str, rank: int) -> list[NodeProto]:
    node = op.node
    value, element_type = node.input[0], op.scope.needed_element_type(node.input[0])
    keepdims = int(bool(value_of(node, "keepdims", 1)))
    shape = [None] * rank if keepdims else None
    # From the last dimension to the first: dropping one moves none of those still to come.
    for axis in reversed(range(rank)):
        condition = op.add("Gather", mask, op.integers(axis, f"dimension_{axis}"), tail=f"reduces_{axis}")
        reduced = partial(op.add, node.op_type, value, tail=f"reduced_{axis}", axes=[axis], keepdims=keepdims)
        kept = partial(op.add, "Identity", value, tail=f"kept_{axis}")
        value = op.either(condition, reduced, kept, element_type, f"result_{axis}", shape)
    return op.yields_last()


def _by_reshape(op: Writer, mask: str, rank: int) -> list[NodeProto]:
    """Fold each dimension into one of three, the middle one of which is always reduced.

    A Reshape of these opsets takes 0 for the size of the input's dimension there, so what has no elements is not
    folded: it yields what the reduction of nothing is, in the shape of the result.
    """
    data, one = op.input(0), op.integers([1], "one")
    shape = op.add("Shape", data)
    sizes = [_part(op, shape, axis, "size") for axis in range(rank)]
    chosen = [_part(op, mask, axis, "is_reduced") for axis in range(rank)]
    kept_sizes = [
        op.add("Where", is_reduced, one, size, tail=f"kept_size_{axis}")
        for axis, (is_reduced, size) in enumerate(zip(chosen, sizes, strict=True))
    ]
    final = op.add("Concat", *kept_sizes, tail="final_shape", axis=0)
    if not op.attribute("keepdims", 1):
        kept = op.add("Not", mask, tail="is_kept")
        final = op.add("Compress", final, kept, tail="kept_shape", axis=0)
    element_type = op.scope.needed_element_type(data)

    def folded() -> str:
        value = data
        for axis in range(rank):
            middle = op.add("Where", chosen[axis], sizes[axis], one, tail=f"middle_{axis}")
            before, after = _product(op, kept_sizes[: axis + 1], one), _product(op, sizes[axis + 1 :], one)
            three = op.add("Concat", before, middle, after, tail=f"folded_shape_{axis}", axis=0)
            value = op.add("Reshape", value, three, tail=f"folded_{axis}")
            value = op.add(op.node.op_type, value, tail=f"reduced_{axis}", axes=[1], keepdims=0)
        return op.add("Reshape", value, final, tail="folded_away")

    nothing = partial(op.add, "ConstantOfShape", final, tail="nothing", value=_of_nothing(op.node, element_type))
    return op.unless_empty(data, nothing, folded, element_type)


def _of_nothing(node: NodeProto, element_type: int) -> TensorProto:
    """What the reduction of no elements yields: the specification's table of neutral elements."""
    lowest, highest = (-inf, inf) if element_type in FLOATS else whole_range(element_type)
    neutral = {"ReduceSum": 0, "ReduceProd": 1, "ReduceMax": lowest, "ReduceMin": highest}[node.op_type]
    return helper.make_tensor("value", element_type, [1], [neutral])


def _part(op: Writer, vector: str, axis: int, tail: str) -> str:
    return op.add("Gather", vector, op.integers([axis], f"dimension_vector_{axis}"), tail=f"{tail}_{axis}")


def _product(op: Writer, sizes: list[str], one: str) -> str:
    product = one
    for size in sizes:
        product = size if product == one else op.add("Mul", product, size, tail="product")
    return product
