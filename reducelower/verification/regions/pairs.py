"""The two sides of a region as small models, and the key that is equal for regions that are the same up to names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper, shape_inference

from reducelower.model.protected import infer_shapes
from reducelower.model.schemas import DEFAULT_DOMAINS, REDUCTIONS
from reducelower.numerics.measure import Array
from reducelower.plan import Site
from reducelower.scope.blanks import blank
from reducelower.verification.inputs.declared import Dims, InputSpec
from reducelower.verification.operators import of_kind, row_of
from reducelower.verification.regions.claims import Claim
from reducelower.verification.regions.numbering import brief, read_by, renamed
from reducelower.verification.regions.places import Place

__all__ = ["SMALL_CONSTANT", "Pair", "small_models"]

SMALL_CONSTANT = 64  # elements; larger ones are weights, and random values do as well

_SIZED = of_kind("told for each axis")


@dataclass
class Pair:
    """A region, ready to be built as two small models: the site of a rewrite, or another part that differs.

    If `raise` folded several nodes into one operator, `node` is that operator, though it stands in the result: its
    meaning decides what to try.

    Attributes:
        claim: what both sides should show; the first one if there are several.
        nodes: the original nodes; one for a site of a plan.
        replacement: the nodes in their place, with what they need from elsewhere.
        inputs: the inputs of both models; an unknown element type is 0, and unknown sizes are None.
        constants: the constants of both models by name, before and after.
        outputs: the values that both sides compute.
        names: the names in the first model of inputs and outputs that have others here.
        told: the sizes that the rewrite was told as numbers, and so may rest on.
        rests_on_names: whether it may rest on which sizes have the same name.
    """

    claim: Claim
    nodes: list[NodeProto]
    replacement: list[NodeProto]
    inputs: list[InputSpec]
    constants: tuple[dict[str, Array], dict[str, Array]]
    before: Place
    after: Place
    outputs: list[str]
    names: Mapping[str, str] = field(default_factory=dict)
    told: frozenset[int] = frozenset()
    rests_on_names: bool = False

    @property
    def site(self) -> Site:
        """From the plan, or made for a region that no plan names."""
        return self.claim.named

    @property
    def node(self) -> NodeProto:
        """The original node, the last one where there are several."""
        return self.nodes[-1]

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for regions that are the same up to names and sizes, except sizes of 1, which broadcast."""
        return self.kind, self.ones

    @cached_property
    def ones(self) -> tuple[tuple[int, int], ...]:
        """Where sizes are 1, as numbers of inputs and axes; what a Reduce operator reduces may have any size."""
        data = self.node.input[0] if self.is_reduction else ""
        sized = [(at, item.dims or ()) for at, item in enumerate(self.inputs) if item.name != data]
        return tuple((at, axis) for at, dims in sized for axis, dim in enumerate(dims) if dim == 1)

    @cached_property
    def kind(self) -> tuple[Any, ...]:
        """Equal for regions that are the same up to names and all sizes."""
        read = (name for node in (*self.nodes, *self.replacement) for name in (*read_by(node), *node.output))
        used = dict.fromkeys(chain(self.input_names, *self.constants, read))
        blanks = {name: blank(number) for number, name in enumerate(used) if name}
        inputs = [
            (blanks[item.name], item.element_type, None if item.dims is None else len(item.dims))
            for item in self.inputs
        ]
        constants = [(blanks[name], *_digest(value)) for held in self.constants for name, value in held.items()]
        sides = [tuple(_in_blanks(node, blanks) for node in nodes) for nodes in (self.nodes, self.replacement)]
        opsets = [tuple(sorted(place.opsets.items())) for place in (self.before, self.after)]
        outputs = tuple(blanks[name] for name in self.outputs)
        return self.site.op_type, self.site.rule, *opsets, *sides, tuple(inputs), tuple(constants), outputs

    @property
    def input_names(self) -> list[str]:
        """The names of all inputs."""
        return [item.name for item in self.inputs]

    def real(self, name: str) -> str:
        """The name of an input or output in the first model."""
        return self.names.get(name, name)

    @property
    def sizes(self) -> tuple[Dims | None, ...]:
        """The sizes of all inputs."""
        return tuple(item.dims for item in self.inputs)

    @property
    def identity(self) -> tuple[Any, ...]:
        """Equal for regions that are the same up to names."""
        return self.key, self.sizes

    @property
    def is_raised(self) -> bool:
        """Whether the roles are swapped: `replacement` stands in the source, `node` in the result."""
        return bool(self.site.raised_from)

    @property
    def is_reduction(self) -> bool:
        """Whether a formula tells what the node gives: it is a Reduce operator, of an input or of constants."""
        if len(self.nodes) != 1 or self.node.op_type not in REDUCTIONS or self.node.domain not in DEFAULT_DOMAINS:
            return False
        return not self.inputs or any(item.name == self.node.input[0] for item in self.inputs)


def _in_blanks(node: NodeProto, blanks: Mapping[str, str]) -> bytes:
    """A node without its name, as a short text that equal ones share."""
    copy = renamed(node, blanks)
    copy.ClearField("name")
    return brief(copy.SerializeToString(deterministic=True))


def _digest(value: Array) -> tuple[str, tuple[int, ...], bytes]:
    """Equal for equal constants; some element types differ only in their names."""
    data = repr(value.tolist()).encode() if value.dtype.hasobject else value.tobytes()
    return value.dtype.name, value.shape, brief(data)


def small_models(pair: Pair) -> tuple[ModelProto, ModelProto]:
    """The models of the source and of the result, without outputs that the result lacks."""
    before = _model(pair, pair.nodes, pair.before, pair.constants[0])
    after = _model(pair, pair.replacement, pair.after, pair.constants[1])
    source, result = (after, before) if pair.is_raised else (before, after)
    kept = {value.name for value in result.graph.output}
    for value in [value for value in source.graph.output if value.name not in kept]:
        source.graph.output.remove(value)
    return source, result


def _model(pair: Pair, nodes: Sequence[NodeProto], place: Place, constants: dict[str, Array]) -> ModelProto:
    graph = GraphProto(name="site")
    graph.node.extend(nodes)
    sized = {name for node in nodes if row_of(node) in _SIZED for name in node.input[1:]}
    for item in pair.inputs:
        # Otherwise the rank only, so that every size can be fed; float where the element type is not known.
        dims = item.dims if item.dims is None or item.name in sized else [None] * len(item.dims)
        graph.input.add(name=item.name).type.CopyFrom(
            helper.make_tensor_type_proto(item.element_type or TensorProto.FLOAT, dims)
        )
    graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    produced = {name for node in nodes for name in node.output if name}
    for name in pair.outputs:
        if name in produced:
            graph.output.add(name=name)
    model = ModelProto(ir_version=max(place.model.ir_version, 4), graph=graph)
    model.opset_import.extend(helper.make_opsetid(*item) for item in place.opsets.items())
    if any(node.domain not in DEFAULT_DOMAINS for node in nodes):
        model.functions.extend(place.model.functions)
    return _typed(model)


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
