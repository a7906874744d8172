"""Types that the model does not state: shape inference, run once and only on demand."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from itertools import chain, zip_longest

from onnx import (
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
    defs,
    shape_inference,
)

from reducelower.model import onnx_inference
from reducelower.model.ancestors import Ancestors
from reducelower.model.calls import (
    FunctionId,
    attributes_of_call,
    bind,
    called_function,
    function_id,
    functions_of,
    reached,
)
from reducelower.model.declared import declare
from reducelower.model.element_types import only_element_type
from reducelower.model.graph import may_hold_graphs, subgraphs, walk
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.model.skeleton import LARGEST_KEPT, skeleton
from reducelower.model.text import one_line
from reducelower.model.value_info import is_known, tensor_type, without_made_up_symbols

__all__ = [
    "ContradictionError",
    "GraphKey",
    "Inference",
    "function_key",
    "infer",
    "infer_body",
    "infer_strictly",
]

_BODIES_KEPT = 512

GraphKey = tuple[int, ...]


class ContradictionError(Exception):
    """The model states types that contradict inference, so none of them can be trusted."""


class Inference:
    """The types of a model's values by onnx's shape inference.

    It runs at the first question, on a copy without weights (`onnx.shape_inference.infer_shapes` takes models up to 2
    GiB). It covers subgraphs, and bodies of model-local functions as far as all their calls agree.
    """

    def __init__(
        self,
        source: Callable[[], ModelProto],
        sole_type: Callable[[], int | None] = lambda: None,
        element_types: Mapping[str, int] | None = None,
        ranks: Mapping[str, int] | None = None,
        *,
        lenient: bool = True,
    ) -> None:
        """Prepare inference; nothing runs yet.

        Args:
            source: gives the model, the same each time.
            sole_type: gives the element type of all node outputs of the main graph if there is only one.
            element_types: element types that the user declared, by name.
            ranks: ranks that the user declared, by name.
            lenient: whether to ignore stated types that contradict inference, instead of raising.
        """
        self._source = source
        self._element_types = element_types or {}
        self._ranks = ranks or {}
        self.is_lenient = lenient
        self._sole_type = sole_type
        self._types: dict[GraphKey, dict[str, TypeProto]] | None = None
        self._open: tuple[ModelProto, bool] | None = None
        self._contradiction = ""
        self._omitted: frozenset[tuple[str, str, str, str]] | None = None
        self._by_ancestors: dict[str, TypeProto | None] = {}
        self.known_ranks: dict[GraphKey, dict[tuple[str, bool], int | None]] = {}
        """Ranks and lengths that were followed back through operators, by graph; see `reducelower.scope.ranks`."""

    @cached_property
    def sole_element_type(self) -> int | None:
        """The element type of every node output of the main graph; None if there may be several."""
        return self._sole_type()

    @property
    def has_run(self) -> bool:
        """Whether inference has run, so that more questions cost nothing."""
        return self._types is not None

    def type(self, key: GraphKey, name: str) -> TypeProto | None:
        """The type of a value; None if unknown.

        Args:
            key: the graph: positions of node and subgraph from the main graph inward. For graphs in function n of the
                model it starts with -1 - n (see `function_key`).
            name: the name of the value.

        Raises:
            ContradictionError: the model states types that contradict inference, and `lenient` is not set.
        """
        found = self._inferred().get(key, {}).get(name)
        return found if is_known(found) else self.types(key).get(name)

    def type_by_ancestors(self, name: str) -> TypeProto | None:
        """The type of a value of the main graph, by inference over its ancestors only.

        None if there are many ancestors, if they do not determine the type, or if the whole model was inferred already.

        Raises:
            ContradictionError: see `type`.
        """
        if name not in self._by_ancestors and not self.has_run and self._ancestors_left > 0:
            part = self._ancestors.model_of(name, self._ancestors_left)
            self._by_ancestors[name] = None
            if part is not None:
                self._ancestors_left -= len(part.graph.node)
                of_part = Inference(
                    lambda: part, element_types=self._element_types, ranks=self._ranks, lenient=self.is_lenient
                )
                self._by_ancestors.update(of_part.types(()))
        found = self._by_ancestors.get(name)
        return found if is_known(found) else None

    @cached_property
    def _ancestors(self) -> Ancestors:
        return Ancestors(self._source())

    @cached_property
    def _ancestors_left(self) -> int:
        """How many more ancestors may be inferred before it is cheaper to infer the whole model."""
        return len(self._source().graph.node) // 4

    def types(self, key: GraphKey) -> Mapping[str, TypeProto]:
        """Types by value name of the graph at `key`; see `type`."""
        self._inferred()
        self._complete_types()
        assert self._types is not None
        return self._types.get(key, {})

    def _complete_types(self) -> None:
        """Complete the types that onnx's inference left open."""
        if self._open is not None:
            _complete(self._open[0], is_inferred=self._open[1], lenient=self.is_lenient)
            self._collect(self._open[0].graph, ())
            self._collect_functions(self._open[0])
            self._open = None

    def _inferred(self) -> Mapping[GraphKey, Mapping[str, TypeProto]]:
        """Types by onnx's inference; those it leaves open are completed on demand."""
        if self._contradiction:
            raise ContradictionError(self._contradiction)
        if self._types is None:
            self._types = {}
            try:
                bare = skeleton(self._source())
                declare(bare.graph, self._element_types, self._ranks)
                self._open = infer_shapes(bare, lenient=self.is_lenient)
                self._collect(self._open[0].graph, ())
                if self._open[0].functions or any(node.op_type == "If" for node in bare.graph.node):
                    # Input types of functions should be as complete as possible, and an If may state a wrong type.
                    self._complete_types()
            except shape_inference.InferenceError as error:
                # Several attempts may share this inference, so every question raises again.
                self._types, self._contradiction = None, one_line(error)
                raise ContradictionError(self._contradiction) from error
            except Exception:
                # A model that inference cannot even read has no inferred types; what needs one is refused and names
                # the value.
                return {}
        return self._types

    def omits(self, function: FunctionProto, attribute: str) -> bool:
        """Whether some call of a function omits the attribute, or the function does not declare it."""
        from reducelower.model.calls import omitted_attributes

        if self._omitted is None:
            self._omitted = omitted_attributes(self._source())
        if all(known.name != attribute for known in function.attribute_proto) and attribute not in function.attribute:
            return True
        return (*function_id(function), attribute) in self._omitted

    def holder(self, key: GraphKey) -> GraphProto | FunctionProto:
        """The graph or function body at a key, before any rewrite."""
        holder: GraphProto | FunctionProto = self._source().graph
        if key and key[0] < 0:
            holder, key = self._source().functions[-1 - key[0]], key[1:]
        for index, number in zip(key[::2], key[1::2], strict=True):
            holder = next(graph for place, _, graph in subgraphs(holder.node[index]) if place == number)
        return holder

    def _collect(self, graph: GraphProto, key: GraphKey) -> None:
        assert self._types is not None
        # The inputs of a Scan body need not state types; inference knows them.
        self._types[key] = {value.name: value.type for value in (*graph.input, *graph.output, *graph.value_info)}
        for index, node in enumerate(graph.node):
            for number, _, inner in subgraphs(node) if may_hold_graphs(node) else ():
                self._collect(inner, (*key, index, number))

    def _collect_functions(self, model: ModelProto) -> None:
        assert self._types is not None
        calls: dict[FunctionId, list[list[TypeProto | None]]] = {}
        functions = functions_of(model)
        if not functions:
            return
        positions = {function_id(function): number for number, function in enumerate(model.functions)}
        _note_calls(model.graph, {}, calls, positions.keys())
        # Callers come before callees, so that all calls of a function are known when its body is inferred.
        for number in _callers_first(model.functions, positions):
            function = model.functions[number]
            inputs = _agreed(calls.get(function_id(function), []))
            types = {name: found for name, found in zip(function.input, inputs, strict=False) if found is not None}
            body = infer_function(function, types, functions, model.ir_version)
            self._collect(body, function_key(number))
            self._types[function_key(number)].update(types)
            _note_calls(body, types, calls, positions.keys())


def function_key(number: int) -> GraphKey:
    """The key of a function body, by the position of the function in the model."""
    return (-1 - number,)


def _note_calls(
    graph: GraphProto,
    around: Mapping[str, TypeProto],
    calls: dict[FunctionId, list[list[TypeProto | None]]],
    functions: Collection[FunctionId],
) -> None:
    """Record the input types of every function call in a graph and its subgraphs."""
    types = {**around, **{value.name: value.type for value in (*graph.value_info, *graph.output, *graph.input)}}
    types.update((tensor.name, tensor_type(tensor)) for tensor in graph.initializer)
    for node in graph.node:
        called = called_function(node)
        if called in functions:
            calls.setdefault(called, []).append([types.get(name) for name in node.input])
        for _, _, inner in subgraphs(node):
            _note_calls(inner, types, calls, functions)


def _agreed(calls: list[list[TypeProto | None]]) -> list[TypeProto | None]:
    """The type of each input on which all calls agree."""
    return [_common([*given]) for given in zip_longest(*calls)]


def _common(given: list[TypeProto | None]) -> TypeProto | None:
    """The common part of several types: all of it, or element type, rank and the sizes that agree."""
    known = [one for one in given if one is not None]
    if len(known) < len(given):
        return None
    first = known[0]
    if all(one == first for one in known):
        return first
    tensors = [one.tensor_type for one in known]
    if len({tensor.elem_type for tensor in tensors}) > 1 or not first.HasField("tensor_type"):
        return None
    common = TypeProto()
    common.tensor_type.elem_type = first.tensor_type.elem_type
    shapes = [tensor.shape.dim for tensor in tensors if tensor.HasField("shape")]
    if len(shapes) == len(tensors) and len({*map(len, shapes)}) == 1:
        common.tensor_type.shape.SetInParent()
        for dims in zip(*shapes, strict=True):
            made = common.tensor_type.shape.dim.add()
            if all(dim == dims[0] for dim in dims):
                made.CopyFrom(dims[0])
    return common


def _callers_first(functions: Sequence[FunctionProto], positions: Mapping[FunctionId, int]) -> list[int]:
    """Positions of the functions, each before the functions that it calls."""
    order: list[int] = []
    seen: set[int] = set()

    def put_after_callees(number: int) -> None:
        if number in seen:
            return
        seen.add(number)
        for called in map(called_function, walk(functions[number].node)):
            if called in positions:
                put_after_callees(positions[called])
        order.append(number)

    for number in range(len(functions)):
        put_after_callees(number)
    return order[::-1]


def infer_function(
    function: FunctionProto,
    types: Mapping[str, TypeProto],
    functions: Mapping[FunctionId, FunctionProto],
    ir_version: int,
) -> GraphProto:
    """A function body as a graph, with types inferred from the types of its inputs.

    If nodes refer to attributes of the function, shapes depend on the call, and only element types are kept.

    Args:
        function: the function.
        types: known types of its inputs, by name.
        functions: the model's functions, which it may call.
        ir_version: that of the model.
    """
    graph = GraphProto(name=function.name)
    graph.node.extend(function.node)
    for name in function.input:
        if name in types:
            graph.input.add(name=name).type.CopyFrom(types[name])
    body = ModelProto(ir_version=ir_version, graph=graph)
    body.opset_import.extend(function.opset_import)
    body.functions.extend(reached(function.node, functions).values())
    try:
        inferred = infer(body).graph
    except Exception:
        return graph
    if _has_references(function.node):
        for value in inferred.value_info:
            if value.type.WhichOneof("value") == "tensor_type":
                value.type.tensor_type.ClearField("shape")
    return inferred


def infer(model: ModelProto) -> ModelProto:
    """Infer as many types as possible, in a model copy used for its types only.

    If stated types of inner values are in the way, all of them are dropped; invalid nodes are skipped.
    """
    found, is_inferred = infer_shapes(model, lenient=True)
    _complete(found, is_inferred=is_inferred)
    return found


def infer_strictly(model: ModelProto) -> tuple[ModelProto, str]:
    """Infer types in a model copy, and return them with the objection of strict inference, empty if there is none.

    The objection may also be to the model with these types stated: they may be more than strict inference finds by
    itself, and show that another stated type is wrong.
    """
    try:
        found = onnx_inference.infer_shapes(model, check_type=True, strict_mode=True)
        data = found.SerializeToString()
        if any(map(_has_open_size, found.graph.value_info)):
            found = _with_data(model, found)
        _complete(found, is_inferred=True, lenient=False)
        if found.SerializeToString() != data:
            onnx_inference.infer_shapes(found, check_type=True, strict_mode=True)
    except Exception as error:  # inference raises several types
        objection = " ".join(str(error).split()) or type(error).__name__
        try:
            return infer(model), objection
        except Exception:
            return model, objection
    return found, ""


def _complete(model: ModelProto, *, is_inferred: bool, lenient: bool = True) -> None:
    """Complete the types that onnx's inference left open. If a stated type is in the way, raise, or drop all stated
    types."""
    from reducelower.model.infer_ranks import complete

    of_call = partial(_types_of_call, functions_of(model), model.ir_version)
    try:
        complete(model, of_call, is_inferred=is_inferred, objects=True)
    except shape_inference.InferenceError:
        if not lenient:
            raise
        drop_value_info(model.graph)
        found, is_inferred = infer_shapes(model, lenient=True)
        model.CopyFrom(found)
        complete(model, of_call, is_inferred=is_inferred)


def _types_of_call(
    functions: Mapping[FunctionId, FunctionProto], ir_version: int, call: NodeProto, given: list[TypeProto | None]
) -> list[TypeProto | None]:
    """The output types of a call of a model-local function, from its input types."""
    function = functions[called_function(call)]
    bound = FunctionProto()
    bound.CopyFrom(function)
    bind(bound.node, attributes_of_call(function, call))
    types = {name: found for name, found in zip(function.input, given, strict=False) if found is not None}
    body = infer_function(bound, types, functions, ir_version)
    types.update((value.name, without_made_up_symbols(value.type)) for value in body.value_info)
    return [types.get(name) for name in function.output]


def _has_open_size(value: ValueInfoProto) -> bool:
    return any(dim.WhichOneof("value") is None for dim in value.type.tensor_type.shape.dim)


def infer_shapes(model: ModelProto, *, lenient: bool) -> tuple[ModelProto, bool]:
    """Run onnx's inference; return its result and True, or the model itself and False if it fails."""
    _help_inference(model.graph, set())
    try:
        inferred = onnx_inference.infer_shapes(model, strict_mode=not lenient)
    except Exception:  # it raises several types, among them the checker's
        if not lenient:
            raise
        drop_value_info(model.graph)
        try:
            inferred = onnx_inference.infer_shapes(model)
        except Exception:
            return model, False
    return _with_data(model, inferred), True


def _with_data(model: ModelProto, inferred: ModelProto) -> ModelProto:
    """Infer again with data propagation, which follows the values of shapes, starting from the inferred types."""
    # Data propagation keeps a record for every element of a vector, however many there are.
    if _has_long_vector(inferred.graph) or (model.functions and _has_long_dimension(inferred.graph)):
        return inferred
    from reducelower.model.infer_ranks import state_ranks

    state_ranks(model, inferred)
    try:
        return onnx_inference.infer_shapes(model, data_prop=True)
    except shape_inference.InferenceError:
        return inferred


def drop_value_info(graph: GraphProto) -> None:
    """Remove the stated types of node outputs from a graph and its subgraphs."""
    del graph.value_info[:]
    for inner in _inner_graphs(graph):
        drop_value_info(inner)


_LONGEST_OF_OTHERS = 1_000_000


def _has_long_vector(graph: GraphProto) -> bool:
    for value in (*graph.input, *graph.value_info, *graph.output):
        tensor = value.type.tensor_type
        # Values of floats tell no shape, but they are recorded as well: a million take 40 ms.
        longest = LARGEST_KEPT if tensor.elem_type in (TensorProto.INT32, TensorProto.INT64) else _LONGEST_OF_OTHERS
        dims = tensor.shape.dim
        if len(dims) == 1 and dims[0].dim_value > longest:
            return True
    return any(map(_has_long_vector, _inner_graphs(graph)))


def _has_long_dimension(graph: GraphProto) -> bool:
    """Whether a function may make a long vector of what a graph hands it: inside of functions no types are told."""
    values = chain(graph.input, graph.value_info, graph.output)
    dims = chain.from_iterable(value.type.tensor_type.shape.dim for value in values)
    return any(dim.dim_value > _LONGEST_OF_OTHERS for dim in dims) or any(
        map(_has_long_dimension, _inner_graphs(graph))
    )


def _inner_graphs(graph: GraphProto) -> Iterator[GraphProto]:
    return (inner for node in graph.node if may_hold_graphs(node) for _, _, inner in subgraphs(node))


# Outputs have the type of the input, but the schemas lack inference.
_WITHOUT_INFERENCE = {"GroupNormalization": "", "MeanVarianceNormalization": "", "Imputer": "ai.onnx.ml"}


def _help_inference(graph: GraphProto, constants: set[str]) -> None:
    """Rewrite nodes at which inference gives up although their result type is clear."""
    constants = constants | {tensor.name for tensor in graph.initializer}
    constants |= {node.output[0] for node in graph.node if node.op_type == "Constant" and node.output}
    for node in graph.node:
        op_type = node.op_type
        if op_type.startswith("Reduce"):
            if _keeps_rank_only(node, constants):
                # Inference gives up on unknown axes. With keepdims=1 the rank stays the same, as a Slice states.
                node.op_type = "Slice"
                node.input.append(node.input[1])
                del node.attribute[:]
        elif op_type == "Squeeze":
            for attribute in node.attribute:
                attribute.ints.sort()  # before opset 11, inference sees only axes in order
        elif op_type in _WITHOUT_INFERENCE:
            if node.domain == _WITHOUT_INFERENCE[op_type]:
                node.op_type, node.domain = "Identity", ""
                del node.attribute[:], node.input[1:]
        elif may_hold_graphs(node):
            if node.domain == "ai.onnx.ml":
                _state_outputs(node, graph)
            for _, _, inner in subgraphs(node):
                _help_inference(inner, constants)


def _state_outputs(node: NodeProto, graph: GraphProto) -> None:
    """State the element types of outputs that allow only one; inference misses them if the schema has no inference."""
    if not defs.has(node.op_type, node.domain):
        return
    found = defs.get_schema(node.op_type, node.domain)
    for name, formal in zip(node.output, found.outputs, strict=False):
        if name and (only := only_element_type(found, formal)):
            graph.value_info.add(name=name).type.tensor_type.elem_type = only


def _keeps_rank_only(node: NodeProto, constants: set[str]) -> bool:
    if node.domain not in DEFAULT_DOMAINS or len(node.input) < 2 or not node.input[1] or node.input[1] in constants:
        return False
    keepdims = next((attribute for attribute in node.attribute if attribute.name == "keepdims"), None)
    return keepdims is None or (keepdims.i == 1 and not keepdims.ref_attr_name)


def _has_references(nodes: Iterable[NodeProto]) -> bool:
    return any(attribute.ref_attr_name for node in walk(nodes) for attribute in node.attribute)


def infer_body(nodes: list[NodeProto], types: Mapping[str, TypeProto], opset: int) -> GraphProto:
    """A few nodes as a graph, with all types inferred from the types of their inputs.

    The result is cached, since the same bodies come up again and again, so do not change it.
    """
    function = FunctionProto(name="body", node=nodes, input=types)
    function.opset_import.add(version=opset)
    return _infer_body(function.SerializeToString(), tuple(found.SerializeToString() for found in types.values()))


@lru_cache(_BODIES_KEPT)
def _infer_body(body: bytes, types: tuple[bytes, ...]) -> GraphProto:
    function = FunctionProto.FromString(body)
    given = dict(zip(function.input, map(TypeProto.FromString, types), strict=True))
    return infer_function(function, given, {}, 10)
