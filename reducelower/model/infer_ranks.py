"""Element types and ranks that onnx's shape inference leaves open, found by one walk forward and one backward.

Inference stops at the first Reshape whose shape is computed, though its rank follows from how many sizes there are, and
at every operator it has no schema for. It finds nothing at all in a model with one stated type that contradicts it.
Here each node whose outputs are unknown is asked by itself: by its schema's own inference, by what its type variables
say, by the length of the shape or the axes it is given. What is found is right, or it is left unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, defs, shape_inference
from onnx.numpy_helper import from_array, to_array

from reducelower.model.attributes import value_of
from reducelower.model.element_types import formal_at, only_element_type
from reducelower.model.graph import may_hold_graphs
from reducelower.model.onnx_inference import may_end_process
from reducelower.model.ranks import CONTRIB, ML_RANKS, RANKS, UNLISTED, Inputs, followed, rank_of
from reducelower.model.schemas import DEFAULT_DOMAINS, schema_in_force
from reducelower.model.value_info import is_known, tensor_type

__all__ = ["complete", "state_ranks"]

_SMALL = 64
"""Shapes and axes have no more elements than this; the values of longer constants are not looked at."""

_TOLD_RANKS = {"": RANKS, "ai.onnx.ml": ML_RANKS}

Types: TypeAlias = MutableMapping[str, TypeProto]


_Integers: TypeAlias = "NDArray[np.int64]"


def _quotient(left: _Integers, right: _Integers) -> _Integers:
    """Division towards zero."""
    if not right.all():
        raise ZeroDivisionError
    return np.asarray(np.abs(left) // np.abs(right) * np.sign(left) * np.sign(right))


def _remainder(left: _Integers, right: _Integers) -> _Integers:
    """What is left of a division, with the sign of the divisor."""
    if not right.all():
        raise ZeroDivisionError
    return np.asarray(np.mod(left, right))


_FOLDED: Mapping[str, Callable[..., NDArray[np.int64] | NDArray[np.bool_]]] = {
    "Add": np.add,
    "Div": _quotient,
    "Equal": np.equal,
    "Mod": _remainder,
    "Mul": np.multiply,
    "Reshape": np.reshape,
    "Sub": np.subtract,
}
"""How whole numbers are computed that exporters make the bounds of shapes of, or compare ranks with."""


class _Types(dict[str, TypeProto]):
    """Types by name, in one graph.

    Attributes:
        found: those that were added to what was known at first.
        names: the names of all that were added, in any graph.
    """

    def __init__(self, known: Mapping[str, TypeProto], names: set[str]) -> None:
        super().__init__(known)
        self.found: dict[str, TypeProto] = {}
        self.names = names

    def __setitem__(self, name: str, found: TypeProto) -> None:
        super().__setitem__(name, found)
        self.found[name] = found
        self.names.add(name)


OfCall: TypeAlias = Callable[[NodeProto, list[TypeProto | None]], list[TypeProto | None]]
"""The types of what a call of a model-local function yields, from the types of what it is handed."""


def complete(model: ModelProto, of_call: OfCall, *, is_inferred: bool = False, objects: bool = False) -> None:
    """State in value_info what inference left open, in the main graph and the graphs inside it.

    Args:
        model: a model that is only there for its types.
        of_call: looks into the functions of the model.
        is_inferred: whether shape inference has gone through all of it, so that a node is worth another look only where
            something was found since of what it reads.
        objects: whether to raise where the model states another rank of what an If yields, whose condition is known,
            than the branch has that it takes. Tracing exporters state what they first made of the other.

    Raises:
        onnx.shape_inference.InferenceError: as told by `objects`.
    """
    if _is_complete(model.graph):
        return
    _Completion(model, of_call, is_inferred, objects).graph(model.graph, {}, {})


def state_ranks(model: ModelProto, inferred: ModelProto) -> None:
    """State in a model, only there for its types, the ranks without which inference stopped, as it left `inferred`."""
    types = _stated(inferred.graph)
    outputs = {value.name for value in inferred.graph.output}
    found: dict[str, TypeProto] = {}
    for node in inferred.graph.node:
        if node.op_type not in RANKS or node.domain not in DEFAULT_DOMAINS:
            continue
        if not node.output or node.output[0] in outputs:
            continue
        element_type = _element_type(types.get(node.output[0]))
        if element_type and rank_of(types[node.output[0]]) is None and not _refers(node):
            rank = followed(RANKS[node.op_type], Inputs.of_types(node, types))
            if rank is not None:
                found[node.output[0]] = _tensor(element_type, rank)
    _state(model.graph, found)


def _is_complete(graph: GraphProto) -> bool:
    """Whether the types of all that the nodes of a graph without graphs inside yield are known."""
    known = {value.name for value in (*graph.value_info, *graph.output) if is_known(value.type)} | {""}
    return not any(may_hold_graphs(node) or not known.issuperset(node.output) for node in graph.node)


def _tensor(element_type: int, rank: int | None) -> TypeProto:
    made = TypeProto()
    made.tensor_type.elem_type = element_type
    if rank is not None:
        shape = made.tensor_type.shape
        shape.SetInParent()
        for _ in range(rank):
            shape.dim.add()
    return made


class _Completion:
    """One walk over one model; see `complete`."""

    def __init__(self, model: ModelProto, of_call: OfCall, is_inferred: bool, objects: bool) -> None:
        self._of_call = of_call
        self._is_inferred = is_inferred
        self._objects = objects
        self._opset_imports = list(model.opset_import)
        self._imports = {one.domain if one.domain != "ai.onnx" else "": one.version for one in self._opset_imports}
        self._ir_version = model.ir_version
        self._local = {(function.domain, function.name) for function in model.functions}
        self._names: set[str] = set()
        self._around: Mapping[str, TensorProto] = {}

    def graph(
        self,
        graph: GraphProto,
        around: Mapping[str, TypeProto],
        constants_around: Mapping[str, TensorProto],
        handed: Mapping[str, TypeProto] | None = None,
    ) -> Types:
        """Complete the types of a graph, given those handed to it; returns all by name, with those around it."""
        types = _Types({**around, **_stated(graph)}, self._names)
        small = {one.name: one for one in graph.initializer if prod(one.dims) <= _SMALL}
        constants = {**constants_around, **small}
        for name, given in (handed or {}).items():
            types[name] = _merged(types.get(name), given)
        before, self._around = self._around, constants_around
        self._forward(graph, types, constants)
        is_open = any(not _has_type(types.get(name)) for node in graph.node for name in node.output if name)
        if is_open and self._backward(graph, types):
            self._forward(graph, types, constants)
        self._around = before
        _state(graph, types.found)
        return types

    # Forward: from what a node reads to what it yields

    def _forward(self, graph: GraphProto, types: Types, constants: dict[str, TensorProto]) -> None:
        for node in graph.node:
            if node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS and node.output:
                _note_constant(node, constants)
            elif node.op_type in _FOLDED and node.domain in DEFAULT_DOMAINS and constants.keys() >= {*node.input}:
                self._fold(node, constants)
            elif node.op_type == "Size" and node.domain in DEFAULT_DOMAINS:
                self._note_size(node, types, constants)
            inner = self._inside(node, types, constants) if may_hold_graphs(node) else []
            if all(not name or self._is_settled(types.get(name), node) for name in node.output):
                continue
            for name, found in self._outputs(node, types, constants, inner):
                if name:
                    types[name] = _merged(types.get(name), found)

    def _fold(self, node: NodeProto, constants: dict[str, TensorProto]) -> None:
        """Keep what a node computes of constants alone, which may bound the Slice that a shape is made of."""
        given = [to_array(constants[name]) for name in node.input]
        if any(value.dtype != np.int64 for value in given) or any(
            attribute.name == "fmod" for attribute in node.attribute
        ):
            return
        try:
            found = _FOLDED[node.op_type](*given)
        except (TypeError, ValueError, ArithmeticError):  # of a broken model
            return
        if found.size <= _SMALL:
            constants[node.output[0]] = from_array(np.asarray(found))
            self._names.add(node.output[0])

    def _note_size(self, node: NodeProto, types: Types, constants: dict[str, TensorProto]) -> None:
        """Keep the size of a value of which all sizes are known, such as of a shape: how many axes there are."""
        found = types.get(node.input[0])
        if rank_of(found) is not None and found is not None and not _open_sizes(found):
            size = prod(dim.dim_value for dim in found.tensor_type.shape.dim)
            constants[node.output[0]] = from_array(np.array(size))
            self._names.add(node.output[0])

    def _is_settled(self, found: TypeProto | None, node: NodeProto) -> bool:
        """Whether another look at a node tells nothing new of what it yields.

        The length of a vector, and the sizes of whole numbers, such as the indices of what is not zero, may tell the
        rank of another value, and follow from what was found of what they are of.
        """
        if found is None or not is_known(found):
            return False
        tells_ranks = rank_of(found) == 1 or _element_type(found) == TensorProto.INT64
        return not tells_ranks or not _open_sizes(found) or not self._reads_news(node)

    def _reads_news(self, node: NodeProto) -> bool:
        """Whether something is known of what a node reads that onnx's inference does not know.

        That is what was found here, and the values of constants of the graphs around.
        """
        return not (self._names.isdisjoint(node.input) and self._around.keys().isdisjoint(node.input))

    def _inside(
        self, node: NodeProto, types: Types, constants: Mapping[str, TensorProto]
    ) -> list[list[TypeProto | None]]:
        """The types of the outputs of every graph inside a node; of an If that is decided, of the branch it takes."""
        decided = constants.get(node.input[0]) if node.op_type == "If" and node.input else None
        if decided is not None:
            taken = "then_branch" if to_array(decided).any() else "else_branch"
            branches = [attribute.g for attribute in node.attribute if attribute.name == taken]
            return [self._taken(node, branch, types, constants) for branch in branches] * 2
        found = []
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                body = attribute.g
                handed = _handed(node, body, types) if self._knows_graphs(node) else {}
                inner = self.graph(body, types, constants, handed)
                found.append([inner.get(value.name) for value in body.output])
        return found

    def _taken(
        self, node: NodeProto, branch: GraphProto, types: Types, constants: Mapping[str, TensorProto]
    ) -> list[TypeProto | None]:
        """The types of the outputs of the branch that an If takes, from its nodes: what is stated may be of the other.

        Raises:
            onnx.shape_inference.InferenceError: they are not of the rank that is known of them, where this objects.
        """
        before, self._is_inferred = self._is_inferred, False
        stated = [rank_of(value.type) for value in branch.output]
        for value in branch.output:
            value.type.tensor_type.ClearField("shape")
        inner = self.graph(branch, types, constants)
        self._is_inferred = before
        found = [inner.get(value.name) for value in branch.output]
        for name, own, given in zip(node.output, stated, found, strict=False):
            known = {own, rank_of(types.get(name))} - {None}
            if self._objects and rank_of(given) is not None and known - {rank_of(given)}:
                raise shape_inference.InferenceError(f"{name!r} is stated to be of another rank than it has")
        return found

    def _outputs(
        self, node: NodeProto, types: Types, constants: Mapping[str, TensorProto], inner: list[list[TypeProto | None]]
    ) -> list[tuple[str, TypeProto]]:
        if (node.domain, node.op_type) in self._local:
            yielded = self._of_call(node, [types.get(name) for name in node.input])
            return [(name, found) for name, found in zip(node.output, yielded, strict=False) if found is not None]
        if node.domain in ("com.microsoft", "com.microsoft.nchwc"):
            return _contrib(node, types)
        domain = "" if node.domain in DEFAULT_DOMAINS else node.domain
        schema = self._schema(node.op_type, domain)
        if schema is None:
            return [] if domain else _contrib(node, types)
        if _refers(node):
            return _by_variables(schema, node, types)
        found: list[tuple[str, TypeProto]] = []
        is_news = not self._is_inferred or self._reads_news(node)
        if is_news:
            found = self._inferred(schema, node, types, constants)
        if is_news or not all(_has_type(types.get(name)) for name in node.output if name):
            found += _by_variables(schema, node, types)
        if self._knows_graphs(node):
            found += _by_graphs(node, inner)
        told = _TOLD_RANKS.get(domain, {}).get(node.op_type)
        if told is not None:
            element_type = next((_element_type(one) for name, one in found if name == node.output[0]), 0)
            element_type = element_type or _element_type(types.get(node.output[0]))
            rank = followed(told, Inputs.of_types(node, types)) if element_type else None
            if rank is not None:
                found += [(name, _tensor(element_type, rank)) for name in _ranked_outputs(node)]
        return found

    def _knows_graphs(self, node: NodeProto) -> bool:
        # Scan of opset 8 had a batch axis and its lengths as first input.
        old = node.op_type == "Scan" and self._imports.get("", 0) < 9
        return node.domain in DEFAULT_DOMAINS and not old and not _refers(node)

    def _schema(self, op_type: str, domain: str) -> defs.OpSchema | None:
        if domain not in self._imports:
            return None
        return schema_in_force(op_type, self._imports[domain], domain)

    def _inferred(
        self, schema: defs.OpSchema, node: NodeProto, types: Types, constants: Mapping[str, TensorProto]
    ) -> list[tuple[str, TypeProto]]:
        """What the inference of the schema says of this one node."""
        if any(attribute.type == AttributeProto.GRAPH for attribute in node.attribute):
            return []
        given = {name: types[name] for name in node.input if name in types}
        if any(name and not _element_type(given.get(name)) for name in node.input) or may_end_process(node, given):
            return []
        data = {name: constants[name] for name in node.input if name in constants}
        try:
            found = shape_inference.infer_node_outputs(
                schema, node, given, data, opset_imports=self._opset_imports, ir_version=self._ir_version
            )
        except Exception:
            # It says what it thinks is wrong with the node; what is wanted here is only what it knows.
            return []
        return list(found.items())

    # Backward: from what a node yields, and its other inputs, to what it reads

    def _backward(self, graph: GraphProto, types: Types) -> bool:
        """Give values of unknown element type that of what shares a type variable with them; whether any was found."""
        changed = False
        for node in reversed(graph.node):
            schema = self._schema(node.op_type, "") if node.domain in DEFAULT_DOMAINS else None
            if schema is None or all(_element_type(types.get(name)) for name in node.input if name):
                continue
            variables = _variables(schema, node, types)
            for name, parameter in _inputs(schema, node):
                element_type = variables.get(parameter.type_str) or only_element_type(schema, parameter)
                if name and element_type and not _has_type(types.get(name)):
                    types[name] = _merged(types.get(name), _tensor(element_type, None))
                    changed = True
        return changed


def _refers(node: NodeProto) -> bool:
    """Whether an attribute is one of the function around, so that its value is not known here."""
    return any(attribute.ref_attr_name for attribute in node.attribute)


def _element_type(found: TypeProto | None) -> int:
    return 0 if found is None else found.tensor_type.elem_type


def _has_type(found: TypeProto | None) -> bool:
    return found is not None and (found.WhichOneof("value") not in (None, "tensor_type") or bool(_element_type(found)))


def _merged(old: TypeProto | None, new: TypeProto) -> TypeProto:
    """The old type, with what it leaves open taken from the new one."""
    if old is None or old.WhichOneof("value") is None:
        return new
    if old.WhichOneof("value") != "tensor_type" or new.WhichOneof("value") != "tensor_type":
        return old
    whole = TypeProto()
    whole.CopyFrom(old)
    whole.tensor_type.elem_type = _element_type(old) or _element_type(new)
    if new.tensor_type.HasField("shape") and not old.tensor_type.HasField("shape"):
        whole.tensor_type.shape.CopyFrom(new.tensor_type.shape)
    elif rank_of(old) == rank_of(new):
        for place in _open_sizes(old) - _open_sizes(new):
            whole.tensor_type.shape.dim[place].CopyFrom(new.tensor_type.shape.dim[place])
    return whole


def _open_sizes(found: TypeProto) -> set[int]:
    """The axes whose sizes are not numbers."""
    return {place for place, dim in enumerate(found.tensor_type.shape.dim) if not dim.HasField("dim_value")}


def _stated(graph: GraphProto) -> dict[str, TypeProto]:
    types: dict[str, TypeProto] = {}
    for value in (*graph.value_info, *graph.output, *graph.input):
        old = types.get(value.name)
        types[value.name] = value.type if old is None else _merged(old, value.type)
    alike: dict[tuple[int, ...], TypeProto] = {}
    for tensor in graph.initializer:
        kind = (tensor.data_type, *tensor.dims)
        if kind not in alike:
            alike[kind] = tensor_type(tensor)
        types[tensor.name] = alike[kind]
    for sparse in graph.sparse_initializer:
        types[sparse.values.name] = _tensor(sparse.values.data_type, len(sparse.dims))
    return types


def _state(graph: GraphProto, types: Mapping[str, TypeProto]) -> None:
    """Write what was found into the value_info of the graph."""
    known = {value.name: value for value in graph.value_info if value.name in types} if types else {}
    for name, found in types.items():
        value = known.get(name)
        if value is None:
            value = graph.value_info.add(name=name)
        value.type.CopyFrom(found)


def _note_constant(node: NodeProto, constants: MutableMapping[str, TensorProto]) -> None:
    for attribute in node.attribute:
        if attribute.name == "value" and not attribute.ref_attr_name and prod(attribute.t.dims) <= _SMALL:
            constants[node.output[0]] = attribute.t
        elif attribute.name == "value_ints" and not attribute.ref_attr_name and len(attribute.ints) <= _SMALL:
            values = TensorProto(data_type=TensorProto.INT64, dims=[len(attribute.ints)], int64_data=attribute.ints)
            constants[node.output[0]] = values


def _contrib(node: NodeProto, types: Types) -> list[tuple[str, TypeProto]]:
    """What the table of operators without schemas says."""
    if node.domain == "com.microsoft.nchwc":
        # Its operators are those of the default domain in another layout.
        given = types.get(node.input[0]) if node.input else None
        same = _element_type(given)
        return [(node.output[0], _tensor(same, rank_of(given)))] if same else []
    table = UNLISTED if node.domain in DEFAULT_DOMAINS else CONTRIB
    inputs = Inputs.of_types(node, types)
    found = []
    for name, output in zip(node.output, table.get(node.op_type, ()), strict=False):
        is_said = 0 <= output.like < len(node.input) and bool(node.input[output.like])
        element_type = _element_type(types.get(node.input[output.like])) if is_said else output.element_type
        if element_type:
            found.append((name, _tensor(element_type, followed(output.rank, inputs))))
    return found


# Type variables


def _inputs(schema: defs.OpSchema, node: NodeProto) -> list[tuple[str, defs.OpSchema.FormalParameter]]:
    return _paired(list(node.input), list(schema.inputs))


def _paired(
    names: list[str], formals: list[defs.OpSchema.FormalParameter]
) -> list[tuple[str, defs.OpSchema.FormalParameter]]:
    """Each name with its formal parameter; of a variadic one only where all its values are of one type."""
    paired = ((name, formal_at(formals, place)) for place, name in enumerate(names))
    return [(name, formal) for name, formal in paired if formal is not None]


def _variables(schema: defs.OpSchema, node: NodeProto, types: Types) -> dict[str, int]:
    """The element types that the type variables of a schema stand for at a node."""
    found: dict[str, int] = {}
    for name, formal in (*_inputs(schema, node), *_paired(list(node.output), list(schema.outputs))):
        known = types.get(name) if name else None
        # A variable may stand for sequences as well, in which case it says nothing of tensors.
        if known is not None and _element_type(known) and not formal.type_str.startswith(("seq", "optional")):
            found.setdefault(formal.type_str, _element_type(known))
    return found


def _by_variables(schema: defs.OpSchema, node: NodeProto, types: Types) -> list[tuple[str, TypeProto]]:
    variables = _variables(schema, node, types)
    found = []
    for name, formal in _paired(list(node.output), list(schema.outputs)):
        element_type = variables.get(formal.type_str) or only_element_type(schema, formal)
        if name and element_type and not _has_type(types.get(name)):
            found.append((name, _tensor(element_type, None)))
    return found


# Graphs inside


def _handed(node: NodeProto, body: GraphProto, types: Types) -> dict[str, TypeProto]:
    """The types of what Loop and Scan hand to their body, as far as these stay the same."""
    handed: list[TypeProto] = []
    if node.op_type == "Loop":
        handed = [_tensor(TensorProto.INT64, 0), _tensor(TensorProto.BOOL, 0)]
        # What is carried keeps its element type; its shape may change.
        handed += [_tensor(_element_type(types.get(name)), None) for name in node.input[2:]]
    elif node.op_type == "Scan":
        handed = [_tensor(_element_type(types.get(name)), None) for name in node.input]
        for place in range(_carried(node), len(handed)):
            given = types.get(node.input[place])
            if rank := rank_of(given):
                handed[place] = _tensor(_element_type(given), rank - 1)
    return {value.name: given for value, given in zip(body.input, handed, strict=False) if _element_type(given)}


def _carried(node: NodeProto) -> int:
    """How many inputs of a Scan are carried from step to step; the others are scanned."""
    scanned = value_of(node, "num_scan_inputs", 0)
    # A broken model may say any number, or something else than one.
    return max(0, len(node.input) - scanned) if isinstance(scanned, int) else len(node.input)


def _by_graphs(node: NodeProto, inner: list[list[TypeProto | None]]) -> list[tuple[str, TypeProto]]:
    if node.op_type == "If" and len(inner) == 2:
        pairs = zip(node.output, *inner, strict=False)
        return [(name, both) for name, one, other in pairs if (both := _common(one, other)) is not None]
    if node.op_type in ("Loop", "Scan") and len(inner) == 1:
        yielded = inner[0][1:] if node.op_type == "Loop" else inner[0]
        carried = len(node.input) - 2 if node.op_type == "Loop" else _carried(node)
        found = []
        for place, (name, given) in enumerate(zip(node.output, yielded, strict=False)):
            if _element_type(given):
                rank = rank_of(given)
                stacked = place >= carried and rank is not None
                found.append((name, _tensor(_element_type(given), rank + 1 if stacked and rank is not None else None)))
        return found
    return []


def _common(one: TypeProto | None, other: TypeProto | None) -> TypeProto | None:
    if one is None or other is None or not _element_type(one) or _element_type(one) != _element_type(other):
        return None
    rank = rank_of(one)
    return _tensor(_element_type(one), rank if rank == rank_of(other) else None)


def _ranked_outputs(node: NodeProto) -> list[str]:
    """The outputs that have the rank of the first and its element type."""
    return [name for name in (node.output if node.op_type == "Split" else node.output[:1]) if name]
