"""What onnx's inference of one node tells of its outputs, once for equal nodes with equal inputs.

Sizes are polynomials, of which inference knows nothing. Each gets a name on its way in, and is what has that name on
its way out.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from onnx import NodeProto, OperatorSetIdProto, TensorProto, TypeProto, defs, shape_inference

from reducelower.model.inference.protected import may_crash
from reducelower.model.schemas import element_type_name, schema_in_force
from reducelower.model.value_info import size_of
from reducelower.types.known import Shape
from reducelower.types.sizes import Polynomial

__all__ = ["NOTHING", "Telling", "Told", "can_be_told"]

_TAKES_NAMES_FOR_ZERO = frozenset({"Attention"})
"""Operators for which onnx's inference computes with zero for a size that is not a number (seen with onnx 1.23)."""


_PAST, _SCORES = 4, 3
"""An input and an output of Attention: onnx's inference says that there are scores of the present keys alone, though
there are some of the past ones, too (seen with onnx 1.23)."""


class Told(NamedTuple):
    """What onnx's inference of a node is told of an input, or tells of an output.

    Attributes:
        element_type: 0 if unknown.
        shape: None if the rank is unknown.
        container: the type of a sequence or optional value, serialized; else empty.
        data: a small constant, serialized; else empty.
    """

    element_type: int = 0
    shape: Shape | None = None
    container: bytes = b""
    data: bytes = b""


NOTHING = Told()


def can_be_told(node: NodeProto, domain: str, version: int) -> bool:
    """Whether onnx's inference can be asked about a node of that version of its domain."""
    if any(each.ref_attr_name or each.HasField("g") for each in node.attribute) or may_crash(node, node.input):
        return False
    return schema_in_force(node.op_type, version, domain) is not None


class Telling:
    """Asks onnx's inference about nodes, once about equal ones."""

    def __init__(self) -> None:
        self._told: dict[Hashable, Sequence[Told]] = {}
        self._spelled: dict[Polynomial, str] = {}
        self._sizes: dict[str, Polynomial] = {}

    def told(self, node: NodeProto, domain: str, version: int, inputs: Sequence[Told | None]) -> Sequence[Told]:
        """What it tells of each output of a node that it can be asked about, given what is known of the inputs."""
        unknown = [NOTHING] * len(node.output)
        if node.op_type in _TAKES_NAMES_FOR_ZERO and not all(map(_has_numbers, inputs)):
            return unknown
        attributes = b"".join([each.SerializeToString() for each in node.attribute])
        key = (node.op_type, domain, version, attributes, tuple(map(bool, node.output)), *inputs)
        if key not in self._told:
            by_schema = schema_in_force(node.op_type, version, domain)
            imported = OperatorSetIdProto(domain=domain, version=version)
            found = None if by_schema is None else self._inferred(node, by_schema, inputs, imported)
            self._told[key] = found or unknown
        return self._told[key]

    def _inferred(
        self, node: NodeProto, by_schema: defs.OpSchema, inputs: Sequence[Told | None], imported: OperatorSetIdProto
    ) -> list[Told] | None:
        given = {name: each for name, each in zip(node.input, inputs, strict=True) if each is not None}
        for formal, name in zip(by_schema.inputs, node.input, strict=False):
            known = given.get(name, NOTHING).element_type
            if known and f"tensor({element_type_name(known)})" not in formal.types:
                # Inference raises at a type that the operator takes in another version only. The shape is the same.
                given[name] = given[name]._replace(element_type=0)
        types = {name: self._encoded(each) for name, each in given.items()}
        data = {name: TensorProto.FromString(each.data) for name, each in given.items() if each.data}
        try:
            told = shape_inference.infer_node_outputs(by_schema, node, types, data, opset_imports=[imported])
        except Exception:
            # It raises if it finds the node invalid, several types. Others judge nodes.
            return None
        if node.op_type == "Attention" and any(node.input[_PAST : _PAST + 1]):
            told = {name: each for name, each in told.items() if name not in node.output[_SCORES:]}
        are_known = all(each.element_type or each.container for each in given.values())
        return [self._read(told[name], are_known) if name in told else NOTHING for name in node.output]

    def _encoded(self, given: Told) -> TypeProto:
        """A type in which sizes have names that `_read` reads."""
        if given.container:
            return TypeProto.FromString(given.container)
        made = TypeProto()
        made.tensor_type.elem_type = given.element_type or TensorProto.FLOAT
        if given.shape is None:
            return made
        made.tensor_type.shape.SetInParent()
        for size in given.shape:
            dim = made.tensor_type.shape.dim.add()
            if isinstance(size, int):
                dim.dim_value = size
            elif size is not None:
                name = self._spelled.setdefault(size, f"size{len(self._spelled)}")
                self._sizes[name] = size
                dim.dim_param = name
        return made

    def _read(self, told: TypeProto, has_types: bool) -> Told:
        if told.WhichOneof("value") not in (None, "tensor_type"):
            return Told(container=told.SerializeToString()) if has_types else NOTHING
        tensor = told.tensor_type
        element_type = tensor.elem_type if has_types else 0
        if not tensor.HasField("shape"):
            return Told(element_type)
        sizes = (
            dim.dim_value if size_of(dim) is not None else self._sizes.get(dim.dim_param) for dim in tensor.shape.dim
        )
        return Told(element_type, tuple(sizes))


def _has_numbers(given: Told | None) -> bool:
    shape = None if given is None else given.shape
    return shape is None or all(isinstance(size, int) for size in shape)
