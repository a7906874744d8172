"""The protocol through which rules ask about the surroundings of a node and add values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from onnx import TypeProto, helper

from reducelower.errors import UnknownValueError
from reducelower.model.schemas import element_type_name, type_string
from reducelower.types.sizes import is_positive

if TYPE_CHECKING:
    from collections.abc import Collection

    from onnx import NodeProto

    from reducelower.model.numbers import Array
    from reducelower.types import Known

__all__ = ["Asking", "Scope"]

_FORMS = {"type": "TYPE", "rank": "N"}


Asking: TypeAlias = Literal[
    "constant", "container", "element_type", "is_read", "is_yielded", "made_by", "rank", "shape", "written_as",
]  # fmt: skip
"""A question about one value; see the method of that name."""


class Scope(ABC):
    """The only way for a rule to learn about the surroundings of a node, and to add to them.

    Rules name values as the node does. These are not the names in the model, so no result can depend on a name, and it
    holds for every node that gets the same answers.

    Attributes:
        opset: opset version that the node is written for.
        target_opset: opset version of the target.
        is_made: whether the node is a replacement, not a node of the model.
    """

    is_made: ClassVar[bool]
    opset: int
    target_opset: int

    @property
    @abstractmethod
    def node_scope(self) -> Scope:
        """The scope of the model's node that is replaced, which gets all additions."""

    # Questions

    @abstractmethod
    def ask(self, question: Asking, name: str) -> Any:
        """The answer to a question about a value."""

    def constant(self, name: str) -> Array | None:
        """The value of an initializer or Constant node, or a value folded from these.

        None for a value that depends on the model's inputs, may be overridden by a caller, or is large.

        Raises:
            RefusedError: it cannot be read.
        """
        return self.ask("constant", name)  # type: ignore[no-any-return]

    def type(self, name: str) -> TypeProto | None:
        """The type of a value as stated, else as inferred, possibly without its rank; None if unknown."""
        element_type = self.element_type(name)
        if element_type is not None:
            return helper.make_tensor_type_proto(element_type, self.shape(name))
        container = self.container(name)
        return None if container is None else TypeProto.FromString(container)

    def container(self, name: str) -> bytes | None:
        """The type of a sequence or optional value, serialized; None for a tensor, or if it is unknown."""
        return self.ask("container", name)  # type: ignore[no-any-return]

    def type_string(self, name: str) -> str | None:
        """The type as schemas spell it, such as ``tensor(float)``; None if unknown."""
        element_type = self.element_type(name)
        if element_type is not None:
            return f"tensor({element_type_name(element_type)})"
        container = self.container(name)
        return None if container is None else type_string(TypeProto.FromString(container))

    def element_type(self, name: str) -> int | None:
        """The element type of a tensor (`TensorProto.DataType`); None if unknown or not a tensor."""
        return self.ask("element_type", name)  # type: ignore[no-any-return]

    def shape(self, name: str) -> tuple[int | None, ...] | None:
        """The shape of a tensor, with None for a size that is not a number; None if the rank is unknown."""
        return self.ask("shape", name)  # type: ignore[no-any-return]

    def rank(self, name: str) -> int | None:
        """The number of dimensions of a tensor; None if unknown."""
        return self.ask("rank", name)  # type: ignore[no-any-return]

    @abstractmethod
    def known(self, name: str) -> Known:
        """The facts about a value that follow from the nodes that compute it, with sizes as polynomials.

        Equal numbers of atoms mean the same size for all values of the node.
        """

    def never_zero(self) -> Collection[int]:
        """The atoms that are not zero whenever an output of the model depends on the node and has a result."""
        return self.node_scope.never_zero()

    def heeds_zero(self) -> bool:
        """Whether the replacement must test at run time for a zero dimension.

        Call it only where such a dimension matters: the scope notes if the result assumes that there is none.
        """
        return self.node_scope.heeds_zero()

    def may_be_empty(self, name: str) -> bool:
        """Whether a tensor may have no elements, by its sizes and assumptions; see `heeds_zero`."""
        shape, known = self.shape(name), self.known(name).shape
        if (shape is not None and all(shape)) or (known is not None and all(map(is_positive, known))):
            return False
        return self.heeds_zero()

    def written_as(self, name: str) -> str:
        """How a value is defined.

        An ``initializer``, a ``constant`` (a Constant node), ``fed`` (an input of the main graph without initializer),
        or ``dynamic`` (known at run time only).
        """
        return self.ask("written_as", name)  # type: ignore[no-any-return]

    def made_by(self, name: str) -> str:
        """The operator that computes a value; empty if no node of the graph does."""
        return self.ask("made_by", name)  # type: ignore[no-any-return]

    def is_read(self, name: str) -> bool:
        """Whether any node or output, here or in a subgraph, reads a value."""
        return self.ask("is_read", name)  # type: ignore[no-any-return]

    def is_yielded(self, name: str) -> bool:
        """Whether a value is an output of the main graph."""
        return self.ask("is_yielded", name)  # type: ignore[no-any-return]

    @abstractmethod
    def type_inside(self, node: NodeProto, number: int, name: str) -> TypeProto | None:
        """The inferred type of a value in a node's subgraph, given by its number among the node's subgraphs."""

    def needed_element_type(self, name: str) -> int:
        """The element type of a tensor.

        Raises:
            UnknownValueError: it is unknown; the hint says how to declare it.
        """
        element_type = self.element_type(name)
        if element_type is None:
            raise UnknownValueError(f"the element type of {name!r} is not known", self.how_to_declare(name, "type"))
        return element_type

    def needed_rank(self, name: str) -> int:
        """The rank of a tensor.

        Raises:
            UnknownValueError: it is unknown; the hint says how to declare it.
        """
        rank = self.rank(name)
        if rank is None:
            raise UnknownValueError(f"the rank of {name!r} is not known", self.how_to_declare(name, "rank"))
        return rank

    def how_to_declare(self, name: str, what: Literal["type", "rank"]) -> str:
        """The hint how to declare the element type or rank of a value."""
        return f"declare it with --{what} {name}={_FORMS[what]}"

    # Additions

    def fresh(self, stem: str, tail: str) -> str:
        """A new name made of a stem, which is a name of the node or a new one, and a tail such as ``/Pow/product``."""
        return self.node_scope.fresh(stem, tail)

    def add_constant(self, value: Array, tail: str) -> str:
        """Add a constant and return its name: one initializer per value and graph, or a Constant node.

        The node is refused if neither can hold the value and the result still reads it.
        """
        return self.node_scope.add_constant(value, tail)
