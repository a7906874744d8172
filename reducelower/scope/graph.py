"""A graph or function body of the model: what is known of its values, and where what is added goes.

This is the engine's own view, under the names that values have in the model. Rules do not see it: what they may know,
they ask a `Scope`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from copy import deepcopy
from functools import cached_property
from itertools import count
from math import prod
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
    numpy_helper,
)

from reducelower.errors import RefusedError
from reducelower.model.build import make_node
from reducelower.model.census import Stated
from reducelower.model.element_types import follow, told_by
from reducelower.model.graph import read_by
from reducelower.model.inference import GraphKey
from reducelower.model.names import Names
from reducelower.model.nodelist import NodeList, ParsedNodes, SerializedNodes
from reducelower.model.numbers import FIRST_FLOATS
from reducelower.model.schemas import element_type_name, type_string
from reducelower.model.skeleton import LARGEST_KEPT
from reducelower.model.value_info import entry, tensor_type
from reducelower.scope.fold import LARGEST
from reducelower.scope.ground import Ground, KnownType
from reducelower.scope.values import read_tensor, tensor_of, value_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reducelower.model.numbers import Array
    from reducelower.scope.ranks import Followed

__all__ = ["LARGEST_SHAPE", "Described", "GraphScope", "as_doubles", "as_vector", "constant_nodes"]

_CONSTANT_TAKES_ALL = 9
"""Opset version from which on Constant takes every element type; below it takes floats only."""

_CAST_IS_INFERRED = 6

_EXACT_IN_DOUBLE = 2.0**53
"""Up to here a double holds every integer."""


def _told(value: tuple[GraphScope, str]) -> int | list[tuple[GraphScope, str]]:
    """What the graph that defines a value tells of its element type; see `follow`."""
    home, name = value
    declared = home.ground.element_types.get(name)
    if declared is not None:
        return declared
    stated = home._stated_type(name)
    known = None if stated is None else home.ground.known_type(stated)
    if known is not None and (known.is_whole or known.element_type is not None):
        return known.element_type or 0
    tensor = home._initializer(name)
    if tensor is not None:
        return tensor.data_type
    constant = home.constant_nodes.get(name)
    node = home.producer(name) if constant is None else constant[1]
    told = 0 if node is None or home.key is None else told_by(node, name, home.opset)
    return told if isinstance(told, int) else [(home.home(each), each) for each in told]


class Described(NamedTuple):
    """What inference is told of a value: its type, serialized, and its number (see `Values`), 0 if not known."""

    type: bytes
    number: int


_INTEGERS = (TensorProto.INT32, TensorProto.INT64)

LARGEST_SHAPE = 64
"""How many elements a vector of integers has at most of which inference is told the value, for it may be a shape."""


class GraphScope:
    """A graph or function body: its constants, the types of its values, the scope around it.

    Names resolve the way ONNX resolves them: a subgraph sees the values of the graphs around it unless it defines the
    name itself; a function sees nothing from outside.
    """

    def __init__(
        self,
        ground: Ground,
        holder: GraphProto | FunctionProto,
        opset: int,
        path: str,
        parent: GraphScope | None = None,
        key: GraphKey | None = None,
        nodes: NodeList | None = None,
    ) -> None:
        """Open the scope of a graph or function body.

        Args:
            ground: what all scopes of the run share.
            opset: opset version its nodes are written for.
            path: graph path shown to people, such as ``graph/If_3.then_branch``.
            parent: scope around a subgraph.
            key: where shape inference keeps the types of this graph; None where it has none.
            nodes: its nodes, where `holder` does not hold them.
        """
        self.ground = ground
        self.holder = holder
        self.node_list: NodeList = ParsedNodes(holder.node) if nodes is None else nodes
        self.opset = opset
        self.path = path
        self.parent = parent
        self.key = key
        self.is_graph = isinstance(holder, GraphProto)
        """Whether this is a graph, which can state types; a function body cannot."""
        self.is_function: bool = isinstance(holder, FunctionProto) if parent is None else parent.is_function
        """Whether this is the body of a model-local function, or a subgraph inside one."""
        self.writes_initializers = self.is_graph and ground.initializers_stand_alone and not self.is_function
        """Whether constants that are added become initializers rather than Constant nodes."""
        self.added_nodes: list[NodeProto] = []
        self.released: set[str] = set()
        """Names of constants that some node ceased to read."""
        self.folded: set[str] = set()
        """Names of constants that nodes compute rather than state."""
        self.put_off: list[Callable[[], object]] = []
        """What is to be done to graphs inside its nodes once they are written."""
        self.constant_nodes: dict[str, tuple[int, NodeProto]] = {}
        self._constants: dict[str, int] = {}
        self._node_values: dict[int, int] = {}
        self._types: dict[str, KnownType | None] = {}
        self._ranks: dict[str, int | None] = {}
        self._added: dict[Hashable, str] = {}
        self._adopted: dict[str, TensorProto] = {}
        self._has_removed = False

    @property
    def root(self) -> GraphScope:
        """The main graph or function body around everything here."""
        # Not kept: what holds on to itself, and with it to the weights, waits for the garbage collector.
        return self if self.parent is None else self.parent.root

    # Where a value is defined

    def home(self, name: str) -> GraphScope:
        """The scope that defines a value: this one or one around it."""
        scope = self
        while scope.parent is not None and name not in scope._defined:
            scope = scope.parent
        return scope

    @cached_property
    def _defined(self) -> set[str]:
        """The values that this graph, if it stands inside another, defines itself."""
        holder = self.holder
        if self.parent is None:
            return set()  # what no graph inside defines is looked for here
        defined = {*self.initializers, *self.inputs}
        if isinstance(holder, GraphProto):
            defined.update(tensor.values.name for tensor in holder.sparse_initializer)
        for node in self.node_list:
            defined.update(node.output)
        return defined

    def _initializer(self, name: str) -> TensorProto | None:
        """The initializer of this very graph, or what is added in its stead, of a name."""
        added = self._adopted.get(name)
        place = self.initializers.get(name)
        if added is not None or place is None or not isinstance(self.holder, GraphProto):
            return added
        return self.holder.initializer[place]

    def _holds(self, name: str) -> bool:
        return name in self._adopted or name in self.initializers

    @cached_property
    def initializers(self) -> dict[str, int]:
        """Where the initializers stand, by name; see `stated_places`."""
        return _places(self.holder.initializer) if isinstance(self.holder, GraphProto) else {}

    @cached_property
    def inputs(self) -> frozenset[str]:
        """The names of the inputs of the graph or function."""
        return frozenset(value if isinstance(value, str) else value.name for value in self.holder.input)

    @cached_property
    def _producers(self) -> Mapping[str, NodeProto]:
        return {output: node for node in self._source_nodes() for output in node.output if output}

    def producer(self, name: str) -> NodeProto | None:
        """The node of this very graph that yields a value, as it was before any rewrite."""
        nodes = self.node_list
        if not isinstance(nodes, SerializedNodes):
            return self._producers.get(name)
        index = nodes.position(name)
        return None if index is None else nodes.source(index)

    def position(self, name: str) -> int | None:
        """Where the node of this very graph stands that yields a value."""
        nodes = self.node_list
        return nodes.position(name) if isinstance(nodes, SerializedNodes) else self._positions.get(name)

    @cached_property
    def _positions(self) -> Mapping[str, int]:
        return {output: index for index, node in enumerate(self.node_list) for output in node.output if output}

    def whole(self, name: str) -> Array | None:
        """The value of an initializer or Constant node of this very graph; None for anything else."""
        return self.ground.values[self.stated_constant(name)]

    def _source_nodes(self) -> Iterable[NodeProto]:
        return self.node_list if self.key is None else self.ground.source.holder(self.key).node

    def is_overridable(self, name: str) -> bool:
        """Whether an initializer is only the default of a graph input that the caller may override."""
        is_given = name in self.inputs and self.ground.overridable
        return is_given and self.parent is None and isinstance(self.holder, GraphProto)

    # Questions about a value, each with an answer that can be compared

    def constant(self, name: str) -> Array | None:
        """The value of an initializer or Constant node, or of what small nodes compute from such; None for others."""
        return self.ground.values[self.constant_number(name)]

    def constant_number(self, name: str) -> int:
        """The number of the value (see `Values`) of what is computed from constants alone; 0 where there is none.

        There is none for anything that depends on the model's inputs, that a caller may override, or that is large.
        """
        home = self.home(name)
        number = home._constants.get(name)
        if number is None:
            number = home.stated_constant(name)
            if not number:
                value = self.ground.folding.value(name, home)
                if value is not None:
                    number = self.ground.values.number(value)
                    home.folded.add(name)
            home._constants[name] = number
        return number

    def stated_constant(self, name: str) -> int:
        """The number of the value of an initializer or Constant node of this very graph; 0 for anything else.

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
        dims = tuple(tensor.dims[:])  # a list of them takes half as long to read
        size = prod(dims)
        if size > LARGEST:
            return 0
        if size > LARGEST_KEPT and self.key == ():
            tensor = self.ground.weight(name) or tensor
        if tensor.data_location == TensorProto.EXTERNAL:
            folder = self.ground.base_dir
            return 0 if folder is None else self.ground.values.number(read_tensor(tensor, str(folder)))
        return self.ground.values.number_of_tensor(tensor, dims)

    def _value_of_node(self, node: NodeProto) -> int:
        """The number of the value of a Constant node; one may stand for many that hold the same value."""
        key = id(node)
        if key not in self._node_values:
            self._node_values[key] = 0
            if node.attribute:
                attribute = node.attribute[0]
                dims = {"value": attribute.t.dims, "sparse_value": attribute.sparse_tensor.dims}.get(attribute.name, ())
                is_large = prod(dims) > LARGEST
                self._node_values[key] = 0 if is_large else self.ground.values.number_of_attribute(attribute)
        return self._node_values[key]

    def reference(self, name: str) -> bytes:
        """The attribute of the Constant node that yields a value, where it refers to one of the function; else none."""
        found = self.home(name).constant_nodes.get(name)
        attributes = () if found is None else found[1].attribute
        return next((each.SerializeToString() for each in attributes if each.ref_attr_name), b"")

    def type_bytes(self, name: str) -> bytes | None:
        """The type of a value, serialized; None if unknown."""
        found = self._known_type(name)
        self.ground.trusts_sizes = self.ground.trusts_sizes or self.home(name)._states_of_node(name)
        return None if found is None else found.data

    def described(self, name: str) -> Described | None:
        """What inference is to be told of a value: its type and, of integers that may be a shape, their value."""
        found = self._known_type(name)
        if found is None:
            return None
        sizes = found.shape
        may_be_shape = found.element_type in _INTEGERS and sizes is not None and len(sizes) < 2 and None not in sizes
        is_small = may_be_shape and prod(size or 0 for size in sizes or ()) <= LARGEST_SHAPE
        return Described(found.data, self.constant_number(name) if is_small else 0)

    def type_string(self, name: str) -> str | None:
        """The type of a value as schemas spell it, such as ``tensor(float)``; None if unknown."""
        known = self._plain_element_type(name)
        if known is not None:
            return f"tensor({element_type_name(known)})"
        found = self.type(name)
        return None if found is None else type_string(found)

    def element_type(self, name: str) -> int | None:
        """The element type of a tensor (`TensorProto.DataType`); None if unknown or not a tensor."""
        home = self.home(name)
        if not home._is_described(name) and not self.ground.element_types:
            sole = home._sole_element_type
            if sole is not None:
                return sole
        whole = home._types.get(name) or home._stated_whole(name)
        if whole is None or name in self.ground.element_types:
            plain = self._plain_element_type(name)
            if plain is not None:
                return plain
            whole = self._known_type(name)
        return None if whole is None else whole.element_type

    def declared_element_type(self, name: str) -> int | None:
        """The element type that the user declared of a value; None if none."""
        return self.ground.element_types.get(name)

    def declared_rank(self, name: str) -> int | None:
        """The rank that the user declared of a value; None if none."""
        return self.ground.ranks.get(name)

    def shape(self, name: str) -> tuple[int | None, ...] | None:
        """The shape of a tensor, None standing for a size that is not a number; None if even the rank is unknown."""
        home = self.home(name)
        short = None if home._is_described(name) else self.ground.followed_ranks.short_shape(name, home)
        if short is not None:
            return short
        found = self._known_type(name)
        self.ground.trusts_sizes = self.ground.trusts_sizes or home._states_of_node(name)
        if found is None or found.shape is None or not found.leaves_sizes_open:
            return None if found is None else found.shape
        return home._with_sizes_inferred(name, found.shape)

    def _with_sizes_inferred(self, name: str, stated: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """A shape with sizes that are stated without number or name, as far as shape inference knows them."""
        inferred = self._inferred_type(name)
        sizes = None if inferred is None else self.ground.known_type(inferred).shape
        if sizes is None or len(sizes) != len(stated):
            return stated
        return tuple(size if own is None else own for own, size in zip(stated, sizes, strict=True))

    def rank(self, name: str) -> int | None:
        """The number of dimensions of a tensor; None if unknown."""
        home = self.home(name)
        if name not in home._ranks:
            home._ranks[name] = home._find_rank(name)
        return home._ranks[name]

    def _find_rank(self, name: str) -> int | None:
        declared = self.declared_rank(name)
        if declared is not None:
            return declared
        stated = self.stated_rank(name)
        if stated is not None:
            if name not in self.inputs:
                self.ground.trusted_ranks.append((self, name))
            return stated
        followed = self.ground.followed_ranks.rank(name, self)
        if followed is not None:
            return followed
        found = self._known_type(name)
        return None if found is None or found.shape is None else len(found.shape)

    def stated_rank(self, name: str) -> int | None:
        """The rank that this very graph states of a value; None if none."""
        stated = self._stated_type(name)
        shape = None if stated is None else self.ground.known_type(stated).shape
        return None if shape is None else len(shape)

    def given_shape(self, name: str) -> tuple[int | None, ...] | None:
        """The shape of a constant of this very graph, or of an input of the model; None for any other value."""
        tensor = None if self.is_overridable(name) else self._initializer(name)
        if tensor is None and name in self.constant_nodes:
            tensor = tensor_of(self.constant_nodes[name][1])
        if tensor is not None:
            return tuple(tensor.dims)
        stated = self._stated_type(name) if self.key == () and name in self.inputs else None
        return None if stated is None else self.ground.known_type(stated).shape

    def written_as(self, name: str) -> str:
        """How a value is defined: see `Scope.written_as`."""
        home = self.home(name)
        if name in home.constant_nodes:
            return "constant"
        if home._holds(name):
            return "dynamic" if home.is_overridable(name) else "initializer"
        return "fed" if name in home.inputs and home.parent is None and not home.is_function else "dynamic"

    def made_by(self, name: str) -> str:
        """The operator that yields a value; empty where no node does."""
        node = self.home(name).producer(name)
        return "" if node is None else node.op_type

    def is_read(self, name: str) -> bool:
        """Whether any node or graph output, here or in a graph inside, reads a value that this graph defines."""
        home = self.home(name)
        holder = home.holder
        outputs = [value.name for value in holder.output] if isinstance(holder, GraphProto) else holder.output
        return name in outputs or any(name in read_by(node) for node in home.node_list.mentioning(name))

    def is_handed_by_callers(self, name: str) -> bool:
        """Whether a value is an input of the function around."""
        return self.is_function and name in self.root.inputs

    def states_type(self, name: str) -> bool:
        """Whether the type of a value is stated, or its value, which tells it."""
        home = self.home(name)
        if not home._is_described(name):
            return False
        if home._holds(name) or name in home.constant_nodes:
            return True
        return home._stated_whole(name) is not None

    def has_type_at_hand(self, name: str) -> bool:
        """Whether the type of a value is to be had without inferring the types of the whole model."""
        return self.ground.source.has_run or self.states_type(name)

    @cached_property
    def followed(self) -> Followed:
        """What was followed back of the ranks of values, in this run or, where it is the same, an earlier one."""
        if self.key is None or self.ground.freeze_defaults:  # which defaults were taken is noted in each run
            return {}
        return self.ground.source.followed.setdefault(self.key, {})

    def given_vector(self, name: str) -> list[int] | None:
        """The value of a constant of this very graph that is a vector of integers; None for any other value."""
        return as_vector(self.whole(name))

    # Questions about the place

    def type_inside(self, node: NodeProto, number: int, name: str) -> TypeProto | None:
        """The inferred type of a value in a subgraph of a node of this graph, by its number among them."""
        if self.key is None:
            return None
        places = (place for place, other in enumerate(self._source_nodes()) if other.output == node.output)
        return self.ground.source.type((*self.key, next(places), number), name)

    # How types are found out

    def type(self, name: str) -> TypeProto | None:
        """The type of a value: as stated in the model, else as shape inference finds it; None if unknown.

        Symbols that inference makes up for sizes it does not know are left out of it.
        """
        found = self._known_type(name)
        return None if found is None else found.proto

    def _known_type(self, name: str) -> KnownType | None:
        home = self.home(name)
        if name not in home._types:
            home._types[name] = home._find_type(name)
        return home._types[name]

    def _find_type(self, name: str) -> KnownType | None:
        whole = self._stated_whole(name)
        if whole is not None:
            return whole
        tensor = self._initializer(name)
        if tensor is None and name in self.constant_nodes:
            tensor = tensor_of(self.constant_nodes[name][1])
        found = None if tensor is None else tensor_type(tensor)
        found = found or self._inferred_type(name)
        found = found or self._stated_type(name)
        return None if found is None else self.ground.known_type(found)

    def _inferred_type(self, name: str) -> TypeProto | None:
        source = self.ground.source
        found = source.type_by_ancestors(name) if self.key == () else None
        return source.type(self.key, name) if found is None and self.key is not None else found

    def _stated_whole(self, name: str) -> KnownType | None:
        """The type that the graph itself states of a value, if that leaves nothing to be inferred."""
        stated = self._stated_type(name)
        known = None if stated is None else self.ground.known_type(stated)
        return known if known is not None and known.is_whole else None

    def _plain_element_type(self, name: str) -> int | None:
        """The element type of a value that the user declared, or that is plain without shape inference."""
        declared = self.ground.element_types.get(name)
        if declared is not None:
            return declared
        home = self.home(name)
        if not home._is_described(name):
            sole = home._sole_element_type
            if sole is not None:
                return sole
        tensor = home._initializer(name)
        if tensor is not None and not home._states(name):
            return tensor.data_type or None
        return follow((home, name), _told, self.ground.told) or None

    @property
    def _sole_element_type(self) -> int | None:
        """The element type of all that nodes of this graph yield, as far as that is known before inference has run."""
        source = self.ground.source
        return None if self.key != () or source.has_run else source.sole_element_type

    def _is_described(self, name: str) -> bool:
        """Whether a value is a constant, or the graph itself states its type."""
        return self._states(name) or self._holds(name) or name in self.constant_nodes

    def _states(self, name: str) -> bool:
        """Whether the graph itself states the type of a value."""
        return name in self.stated_places or name in self._outside_nodes

    def _states_of_node(self, name: str) -> bool:
        """Whether the graph states the type of what one of its nodes yields."""
        return self._states(name) and name not in self.inputs

    def _stated_type(self, name: str) -> TypeProto | None:
        """The type that the graph itself states of a value."""
        if name in self._outside_nodes:
            return self._outside_nodes[name]
        place = self.stated_places.get(name)
        return None if place is None else self.holder.value_info[place].type

    @cached_property
    def stated_places(self) -> dict[str, int]:
        """Where the types of values are stated in value_info, by name.

        Places rather than messages: to hold a message for each of 50,000 values takes five times as long.
        """
        values = self.holder.value_info
        if self._stated is not None and not self._has_removed and len(self._stated.names) == len(values):
            return dict(zip(map(bytes.decode, self._stated.names), count()))
        return _places(values)

    @cached_property
    def _outside_nodes(self) -> dict[str, TypeProto]:
        """What the graph states of its outputs and inputs, and of sparse tensors."""
        holder = self.holder
        known: dict[str, TypeProto] = {}
        if isinstance(holder, GraphProto):
            for value in (*holder.output, *holder.input):
                # What a Scan takes need not be stated, and is where inference has looked.
                if value.name not in self.stated_places or type_string(value.type) is not None:
                    known[value.name] = value.type
            for sparse in holder.sparse_initializer:
                dense = TensorProto(data_type=sparse.values.data_type, dims=sparse.dims)
                known[sparse.values.name] = tensor_type(dense)
        return known

    # What is added

    def may_hold(self, element_type: int) -> bool:
        """Whether a constant of an element type can be added as it is: Constant takes floats only before opset 9."""
        return self.writes_initializers or constant_takes(element_type, self.ground.opset)

    def add_constant(self, value: Array, tensor: TensorProto, tail: str) -> str:
        """The name of a constant with this value: one initializer per value and graph, a Constant node in functions."""
        key = value_key(value)
        name = self._added.get(key)
        if name is None:
            name = self._added[key] = self.ground.names.fresh("", tail)
            self.adopt_constant(name, tensor)
        return name

    def adopt_constant(self, name: str, tensor: TensorProto) -> None:
        """Let an initializer or Constant node that is added hold a value, under a name; the scope knows it then."""
        kept = deepcopy(tensor)
        kept.name = name
        self._adopted[name] = kept
        self._constants.pop(name, None)
        for is_length in (False, True):
            self.followed.pop((name, is_length), None)
        self._defined.add(name)
        if isinstance(self.holder, GraphProto) and self.writes_initializers:
            self.holder.initializer.append(kept)
        else:
            nodes = constant_nodes(name, kept, self.ground.opset, self.ground.names)
            assert nodes is not None
            self.added_nodes += nodes

    def add_reference(self, attribute: AttributeProto, value: str, tail: str) -> str:
        """The name of a Constant node that yields an attribute of the function around, as its ``value_ints`` or so."""
        name = self.ground.names.fresh("", f"{tail}_{attribute.ref_attr_name}")
        node = NodeProto(op_type="Constant", name=name, output=[name])
        node.attribute.add(name=value, type=attribute.type, ref_attr_name=attribute.ref_attr_name)
        self.added_nodes.append(node)
        return name

    def refuse_reference(self, attribute: AttributeProto) -> None:
        """Refuse a Constant node that yields an attribute of the function around, where it cannot.

        Constant has no such attribute below opset 12, and would have no value for a call that leaves it out.
        """
        if self.ground.opset < 12:
            raise RefusedError(
                f"it refers to {attribute.ref_attr_name!r} of the function, and Constant cannot before opset 12",
                "inline the function first",
            )
        function = self.root.holder
        if not isinstance(function, FunctionProto):
            raise RefusedError(
                f"it refers to an attribute {attribute.ref_attr_name!r}, and there is no function around it",
                "correct the model",
            )
        if self.ground.source.omits(function, attribute.ref_attr_name):
            raise RefusedError(
                f"it refers to {attribute.ref_attr_name!r} of the function, which a call leaves out; "
                "a Constant would then have no value",
                "inline the function first",
            )

    def state(self, name: str, value_type: bytes) -> None:
        """Let the graph state the type of a value, unless it does or is a function, which cannot."""
        if isinstance(self.holder, GraphProto) and not self._states(name):
            self.state_all(entry(name.encode(), value_type))

    def state_all(self, entries: bytes) -> None:
        """Let the graph state the types of some values, given as bytes of a GraphProto."""
        self.holder.MergeFromString(entries)
        if self._stated is not None:
            self._stated.add(entries)

    @property
    def _stated(self) -> Stated | None:
        return self.ground.stated if self.key == () else None

    @property
    def element_types_stated(self) -> Collection[int]:
        """The element types that value_info states, or stated before a value went; 0 for anything but a tensor."""
        stated = None if self._stated is None else self._stated.element_types
        return set(map(_ELEMENT_TYPE, self.holder.value_info)) if stated is None else stated

    def note_removed(self, names: Collection[str]) -> None:
        """Note that constants, and types that were stated, have gone, so that others stand where they stood."""
        self._has_removed = True
        self._added = {key: name for key, name in self._added.items() if name not in names}
        for places in ("initializers", "stated_places"):
            self.__dict__.pop(places, None)

    def release(self, name: str) -> None:
        """Note that a node no longer reads a constant, which may go if nothing else reads it."""
        self.home(name).released.add(name)


def constant_takes(element_type: int, opset: int) -> bool:
    """Whether Constant takes an element type at an opset version."""
    return opset >= _CONSTANT_TAKES_ALL or element_type in FIRST_FLOATS


def constant_nodes(name: str, tensor: TensorProto, opset: int, names: Names) -> list[NodeProto] | None:
    """The nodes that yield a constant, where no initializer may; None where no nodes do at that opset version.

    An element type that Constant does not take is cast from doubles that hold the same values.
    """
    if constant_takes(tensor.data_type, opset):
        return [make_node("Constant", [], [name], value=tensor)]
    doubles = as_doubles(tensor, opset)
    if doubles is None:
        return None
    source = names.fresh("", f"{name}_double")
    return [
        make_node("Constant", [], [source], value=doubles),
        make_node("Cast", [source], [name], to=tensor.data_type),
    ]


def _places(values: Sequence[ValueInfoProto] | Sequence[TensorProto]) -> dict[str, int]:
    return dict(zip(map(_NAME, values), count()))


_NAME = attrgetter("name")
_ELEMENT_TYPE = attrgetter("type.tensor_type.elem_type")


def as_vector(value: Array | None) -> list[int] | None:
    """The integers in a vector of them; None for anything else."""
    return value.tolist() if value is not None and value.ndim == 1 and value.dtype.kind == "i" else None


def as_doubles(tensor: TensorProto, opset: int) -> TensorProto | None:
    """Doubles that a tensor of integers or bools can be cast from; None where they do not hold its values.

    Below opset 6 inference does not read a Cast.
    """
    value = numpy_helper.to_array(tensor)
    if value.dtype.kind not in "biu" or opset < _CAST_IS_INFERRED:
        return None
    doubles = value.astype(np.float64)
    return numpy_helper.from_array(doubles) if (np.abs(doubles) <= _EXACT_IN_DOUBLE).all() else None
