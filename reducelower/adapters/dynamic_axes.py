"""Axes that are only known at run time, where the operator takes them only as an attribute.

With a known rank there are only so many dimensions: a mask says which of them the axes name, and one Reduce node a
dimension applies or not. From opset 11 on an If decides for each; before, when branches of an If had to agree in shape,
each dimension is folded by a Reshape to where a fixed Reduce finds it or finds a dimension of size 1.
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto, helper

from reducelower.errors import RefusedError
from reducelower.model.attributes import value_of
from reducelower.model.build import copy_marks, make_node
from reducelower.scope.scope import Scope

__all__ = ["OLDEST", "BodyWantedError", "reduce_by_condition"]

OLDEST = 9
"""The oldest opset version with what the mask needs: Where, and Less on integers."""


class BodyWantedError(RefusedError):
    """A composite reduction has to become its body, whose simpler operators can go on from here."""


def reduce_by_condition(node: NodeProto, scope: Scope) -> list[NodeProto]:
    """A reduction over axes known at run time, as one conditional reduction a dimension.

    Args:
        node: a ReduceMax, ReduceMin, ReduceProd or ReduceSum whose axes are an input; reducing a dimension of size 1
            must leave its values as they are.
        scope: where it stands.

    Returns:
        Nodes whose Reduce operators take their axes as an attribute.

    Raises:
        RefusedError: the rank is not known, or the target is below `OLDEST`.
    """
    data, axes = node.input[0], node.input[1]
    if scope.target_opset < OLDEST:
        raise RefusedError(
            f"its axes {axes!r} are computed at run time, which takes opset {OLDEST} at least",
            f"aim at opset {OLDEST} or above, or make {axes!r} a constant",
        )
    rank = scope.rank(data)
    if rank is None:
        raise RefusedError(
            f"its axes {axes!r} are computed at run time, and the rank of {data!r} is not known",
            f"{scope.how_to_declare(data, 'rank')}, make {axes!r} a constant, or aim at an opset with axes as an input",
        )
    return _Writer(node, scope, rank).nodes()


class _Writer:
    """Writes the nodes for one reduction."""

    def __init__(self, node: NodeProto, scope: Scope, rank: int) -> None:
        self.node = node
        self.scope = scope
        self.rank = rank
        self.keepdims = bool(value_of(node, "keepdims", 1))
        self.noop = bool(value_of(node, "noop_with_empty_axes", 0))
        self.made: list[NodeProto] = []

    def nodes(self) -> list[NodeProto]:
        if not self.rank:
            last = make_node("Identity", [self.node.input[0]], [self.node.output[0]])
            self.made.append(last)
        elif self.scope.target_opset >= 11:
            last = self._by_if(self._mask())
        else:
            last = self._by_reshape(self._mask())
        copy_marks(self.node, last)
        return self.made

    def _name(self, tail: str) -> str:
        return self.scope.fresh(self.node.name or self.node.output[0], f"/{self.node.op_type}/{tail}")

    def _add(self, op_type: str, inputs: list[str], tail: str, **attributes: object) -> str:
        name = self._name(tail)
        self.made.append(make_node(op_type, inputs, [name], **attributes))
        return name

    def _integers(self, values: list[int] | int, tail: str) -> str:
        return self.scope.add_constant(np.array(values, np.int64), tail)

    def _mask(self) -> str:
        """One bool a dimension: whether the axes name it."""
        axes, rank = self.node.input[1], self._integers(self.rank, f"rank_{self.rank}")
        zero = self._integers(0, "zero")
        negative = self._add("Less", [axes, zero], "is_negative")
        from_front = self._add("Add", [axes, rank], "from_front")
        axis = self._add("Where", [negative, from_front, axes], "axis")
        column = self._add("Reshape", [axis, self._integers([-1, 1], "column_shape")], "column")
        dimensions = self._integers(list(range(self.rank)), f"dimensions_{self.rank}")
        hits = self._add("Equal", [column, dimensions], "hits")
        # As floats, the largest of no hits at all is minus infinity rather than an error.
        numbers = self._add("Cast", [hits], "hit_numbers", to=TensorProto.FLOAT)
        most = self._add("ReduceMax", [numbers], "most_hits", axes=[0], keepdims=0)
        mask = self._add("Greater", [most, self.scope.add_constant(np.array(0, np.float32), "zero_float")], "named")
        if self.noop:
            return mask
        count = self._add("Size", [axes], "axes_count")
        none = self._add("Equal", [count, zero], "axes_are_empty")
        return self._add("Or", [mask, none], "reduced")

    def _by_if(self, mask: str) -> NodeProto:
        value = self.node.input[0]
        # From the last dimension to the first: dropping one moves none of those still to come.
        for axis in reversed(range(self.rank)):
            condition = self._add("Gather", [mask, self._integers(axis, f"dimension_{axis}")], f"reduces_{axis}")
            result = self.node.output[0] if axis == 0 else self._name(f"result_{axis}")
            then_name, else_name = self._name(f"reduced_{axis}"), self._name(f"kept_{axis}")
            reduction = make_node(self.node.op_type, [value], [then_name], axes=[axis], keepdims=int(self.keepdims))
            element_type = self.scope.needed_element_type(self.node.input[0])
            graphs = {
                branch: helper.make_graph(
                    [inner], branch, [], [helper.make_tensor_value_info(inner.output[0], element_type, None)]
                )
                for branch, inner in (
                    ("then_branch", reduction),
                    ("else_branch", make_node("Identity", [value], [else_name])),
                )
            }
            self.made.append(make_node("If", [condition], [result], **graphs))
            value = result
        return self.made[-1]

    def _by_reshape(self, mask: str) -> NodeProto:
        """Fold each dimension into one of three, the middle one of which is always reduced.

        A Reshape of these opsets takes 0 for the size of the input's dimension there, so what has no elements is not
        folded: it yields what the reduction of nothing is, in the shape of the result.
        """
        value, one = self.node.input[0], self._integers([1], "one")
        shape = self._add("Shape", [value], "shape")
        sizes = [self._part(shape, axis, "size") for axis in range(self.rank)]
        chosen = [self._part(mask, axis, "is_reduced") for axis in range(self.rank)]
        kept_sizes = [
            self._add("Where", [chosen[axis], one, sizes[axis]], f"kept_size_{axis}") for axis in range(self.rank)
        ]
        final = self._add("Concat", kept_sizes, "final_shape", axis=0)
        if not self.keepdims:
            kept = self._add("Not", [mask], "is_kept")
            final = self._add("Compress", [final, kept], "kept_shape", axis=0)
        count = self._add("Size", [value], "count")
        is_empty = self._add("Equal", [count, self._integers(0, "zero")], "is_empty")
        outside, self.made = self.made, []
        for axis in range(self.rank):
            middle = self._add("Where", [chosen[axis], sizes[axis], one], f"middle_{axis}")
            before, after = self._product(kept_sizes[: axis + 1], one), self._product(sizes[axis + 1 :], one)
            three = self._add("Concat", [before, middle, after], f"folded_shape_{axis}", axis=0)
            folded = self._add("Reshape", [value, three], f"folded_{axis}")
            value = self._add(self.node.op_type, [folded], f"reduced_{axis}", axes=[1], keepdims=0)
        folds = self._add("Reshape", [value, final], "folded_away")
        inside, self.made = self.made, outside
        nothing = make_node("ConstantOfShape", [final], [self._name("nothing")], value=self._of_nothing())
        branches = {"then_branch": ([nothing], nothing.output[0]), "else_branch": (inside, folds)}
        element_type = self.scope.needed_element_type(self.node.input[0])
        graphs = {
            branch: helper.make_graph(nodes, branch, [], [helper.make_tensor_value_info(result, element_type, None)])
            for branch, (nodes, result) in branches.items()
        }
        last = make_node("If", [is_empty], [self.node.output[0]], **graphs)
        self.made.append(last)
        return last

    def _of_nothing(self) -> TensorProto:
        """What the reduction of no elements yields: the specification's table of neutral elements."""
        element_type = self.scope.needed_element_type(self.node.input[0])
        dtype = helper.tensor_dtype_to_np_dtype(element_type)
        lowest, highest = (np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype.kind in "iu" else (-np.inf, np.inf)
        neutral = {"ReduceSum": 0, "ReduceProd": 1, "ReduceMax": lowest, "ReduceMin": highest}[self.node.op_type]
        return helper.make_tensor("value", element_type, [1], [neutral])

    def _part(self, vector: str, axis: int, tail: str) -> str:
        return self._add("Gather", [vector, self._integers([axis], f"dimension_vector_{axis}")], f"{tail}_{axis}")

    def _product(self, sizes: list[str], one: str) -> str:
        product = one
        for size in sizes:
            product = size if product == one else self._add("Mul", [product, size], "product")
        return product
