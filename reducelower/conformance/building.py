"""Make conformance cases: a model of one node, valid at its opset version, with static shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from reducelower.conformance.case import Array, Case
from reducelower.legalization.versions import ir_version_of_opset
from reducelower.model.schemas import element_type_name, schema

__all__ = ["element_type_of", "make_case", "takes"]


def element_type_of(array: Array) -> str:
    """The element type of an array, as ONNX names it."""
    return element_type_name(helper.np_dtype_to_tensor_dtype(array.dtype))


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
        outputs.append(helper.make_tensor_value_info(output, _type(value), shape))
    graph = helper.make_graph(
        list(nodes),
        "probe",
        [helper.make_tensor_value_info(name, _type(value), value.shape) for name, value in inputs.items()],
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


def _type(value: Array) -> TensorProto.DataType:
    return helper.np_dtype_to_tensor_dtype(value.dtype)
