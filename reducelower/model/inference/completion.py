"""Find element types and ranks that onnx's shape inference leaves open, in one walk forward and one backward.

onnx's inference stops at a Reshape with a computed shape, although the length of that shape is the rank, and at
operators without a schema. One wrong stated type makes it find nothing at all. Here every node with an unknown output
is inferred by itself: by the inference of its schema, by its type variables, and by the length of a shape or of axes. A
type that cannot be determined with certainty stays unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, defs, shape_inference
from onnx.numpy_helper import from_array

from reducelower.model.attributes import value_of
from reducelower.model.element_types import formal_at, only_element_type
from reducelower.model.graph import may_hold_graphs
from reducelower.model.inference.protected import may_crash
from reducelower.model.inference.ranks import CONTRIB, ML_RANKS, RANKS, UNLISTED, Inputs, evaluate_rule, rank_of
from reducelower.model.numbers import value_of_tensor
from reducelower.model.schemas import DEFAULT_DOMAINS, schema_in_force
from reducelower.model.value_info import is_known, tensor_type

__all__ = ["complete", "state_ranks"]

_SMALL = 64
"""Shapes and axes have at most this many elements; longer constants are not evaluated."""

_RANK_RULES = {"": RANKS, "ai.onnx.ml": ML_RANKS}

Types: TypeAlias = MutableMapping[str, TypeProto]


_Integers: TypeAlias = "NDArray[np.int64]"


def _quotient(left: _Integers, right: _Integers) -> _Integers:
    """Integer division towards zero."""
    if not right.all():
        raise ZeroDivisionError
    return np.asarray(np.abs(left) // np.abs(right) * np.sign(left) * np.sign(right))


def _remainder(left: _Integers, right: _Integers) -> _Integers:
    """Remainder with the sign of the divisor."""
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
"""Integer operators that exporters use to compute bounds of shapes, or to compare ranks."""


class _Types(dict[str, TypeProto]):
    """Types by value name in one graph.

    Attributes:
        found: types that were added here.
        names: names of all added types, in any graph.
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
"""Gives the output types of a call of a model-local function from its input types."""


def complete(model: ModelProto, of_call: OfCall, *, is_inferred: bool = False, objects: bool = False) -> None:
    """State in value_info the types that inference left open, in the main graph and its subgraphs.

    Args:
        model: a copy that is used for its types only; it is changed.
        of_call: infers through the functions of the model.
        is_inferred: whether shape inference has seen all of it. A node is then inferred again only if something new is
            known about its inputs.
        objects: whether to raise if the model states another rank for the output of an If than the branch has that is
            always taken. Tracing exporters state the rank of the branch that they first saw.

    Raises:
        onnx.shape_inference.InferenceError: see `objects`.
    """
    if _is_complete(model.graph):
        return
    _Completion(model, of_call, is_inferred, objects).graph(model.graph, {}, {})


def state_ranks(model: ModelProto, inferred: ModelProto) -> None:
    """State in `model` the ranks at which inference stopped; `inferred` is the result of that inference."""
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
            rank = evaluate_rule(RANKS[node.op_type], Inputs.of_types(node, types))
            if rank is not None:
                found[node.output[0]] = _tensor(element_type, rank)
    _state(model.graph, found)


def _is_complete(graph: GraphProto) -> bool:
    """Whether a graph has no subgraphs and the type of every node output is known."""
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
    """The walk over one model; see `complete`."""

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
        """Complete the types of a graph whose inputs have the types `handed`; return all visible types by name."""
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

    # Forward: from inputs to outputs

    def _forward(self, graph: GraphProto, types: Types, constants: dict[str, TensorProto]) -> None:
        for node in graph.node:
            if node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS and node.output:
                _note_constant(node, constants)
            elif node.op_type in _FOLDED and node.domain in DEFAULT_DOMAINS and constants.keys() >= {*node.input}:
                self._fold(node, constants)
            elif node.op_type == "Size" and node.domain in DEFAULT_DOMAINS:
                self._note_size(node, types, constants)
            inner = self._subgraph_outputs(node, types, constants) if may_hold_graphs(node) else []
            if all(not name or self._is_settled(types.get(name), node) for name in node.output):
                continue
            for name, found in self._outputs(node, types, constants, inner):
                if name:
                    types[name] = _merged(types.get(name), found)

    def _fold(self, node: NodeProto, constants: dict[str, TensorProto]) -> None:
        """Fold a node with constant inputs; the result may be the bound of a Slice of a shape."""
        read = [value_of_tensor(constants[name]) for name in node.input]
        given = [value for value in read if value is not None and value.dtype == np.int64]
        if len(given) < len(read) or any(attribute.name == "fmod" for attribute in node.attribute):
            return
        try:
            found = _FOLDED[node.op_type](*given)
        except (TypeError, ValueError, ArithmeticError):  # of a broken model
            return
        if found.size <= _SMALL:
            constants[node.output[0]] = from_array(np.asarray(found))
            self._names.add(node.output[0])

    def _note_size(self, node: NodeProto, types: Types, constants: dict[str, TensorProto]) -> None:
        """Fold Size of a value whose dimensions are all known, such as a shape; its size is a rank."""
        found = types.get(node.input[0])
        if rank_of(found) is not None and found is not None and not _open_sizes(found):
            size = prod(dim.dim_value for dim in found.tensor_type.shape.dim)
            constants[node.output[0]] = from_array(np.array(size))
            self._names.add(node.output[0])

    def _is_settled(self, found: TypeProto | None, node: NodeProto) -> bool:
        """Whether inferring a node again would tell nothing new about this output.

        The length of a vector, and the sizes of an int64 tensor such as the output of NonZero, may determine the rank
        of another value. They follow from what was found about the node's inputs.
        """
        if found is None or not is_known(found):
            return False
        tells_ranks = rank_of(found) == 1 or _element_type(found) == TensorProto.INT64
        return not tells_ranks or not _open_sizes(found) or not self._has_new_inputs(node)

    def _has_new_inputs(self, node: NodeProto) -> bool:
        """Whether something is known about an input that onnx's inference does not know.

        That is a type or value found here, or a constant of an enclosing graph.
        """
        return not (self._names.isdisjoint(node.input) and self._around.keys().isdisjoint(node.input))

    def _subgraph_outputs(
        self, node: NodeProto, types: Types, constants: Mapping[str, TensorProto]
    ) -> list[list[TypeProto | None]]:
        """The output types of every subgraph of a node; for an If with a constant condition, those of the branch
        taken."""
        condition = constants.get(node.input[0]) if node.op_type == "If" and node.input else None
        decided = None if condition is None else value_of_tensor(condition)
        if decided is not None:
            taken = "then_branch" if decided.any() else "else_branch"
            branches = [attribute.g for attribute in node.attribute if attribute.name == taken]
            return [self._branch_outputs(node, branch, types, constants) for branch in branches] * 2
        found = []
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                body = attribute.g
                handed = _body_inputs(node, body, types) if self._knows_graphs(node) else {}
                inner = self.graph(body, types, constants, handed)
                found.append([inner.get(value.name) for value in body.output])
        return found

    def _branch_outputs(
        self, node: NodeProto, branch: GraphProto, types: Types, constants: Mapping[str, TensorProto]
    ) -> list[TypeProto | None]:
        """The output types of the branch that is always taken, inferred anew, since stated shapes may be of the other
        one.

        Raises:
            onnx.shape_inference.InferenceError: the ranks differ from the stated ones, if `objects` is set.
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
        is_news = not self._is_inferred or self._has_new_inputs(node)
        if is_news:
            found = self._inferred(schema, node, types, constants)
        if is_news or not all(_has_type(types.get(name)) for name in node.output if name):
            found += _by_variables(schema, node, types)
        if self._knows_graphs(node):
            found += _by_graphs(node, inner)
        rule = _RANK_RULES.get(domain, {}).get(node.op_type)
        if rule is not None:
            element_type = next((_element_type(one) for name, one in found if name == node.output[0]), 0)
            element_type = element_type or _element_type(types.get(node.output[0]))
            rank = evaluate_rule(rule, Inputs.of_types(node, types)) if element_type else None
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
        """The output types by the schema's own inference of this node."""
        if any(attribute.type == AttributeProto.GRAPH for attribute in node.attribute):
            return []
        given = {name: types[name] for name in node.input if name in types}
        if any(name and not _element_type(given.get(name)) for name in node.input) or may_crash(node, given):
            return []
        data = {name: constants[name] for name in node.input if name in constants}
        try:
            found = shape_inference.infer_node_outputs(
                schema, node, given, data, opset_imports=self._opset_imports, ir_version=self._ir_version
            )
        except Exception:
            # It raises if it finds the node invalid. Only types matter here.
            return []
        return list(found.items())

    # Backward: from outputs and other inputs to an input

    def _backward(self, graph: GraphProto, types: Types) -> bool:
        """Give values of unknown element type the type of values that share their type variable; True if any was
        found."""
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
    """Whether an attribute of the node refers to one of the enclosing function, so that its value is unknown."""
    return any(attribute.ref_attr_name for attribute in node.attribute)


def _element_type(found: TypeProto | None) -> int:
    return 0 if found is None else found.tensor_type.elem_type


def _has_type(found: TypeProto | None) -> bool:
    return found is not None and (found.WhichOneof("value") not in (None, "tensor_type") or bool(_element_type(found)))


def _merged(old: TypeProto | None, new: TypeProto) -> TypeProto:
    """The old type, completed from the new one."""
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
    """The axes without a number as size."""
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
    """Write types into the value_info of the graph."""
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
    """Types by the tables of operators that have no schema."""
    if node.domain == "com.microsoft.nchwc":
        # com.microsoft.nchwc has operators of the default domain in a blocked layout.
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
            found.append((name, _tensor(element_type, evaluate_rule(output.rank, inputs))))
    return found


# Type variables


def _inputs(schema: defs.OpSchema, node: NodeProto) -> list[tuple[str, defs.OpSchema.FormalParameter]]:
    return _paired(list(node.input), list(schema.inputs))


def _paired(
    names: list[str], formals: list[defs.OpSchema.FormalParameter]
) -> list[tuple[str, defs.OpSchema.FormalParameter]]:
    """Pair names with formal parameters; a variadic one counts only if its values share one type."""
    paired = ((name, formal_at(formals, place)) for place, name in enumerate(names))
    return [(name, formal) for name, formal in paired if formal is not None]


def _variables(schema: defs.OpSchema, node: NodeProto, types: Types) -> dict[str, int]:
    """The element types of the schema's type variables at a node."""
    found: dict[str, int] = {}
    for name, formal in (*_inputs(schema, node), *_paired(list(node.output), list(schema.outputs))):
        known = types.get(name) if name else None
        # A variable that may also be a sequence says nothing about tensors.
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


# Subgraphs


def _body_inputs(node: NodeProto, body: GraphProto, types: Types) -> dict[str, TypeProto]:
    """The types that Loop and Scan pass to their body, as far as they are the same in every iteration."""
    handed: list[TypeProto] = []
    if node.op_type == "Loop":
        handed = [_tensor(TensorProto.INT64, 0), _tensor(TensorProto.BOOL, 0)]
        # A loop-carried value keeps its element type; its shape may change.
        handed += [_tensor(_element_type(types.get(name)), None) for name in node.input[2:]]
    elif node.op_type == "Scan":
        handed = [_tensor(_element_type(types.get(name)), None) for name in node.input]
        for place in range(_carried(node), len(handed)):
            given = types.get(node.input[place])
            if rank := rank_of(given):
                handed[place] = _tensor(_element_type(given), rank - 1)
    return {value.name: given for value, given in zip(body.input, handed, strict=False) if _element_type(given)}


def _carried(node: NodeProto) -> int:
    """How many inputs of a Scan are state variables; the others are scanned."""
    scanned = value_of(node, "num_scan_inputs", 0)
    # In a broken model the attribute may be out of range or no integer.
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
    """The outputs with the same rank and element type as the first."""
    return [name for name in (node.output if node.op_type == "Split" else node.output[:1]) if name]
