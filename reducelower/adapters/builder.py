"""Writing the nodes that come in place of one node, as one would write the expression."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, helper

from reducelower.errors import RefusedError
from reducelower.model.attributes import attribute_of, copy_marks, drop_attribute, make_node, set_attribute, value_of
from reducelower.scope.scope import Scope

__all__ = ["TO_THE_END", "Writer"]

Attributes: TypeAlias = Iterable[AttributeProto]
Values: TypeAlias = Iterable[tuple[str, int, Sequence[int | None]]]
"""Names, element types (`TensorProto.DataType`) and shapes, with None for sizes that differ."""

TO_THE_END = 2**31 - 1
"""An end for Slice that no size reaches."""


class Writer:
    """What an adapter is handed: the node, where it stands, and a way to write what replaces it.

    ``mean = op.add("ReduceMean", x, axes=[-1])`` appends a node, whose values get names derived from the node replaced;
    ``op.yields("Add", mean, bias)`` appends the one that yields what the replaced node did; the nodes are ``op.nodes``.
    """

    def __init__(self, node: NodeProto, scope: Scope) -> None:
        self.node = node
        self.scope = scope
        self.nodes: list[NodeProto] = []
        self.stem = node.name or next(filter(None, node.output), "")

    def fresh(self, tail: str) -> str:
        """A name of its own for a value, derived from the node replaced."""
        return self.scope.fresh(self.stem, f"/{self.node.op_type}/{tail}")

    def add(self, op_type: str, *inputs: str, tail: str = "", copied: Attributes = (), **attributes: Any) -> str:
        """Append a node of one output; returns the name of that. `copied` are attributes of another node."""
        return self.add_many(op_type, inputs, (tail or op_type.lower(),), copied=copied, **attributes)[0]

    def add_many(
        self, op_type: str, inputs: Sequence[str], tails: Sequence[str], copied: Attributes = (), **attributes: Any
    ) -> list[str]:
        """Append a node of several outputs, one per tail and none where the tail is empty; returns their names."""
        outputs = [self.fresh(tail) if tail else "" for tail in tails]
        made = make_node(op_type, inputs, outputs, **attributes)
        made.name = next(filter(None, outputs), "")
        made.attribute.extend(copied)
        self.nodes.append(made)
        return outputs

    def yields(
        self, op_type: str, *inputs: str, output: int = 0, copied: Attributes = (), **attributes: Any
    ) -> list[NodeProto]:
        """Append the node that yields an output of the replaced node; returns all nodes so far."""
        made = make_node(op_type, inputs, [self.node.output[output]], **attributes)
        made.attribute.extend(copied)
        if output == 0:
            copy_marks(self.node, made)
        else:  # a node of the model may be called like the value
            made.name = self.fresh(f"output_{output}")
        self.nodes.append(made)
        return self.nodes

    def cast(self, name: str, source: int, goal: int, tail: str) -> str:
        """The name of a value of one element type in another: its own name where that is the same."""
        return name if source == goal else self.add("Cast", name, tail=tail, to=goal)

    def yields_cast(self, name: str, source: int, goal: int) -> list[NodeProto]:
        """Let a value of one element type be the replaced node's output in another; returns all nodes so far."""
        return self.yields_value(name) if source == goal else self.yields("Cast", name, to=goal)

    def yields_value(self, name: str) -> list[NodeProto]:
        """Let a value be the replaced node's first output; returns all nodes so far."""
        is_made_last = bool(self.nodes) and self.nodes[-1].output[:] == [name]
        return self.yields_last() if is_made_last else self.yields("Identity", name)

    def yields_last(self, place: int = 0, output: int = 0) -> list[NodeProto]:
        """Let an output of the last node be an output of the replaced node; returns all nodes so far."""
        self.nodes[-1].output[place] = self.node.output[output]
        if output == 0:
            copy_marks(self.node, self.nodes[-1])
        return self.nodes

    def yields_either(
        self, condition: str, then: Callable[[], str], otherwise: Callable[[], str], element_type: int
    ) -> list[NodeProto]:
        """Append the If that yields the first output of the replaced node; returns all nodes so far.

        `then` and `otherwise` append the nodes of their branch and return the name of its result, which is of the
        element type (`TensorProto.DataType`); the condition is a single bool.
        """
        self.either(condition, then, otherwise, element_type, "if")
        return self.yields_last()

    def either(
        self, condition: str, then: Callable[[], str], otherwise: Callable[[], str], element_type: int, tail: str
    ) -> str:
        """Append an If as `yields_either` does; returns the name of its result."""
        then_branch = self._branch("then_branch", then, element_type)
        else_branch = self._branch("else_branch", otherwise, element_type)
        return self.add("If", condition, tail=tail, then_branch=then_branch, else_branch=else_branch)

    def _branch(self, name: str, write: Callable[[], str], element_type: int) -> GraphProto:
        outside, self.nodes = self.nodes, []
        result = write()
        if not any(result in node.output for node in self.nodes):
            result = self.add("Identity", result, tail=name)  # a graph yields only what it computes itself
        inside, self.nodes = self.nodes, outside
        return helper.make_graph(inside, name, [], [helper.make_tensor_value_info(result, element_type, None)])

    def graph(self, tail: str, nodes: Sequence[NodeProto], inputs: Values, outputs: Values) -> GraphProto:
        """A graph for an attribute of a node, such as the body of a Loop; it states the types of what it takes."""
        taken, yielded = ([helper.make_tensor_value_info(*value) for value in values] for values in (inputs, outputs))
        return helper.make_graph(nodes, f"{self.stem}_{tail}", taken, yielded)

    def yields_reshaped(self, data: str, shape: str, element_type: int, *, may_infer: bool = False) -> list[NodeProto]:
        """Append what brings data to a computed shape whose zeros are sizes, and yields the replaced node's output.

        For nodes written for opset 13 at most: a zero in the shape of a Reshape means the size that the data has
        there, unless allowzero=1 says otherwise, which came with opset 14. The shape may hold a -1 if `may_infer`;
        there is no zero beside it then, so that it is the zero of data without elements.
        """
        if self.scope.target_opset >= 14:
            return self.yields("Reshape", data, shape, allowzero=1)
        known = self.scope.shape(data)
        if known is not None and all(known):
            return self.yields("Reshape", data, shape)
        nothing = "" if element_type == TensorProto.STRING else 0
        zero = self.scope.add_constant(np.array(nothing, helper.tensor_dtype_to_np_dtype(element_type)), "zero")
        return self.yields_either(
            self.is_empty(data),
            lambda: self.add("Expand", zero, self._inferred_of_none(shape) if may_infer else shape, tail="nothing"),
            lambda: self.add("Reshape", data, shape, tail="reshaped"),
            element_type,
        )

    def _inferred_of_none(self, shape: str) -> str:
        is_inferred = self.add("Equal", shape, self.number(-1), tail="is_inferred")
        return self.add("Where", is_inferred, self.number(0), shape, tail="sizes")

    def is_empty(self, data: str) -> str:
        """Append the question whether a tensor has no elements; returns the name of the answer."""
        none = self.constant(0, TensorProto.INT64, "number_of_none")
        return self.add("Equal", self.add("Size", data, tail="count"), none, tail="is_empty")

    def attribute(self, name: str, default: Any = None) -> Any:
        """The value of an attribute of the node, see `value_of`; a default is as precise as an attribute, a float32."""
        return value_of(self.node, name, float(np.float32(default)) if isinstance(default, float) else default)

    def set(self, name: str, value: Any) -> None:
        """Give an attribute of the node a value."""
        set_attribute(self.node, name, value)

    def state(self, name: str, value: Any) -> None:
        """Give an attribute of the node a value, unless it has one."""
        if attribute_of(self.node, name) is None:
            set_attribute(self.node, name, value)

    def drop(self, name: str) -> None:
        """Remove an attribute of the node, if it has it."""
        drop_attribute(self.node, name)

    def element_type(self, index: int) -> int:
        """The element type of an input; refused where nothing tells it."""
        return self.scope.needed_element_type(self.node.input[index])

    def rank(self, index: int) -> int:
        """The rank of an input; refused where nothing tells it."""
        return self.scope.needed_rank(self.node.input[index])

    def shape(self, index: int) -> tuple[int | None, ...] | None:
        """The shape of an input, as far as it is known."""
        return self.scope.shape(self.node.input[index])

    def wants(self, output: int) -> bool:
        """Whether the replaced node names this output."""
        return len(self.node.output) > output and bool(self.node.output[output])

    def input(self, index: int) -> str:
        """The name of an input of the replaced node; empty where it is absent."""
        return self.node.input[index] if len(self.node.input) > index else ""

    def set_inputs(self, first: int, *names: str) -> None:
        """Let the node read these values from its input `first` on, and no others behind them."""
        del self.node.input[first:]
        self.node.input.extend(names)

    def constant(self, value: Any, element_type: int, tail: str) -> str:
        """The name of a constant of an element type (`TensorProto.DataType`).

        Raises:
            RefusedError: it is a number, and the data are strings.
        """
        if element_type == TensorProto.STRING and not isinstance(value, str):
            raise RefusedError(f"{self.node.op_type} is expressed by arithmetic, and there is none of strings")
        array = np.asarray(value).astype(helper.tensor_dtype_to_np_dtype(element_type))
        return self.scope.add_constant(array, tail)

    def integers(self, value: Any, tail: str) -> str:
        """The name of a constant of int64, such as a shape or axes."""
        return self.constant(value, TensorProto.INT64, tail)

    def number(self, value: int) -> str:
        """The name of a tensor of one int64, such as a size or a bound."""
        return self.integers([value], f"number_{value}".replace("-", "m"))

    def constant_input(self, index: int) -> Any:
        """The value of an input that is constant, as an array; None where it is absent or computed."""
        name = self.input(index)
        return self.scope.constant(name) if name else None
