"""A conformance case: one small model, its inputs, the expected outputs, and the features of its node.

The models of the suite have one node. They are valid at their opset version, with static shapes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from onnx import NodeProto, ValueInfoProto, helper, numpy_helper

from reducelower.errors import RefusedError
from reducelower.legalization.versions import ir_version_of_opset
from reducelower.model.document import Document
from reducelower.model.numbers import Array
from reducelower.model.schemas import schema
from reducelower.runtimes.features import Features
from reducelower.scope.graph import GraphScope
from reducelower.scope.ground import Ground
from reducelower.scope.node import NodeScope

__all__ = ["Case", "CaseFeatures", "make_case", "takes", "value_info"]


@dataclass(frozen=True)
class Case:
    """A model of one node, possibly with a Constant before it.

    Attributes:
        name: unique in the suite and the same in every run.
        tag: what is special about the values or sizes, since the node does not show it: ``huge``, ``tiny``, ``empty``
            (a dimension of size 0) and so on; empty for ordinary ones.
        expected: the value of each output, from exact arithmetic.
    """

    name: str
    operator: str
    opset: int
    model: bytes
    inputs: Mapping[str, Array]
    expected: tuple[Array, ...]
    tag: str = ""

    @cached_property
    def features(self) -> CaseFeatures:
        """The features that facts test (`runtimes.facts.When`); None for those known only at run time."""
        return CaseFeatures(self.model, self.opset)

    @cached_property
    def digest(self) -> str:
        """A hash of model, inputs and expected outputs, so that stored results of a changed case are not reused."""
        digest = hashlib.sha256(self.model)
        for name, value in (*self.inputs.items(), *(("", value) for value in self.expected)):
            digest.update(f"{name} {value.dtype} {value.shape}".lstrip().encode())
            digest.update(np.ascontiguousarray(value).tobytes())
        return digest.hexdigest()[:16]


class CaseFeatures:
    """The features of the last node of a model; each is worked out on first use."""

    def __init__(self, model: bytes, opset: int) -> None:
        source = Document(data=model)
        graph = source.message.graph
        ground = Ground(source, opset)
        self._node = Features(graph.node[-1], NodeScope(GraphScope(ground, graph, opset), None))

    def __getattr__(self, name: str) -> Any:
        """Compute a feature on its first use."""
        if name.startswith("_"):  # for example, `copy` looks up such names
            raise AttributeError(name)
        try:
            value = getattr(self._node, name)
        except RefusedError:
            value = None
        setattr(self, name, value)
        return value


def takes(operator: str, opset: int, element_type: str) -> bool:
    """Whether an operator takes an element type as its first input at an opset version that has it."""
    definition = schema(operator, opset)
    assert definition is not None
    return f"tensor({element_type})" in definition.inputs[0].types


def make_case(
    name: str,
    nodes: Sequence[NodeProto],
    opset: int,
    inputs: Mapping[str, Array],
    expected: Sequence[Array],
    *,
    initializers: Mapping[str, Array] | None = None,
    output_ranks: Sequence[int] | None = None,
    tag: str = "",
) -> Case:
    """A case for the last node; a Constant node that it reads may come first.

    The name is unique for operator and opset version. Pass `output_ranks` if the outputs' sizes are known only at run
    time.
    """
    node = nodes[-1]
    outputs = []
    for at, (output, value) in enumerate(zip(node.output, expected, strict=True)):
        shape = list(value.shape) if output_ranks is None else [None] * output_ranks[at]
        outputs.append(value_info(output, value, shape))
    graph = helper.make_graph(
        list(nodes),
        "probe",
        [value_info(name, value) for name, value in inputs.items()],
        outputs,
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (initializers or {}).items()],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version_of_opset(opset)
    )
    model.producer_name = "reducelower"
    data = model.SerializeToString(deterministic=True)
    full_name = f"{node.op_type}-{opset} {name}"
    return Case(full_name, node.op_type, opset, data, dict(inputs), tuple(expected), tag)


def value_info(name: str, value: Array, shape: Sequence[int | None] | None = None) -> ValueInfoProto:
    """The value info of an array, by default with its shape."""
    kind = helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor_value_info(name, kind, value.shape if shape is None else shape)
