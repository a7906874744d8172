"""Finds where sites stand, before and after: graphs, subgraphs and function bodies by path, and what is known there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

import numpy as np
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from reducelower.model.inference import Inference, subgraphs
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.numerics.measure import Array
from reducelower.verification.bounded import RANDOM
from reducelower.verification.inputs import tensor_dims
from reducelower.verification.source import CannotRunError, Source

__all__ = ["Dims", "Place", "find_places"]

Dims = tuple[int | str | None, ...]

_CHAIN_LIMIT = 64  # nodes of a constant expression
_CONSTANT_VALUES = ("value", "value_int", "value_ints", "value_float", "value_floats")


class Place:
    """A graph or function body of one model, with the scopes around it."""

    def __init__(
        self,
        model: ModelProto,
        holder: GraphProto | FunctionProto,
        inference: Inference,
        parent: Place | None = None,
        key: tuple[int, ...] | None = (),
    ) -> None:
        """Stand at `holder`; `key` leads there from the main graph and is None inside functions."""
        self.model = model
        self.holder = holder
        self.inference = inference
        self.parent = parent
        self.key = key
        self._evaluated: dict[str, Array | None] = {}

    @property
    def function(self) -> FunctionProto | None:
        """The function this place is in, if it is in one."""
        if isinstance(self.holder, FunctionProto):
            return self.holder
        return self.parent.function if self.parent else None

    @property
    def opsets(self) -> dict[str, int]:
        """Opset version per domain; the default domain is the empty string."""
        imports = (self.function or self.model).opset_import
        return {"" if item.domain in DEFAULT_DOMAINS else item.domain: item.version for item in imports}

    @cached_property
    def _initializers(self) -> dict[str, TensorProto]:
        return {} if isinstance(self.holder, FunctionProto) else {item.name: item for item in self.holder.initializer}

    @cached_property
    def _inputs(self) -> set[str]:
        if isinstance(self.holder, FunctionProto):
            return set(self.holder.input)
        return {item.name for item in self.holder.input}

    @cached_property
    def _constants(self) -> dict[str, NodeProto]:
        nodes = [node for node in self.holder.node if node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS]
        return {node.output[0]: node for node in nodes}

    @cached_property
    def _producers(self) -> dict[str, NodeProto]:
        return {name: node for node in self.holder.node for name in node.output}

    @cached_property
    def _types(self) -> dict[str, tuple[int, Dims | None]]:
        known: dict[str, tuple[int, Dims | None]] = {}
        values = list(self.holder.value_info)
        if isinstance(self.holder, GraphProto):
            values += [*self.holder.output, *self.holder.input]
        for value in values:
            if value.type.HasField("tensor_type") and value.type.tensor_type.elem_type:
                known[value.name] = (value.type.tensor_type.elem_type, tensor_dims(value.type.tensor_type))
        known.update((name, (item.data_type, tuple(item.dims))) for name, item in self._initializers.items())
        return known

    def type_of(self, name: str) -> tuple[int, Dims | None] | None:
        """Element type and sizes of a value; None when neither the model nor shape inference states them."""
        found = self._types.get(name)
        if found is not None and found[1] is not None:
            return found
        if self.key is not None:
            inferred = self.inference.types(self.key).get(name)
            if inferred is not None and inferred.tensor_type.elem_type:
                return inferred.tensor_type.elem_type, tensor_dims(inferred.tensor_type)
        return found or (self.parent.type_of(name) if self.parent else None)

    def is_overridable(self, name: str) -> bool:
        """Whether the value is a default that a caller may override: an initializer that is also a graph input."""
        if self.parent is not None:
            return name not in self._initializers and self.parent.is_overridable(name)
        return self.model.ir_version >= 4 and name in self._initializers and name in self._inputs

    def defines(self, name: str) -> bool:
        """Whether the value exists here or in a scope around."""
        here = name in self._initializers or name in self._inputs or name in self._producers
        return here or (self.parent is not None and self.parent.defines(name))

    @cached_property
    def positions(self) -> dict[str, int]:
        """By name of a value, the position of the node here that computes it."""
        return {name: at for at, node in enumerate(self.holder.node) for name in node.output if name}

    def producer(self, name: str) -> NodeProto | None:
        """The node that computes a value, here or in a scope around."""
        found = self._producers.get(name)
        return found if found is not None else (self.parent.producer(name) if self.parent else None)

    def constant(self, name: str) -> Array | TensorProto | None:
        """The value of an initializer or Constant node; the tensor itself where its values are in another file."""
        tensor = self._initializers.get(name)
        if tensor is not None:
            return tensor if tensor.data_location == TensorProto.EXTERNAL else numpy_helper.to_array(tensor)
        node = self._constants.get(name)
        if node is not None:
            return _constant_value(node)
        if name in self._inputs or self.parent is None:
            return None
        return self.parent.constant(name)

    def is_fixed(self, name: str) -> bool:
        """Whether a value is the same in every run: a constant, or computed from constants alone."""
        return name in self._fixed or self._is_fixed_around(name)

    def _is_fixed_around(self, name: str) -> bool:
        own = name in self._inputs or name in self._initializers or name in self._producers
        return not own and self.parent is not None and self.parent.is_fixed(name)

    @cached_property
    def _fixed(self) -> set[str]:
        found = {name for name in self._initializers if not self.is_overridable(name)} | set(self._constants)
        for node in self.holder.node:
            given = [operand for operand in node.input if operand]
            repeats = node.op_type not in RANDOM and not any(True for _ in subgraphs(node))
            if given and repeats and all(name in found or self._is_fixed_around(name) for name in given):
                found.update(name for name in node.output if name)
        return found

    def evaluated(self, name: str) -> Array | None:
        """The value of a small expression of constants, with the shapes of statically shaped tensors among them."""
        if name not in self._evaluated:
            self._evaluated[name] = self._evaluate(name)
        return self._evaluated[name]

    def _evaluate(self, name: str) -> Array | None:
        nodes: list[NodeProto] = []
        constants: dict[str, Array] = {}
        pending = [name]
        while pending:
            current = pending.pop()
            if not current or current in constants or any(current in node.output for node in nodes):
                continue
            value = self.constant(current)
            if isinstance(value, np.ndarray) and not self.is_overridable(current):
                constants[current] = value
                continue
            node = self.producer(current)
            if node is None or len(nodes) >= _CHAIN_LIMIT:
                return None
            if node.domain not in DEFAULT_DOMAINS or any(True for _ in subgraphs(node)):
                return None
            shape = self._static_shape(node)
            if shape is not None:
                constants[current] = shape
                continue
            nodes.append(node)
            pending.extend(node.input)
        if not nodes:
            return constants.get(name)
        return self._run(nodes, constants, name)

    def _static_shape(self, node: NodeProto) -> Array | None:
        known = self.type_of(node.input[0]) if node.op_type in ("Shape", "Size") and not node.attribute else None
        if known is None or known[1] is None or not all(isinstance(dim, int) for dim in known[1]):
            return None
        sizes = np.array(known[1], np.int64)
        return sizes if node.op_type == "Shape" else np.array(sizes.prod(), np.int64)

    def _run(self, nodes: list[NodeProto], constants: Mapping[str, Array], name: str) -> Array | None:
        from reducelower.verification.runtimes import ReferenceRuntime

        graph = GraphProto(name="constant")
        graph.node.extend(reversed(_in_order(nodes)))
        graph.initializer.extend(numpy_helper.from_array(value, key) for key, value in constants.items())
        graph.output.add(name=name)
        model = ModelProto(ir_version=8, graph=graph)
        model.opset_import.extend(helper.make_opsetid(*item) for item in self.opsets.items())
        try:
            return np.asarray(ReferenceRuntime().load(Source(model)).run({})[0])
        except CannotRunError:
            return None


def _in_order(nodes: list[NodeProto]) -> list[NodeProto]:
    """Consumers before producers, each node once: a depth-first collection may list a shared producer too early."""
    placed: list[NodeProto] = []
    open_nodes = list(nodes)
    while open_nodes:
        needed = {name for node in open_nodes for name in node.input}
        free = [node for node in open_nodes if not needed.intersection(node.output)]
        placed.extend(free)
        open_nodes = [node for node in open_nodes if not any(node is item for item in free)]
    return placed


def _constant_value(node: NodeProto) -> Array | TensorProto | None:
    for attribute in node.attribute:
        if attribute.name in _CONSTANT_VALUES and not attribute.ref_attr_name:
            value = helper.get_attribute_value(attribute)
            if isinstance(value, TensorProto):
                return value if value.data_location == TensorProto.EXTERNAL else numpy_helper.to_array(value)
            return np.array(value, np.float32 if "float" in attribute.name else np.int64)
    return None


def find_places(before: ModelProto, after: ModelProto, paths: Iterable[str]) -> dict[str, tuple[Place, Place]]:
    """The places at these graph paths, in both models.

    A subgraph's counterpart is found through the outputs of its node, which keep their names; positions and generated
    node labels do not.
    """
    wanted = set(paths)
    left = Place(before, before.graph, Inference(lambda: before))
    right = Place(after, after.graph, Inference(lambda: after))
    found = {"graph": (left, right)}
    if wanted - {"graph"}:
        _descend("graph", left, right, wanted, found)
        functions = {_function_path(item): item for item in after.functions}
        for function in before.functions:
            path = _function_path(function)
            if path in functions and any(item == path or item.startswith(f"{path}/") for item in wanted):
                left_body = Place(before, function, left.inference, key=None)
                right_body = Place(after, functions[path], right.inference, key=None)
                found[path] = (left_body, right_body)
                _descend(path, left_body, right_body, wanted, found)
    return found


def _function_path(function: FunctionProto) -> str:
    overload = f":{function.overload}" if function.overload else ""
    return f"functions/{function.domain}::{function.name}{overload}"


def _descend(path: str, left: Place, right: Place, wanted: set[str], found: dict[str, tuple[Place, Place]]) -> None:
    if not any(item.startswith(f"{path}/") for item in wanted):
        return
    counterparts = {next(filter(None, node.output), ""): (index, node) for index, node in enumerate(right.holder.node)}
    for index, node in enumerate(left.holder.node):
        graphs = list(subgraphs(node))
        if not graphs:
            continue
        other_index, other = counterparts.get(next(filter(None, node.output), ""), (0, None))
        if other is None:
            continue
        others = {attribute: (number, graph) for number, attribute, graph in subgraphs(other)}
        for number, attribute, graph in graphs:
            if attribute not in others:
                continue
            other_number, other_graph = others[attribute]
            inner = f"{path}/{node.name or f'{node.op_type}#{index}'}.{attribute}"
            left_key = None if left.key is None else (*left.key, index, number)
            right_key = None if right.key is None else (*right.key, other_index, other_number)
            pair = (
                Place(left.model, graph, left.inference, left, left_key),
                Place(right.model, other_graph, right.inference, right, right_key),
            )
            found[inner] = pair
            _descend(inner, *pair, wanted, found)
