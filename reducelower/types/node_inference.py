"""Asks onnx's shape inference about single nodes, once for equal nodes with equal inputs.

Our sizes are polynomials, which inference does not know. So each size goes in under a name, and a size of that name in
the result stands for the same polynomial.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from onnx import NodeProto, OperatorSetIdProto, TensorProto, TypeProto, defs, helper, shape_inference

from reducelower.model.protected import may_crash
from reducelower.model.schemas import element_type_name, schema_in_force
from reducelower.model.value_info import stated_type
from reducelower.types.known import Shape
from reducelower.types.sizes import Polynomial, Size

__all__ = ["NOTHING", "Facts", "NodeInference", "can_infer"]

_INFERRED_WRONGLY = frozenset({"Attention"})
"""Operators for which onnx's inference takes a named size for zero, and forgets the past keys (seen with onnx 1.23)."""


class Facts(NamedTuple):
    """What onnx's inference of a node gets for an input, or returns for an output.

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


NOTHING = Facts()


def can_infer(node: NodeProto, domain: str, version: int) -> bool:
    """Whether onnx's inference can infer the outputs of a node at that version of its domain."""
    if node.op_type in _INFERRED_WRONGLY or may_crash(node, node.input):
        return False
    if any(each.HasField("g") for each in node.attribute):
        return False
    return schema_in_force(node.op_type, version, domain) is not None


class NodeInference:
    """Runs onnx's inference on nodes, once for equal ones."""

    def __init__(self) -> None:
        self._outputs: dict[Hashable, Sequence[Facts]] = {}
        self._spelled: dict[Polynomial, str] = {}
        self._sizes: dict[str, Polynomial] = {}

    def infer(self, node: NodeProto, domain: str, version: int, inputs: Sequence[Facts | None]) -> Sequence[Facts]:
        """The facts about each output of a node for which `can_infer` holds, by the facts about its inputs."""
        attributes = b"".join([each.SerializeToString() for each in node.attribute])
        key = (node.op_type, domain, version, attributes, tuple(map(bool, node.output)), *inputs)
        if key not in self._outputs:
            schema = schema_in_force(node.op_type, version, domain)
            imported = OperatorSetIdProto(domain=domain, version=version)
            outputs = None if schema is None else self._run(node, schema, inputs, imported)
            self._outputs[key] = outputs or [NOTHING] * len(node.output)
        return self._outputs[key]

    def _run(
        self, node: NodeProto, schema: defs.OpSchema, inputs: Sequence[Facts | None], imported: OperatorSetIdProto
    ) -> list[Facts] | None:
        by_name = {name: each for name, each in zip(node.input, inputs, strict=True) if each is not None}
        for formal, name in zip(schema.inputs, node.input, strict=False):
            element_type = by_name.get(name, NOTHING).element_type
            if element_type and f"tensor({element_type_name(element_type)})" not in formal.types:
                # Inference raises at a type that only other versions of the operator take. The shape is the same.
                by_name[name] = by_name[name]._replace(element_type=0)
        types = {name: self._encoded(each) for name, each in by_name.items()}
        data = {name: TensorProto.FromString(each.data) for name, each in by_name.items() if each.data}
        try:
            outputs = shape_inference.infer_node_outputs(schema, node, types, data, opset_imports=[imported])
        except Exception:
            # It raises several types if the node is invalid. Judging nodes is done elsewhere.
            return None
        has_types = all(each.element_type or each.container for each in by_name.values())
        return [self._decoded(outputs[name], has_types) if name in outputs else NOTHING for name in node.output]

    def _encoded(self, facts: Facts) -> TypeProto:
        """A type with names for sizes, which `_decoded` turns back."""
        if facts.container:
            return TypeProto.FromString(facts.container)
        sizes = None if facts.shape is None else [self._name(size) for size in facts.shape]
        return helper.make_tensor_type_proto(facts.element_type or TensorProto.FLOAT, sizes)

    def _name(self, size: Size | None) -> int | str | None:
        """A number as it is, and a name for any other size."""
        if not isinstance(size, Polynomial):
            return size
        name = self._spelled.setdefault(size, f"size{len(self._spelled)}")
        self._sizes[name] = size
        return name

    def _decoded(self, output: TypeProto, has_types: bool) -> Facts:
        stated = stated_type(output)
        if stated.sizes is None:
            return Facts(stated.element_type, None, stated.container) if has_types else NOTHING
        sizes = (size if isinstance(size, int) else self._sizes.get(size or "") for size in stated.sizes)
        return Facts(stated.element_type if has_types else 0, tuple(sizes))
