"""The two sides of a region as small models, and the key that is equal for regions that are the same up to names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    helper,
    numpy_helper,
    shape_inference,
)

from reducelower.model.graph import subgraphs
from reducelower.model.inference.protected import infer_shapes
from reducelower.model.schemas import DEFAULT_DOMAINS, REDUCTIONS
from reducelower.numerics.measure import Array
from reducelower.plan import Site
from reducelower.verification.inputs.made import Dims, InputSpec
from reducelower.verification.regions.numbering import attribute_key, attributes, brief, read_by
from reducelower.verification.regions.places import Place
from reducelower.verification.running.source import plainly_spelled

__all__ = ["SMALL_CONSTANT", "Pair", "compared_models", "free_input", "small_models"]

SMALL_CONSTANT = 64  # elements; larger ones are weights, and random values do as well


@dataclass
class Pair:
    """A region, ready to be built as two small models: the site of a rewrite, or another part that differs.

    If `raise` folded several nodes into one operator, `node` is that operator, though it stands in the result: its
    meaning decides what to try.

    Attributes:
        site: from the plan, or made for a region that no plan names.
        nodes: the original nodes; one for a site of a plan.
        replacement: the nodes in their place, with what they need from elsewhere.
        inputs: the inputs of both models; an unknown element type is 0, and unknown sizes are None.
        constants: the constants of both models by name, before and after.
        outputs: the values that both sides compute.
    """

    site: Site
    nodes: list[NodeProto]
    replacement: list[NodeProto]
    inputs: list[InputSpec]
    constants: tuple[dict[str, Array], dict[str, Array]]
    before: Place
    after: Place
    outputs: list[str]

    @property
    def node(self) -> NodeProto:
        """The original node, the last one where there are several."""
        return self.nodes[-1]

    @cached_property
    def key(self) -> tuple[Any, ...]:
        """Equal for regions that are the same up to names and sizes."""
        return _key_of(self)

    @cached_property
    def sizes(self) -> tuple[Any, ...]:
        """Equal for regions of one key that have the same sizes."""
        symbols: dict[str | None, int] = {}
        return tuple(_anonymous(item.dims, symbols) for item in self.inputs)

    @property
    def identity(self) -> tuple[Any, ...]:
        """Equal for sites that are the same up to names."""
        return self.key, self.sizes

    @property
    def is_raised(self) -> bool:
        """Whether the roles are swapped: `replacement` stands in the source, `node` in the result."""
        return bool(self.site.raised_from)

    @property
    def is_carried(self) -> bool:
        """Whether both sides are the same node, for other versions of its operator."""
        if len(self.nodes) != 1 or len(self.replacement) != 1:
            return False
        one, other = self.nodes[0], self.replacement[0]
        return list(one.input) == list(other.input) and self.are_alike(one, other)

    def are_alike(self, one: NodeProto, other: NodeProto) -> bool:
        """Whether a node of the first model and one of the second have one operator and the same attributes."""
        kinds = [
            (node.op_type, node.domain, attributes(node, place.opsets.get("", 1)))
            for node, place in ((one, self.before), (other, self.after))
        ]
        return kinds[0] == kinds[1] and not any(True for _ in subgraphs(one))

    @property
    def is_reduction(self) -> bool:
        """Whether the node is one of the ten Reduce operators, and its data is an input."""
        return self._is_reduce and any(item.name == self.node.input[0] for item in self.inputs)

    @property
    def has_formula(self) -> bool:
        """Whether a formula tells what the node gives: it is a Reduce operator, of an input or of constants."""
        return self.is_reduction or (self._is_reduce and not self.inputs)

    @property
    def _is_reduce(self) -> bool:
        return len(self.nodes) == 1 and self.node.op_type in REDUCTIONS and self.node.domain in DEFAULT_DOMAINS


def free_input(place: Place, name: str) -> InputSpec:
    """What is known about a value that becomes an input."""
    known = place.type_of(name)
    if known is None:
        value = place.constant(name)
        if isinstance(value, np.ndarray):
            return InputSpec(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        if isinstance(value, TensorProto):
            return InputSpec(name, value.data_type, tuple(value.dims))
        return InputSpec(name, 0, None)
    return InputSpec(name, *known)


def small_models(pair: Pair) -> tuple[ModelProto, ModelProto]:
    """The two models."""
    return (
        _model(pair, pair.nodes, pair.before, pair.constants[0]),
        _model(pair, pair.replacement, pair.after, pair.constants[1]),
    )


def compared_models(pair: Pair) -> tuple[ModelProto, ModelProto]:
    """The models of the source and of the result, as they are compared: an output that the result lacks may go."""
    before, after = small_models(pair)
    source, result = (after, before) if pair.is_raised else (before, after)
    kept = {value.name for value in result.graph.output}
    for value in [value for value in source.graph.output if value.name not in kept]:
        source.graph.output.remove(value)
    return source, result


def _model(pair: Pair, nodes: Sequence[NodeProto], place: Place, constants: dict[str, Array]) -> ModelProto:
    graph = GraphProto(name="site")
    graph.node.extend(nodes)
    for item in pair.inputs:
        graph.input.add(name=item.name).type.CopyFrom(_value_type(item))
    graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    produced = {name for node in nodes for name in node.output if name}
    for name in pair.outputs:
        if name in produced:
            graph.output.add(name=name)
    model = ModelProto(ir_version=max(place.model.ir_version, 4), graph=graph)
    model.opset_import.extend(helper.make_opsetid(*item) for item in place.opsets.items())
    if any(node.domain not in DEFAULT_DOMAINS for node in nodes):
        model.functions.extend(place.model.functions)
        known = {item.domain for item in model.opset_import} | DEFAULT_DOMAINS
        model.opset_import.extend(item for item in place.model.opset_import if item.domain not in known)
    return _typed(plainly_spelled(model))


def _typed(model: ModelProto) -> ModelProto:
    """The model with the element types of its outputs, which the reference evaluator does not always keep to."""
    try:
        outputs = infer_shapes(model).graph.output
    except shape_inference.InferenceError:
        return model
    for value, inferred in zip(model.graph.output, outputs, strict=True):
        if inferred.type.tensor_type.elem_type:
            value.type.tensor_type.elem_type = inferred.type.tensor_type.elem_type
    return model


def _value_type(item: InputSpec) -> TypeProto:
    """Rank only, so that every size can be fed; float where the element type is not known."""
    dims = None if item.dims is None else [None] * len(item.dims)
    return helper.make_tensor_type_proto(item.element_type or TensorProto.FLOAT, dims)


def _key_of(pair: Pair) -> tuple[Any, ...]:
    numbers: dict[str, int] = {}

    def local(name: str) -> int:
        return numbers.setdefault(name, len(numbers)) if name else -1

    inputs = tuple(
        (
            local(item.name),
            item.element_type,
            len(item.dims) if item.dims is not None else None,
            None if pair.is_reduction and item.name == pair.node.input[0] else _of_one(item.dims),
        )
        for item in pair.inputs
    )
    constants = tuple(
        # Element types of less than a byte, and of eight bits, differ only in their names.
        (
            local(name),
            value.dtype.name,
            value.shape,
            brief(repr(value.tolist()).encode() if value.dtype.hasobject else value.tobytes()),
        )
        for held in pair.constants
        for name, value in held.items()
    )
    nodes = tuple(
        (
            item.domain,
            item.op_type,
            tuple(map(local, item.input)),
            tuple(map(local, item.output)),
            tuple(sorted(map(attribute_key, item.attribute))),
            # Graphs inside a node are compared as they are, so the names that they read from around them count.
            tuple((name, local(name)) for name in read_by(item)[len(item.input) :]),
        )
        for item in (*pair.nodes, *pair.replacement)
    )
    opsets = tuple(tuple(sorted(place.opsets.items())) for place in (pair.before, pair.after))
    outputs = tuple(map(local, pair.outputs))
    return pair.site.op_type, pair.site.rule, opsets, inputs, constants, nodes, len(pair.nodes), outputs


def _of_one(dims: Dims | None) -> tuple[bool, ...] | None:
    """Which sizes are one, along which others are repeated."""
    return None if dims is None else tuple(dim == 1 for dim in dims)


def _anonymous(dims: Dims | None, symbols: dict[str | None, int]) -> tuple[int | None, ...] | None:
    """Sizes with a negative number for each symbol."""
    if dims is None:
        return None
    return tuple(-1 - symbols.setdefault(dim, len(symbols)) if isinstance(dim, str) else dim for dim in dims)
