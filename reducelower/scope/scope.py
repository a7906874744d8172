"""What a rule may know about the place a node stands in, and how it adds values there."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Literal, NamedTuple

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
from reducelower.model.inference import GraphKey, subgraphs
from reducelower.model.nodelist import NodeList, ParsedNodes
from reducelower.model.schemas import element_type_name, type_string
from reducelower.model.value_info import entry, stated
from reducelower.scope.fold import LARGEST, Folding
from reducelower.scope.ground import Ground

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.generic]

__all__ = ["Mark", "Scope", "tensor_of"]


def tensor_of(node: NodeProto) -> TensorProto | None:
    """The tensor a Constant node yields; None when it refers to an attribute of a function or is no dense tensor."""
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            return None
        if attribute.name == "value":
            return attribute.t
        if attribute.name == "value_int":
            return numpy_helper.from_array(np.array(attribute.i, dtype=np.int64))
        if attribute.name == "value_ints":
            return numpy_helper.from_array(np.array(attribute.ints, dtype=np.int64))
        if attribute.name == "value_float":
            return numpy_helper.from_array(np.array(attribute.f, dtype=np.float32))
        if attribute.name == "value_floats":
            return numpy_helper.from_array(np.array(attribute.floats, dtype=np.float32))
    return None


def _tensor_type(tensor: TensorProto) -> TypeProto:
    stated = TypeProto()
    stated.tensor_type.elem_type = tensor.data_type
    shape = stated.tensor_type.shape
    shape.SetInParent()  # A scalar has a shape as well: one without dimensions.
    for size in tensor.dims:
        shape.dim.add(dim_value=size)
    return stated


def _constant_node(name: str, tensor: TensorProto) -> NodeProto:
    """The Constant node that yields a tensor."""
    node = NodeProto(op_type="Constant", name=name, output=[name])
    node.attribute.add(name="value", type=AttributeProto.TENSOR, t=tensor)
    return node


_FIRST_CONSTANTS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
"""What Constant takes before opset 9."""

_EXACT_IN_DOUBLE = 2.0**53
"""Up to here a double holds every integer."""


_EXAMPLES = {"type": "float32", "rank": "3"}


class Mark(NamedTuple):
    """How much had been added to a scope when something was tried."""

    home: Scope
    added: tuple[Hashable, ...]
    released: int
    derived: int


class Scope:
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
        parent: Scope | None = None,
        key: GraphKey | None = None,
        nodes: NodeList | None = None,
    ) -> None:
        """Open the scope of a graph or function body.

        Args:
            ground: what all scopes of the run share.
            holder: the graph or function body.
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
        self.added_nodes: list[NodeProto] = []
        self.constant_nodes: dict[str, tuple[int, NodeProto]] = {}
        self._initializers: dict[str, TensorProto] | None = None
        self._stated: dict[str, ValueInfoProto] | None = None
        self._defined: set[str] | None = None
        self._arrays: dict[str, Array | None] = {}
        self._stated_arrays: dict[str, Array | None] = {}
        self._producers: dict[str, NodeProto] | None = None
        self._added: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    @property
    def is_function(self) -> bool:
        """Whether this is the body of a model-local function, or a subgraph inside one."""
        return isinstance(self.root.holder, FunctionProto)

    @property
    def root(self) -> Scope:
        """The main graph or function body around everything here."""
        return self if self.parent is None else self.parent.root

    @property
    def target_opset(self) -> int:
        """Opset version of the target."""
        return self.ground.opset

    @property
    def is_last_attempt(self) -> bool:
        """Whether functions have been copied for their calls, so that what they are handed is taken as it comes."""
        return self.ground.is_last_attempt

    # What is known about a value

    def home(self, name: str) -> Scope:
        """The scope that defines a value: this one or one around it."""
        scope = self
        while scope.parent is not None and not scope.defines(name):
            scope = scope.parent
        return scope

    def constant(self, name: str) -> Array | None:
        """The value of an initializer or Constant node, or of what small nodes compute from such.

        None for anything that depends on the model's inputs, that a caller may override, or that is large.
        """
        self.ground.asked_values.add(name)
        home = self.home(name)
        if name not in home._arrays:
            folding = Folding()
            home._arrays[name] = folding.value(name, home)
            if home._arrays[name] is not None:
                self.ground.folded.update(folding.folded)
        return home._arrays[name]

    def stated_constant(self, name: str) -> Array | None:
        """The value of an initializer or Constant node of this very graph; None for anything else."""
        if name not in self._stated_arrays:
            self._stated_arrays[name] = self._array(name)
        return self._stated_arrays[name]

    def producer(self, name: str) -> NodeProto | None:
        """The node of this very graph that yields a value, as it was before any rewrite."""
        if self._producers is None:
            self._producers = {output: node for node in self._source_nodes() for output in node.output if output}
        return self._producers.get(name)

    def _source_nodes(self) -> Iterable[NodeProto]:
        return self.node_list if self.key is None else self.ground.source.holder(self.key).node

    def reference(self, name: str) -> AttributeProto | None:
        """The attribute of the Constant node that yields a value, where it refers to an attribute of the function."""
        self.ground.asked_values.add(name)
        found = self.home(name).constant_nodes.get(name)
        if found is not None:
            for attribute in found[1].attribute:
                if attribute.ref_attr_name:
                    return attribute
        return None

    def type(self, name: str) -> TypeProto | None:
        """The type of a value: as stated in the model, else as shape inference finds it; None if unknown."""
        self.ground.asked_types.add(name)
        return self.home(name)._type(name)

    def type_string(self, name: str) -> str | None:
        """The type of a value as schemas spell it, such as ``tensor(float)``; None if unknown."""
        self.ground.asked_types.add(name)
        declared = self.ground.element_types.get(name)
        if declared is not None:
            return f"tensor({element_type_name(declared)})"
        sole = self._sole_element_type(name)
        if sole is not None:
            return f"tensor({element_type_name(sole)})"
        found = self.type(name)
        return None if found is None else type_string(found)

    def element_type(self, name: str) -> int | None:
        """The element type of a tensor (`TensorProto.DataType`); None if unknown or not a tensor."""
        self.ground.asked_types.add(name)
        declared = self.ground.element_types.get(name)
        if declared is not None:
            return declared
        sole = self._sole_element_type(name)
        if sole is not None:
            return sole
        found = self.type(name)
        if found is None or found.WhichOneof("value") != "tensor_type":
            return None
        return found.tensor_type.elem_type or None

    def _sole_element_type(self, name: str) -> int | None:
        """The element type of a value that a node of the main graph yields, if that is plain without inference."""
        ground, home = self.ground, self.home(name)
        if home.key != () or ground.source.has_run or ground.names.is_new(name) or home._is_stated(name):
            return None
        return ground.source.sole_element_type

    def shape(self, name: str) -> tuple[int | None, ...] | None:
        """The shape of a tensor, None standing for a size that is not a number; None if even the rank is unknown."""
        found = self.type(name)
        if found is None or found.WhichOneof("value") != "tensor_type" or not found.tensor_type.HasField("shape"):
            return None
        return tuple(
            dim.dim_value if dim.WhichOneof("value") == "dim_value" else None for dim in found.tensor_type.shape.dim
        )

    def rank(self, name: str) -> int | None:
        """The number of dimensions of a tensor; None if unknown."""
        self.ground.asked_types.add(name)
        declared = self.ground.ranks.get(name)
        if declared is not None:
            return declared
        found = self.shape(name)
        return None if found is None else len(found)

    def type_inside(self, node: NodeProto, number: int, name: str) -> TypeProto | None:
        """The inferred type of a value in a subgraph of a node of this graph, by its number among them."""
        if self.key is None:
            return None
        places = (place for place, other in enumerate(self._source_nodes()) if other.output == node.output)
        return self.ground.source.types((*self.key, next(places), number)).get(name)

    def is_handed_by_callers(self, name: str) -> bool:
        """Whether a value is an input of the function around."""
        return isinstance(self.root.holder, FunctionProto) and name in self.root.holder.input

    def written_as(self, name: str) -> str:
        """How a value comes about: ``initializer``, ``constant`` (a Constant node) or ``dynamic``, at run time."""
        home = self.home(name)
        if name in home.constant_nodes:
            return "constant"
        if name not in home._known_initializers() or home.is_overridable(name):
            return "dynamic"
        return "constant" if any(name in node.output for node in home.added_nodes) else "initializer"

    def has_type_at_hand(self, name: str) -> bool:
        """Whether the type of a value is to be had without inferring the types of the whole model."""
        home = self.home(name)
        return self.ground.source.has_run or (home is not self and home.has_type_at_hand(name)) or home._is_stated(name)

    def type_at_hand(self, name: str) -> bytes:
        """What tells apart values of different types: what the user declared, and the type where it is at hand."""
        found = self.type(name) if self.has_type_at_hand(name) else None
        known = b"" if found is None else found.SerializeToString()
        declared = self.ground.element_types.get(name), self.ground.ranks.get(name)
        return known if declared == (None, None) else repr(declared).encode() + known

    def _is_stated(self, name: str) -> bool:
        return name in self._known_values() or name in self._known_initializers() or name in self.constant_nodes

    def needed_element_type(self, name: str) -> int:
        """The element type of a tensor that cannot be done without.

        Raises:
            RefusedError: nothing tells it; the hint says how to declare it.
        """
        found = self.element_type(name)
        if found is None:
            raise RefusedError(f"the element type of {name!r} is not known", self.how_to_declare(name, "type"))
        return found

    def needed_rank(self, name: str) -> int:
        """The rank of a tensor that cannot be done without.

        Raises:
            RefusedError: nothing tells it; the hint says how to declare it.
        """
        found = self.rank(name)
        if found is None:
            raise RefusedError(f"the rank of {name!r} is not known", self.how_to_declare(name, "rank"))
        return found

    def how_to_declare(self, name: str, what: Literal["type", "rank"]) -> str:
        """The hint that tells how to make the element type or the rank of a value known."""
        return f"declare it with --{what} {name}={_EXAMPLES[what]}"

    # What a rule adds

    def fresh(self, stem: str, tail: str) -> str:
        """A name for a new value, from a name of the node and a tail such as ``/Pow/product``."""
        return self.ground.names.fresh(stem, tail)

    def add_constant(self, value: Array, tail: str) -> str:
        """The name of a constant with this value: one initializer per value and graph, a Constant node in functions.

        Where neither an initializer nor a Constant node may hold the value, and it stays, the node is refused.
        """
        key = (value.dtype.str, value.shape, value.tobytes())
        name = self._added.get(key)
        if name is None:
            name = self.ground.names.fresh("", tail)
            self._write_constant(name, numpy_helper.from_array(np.ascontiguousarray(value).reshape(value.shape), name))
            self._added[key] = name
        return name

    def adopt_initializer(self, name: str, tensor: TensorProto) -> None:
        """Let an initializer, or what stands for one here, hold a value that a node of this graph yielded until now."""
        kept = TensorProto()
        kept.CopyFrom(tensor)
        kept.name = name
        self._write_constant(name, kept)

    def add_reference(self, attribute: AttributeProto, value: str, tail: str) -> str:
        """The name of a Constant node that yields an attribute of the function around, as its ``value_ints`` or so.

        Raises:
            RefusedError: Constant has no such attribute below opset 12, or would have no value for some call.
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
                "mend the model",
            )
        if self.ground.source.omits(function, attribute.ref_attr_name):
            raise RefusedError(
                f"it refers to {attribute.ref_attr_name!r} of the function, which a call leaves out; "
                "a Constant would then have no value",
                "inline the function first",
            )
        name = self.ground.names.fresh("", f"{tail}_{attribute.ref_attr_name}")
        node = NodeProto(op_type="Constant", name=name, output=[name])
        node.attribute.add(name=value, type=attribute.type, ref_attr_name=attribute.ref_attr_name)
        self.added_nodes.append(node)
        self.constant_nodes[name] = (-1, node)
        return name

    def declare(self, name: str, element_type: int) -> None:
        """State the element type of a value that a rewrite makes."""
        self.ground.element_types[name] = element_type

    def state_type(self, name: str) -> None:
        """Let the graph state the type of a value, which shape inference does not find at the target's opset version.

        Values that a rewrite makes have their types stated anyway, as far as these are known.

        Raises:
            RefusedError: this is a function, whose values have no stated types.
        """
        self.ground.asked_values.add(name)  # nodes like the one that yields it have other values to state
        home = self._writing()
        if not isinstance(home.holder, GraphProto):
            raise RefusedError(
                f"inference misses the type of {name!r} at opset {self.ground.opset}, and a function states none",
                "inline the function first",
            )
        if self.ground.names.is_new(name) or name in home._known_values():
            return
        found = self.type(name)
        if found is not None:
            home.holder.MergeFromString(entry(name.encode(), stated(found)))

    def release(self, name: str) -> None:
        """Note that a node no longer reads a constant, which may go if nothing else reads it."""
        self.ground.released.append((self.home(name), name))

    def _write_constant(self, name: str, tensor: TensorProto) -> None:
        if isinstance(self.holder, GraphProto) and self.ground.initializers_stand_alone and not self.is_function:
            self.holder.initializer.append(tensor)
        else:
            # Constant takes every element type since opset 9, floats only before.
            is_taken = self.ground.opset >= 9 or tensor.data_type in _FIRST_CONSTANTS
            self.added_nodes += [_constant_node(name, tensor)] if is_taken else self._cast_constant(name, tensor)
        self._known_initializers()[name] = tensor
        if self._defined is not None:
            self._defined.add(name)

    def _cast_constant(self, name: str, tensor: TensorProto) -> list[NodeProto]:
        """A constant of an element type that Constant does not take: cast from one of doubles that are its values.

        Where doubles do not hold them, or inference would not read the Cast (below opset 6), the constant is owed: that
        is refused at the end, unless by then it has become an attribute, as axes do.
        """
        value = numpy_helper.to_array(tensor)
        doubles = value.astype(np.float64) if value.dtype.kind in "biu" and self.ground.opset >= 6 else None
        if doubles is None or not (np.abs(doubles) <= _EXACT_IN_DOUBLE).all():
            self.ground.owed[self, name] = RefusedError(
                f"it needs a constant of type {element_type_name(tensor.data_type)}, which Constant does not take "
                "below opset 9",
                "inline the function first" if self.is_function else "allow IR version 4 with --ir-version auto",
            )
            return [_constant_node(name, tensor)]
        source = self.fresh("", f"{name}_double")
        cast = NodeProto(op_type="Cast", name=name, input=[source], output=[name])
        cast.attribute.add(name="to", type=AttributeProto.INT, i=tensor.data_type)
        return [_constant_node(source, numpy_helper.from_array(doubles, source)), cast]

    def mark(self) -> Mark:
        """How much has been added so far, to come back to if what is tried next does not work."""
        ground, home = self.ground, self._writing()
        return Mark(home, tuple(home._added), len(ground.released), len(ground.names.derived))

    def roll_back(self, mark: Mark) -> None:
        """Take back the constants added and released since."""
        del self.ground.released[mark.released :]
        del self.ground.names.derived[mark.derived :]
        home = mark.home
        for key in [key for key in home._added if key not in mark.added]:
            name = home._added.pop(key)
            del home._known_initializers()[name]
            if home._defined is not None:
                home._defined.discard(name)
            added = home.holder.initializer if isinstance(home.holder, GraphProto) else None
            place = next((at for at in reversed(range(len(added or ()))) if added and added[at].name == name), None)
            if added is not None and place is not None:
                del added[place]
            home.forget({name})

    def forget(self, names: Collection[str]) -> None:
        """Take constants that are gone out of what has been added here, with what some were cast from."""
        for key in [key for key, name in self._added.items() if name in names]:
            del self._added[key]
        for name in names:
            self.ground.owed.pop((self, name), None)
        sources = {node.input[0] for node in self.added_nodes if node.op_type == "Cast" and node.output[0] in names}
        gone = sources.union(names)
        self.added_nodes[:] = [node for node in self.added_nodes if node.output[0] not in gone]

    def _writing(self) -> Scope:
        """The scope that what is added here goes to."""
        return self

    # How it is found out

    def defines(self, name: str) -> bool:
        """Whether this graph itself brings the value into being."""
        if self._defined is None:
            holder = self.holder
            defined = set(self._known_initializers())
            if isinstance(holder, GraphProto):
                defined.update(value.name for value in holder.input)
                defined.update(tensor.values.name for tensor in holder.sparse_initializer)
            else:
                defined.update(holder.input)
            for node in self.node_list:
                defined.update(node.output)
            self._defined = defined
        return name in self._defined

    def _known_initializers(self) -> dict[str, TensorProto]:
        if self._initializers is None:
            holder = self.holder
            tensors = holder.initializer if isinstance(holder, GraphProto) else ()
            self._initializers = {tensor.name: tensor for tensor in tensors}
        return self._initializers

    def is_overridable(self, name: str) -> bool:
        """Whether an initializer is only the default of a graph input that the caller may override."""
        holder = self.holder
        return (
            self.ground.overridable
            and self.parent is None
            and isinstance(holder, GraphProto)
            and any(value.name == name for value in holder.input)
        )

    def is_read(self, name: str) -> bool:
        """Whether any node or graph output, here or in a graph inside, reads a value that this graph brings about."""
        self.ground.asked_values.add(name)
        home = self.home(name)
        holder = home.holder
        outputs = [value.name for value in holder.output] if isinstance(holder, GraphProto) else holder.output
        return name in outputs or any(_reads(node, name) for node in home.node_list.mentioning(name))

    def _array(self, name: str) -> Array | None:
        tensor = self._known_initializers().get(name)
        if tensor is not None and self.is_overridable(name):
            if not self.ground.freeze_defaults:
                return None
            self.ground.frozen.add(name)
        if tensor is None and name in self.constant_nodes:
            tensor = tensor_of(self.constant_nodes[name][1])
        if tensor is None or int(np.prod(tensor.dims, dtype=np.float64)) > LARGEST:
            return None
        folder = ""
        if tensor.data_location == TensorProto.EXTERNAL:
            if self.ground.base_dir is None:
                return None
            folder = str(self.ground.base_dir)
        try:
            return numpy_helper.to_array(tensor, folder)
        except Exception as error:  # numpy and onnx have several kinds of their own
            reason = " ".join(str(error).split())
            raise RefusedError(f"the tensor {name!r} cannot be read: {reason}", "mend the model") from error

    def _known_values(self) -> Mapping[str, ValueInfoProto]:
        """Values whose types the graph itself states, by name."""
        if self._stated is None:
            holder = self.holder
            self._stated = dict(zip(map(attrgetter("name"), holder.value_info), holder.value_info, strict=True))
            if isinstance(holder, GraphProto):
                for value in (*holder.output, *holder.input):
                    # What a Scan takes need not be stated, and is where inference has looked.
                    if value.name not in self._stated or type_string(value.type) is not None:
                        self._stated[value.name] = value
                for sparse in holder.sparse_initializer:
                    dense = _tensor_type(TensorProto(data_type=sparse.values.data_type, dims=sparse.dims))
                    self._stated[sparse.values.name] = ValueInfoProto(name=sparse.values.name, type=dense)
        return self._stated

    def _type(self, name: str) -> TypeProto | None:
        value = self._known_values().get(name)
        found = None if value is None else value.type
        if found is not None and type_string(found) is not None and _has_shape(found):
            return found
        tensor = self._known_initializers().get(name)
        if tensor is None and name in self.constant_nodes:
            tensor = tensor_of(self.constant_nodes[name][1])
        if tensor is not None:
            return _tensor_type(tensor)
        inferred = None if self.key is None else self.ground.source.types(self.key).get(name)
        return found if inferred is None else inferred


def _reads(node: NodeProto, name: str) -> bool:
    if name in node.input:
        return True
    for _, _, graph in subgraphs(node):
        if any(value.name == name for value in graph.output) or any(_reads(inner, name) for inner in graph.node):
            return True
    return False


def _has_shape(value_type: TypeProto) -> bool:
    return value_type.WhichOneof("value") != "tensor_type" or value_type.tensor_type.HasField("shape")
