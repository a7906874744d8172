"""A graph or function body of the model: what is known about its values, and how it is added to.

This is the engine's own view, with the names of the model. Rules do not see it; they ask a `Scope`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from copy import deepcopy
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from onnx import (
    FunctionProto,
    GraphProto,
    NodeProto,
    TensorProto,
    TypeProto,
)

from reducelower.errors import RefusedError
from reducelower.model.attributes import refuse_reference
from reducelower.model.constants import tensor_of
from reducelower.model.graph import read_by
from reducelower.model.inference.declared import declared_type
from reducelower.model.nodelist import NodeList
from reducelower.model.skeleton import LARGEST_KEPT
from reducelower.model.value_info import NOTHING_STATED, StatedType, entry, stated_type, tensor_type
from reducelower.scope.constants import constant_nodes, constant_takes
from reducelower.scope.fold import LARGEST
from reducelower.scope.ground import Ground
from reducelower.scope.stated import StatedTypes, places
from reducelower.scope.values import read_tensor, value_key
from reducelower.types.known import LONGEST, Known, in_own_names
from reducelower.types.sizes import numbers_of
from reducelower.types.witnesses import Witnesses

if TYPE_CHECKING:
    from reducelower.model.numbers import Array
    from reducelower.types import Graph, GraphKey, Source

__all__ = ["LARGEST_SHAPE", "Described", "GraphScope"]


class Described(NamedTuple):
    """What inference gets to know about a value: its serialized type, and the number of its constant value (see
    `Values`), 0 if unknown."""

    type: bytes
    number: int


_Found = TypeVar("_Found")

_INTEGERS = (TensorProto.INT32, TensorProto.INT64)

_SMALL = 16
"""The most elements of a constant that counts as small."""

LARGEST_SHAPE = 64
"""Inference gets the values of integer vectors of at most this length, which may be shapes."""


class GraphScope:
    """A graph or function body: its constants, the types of its values, the enclosing scope.

    Names resolve as in ONNX: a subgraph sees the values of enclosing graphs unless it defines the name itself; a
    function sees nothing from outside.
    """

    def __init__(
        self,
        ground: Ground,
        holder: GraphProto | FunctionProto,
        opset: int,
        path: str,
        parent: GraphScope | None = None,
        *,
        key: GraphKey,
        nodes: NodeList | None = None,
    ) -> None:
        """Open the scope of a graph or function body.

        Args:
            ground: shared by all scopes of the run.
            holder: the graph or function.
            opset: opset version its nodes are written for.
            path: graph path shown to users, such as ``graph/If_3.then_branch``.
            parent: the scope that encloses a subgraph.
            key: the key of this graph.
            nodes: its nodes, if `holder` does not hold them.
        """
        self.ground = ground
        self.holder = holder
        self.node_list = NodeList.of_holder(holder) if nodes is None else nodes
        self.opset = opset
        self.path = path
        self.parent = parent
        self.key = key
        self.place: Hashable = key
        """The same to the resolver: this graph has it in every pass over it."""
        self.is_graph = isinstance(holder, GraphProto)
        """Whether this is a graph, which can state types; a function body cannot."""
        self.is_function: bool = isinstance(holder, FunctionProto) if parent is None else parent.is_function
        """Whether this is the body of a model-local function, or a subgraph inside one."""
        self.writes_initializers = self.is_graph and ground.initializers_stand_alone and not self.is_function
        """Whether added constants become initializers; otherwise Constant nodes."""
        self.stated = StatedTypes(holder, ground.stated if key == () else None)
        self.added_nodes: list[NodeProto] = []
        self.released: set[str] = set()
        """Values that some node no longer reads."""
        self.computed: set[str] = set()
        """Names of computed values that may be no longer needed: folded constants, and sizes."""
        self.deferred: list[Callable[[], object]] = []
        """Edits of subgraphs to make after their nodes have been legalized."""
        self.constant_nodes: dict[str, tuple[int, NodeProto]] = {}
        self._constants: dict[str, int] = {}
        self._node_values: dict[int, int] = {}
        self._described: dict[str, Described | None] = {}
        self._added: dict[Hashable, str] = {}
        self._adopted: dict[str, TensorProto] = {}

    @property
    def root(self) -> GraphScope:
        """The main graph or function body that encloses this one."""
        # Not cached: a reference cycle would keep the weights until the garbage collector runs.
        return self if self.parent is None else self.parent.root

    # Where a value is defined

    def home(self, name: str) -> GraphScope:
        """The scope that defines a value: this one or an enclosing one."""
        scope = self
        while scope.parent is not None and name not in scope._defined:
            scope = scope.parent
        return scope

    @cached_property
    def _defined(self) -> set[str]:
        """The values that this graph defines, if it is a subgraph."""
        holder = self.holder
        if self.parent is None:
            return set()  # every name that no subgraph defines belongs here
        defined = {*self.initializers, *self.inputs}
        if isinstance(holder, GraphProto):
            defined.update(tensor.values.name for tensor in holder.sparse_initializer)
        for node in self.node_list:
            defined.update(node.output)
        return defined

    def _initializer(self, name: str) -> TensorProto | None:
        """The initializer of this graph with that name, an added one included."""
        added = self._adopted.get(name)
        place = self.initializers.get(name)
        if added is not None or place is None or not isinstance(self.holder, GraphProto):
            return added
        return self.holder.initializer[place]

    def _tensor(self, name: str) -> TensorProto | None:
        """What an initializer or Constant node of this graph holds."""
        if self._holds(name):
            return self._initializer(name)
        return tensor_of(self.constant_nodes[name][1]) if name in self.constant_nodes else None

    def _holds(self, name: str) -> bool:
        return name in self._adopted or name in self.initializers

    @cached_property
    def initializers(self) -> dict[str, int]:
        """Positions of the initializers by name; see `stated_places`."""
        return places(self.holder.initializer) if isinstance(self.holder, GraphProto) else {}

    @cached_property
    def inputs(self) -> frozenset[str]:
        """The names of the inputs of the graph or function."""
        return frozenset(value if isinstance(value, str) else value.name for value in self.holder.input)

    def producer(self, name: str) -> NodeProto | None:
        """The node of this graph that computes a value, before any rewrite."""
        index = self.node_list.position(name)
        return None if index is None else self.node_list.source(index)

    def position(self, name: str) -> int | None:
        """The position of the node of this graph that computes a value."""
        return self.node_list.position(name)

    def whole(self, name: str) -> Array | None:
        """The value of an initializer or Constant node of this graph; None for anything else."""
        return self.ground.values[self.stated_constant(name)]

    def is_overridable(self, name: str) -> bool:
        """Whether an initializer is only the default of a graph input, which callers may override."""
        is_given = name in self.inputs and self.ground.overridable
        return is_given and self.parent is None and isinstance(self.holder, GraphProto)

    # Questions about a value; all answers can be compared

    def constant(self, name: str) -> Array | None:
        """The value of an initializer or Constant node, or one folded from such; None for others."""
        return self.ground.values[self.constant_number(name)]

    def constant_number(self, name: str) -> int:
        """The number (see `Values`) of a constant's value; 0 if it is not constant.

        A value that depends on the model's inputs, may be overridden by a caller, or is large is not constant.
        """
        home = self.home(name)
        number = home._constants.get(name)
        if number is None:
            number = home.stated_constant(name)
            if not number:
                value = self.ground.folding.value(name, home)
                if value is not None:
                    number = self.ground.values.number(value)
                    home.computed.add(name)
            home._constants[name] = number
        return number

    def readable_number(self, name: str) -> int:
        """The number of a constant's value as `constant_number` gives it, but 0 if the value cannot be read."""
        try:
            return self.constant_number(name)
        except RefusedError:
            return 0

    def small_constant_number(self, name: str) -> int:
        """The number of a constant's value if it has few elements; 0 for any other value.

        Weights differ from node to node; asked for their values, each node would be worked out by itself.
        """
        number = self.readable_number(name)
        value = self.ground.values[number]
        return number if value is not None and value.size <= _SMALL else 0

    def small_stated_number(self, name: str) -> int:
        """The same of an initializer or Constant node only."""
        home = self.home(name)
        is_stated = name in home.constant_nodes or name in home.initializers
        return self.small_constant_number(name) if is_stated else 0

    def stated_constant(self, name: str) -> int:
        """The number of the value of an initializer or Constant node of this graph; 0 for anything else.

        Raises:
            RefusedError: it cannot be read.
        """
        tensor = self._initializer(name)
        if tensor is None:
            found = self.constant_nodes.get(name)
            return 0 if found is None else self._value_of_node(found[1])
        if name in self.inputs and self.is_overridable(name):
            if not self.ground.freeze_defaults:
                return 0
            self.ground.frozen.add(name)
        dims = tuple(tensor.dims[:])  # slicing to a list halves the time
        size = prod(dims)
        if size > LARGEST:
            return 0
        if size > LARGEST_KEPT and self.key == ():
            tensor = self.ground.weight(name) or tensor
        if tensor.data_location == TensorProto.EXTERNAL:
            folder = self.ground.data_folder
            return 0 if folder is None else self.ground.values.number(read_tensor(tensor, folder))
        return self.ground.values.number_of_tensor(tensor, dims)

    def _value_of_node(self, node: NodeProto) -> int:
        """The number of a Constant node's value; equal nodes may share one object."""
        key = id(node)
        if key not in self._node_values:
            number = 0
            if node.attribute:
                attribute = node.attribute[0]
                refuse_reference(attribute)
                dims = {"value": attribute.t.dims, "sparse_value": attribute.sparse_tensor.dims}.get(attribute.name, ())
                if prod(dims) <= LARGEST:
                    number = self.ground.values.number_of_attribute(attribute, self.ground.data_folder)
            self._node_values[key] = number
        return self._node_values[key]

    def described(self, name: str) -> Described | None:
        """What inference needs to know about a value: its type, and its value if it may be a shape.

        None unless its type is stated, or follows from its stated value.
        """
        home = self.home(name)
        if name not in home._described:
            home._described[name] = home._describe(name)
        return home._described[name]

    def _describe(self, name: str) -> Described | None:
        tensor = self._tensor(name)
        value_type = self.stated.type(name) if tensor is None else tensor_type(tensor)
        found = NOTHING_STATED if value_type is None else stated_type(value_type)
        if not found.is_known:
            return None
        sizes = found.sizes if found.element_type in _INTEGERS else None
        may_be_shape = sizes is not None and len(sizes) < 2
        is_small = may_be_shape and all(isinstance(size, int) and size <= LARGEST_SHAPE for size in sizes or ())
        return Described(found.plain, self.readable_number(name) if is_small else 0)

    def type(self, name: str) -> TypeProto | None:
        """The type of a value, of which the rank may be left open; None if unknown."""
        return self._checked(name, self.ground.resolver.type(name, self, may_lack_rank=True))

    def type_bytes(self, name: str) -> bytes | None:
        """The serialized type of a value; None if unknown."""
        found = self.type(name)
        return None if found is None else found.SerializeToString()

    def element_type(self, name: str) -> int | None:
        """The element type of a tensor (`TensorProto.DataType`); None if unknown or not a tensor."""
        home = self.home(name)
        if name not in self.ground.element_types:
            tensor = home._tensor(name)
            stated = home.stated.type(name) if tensor is None else None
            said = tensor.data_type if tensor is not None else 0 if stated is None else stated.tensor_type.elem_type
            if said:
                return said  # as the resolver says, which takes five times as long
        found = self.ground.resolver.element_type(name, home)
        if not found:
            self.type(name)  # of another kind, or unknown
        return found or None

    def shape(self, name: str) -> tuple[int | None, ...] | None:
        """The shape of a tensor, with None for a size that is not a number; None if the rank is unknown."""
        found = self._checked(name, self.ground.resolver.shape(name, self))
        return None if found is None else numbers_of(found)

    def rank(self, name: str) -> int | None:
        """The number of dimensions of a tensor; None if unknown."""
        return self._checked(name, self.ground.resolver.rank(name, self))

    def _checked(self, name: str, found: _Found | None) -> _Found | None:
        """An answer of the resolver; if there is none, what the model states wrongly may be why."""
        home = self.home(name)
        self.ground.lacks_types = self.ground.lacks_types or (home._tensor(name) is None and name not in home.stated)
        if found is None:
            self.ground.source.check()
        return found

    def written_as(self, name: str) -> str:
        """See `Scope.written_as`."""
        home = self.home(name)
        if name in home.constant_nodes:
            return "constant"
        if home._holds(name):
            return "dynamic" if home.is_overridable(name) else "initializer"
        return "fed" if name in home.inputs and home.parent is None and not home.is_function else "dynamic"

    def made_by(self, name: str) -> str:
        """The operator that computes a value; empty if no node does."""
        node = self.home(name).producer(name)
        return "" if node is None else node.op_type

    def is_read(self, name: str) -> bool:
        """Whether any node or output of this graph or a subgraph reads a value that this graph defines."""
        home = self.home(name)
        return home._has_output(name) or any(name in read_by(node) for node in home.node_list.nodes_containing(name))

    def is_yielded(self, name: str) -> bool:
        """Whether a value is an output of the main graph or function."""
        home = self.home(name)
        return home.parent is None and home._has_output(name)

    def _has_output(self, name: str) -> bool:
        return name in self._output_names

    @property
    def _output_names(self) -> list[str]:
        return [value if isinstance(value, str) else value.name for value in self.holder.output]

    def is_function_input(self, name: str) -> bool:
        """Whether a value is an input of the enclosing function."""
        return self.is_function and name in self.root.inputs

    # For the resolver, and through it

    @property
    def _before(self) -> Graph:
        """This graph before any rewrite."""
        return self.ground.source.graphs.graph(self.key)

    def held(self, name: str) -> Known | None:
        """What is known about a constant of this graph; None for any other value."""
        tensor = self._tensor(name)
        if tensor is None or (self.is_overridable(name) and not self.ground.freeze_defaults):
            return None
        try:
            value = self.whole(name) if prod(tensor.dims) <= LONGEST else None
        except RefusedError:  # what needs the value is refused
            value = None
        return Known.of_constant(tensor.data_type, tensor.dims, value)

    def stated_type(self, name: str) -> StatedType:
        """What this graph states of a value or the user declared."""
        stated = self.stated.type(name)
        if name in self.ground.element_types or name in self.ground.ranks:
            stated = declared_type(stated, self.ground.element_types.get(name), self.ground.ranks.get(name))
        return NOTHING_STATED if stated is None else stated_type(stated)

    def handed(self, name: str) -> Sequence[Source]:
        """The values outside that become an input of this subgraph or function."""
        return self._before.handed(name)

    def readers(self, name: str) -> Sequence[NodeProto]:
        """The nodes of this graph that read a value, before any rewrite."""
        return self._before.readers(name)

    def version(self, domain: str) -> int | None:
        """The version of a domain's operators; None if it is not known."""
        if not domain:
            return self.opset
        return self._before.version(domain)

    def note_trusted(self, name: str) -> None:
        """Note that what this graph states for a value was used; for an input there is nothing else."""
        self.ground.trusts_sizes = self.ground.trusts_sizes or name not in self.inputs

    def inside(self, node: NodeProto) -> Sequence[tuple[Graph, Sequence[str]]]:
        """The subgraphs of a node, or the function it calls, each with the names of its outputs."""
        return self._before.inside(node)

    def known(self, name: str) -> Known:
        """What is known about a value from the nodes that compute it, with sizes as names."""
        return self.ground.resolver.known(name, self)

    def counted(self, name: str) -> Array | None:
        """The value of a small vector of sizes, if all of them are known numbers."""
        return self.known(name).counted

    def known_of(self, names: tuple[str, ...]) -> tuple[Known, ...]:
        """The same of several values, with atoms numbered in order of appearance."""
        return in_own_names(map(self.known, names))[0]

    def never_zero(self, names: tuple[str, ...]) -> frozenset[int]:
        """The atoms, numbered as in `known_of`, that are not zero wherever the node that computes the last value is of
        use."""
        place = self.position(names[-1])
        if self.parent is not None or self.key != () or place is None:
            return frozenset()
        if self.ground.witnesses is None:
            self.ground.witnesses = Witnesses(list(self.node_list.sources()), self.known, self._output_names)
        atoms = self.ground.witnesses.never_zero(place)
        numbers = in_own_names(map(self.known, names))[1]
        return frozenset(number for atom, number in numbers.items() if atom in atoms)

    # Questions about the surroundings

    def type_inside(self, node: NodeProto, number: int, name: str) -> TypeProto | None:
        """The type of a value in a node's subgraph, given by its number among the node's subgraphs."""
        inside = self.inside(node)
        return self.ground.resolver.type(name, inside[number][0]) if number < len(inside) else None

    # Additions

    def may_hold(self, element_type: int) -> bool:
        """Whether a constant of an element type can be added directly: Constant takes floats only before opset 9."""
        return self.writes_initializers or constant_takes(element_type, self.ground.opset)

    def add_constant(self, value: Array, tensor: TensorProto, tail: str) -> str:
        """Add a constant and return its name: one initializer per value and graph; in functions a Constant node."""
        key = value_key(value)
        name = self._added.get(key)
        if name is None:
            name = self._added[key] = self.ground.names.fresh("", tail)
            self.adopt_constant(name, tensor)
        return name

    def adopt_constant(self, name: str, tensor: TensorProto) -> None:
        """Add an initializer or Constant node under a given name, and know its value from now on."""
        kept = deepcopy(tensor)
        kept.name = name
        self._adopted[name] = kept
        self._constants.pop(name, None)
        self._described.pop(name, None)
        self.ground.resolver.forget(name, self)
        self._defined.add(name)
        if isinstance(self.holder, GraphProto) and self.writes_initializers:
            self.holder.initializer.append(kept)
        else:
            nodes = constant_nodes(name, kept, self.ground.opset, self.ground.names)
            assert nodes is not None
            self.added_nodes += nodes

    def state(self, name: str, value_type: bytes) -> None:
        """State the type of a value, unless it is stated already or this is a function."""
        if self.is_graph and name not in self.stated:
            self.stated.add(entry(name.encode(), value_type))
            self._described.pop(name, None)

    def drop_positions(self, names: Collection[str]) -> None:
        """Drop cached positions after constants or value_info entries were removed."""
        self._added = {key: name for key, name in self._added.items() if name not in names}
        self.stated.drop_positions()
        self.__dict__.pop("initializers", None)

    def release(self, name: str) -> None:
        """Record that a node no longer reads a value, which can be removed if nothing else reads it."""
        home = self.home(name)
        home.released.add(name)
        if not home._holds(name) and name not in home.constant_nodes:
            home.computed.add(name)
