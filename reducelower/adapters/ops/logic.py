"""And, Or, Xor and Not by arithmetic on ones and zeros, for runtimes that lack them.

Sources: https://onnx.ai/onnx/operators/onnx__And.html (7), https://onnx.ai/onnx/operators/onnx__Or.html (7),
https://onnx.ai/onnx/operators/onnx__Xor.html (7), https://onnx.ai/onnx/operators/onnx__Not.html (1).
"""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses

_FLOAT = TensorProto.FLOAT


@expresses("And", opset=7, reads=7)
def _and(op: Writer) -> list[NodeProto]:
    return _is_positive(op, op.add("Mul", *_numbers(op), tail="both"))


@expresses("Or", opset=7, reads=7)
def _or(op: Writer) -> list[NodeProto]:
    return _is_positive(op, op.add("Add", *_numbers(op), tail="count"))


@expresses("Xor", opset=7, reads=7)
def _xor(op: Writer) -> list[NodeProto]:
    difference = op.add("Sub", *_numbers(op), tail="difference")
    return _is_positive(op, op.add("Mul", difference, difference, tail="differ"))


@expresses("Not", opset=7)
def _not(op: Writer) -> list[NodeProto]:
    return op.yields("Less", *_numbers(op), op.constant(1, _FLOAT, "one"))


def _numbers(op: Writer) -> list[str]:
    """The operands as ones and zeros."""
    return [op.add("Cast", name, tail="number", to=_FLOAT) for name in op.node.input]


def _is_positive(op: Writer, number: str) -> list[NodeProto]:
    return op.yields("Greater", number, op.constant(0, _FLOAT, "zero"))
