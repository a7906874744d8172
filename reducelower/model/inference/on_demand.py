"""Types that a model does not state: shape inference, run once and only at the first question."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from itertools import zip_longest

from onnx import (
    FunctionProto,
    GraphProto,
    ModelProto,
    TypeProto,
    shape_inference,
)

from reducelower.model.calls import (
    FunctionId,
    called_function,
    function_id,
    functions_of,
)
from reducelower.model.graph import may_hold_graphs, subgraphs, walk
from reducelower.model.inference.declared import declare
from reducelower.model.inference.shapes import infer_with_help
from reducelower.model.inference.whole import complete_types, infer_function
from reducelower.model.skeleton import open_skeleton, skeleton
from reducelower.model.text import one_line
from reducelower.model.value_info import is_known, tensor_type

__all__ = ["ContradictionError", "GraphKey", "Inference", "function_key"]


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
        freezes_defaults: bool = False,
        lenient: bool = True,
    ) -> None:
        """Prepare inference; nothing runs yet.

        Args:
            source: gives the model, the same each time.
            sole_type: gives the element type of all node outputs of the main graph if there is only one.
            element_types: element types that the user declared, by name.
            ranks: ranks that the user declared, by name.
            freezes_defaults: whether types may follow from the default values of inputs.
            lenient: whether to ignore stated types that contradict inference, instead of raising.
        """
        self._source = source
        self._element_types = element_types or {}
        self._ranks = ranks or {}
        self._skeleton = skeleton if freezes_defaults else open_skeleton
        self.is_lenient = lenient
        self._sole_type = sole_type
        self._types: dict[GraphKey, dict[str, TypeProto]] | None = None
        self._open: tuple[ModelProto, bool] | None = None
        self._contradiction = ""
        self._omitted: frozenset[tuple[str, str, str, str]] | None = None

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

    def types(self, key: GraphKey) -> Mapping[str, TypeProto]:
        """Types by value name of the graph at `key`; see `type`."""
        self._inferred()
        self._complete_types()
        assert self._types is not None
        return self._types.get(key, {})

    def _complete_types(self) -> None:
        """Complete the types that onnx's inference left open."""
        if self._open is not None:
            complete_types(self._open[0], is_inferred=self._open[1], lenient=self.is_lenient)
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
                bare = self._skeleton(self._source())
                declare(bare.graph, self._element_types, self._ranks)
                self._open = infer_with_help(bare, lenient=self.is_lenient)
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
