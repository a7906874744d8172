"""What a rule may know about the place a node stands in, and how it adds values there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

from reducelower.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from onnx import AttributeProto, NodeProto, TensorProto, TypeProto

    from reducelower.model.numbers import Array

__all__ = ["Foldable", "Scope"]

_EXAMPLES = {"type": "float32", "rank": "3"}


class Foldable(Protocol):
    """What constants are computed from: values by name, and the nodes that yield them."""

    @property
    def opset(self) -> int:
        """Opset version that the nodes are written for."""

    def home(self, name: str) -> Foldable:
        """The graph that defines a value."""

    def whole(self, name: str) -> Array | None:
        """The value of a constant that is stated here, or known from outside; None where it has to be computed."""

    def producer(self, name: str) -> NodeProto | None:
        """The node here that yields a value."""

    def shape(self, name: str) -> tuple[int | None, ...] | None:
        """The shape of a value, None standing for a size that is not known."""

    def element_type(self, name: str) -> int | None:
        """The element type of a value; None if unknown."""


class Scope(ABC):
    """The only way for a rule to learn about the surroundings of a node, and to add to them.

    Values are referred to by the names that the node has for them. These are not their names in the model: nothing
    depends on a name, so what is found out for a node holds for every other one that gets the same answers.

    Attributes:
        opset: opset version that the node is written for.
        target_opset: opset version of the target.
        is_last_attempt: whether functions have been copied for their calls, so that what they are handed is taken as it
            comes.
        is_made: whether the node comes in place of one of the model.
    """

    is_made: ClassVar[bool]
    opset: int
    target_opset: int
    is_last_attempt: bool

    # Questions

    @abstractmethod
    def constant(self, name: str) -> Array | None:
        """The value of an initializer or Constant node, or of what small nodes compute from such.

        None for anything that depends on the model's inputs, that a caller may override, or that is large.

        Raises:
            RefusedError: it cannot be read.
        """

    @abstractmethod
    def reference(self, name: str) -> AttributeProto | None:
        """The attribute of the Constant node that yields a value, where it refers to an attribute of the function."""

    @abstractmethod
    def type(self, name: str) -> TypeProto | None:
        """The type of a value: as stated in the model, else as shape inference finds it; None if unknown."""

    @abstractmethod
    def type_string(self, name: str) -> str | None:
        """The type of a value as schemas spell it, such as ``tensor(float)``; None if unknown."""

    @abstractmethod
    def element_type(self, name: str) -> int | None:
        """The element type of a tensor (`TensorProto.DataType`); None if unknown or not a tensor."""

    @abstractmethod
    def shape(self, name: str) -> tuple[int | None, ...] | None:
        """The shape of a tensor, None standing for a size that is not a number; None if even the rank is unknown."""

    @abstractmethod
    def rank(self, name: str) -> int | None:
        """The number of dimensions of a tensor; None if unknown."""

    @abstractmethod
    def written_as(self, name: str) -> str:
        """How a value is defined.

        It is an ``initializer``, a ``constant`` (a Constant node), ``fed`` (an input of the main graph that no
        initializer stands for) or ``dynamic``: whatever else is known at run time only.
        """

    @abstractmethod
    def made_by(self, name: str) -> str:
        """The operator that yields a value; empty where no node of the graph does."""

    @abstractmethod
    def is_read(self, name: str) -> bool:
        """Whether any node or graph output, here or in a graph inside, reads a value."""

    @abstractmethod
    def is_handed_by_callers(self, name: str) -> bool:
        """Whether a value is an input of the function around."""

    @abstractmethod
    def type_inside(self, node: NodeProto, number: int, name: str) -> TypeProto | None:
        """The inferred type of a value in a subgraph of a node, by its number among them."""

    def once_written(self, work: Callable[[], object]) -> None:
        """Do something to the graphs inside the node once what they hold has been made legal."""
        work()

    def needed_element_type(self, name: str) -> int:
        """The element type of a tensor; refused where nothing tells it, with a hint on how to declare it."""
        found = self.element_type(name)
        if found is None:
            raise RefusedError(f"the element type of {name!r} is not known", self.how_to_declare(name, "type"))
        return found

    def needed_rank(self, name: str) -> int:
        """The rank of a tensor; refused where nothing tells it, with a hint on how to declare it."""
        found = self.rank(name)
        if found is None:
            raise RefusedError(f"the rank of {name!r} is not known", self.how_to_declare(name, "rank"))
        return found

    def how_to_declare(self, name: str, what: Literal["type", "rank"]) -> str:
        """The hint that tells how to make the element type or the rank of a value known."""
        return f"declare it with --{what} {name}={_EXAMPLES[what]}"

    # What a rule adds

    @abstractmethod
    def fresh(self, stem: str, tail: str) -> str:
        """A name for a new value: one that the node has or a new one as stem, and a tail such as ``/Pow/product``."""

    @abstractmethod
    def add_constant(self, value: Array, tail: str) -> str:
        """The name of a constant with this value: one initializer per value and graph, a Constant node in functions.

        Where neither may hold the value, and the constant is still read in the end, the node is refused.
        """

    @abstractmethod
    def add_reference(self, attribute: AttributeProto, value: str, tail: str) -> str:
        """The name of a Constant node that yields an attribute of the function around, as its ``value_ints`` or so.

        Raises:
            RefusedError: Constant has no such attribute below opset 12, or would have no value for some call.
        """

    @abstractmethod
    def adopt_initializer(self, name: str, tensor: TensorProto) -> None:
        """Let an initializer, or what stands for one here, hold a value that the node yielded until now.

        Raises:
            RefusedError: neither an initializer nor Constant nodes may hold it.
        """

    @abstractmethod
    def declare(self, name: str, element_type: int) -> None:
        """State the element type of a value that a rewrite makes."""

    @abstractmethod
    def state_type(self, name: str) -> None:
        """Let the graph state the type of a value, which shape inference does not find at the target's opset version.

        Values that a rewrite makes have their types stated anyway, as far as these are known.

        Raises:
            RefusedError: this is a function, whose values have no stated types.
        """

    @abstractmethod
    def release(self, *names: str) -> None:
        """Note that the node no longer reads constants, which may go if nothing else reads them; names may be empty."""
