"""Numbers the values of two models, so that values computed in the same way from the same values get the same number.

This is value numbering as compilers know it (Cocke and Schwartz, 1970; Click, 1995), over both models with one table:
inputs count by name, constants by value however they are spelled, nodes by operator, version of the operator (of those
that mean the same, the oldest), attributes and the numbers of what they read. Names of values and nodes do not matter.
"""

from __future__ import annotations

import hashlib
import re
from collections import ChainMap
from collections.abc import Hashable, Mapping, MutableMapping, Sequence
from copy import deepcopy
from functools import lru_cache

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper
from onnx.defs import OpSchema

from reducelower.model.constants import dense_tensor, tensor_of
from reducelower.model.graph import HOLDING_GRAPHS, may_hold_graphs, read_from_outside, rename, subgraphs, walk
from reducelower.model.schemas import DEFAULT_DOMAINS, schema
from reducelower.verification.operators import column, of_kind
from reducelower.verification.running.weights import held_name

__all__ = [
    "COMMUTATIVE",
    "Numbers",
    "Table",
    "attributes",
    "brief",
    "captured",
    "content",
    "inside",
    "is_constant",
    "meaning",
    "opsets_of",
    "read_by",
    "renamed",
]

Numbers = MutableMapping[str, int]
Opsets = Mapping[str, int]

_SHORT = 64
COMMUTATIVE = of_kind("commutative")


class Table:
    """One number per distinct description; the same for both models."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._constants: dict[int, Hashable] = {}

    def of(self, description: Hashable) -> int:
        """The number of a description, a new one the first time."""
        return self._numbers.setdefault(description, len(self._numbers))

    def _holds_no_zero(self, shape: Sequence[int]) -> bool:
        """Whether the shape input of a Reshape is a constant without a zero, so that ``allowzero`` means nothing."""
        match self._constants.get(shape[0]) if shape else None:
            case ("constant", TensorProto.INT64, (int(count),), bytes(data)) if len(data) == 8 * count:
                return bool(np.frombuffer(data, "<i8").all())
        return False

    def add(self, node: NodeProto, numbers: Numbers, opsets: Opsets) -> tuple[int, ...]:
        """Number the outputs of a node."""
        outputs = node.output[:]
        found = self._outputs(node, len(outputs), numbers, opsets)
        for name, number in zip(outputs, found, strict=True):
            if name:
                numbers[name] = number
        return found

    def _outputs(self, node: NodeProto, count: int, numbers: Numbers, opsets: Opsets) -> tuple[int, ...]:
        op_type, domain = node.op_type, node.domain
        domain = "" if domain in DEFAULT_DOMAINS else domain
        if not domain and op_type in ("Identity", "Constant"):
            if op_type == "Identity" and node.input[0] in numbers:
                return (numbers[node.input[0]],)
            value = tensor_of(node) if op_type == "Constant" else None
            if value is not None and (value.external_data or value.data_location != TensorProto.EXTERNAL):
                return (self.constant(value),)
        names = node.input[:]  # a list takes half the time
        while names and not names[-1]:
            names.pop()
        inputs = [numbers.get(name, -1) for name in names]
        if not domain and op_type in COMMUTATIVE:
            inputs.sort()
        opset, own = opsets.get(domain, 1), attributes(node, opsets.get(domain, 1))
        if own and not domain and op_type == "Reshape" and self._holds_no_zero(inputs[1:]):
            own = tuple(item for item in own if item[0] != "allowzero")
        version = meaning(op_type, opset, domain, tuple([name for name, _ in own]))
        inner: tuple[Hashable, ...] = ()
        if domain or op_type in HOLDING_GRAPHS:
            graphs = subgraphs(node)
            inner = tuple((name, len(it.input), self._graph_outputs(it, numbers, opsets)) for _, name, it in graphs)
        # For some operators the number of outputs decides what they compute (Split without sizes).
        computed = self.of(("node", count, domain, op_type, version, own, inner, *inputs))
        return (computed,) if count == 1 else tuple(self.of((computed, at)) for at in range(count))

    def constant(self, tensor: TensorProto) -> int:
        """The number of the value of a tensor."""
        described = content(tensor)
        number = self.of(described)
        self._constants[number] = described
        return number

    def start(self, graph: GraphProto, numbers: Numbers, *, is_main: bool = False, ir_version: int = 0) -> None:
        """Number the inputs of a graph by position, or by name in the main graph, and its initializers by value."""
        own = {value.name for value in graph.input}
        for at, value in enumerate(graph.input):
            numbers[value.name] = (
                self.of(("input", value.name)) if is_main else self.of(("formal", _depth(numbers), at))
            )
        for tensor in graph.initializer:
            # From IR version 4 on, an initializer that is also an input is a default that a caller may override.
            if not (tensor.name in own and (ir_version >= 4 or not is_main)):
                numbers[tensor.name] = self.constant(tensor)
        for sparse in graph.sparse_initializer:
            whole = dense_tensor(sparse)
            parts = content(sparse.values), content(sparse.indices), tuple(sparse.dims)
            has_values = whole.data_location != TensorProto.EXTERNAL
            numbers[sparse.values.name] = self.constant(whole) if has_values else self.of(("sparse", *parts))

    def _graph_outputs(self, graph: GraphProto, around: Numbers, opsets: Opsets) -> tuple[int, ...]:
        numbers = inside(around)
        self.start(graph, numbers)
        for node in graph.node:
            self.add(node, numbers, opsets)
        return tuple(numbers.get(value.name, -1) for value in graph.output)


def is_constant(node: NodeProto) -> bool:
    """Whether a node is a Constant."""
    return node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS


def inside(around: Numbers) -> Numbers:
    """Numbers for an inner graph, which also reads those around it; the number of maps tells how deep it lies."""
    return ChainMap({}, *(around.maps if isinstance(around, ChainMap) else [around]))


def _depth(numbers: Numbers) -> int:
    return len(numbers.maps) if isinstance(numbers, ChainMap) else 0


def opsets_of(model: ModelProto) -> dict[str, int]:
    """Opset version per domain; the default domain is the empty string."""
    return {"" if item.domain in DEFAULT_DOMAINS else item.domain: item.version for item in model.opset_import}


@lru_cache(maxsize=4096)
def meaning(op_type: str, opset: int, domain: str = "", attributes: tuple[str, ...] = ()) -> int:
    """The oldest version of an operator in which a node means the same as at an opset version.

    Most versions only allow more types: their pages say the same about everything else. `attributes` are those of the
    node that are not at their defaults.
    """
    found = schema(op_type, opset, domain)
    if found is None:
        return opset
    since = int(found.since_version)
    older = schema(op_type, since - 1, domain) if since > 1 else None
    if older is None:
        return since
    new = None if domain else column("same").get(op_type, {}).get(since)
    is_same = _page(older) == _page(found) if new is None else set(new).isdisjoint(attributes)
    return meaning(op_type, since - 1, domain, attributes) if is_same else since


def _page(found: OpSchema) -> Hashable:
    """What the page of an operator says about everything except element types, without marks of layout."""
    operands = [("in", item) for item in found.inputs] + [("out", item) for item in found.outputs]
    return (
        _words(found.doc),
        tuple((place, item.name, str(item.option), _words(item.description)) for place, item in operands),
        tuple(
            (name, str(item.type), item.required, item.default_value.SerializeToString(), _words(item.description))
            for name, item in sorted(found.attributes.items())
        ),
    )


def _words(text: str | None) -> str:
    return _LAYOUT.sub("", text or "")


_LAYOUT = re.compile(r"[\s*`]|\.(?!\w)")


@lru_cache(maxsize=4096)
def _defaults(op_type: str, opset: int, domain: str) -> Mapping[str, bytes]:
    found = schema(op_type, opset, domain)
    if found is None:
        return {}
    return {
        name: item.default_value.SerializeToString(deterministic=True)
        for name, item in found.attributes.items()
        if item.default_value.name
    }


def attributes(node: NodeProto, opset: int) -> tuple[tuple[str, bytes], ...]:
    """The attributes of a node, except graphs and those at their default."""
    items = node.attribute[:]
    if not items:
        return ()
    defaults = _defaults(node.op_type, opset, "" if node.domain in DEFAULT_DOMAINS else node.domain)
    said = [(item.name, _value(item)) for item in items if item.type not in _OF_GRAPHS]
    return tuple(sorted([item for item in said if defaults.get(item[0]) != item[1]]))


_OF_GRAPHS = AttributeProto.GRAPH, AttributeProto.GRAPHS


def _value(attribute: AttributeProto) -> bytes:
    if attribute.doc_string:
        attribute = deepcopy(attribute)
        attribute.ClearField("doc_string")
    return brief(attribute.SerializeToString(deterministic=True))


def content(tensor: TensorProto) -> Hashable:
    """Equal for tensors of the same type, shape and values, however they are stored."""
    facts = tensor.data_type, tuple(tensor.dims)
    if name := held_name(tensor):
        return ("constant", *facts, name)
    if tensor.data_location == TensorProto.EXTERNAL:
        return ("external", *facts, tuple(sorted((item.key, item.value) for item in tensor.external_data)))
    if tensor.data_type == TensorProto.STRING:
        return ("constant", *facts, brief(repr(list(tensor.string_data)).encode()))
    if not tensor.HasField("raw_data"):
        tensor = numpy_helper.from_array(numpy_helper.to_array(tensor))
    return ("constant", *facts, brief(tensor.raw_data))


def brief(data: bytes | memoryview) -> bytes:
    """The data itself if it is short, else a hash of it."""
    return bytes(data) if len(data) <= _SHORT else hashlib.blake2b(data, digest_size=16).digest()


def captured(nodes: Sequence[NodeProto]) -> list[str]:
    """The names that nodes, or their subgraphs, read but do not produce, in order of appearance."""
    produced: set[str] = set()
    found: dict[str, None] = {}
    for node in nodes:
        for name in read_by(node):
            if name and name not in produced:
                found.setdefault(name)
        produced.update(node.output)
    return list(found)


def read_by(node: NodeProto) -> list[str]:
    """The names that a node reads, including those that its inner graphs read from outside."""
    if not may_hold_graphs(node):
        return [*node.input]
    return [*node.input, *sorted(read_from_outside(node) - {*node.input})]


def renamed(node: NodeProto, names: Mapping[str, str]) -> NodeProto:
    """A copy of a node with other names of values, in the graphs inside too."""
    copy = NodeProto()
    copy.CopyFrom(node)
    for each in walk([copy]):
        each.ClearField("doc_string")
        each.ClearField("metadata_props")
        while each.input and not each.input[-1]:  # it says nothing, and onnxruntime does not take it everywhere
            each.input.pop()
    rename(copy, lambda name: names.get(name, name))
    return copy
