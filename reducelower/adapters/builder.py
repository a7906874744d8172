"""A writer for the nodes that replace one node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np
from onnx import AttributeProto, NodeProto, TensorProto, helper

from reducelower.errors import RefusedError
from reducelower.model.attributes import copy_marks, drop_attribute, make_node, set_attribute, value_of
from reducelower.scope.body import AnyScope

__all__ = ["MOST_NODES", "MOST_NUMBERS", "TO_THE_END", "Writer"]

Attributes: TypeAlias = Iterable[AttributeProto]

TO_THE_END = 2**31 - 1
"""An end for Slice beyond any size."""

MOST_NUMBERS = 1 << 22
"""Most numbers that may be written into the model in place of one node, in tables such as indices or weights."""

MOST_NODES = 100_000
"""Most nodes that may be written in place of one."""


class Writer:
    """The node that an adapter replaces, its scope, and methods that write the new nodes.

    ``mean = op.add("ReduceMean", x, axes=[-1])`` appends a node and names its output after the node replaced;
    ``op.yields("Add", mean, bias)`` appends the node that computes the output of the node replaced. The nodes are in
    ``op.nodes``.
    """

    def __init__(self, node: NodeProto, scope: AnyScope) -> None:
        self.node = node
        self.scope = scope
        self.nodes: list[NodeProto] = []
        self.stem = node.name or next(filter(None, node.output), "")
        self._numbers = 0
        self._written = 0

    def fresh(self, tail: str) -> str:
        """A fresh name for a value, derived from the node replaced."""
        return self.scope.fresh(self.stem, f"/{self.node.op_type}/{tail}")

    def add(self, op_type: str, *inputs: str, tail: str = "", copied: Attributes = (), **attributes: Any) -> str:
        """Append a node with one output and return its name. `copied` are attributes of another node."""
        return self.add_many(op_type, inputs, (tail or op_type.lower(),), copied=copied, **attributes)[0]

    def add_many(
        self, op_type: str, inputs: Sequence[str], tails: Sequence[str], copied: Attributes = (), **attributes: Any
    ) -> list[str]:
        """Append a node with an output per tail and return their names; an empty tail stands for an absent output."""
        outputs = [self.fresh(tail) if tail else "" for tail in tails]
        made = make_node(op_type, inputs, outputs, **attributes)
        made.name = next(filter(None, outputs), "")
        made.attribute.extend(copied)
        self._append(made)
        return outputs

    def _append(self, node: NodeProto) -> None:
        self._written += 1
        if self._written > MOST_NODES:
            raise RefusedError(f"it takes more than {MOST_NODES:,} nodes to write it out")
        self.nodes.append(node)

    def make_room(self, *sizes: int) -> None:
        """Count a table of numbers before it is made.

        Raises:
            RefusedError: with it, the tables in place of the node would hold more than `MOST_NUMBERS`.
        """
        self._numbers += prod(max(size, 0) for size in sizes)
        if self._numbers > MOST_NUMBERS:
            shape = " x ".join(f"{size:,}" for size in sizes)
            raise RefusedError(
                f"it takes a table of {shape} numbers to write it out, and {MOST_NUMBERS:,} in all are the most"
            )

    def yields(
        self, op_type: str, *inputs: str, output: int = 0, copied: Attributes = (), **attributes: Any
    ) -> list[NodeProto]:
        """Append the node that computes an output of the node replaced; return all nodes so far."""
        node = make_node(op_type, inputs, [self.node.output[output]], **attributes)
        node.attribute.extend(copied)
        if output == 0:
            copy_marks(self.node, node)
        else:  # a node of the model may have the name of the value
            node.name = self.fresh(f"output_{output}")
        self._append(node)
        return self.nodes

    def cast(self, name: str, source: int, goal: int, tail: str) -> str:
        """The name of a value after a cast; its own name if the types are the same."""
        return name if source == goal else self.add("Cast", name, tail=tail, to=goal)

    def yields_cast(self, name: str, source: int, goal: int) -> list[NodeProto]:
        """Make a value, after a cast, the output of the node replaced; return all nodes so far."""
        return self.yields_value(name) if source == goal else self.yields("Cast", name, to=goal)

    def yields_value(self, name: str) -> list[NodeProto]:
        """Make a value the first output of the node replaced; return all nodes so far."""
        if not self.nodes or self.nodes[-1].output[:] != [name]:
            return self.yields("Identity", name)
        self.nodes[-1].output[0] = self.node.output[0]
        copy_marks(self.node, self.nodes[-1])
        return self.nodes

    def attribute(self, name: str, default: Any = None) -> Any:
        """The value of an attribute (see `value_of`); a default is rounded to float32, as attributes are."""
        return value_of(self.node, name, float(np.float32(default)) if isinstance(default, float) else default)

    def set(self, name: str, value: Any) -> None:
        """Set an attribute of the node."""
        set_attribute(self.node, name, value)

    def drop(self, name: str) -> None:
        """Remove an attribute of the node, if it is set."""
        drop_attribute(self.node, name)

    def element_type(self, index: int) -> int:
        """The element type of an input; refused if it is unknown."""
        return self.scope.needed_element_type(self.node.input[index])

    def rank(self, index: int) -> int:
        """The rank of an input; refused if it is unknown."""
        return self.scope.needed_rank(self.node.input[index])

    def shape(self, index: int) -> tuple[int | None, ...] | None:
        """The shape of an input, with None for unknown sizes; None if the rank is unknown."""
        return self.scope.shape(self.node.input[index])

    def input(self, index: int) -> str:
        """The name of an input of the node replaced; empty if it is absent."""
        return self.node.input[index] if len(self.node.input) > index else ""

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
        """The value of a constant input; None if it is absent or computed."""
        name = self.input(index)
        return self.scope.constant(name) if name else None
