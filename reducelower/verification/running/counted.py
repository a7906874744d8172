"""The reference evaluator's values, counted: nothing is computed that takes more memory than is allowed.

Inference tells how much a node gives for what it is given, before that is computed. The evaluator keeps all values
until the end, and lays out much of what it computes on (measured with onnx.reference 1.23).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, helper

from reducelower.model.value_info import sizes
from reducelower.verification.running.memory import TooLargeError, allowed_bytes, held_bytes
from reducelower.verification.running.sizes import A_SHAPE, inferred

__all__ = ["Counted", "counting"]

_held: ContextVar[int] = ContextVar("held", default=0)
"""Bytes of the values that the evaluators at work in this thread hold."""
_IR_VERSION = 10


@contextmanager
def counting() -> Iterator[None]:
    """What an evaluator holds meanwhile it holds no more afterwards."""
    token = _held.set(_held.get())
    try:
        yield
    finally:
        _held.reset(token)


class Counted:
    """Runs a node of an evaluator; a TooLargeError where it would take too much."""

    def __init__(self, node: NodeProto, opsets: Mapping[str, int], run: Callable[..., Sequence[Any]]) -> None:
        self._node = node
        self._opsets = opsets
        self._run = run
        self._known: dict[object, int] = {}

    def __call__(self, *inputs: Any, **more: Any) -> Sequence[Any]:
        """What the node gives."""
        key = tuple(map(_key, inputs))
        if key not in self._known:
            self._known[key] = self._needed(inputs)
        needed = _held.get() + self._known[key]
        if needed > allowed_bytes():
            raise TooLargeError.of(needed)
        results = self._run(*inputs, **more)
        _held.set(_held.get() + held_bytes(results))
        return results

    def _needed(self, inputs: Sequence[Any]) -> int:
        """How many bytes the results take, and what is laid out; 0 where inference does not know."""
        given = dict(zip(self._node.input, inputs, strict=True))
        graph = inferred(self._alone(given), given)
        if graph is None:
            return 0
        taken, shapes = 0, []
        for value in graph.output:
            shape, kind = sizes(value.type), value.type.tensor_type.elem_type
            known = [size for size in shape or () if size is not None]
            if shape is None or len(known) < len(shape) or not kind:
                return 0
            shapes.append(known)
            taken += prod(known) * int(helper.tensor_dtype_to_np_dtype(kind).itemsize)
        return taken + _laid_out(self._node, [*map(np.shape, inputs)], shapes)

    def _alone(self, given: Mapping[str, Any]) -> ModelProto:
        """A model of nothing but the node."""
        model = ModelProto(ir_version=_IR_VERSION, graph=GraphProto(name="alone", node=[self._node]))
        for domain, version in self._opsets.items():
            model.opset_import.add(domain=domain, version=version)
        for name, value in given.items():
            if isinstance(value, np.ndarray):
                kind = helper.np_dtype_to_tensor_dtype(value.dtype)
                model.graph.input.append(helper.make_tensor_value_info(name, kind, value.shape))
        for name in filter(None, self._node.output):
            model.graph.output.add(name=name)
        return model


def _key(value: Any) -> object:
    """What the sizes of results depend on; whole numbers may be a shape."""
    if not isinstance(value, np.ndarray):
        return None
    return value.shape, value.dtype, tuple(value.ravel()) if value.dtype == np.int64 and value.size <= A_SHAPE else ()


_WINDOWS = frozenset({"Conv", "ConvInteger", "ConvTranspose", "DeformConv"})


def _laid_out(node: NodeProto, inputs: Sequence[Sequence[int]], results: Sequence[Sequence[int]]) -> int:
    """How many bytes are laid out beside what a node gives: all scores of attention, or what each window sees."""
    if node.op_type == "Attention":
        query, keys = inputs[:2]
        heads = next((item.i for item in node.attribute if item.name == "q_num_heads"), 1)
        return 2 * _SINGLE * prod(query[:3] if len(query) == 4 else (*query[:2], heads)) * prod(keys[-2:-1])
    if node.op_type not in _WINDOWS or not results:
        return 0
    data, weights = inputs[:2]
    moved = data if node.op_type == "ConvTranspose" else results[0]
    return 2 * _DOUBLE * prod(data[:1]) * prod(weights[1:]) * prod(moved[2:])


_SINGLE, _DOUBLE = 4, 8
