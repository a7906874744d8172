"""A graph with the names of the model: facts about its values, and additions. Rules do not see it, but a `Scope`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from copy import deepcopy
from functools import cached_property
from typing import TYPE_CHECKING

from onnx import GraphProto, NodeProto, TensorProto, TypeProto

from reducelower.errors import RefusedError
from reducelower.model.attributes import make_node
from reducelower.model.columns import NodeColumns
from reducelower.model.numbers import value_key
from reducelower.types.graphs import Graph
from reducelower.types.known import Known, in_own_names
from reducelower.types.sizes import numbers_of
from reducelower.types.witnesses import Witnesses

if TYPE_CHECKING:
    from reducelower.model.numbers import Array
    from reducelower.scope.ground import Ground, Stored
    from reducelower.types import GraphKey

__all__ = ["GraphScope"]


_SMALL = 16
"""The most elements of a constant that counts as small."""


class GraphScope(Graph):
    """A graph of the source, which nobody edits, with all that rules may ask about its values, and additions to it."""

    def __init__(
        self,
        ground: Ground,
        edited: GraphProto,
        opset: int,
        path: str = "graph",
        *,
        key: GraphKey = (),
    ) -> None:
        """Open the scope of a graph.

        `edited` is the graph in the copy that is edited, `path` is what users see, such as ``graph/If_3.then_branch``.
        The scope of the enclosing graph must be open.
        """
        super().__init__(*ground.resolver.place(key))
        ground.resolver.put(self)
        self.ground = ground
        self.opset = opset
        self.path = path
        self.edited = edited
        self.columns = NodeColumns.of(self.holder.node) if key else ground.source.columns.main_nodes
        self.added_nodes: list[NodeProto] = []
        self._constants: dict[str, Stored | None] = {}
        self._added: dict[Hashable, str] = {}
        self._added_names: set[str] = set()

    def home(self, name: str) -> GraphScope:
        """The graph that defines a value: this one or an enclosing one."""
        return self if self.around is None else super().home(name)  # type: ignore[return-value]  # all are scopes

    # For the resolver

    def value(self, name: str) -> Array | None:
        """The value of an initializer or Constant node of this graph; None for anything else."""
        stored = self._stored(name)
        return None if stored is None else stored.array

    def version(self, domain: str) -> int | None:
        """The opset version of a domain; None if unknown."""
        return super().version(domain) if domain else self.opset

    def _stored(self, name: str) -> Stored | None:
        """The value of an initializer or Constant node; None for anything else.

        Raises:
            RefusedError: it cannot be read.
        """
        ground = self.ground
        tensor = self.constant_tensor(name)
        if tensor is None:
            return None
        if self._is_overridable(name):
            ground.frozen.add(name)
        return ground.values.of_tensor(tensor, ground.data_folder)

    def positions_of(self, op_type: str) -> Sequence[int]:
        """The positions of the nodes of an operator, of any domain, without a look at all others of a large graph."""
        operators, name = self.columns.operators, op_type.encode()
        if name not in operators or len(operators) < len(self.columns.data):  # a node without operator
            return super().positions_of(op_type) if name in operators else ()
        return [at for at, each in enumerate(operators) if each == name]

    def _is_overridable(self, name: str) -> bool:
        """Whether an initializer is only the default of a graph input, which callers may override."""
        return not self.key and self.ground.overridable and name in self.inputs

    # Questions about a value; all answers are comparable

    def constant(self, name: str) -> Stored | None:
        """See `Scope.constant`."""
        home = self.home(name)
        if name not in home._constants:
            constant = home._stored(name)
            if constant is None:
                value = self.ground.resolver.ask(home, "constant", name)
                constant = None if value is None else self.ground.values.of(value)
            home._constants[name] = constant
        return home._constants[name]

    def readable_constant(self, name: str) -> Stored | None:
        """The same; None if the value cannot be read."""
        try:
            return self.constant(name)
        except RefusedError:
            return None

    def small_constant(self, name: str) -> Stored | None:
        """The value of a constant of few elements; None for any other value.

        Weights differ from node to node: if rules asked for their values, no two nodes could share a result.
        """
        constant = self.readable_constant(name)
        return constant if constant is not None and constant.array.size <= _SMALL else None

    def element_type(self, name: str) -> int | None:
        """The element type of a tensor (`TensorProto.DataType`); None if unknown or not a tensor."""
        home = self.home(name)
        # What is stated, the resolver would answer as well, after a look at all nodes.
        return home.stated_type(name).element_type or self.ground.resolver.ask(home, "element_type", name)

    def container(self, name: str) -> bytes | None:
        """The type of a sequence or optional value, serialized; None for a tensor, or if it is unknown."""
        return self.ground.resolver.ask(self, "container", name)  # type: ignore[no-any-return]

    def shape(self, name: str) -> tuple[int | None, ...] | None:
        """The shape of a tensor, with None for a size that is not a number; None if the rank is unknown."""
        shape = self.ground.resolver.ask(self, "shape", name)
        return None if shape is None else numbers_of(shape)

    def rank(self, name: str) -> int | None:
        """The number of dimensions of a tensor; None if unknown."""
        return self.ground.resolver.ask(self, "rank", name)  # type: ignore[no-any-return]

    def written_as(self, name: str) -> str:
        """See `Scope.written_as`."""
        home = self.home(name)
        if home.constant_node(name) is not None:
            return "constant"
        if home.tensor(name) is not None:
            return "dynamic" if home._is_overridable(name) else "initializer"
        return "fed" if name in home.inputs and home.around is None else "dynamic"

    def made_by(self, name: str) -> str:
        """The operator that computes a value; empty if no node does."""
        node = self.home(name).producer(name)
        return "" if node is None else node.op_type

    def is_read(self, name: str) -> bool:
        """Whether any node or output of this graph or a subgraph reads a value that this graph defines."""
        return name in self.home(name).read

    def is_yielded(self, name: str) -> bool:
        """Whether a value is an output of the main graph."""
        home = self.home(name)
        return home.around is None and name in home._output_names

    @cached_property
    def _output_names(self) -> list[str]:
        return [value.name for value in self.holder.output]

    def known(self, name: str) -> Known:
        """See `Scope.known`."""
        return self.ground.resolver.known(name, self)

    def known_of(self, names: tuple[str, ...]) -> tuple[Known, ...]:
        """See `known`; for several values, with atoms numbered in order of appearance."""
        return in_own_names(map(self.known, names))[0]

    def never_zero(self, names: tuple[str, ...]) -> frozenset[int]:
        """The atoms (numbered as in `known_of`) that are not zero whenever the node that computes the last value is
        of use; see `Scope.never_zero`."""
        place = self.positions.get(names[-1])
        if self.key or place is None:
            return frozenset()
        if self.ground.witnesses is None:
            self.ground.witnesses = Witnesses(self.holder.node, self.known, self._output_names)
        atoms = self.ground.witnesses.never_zero(place)
        numbers = in_own_names(map(self.known, names))[1]
        return frozenset(number for atom, number in numbers.items() if atom in atoms)

    # Questions about the surroundings

    def type_inside(self, node: NodeProto, number: int, name: str) -> TypeProto | None:
        """The type of a value in a node's subgraph, given by its number among the node's subgraphs."""
        inside = self.inside(node)
        return self.ground.resolver.type(name, inside[number]) if number < len(inside) else None

    # Additions

    def defines(self, name: str) -> bool:
        """Whether the graph defines a value, perhaps as an added constant."""
        return name in self._added_names or super().defines(name)

    def add_constant(self, value: Array, tensor: TensorProto, tail: str) -> str:
        """Add a constant and return its name: one initializer or Constant node per value and graph."""
        key = value_key(value)
        name = self._added.get(key)
        if name is None:
            name = self._added[key] = self.ground.names.fresh("", tail)
            self._added_names.add(name)
            kept = deepcopy(tensor)
            kept.name = name
            if self.ground.writes_initializers:
                self.edited.initializer.append(kept)
            else:
                self.added_nodes.append(make_node("Constant", [], [name], value=kept))
        return name
