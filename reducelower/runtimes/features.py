"""The features of a node that facts about runtimes ask for; docs/reference/target-files.md says what each means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from google.protobuf.message import Message
from onnx import NodeProto

from reducelower.adapters.ops.pooling import windows_of
from reducelower.model.attributes import attribute_of, value_of
from reducelower.model.graph import read_from_outside
from reducelower.model.numbers import Array
from reducelower.model.schemas import REDUCTIONS, default_attributes, element_type_name
from reducelower.runtimes.kinds import AxesForm, Definition, ElementType, Flag, Operator
from reducelower.runtimes.ranges import Ranges
from reducelower.runtimes.reduction import given_axes, how_axes_are_given
from reducelower.scope.scope import Scope
from reducelower.types.shapes import BROADCASTING as TO_ONE_SHAPE
from reducelower.types.sizes import Polynomial

__all__ = ["BROADCASTING", "FEATURES", "Features"]

Answer = TypeVar("Answer")

BROADCASTING = frozenset({*TO_ONE_SHAPE, "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "PRelu"})
"""Operators that broadcast smaller operands."""

_WITHOUT_TENSOR = frozenset({"If", "Loop", "Scan", "SequenceMap", "SequenceEmpty", "Optional"})
"""Operators whose first input does not tell the element type in which they compute."""


class Features:
    """The features of one node in its scope, by their names in target files, computed on demand.

    A feature raises RefusedError if its value is unknown; the error says what to declare.
    """

    def __init__(self, node: NodeProto, scope: Scope) -> None:
        self.node = node
        self.scope = scope

    def __getattr__(self, name: str) -> Any:
        """A feature, on its first use."""
        if name not in FEATURES:
            raise AttributeError(name)
        value = FEATURES[name][1](self)
        setattr(self, name, value)
        return value

    @cached_property
    def reduced(self) -> tuple[int, ...] | None:
        """The axes; None if all dimensions are reduced, empty for operators without axes."""
        if self.node.op_type not in (*REDUCTIONS, "Squeeze", "Unsqueeze"):
            return ()
        return given_axes(self.node, self.scope) or (() if self.noop == "1" else None)

    def input(self, at: int) -> str:
        """An input; empty if it is absent."""
        return self.node.input[at] if len(self.node.input) > at else ""

    def output(self, at: int) -> str:
        """An output; empty if it has no name."""
        return self.node.output[at] if len(self.node.output) > at else ""

    def shape(self, at: int) -> tuple[int | None, ...] | None:
        """The shape of an input; None if it is unknown, or the input is absent."""
        return _of(self.input(at), self.scope.shape, None)

    def value(self, at: int) -> Array | None:
        """The value of an input; None if it is computed or absent."""
        return _of(self.input(at), self.scope.constant, None)

    def type_of(self, name: str) -> str:
        """The element type of a value, empty for an absent one; refused if it is unknown."""
        return element_type_name(self.scope.needed_element_type(name)) if name else ""


def _of(name: str, ask: Callable[[str], Answer], absent: Answer) -> Answer:
    """The answer about a value, or about an absent one."""
    return ask(name) if name else absent


def _flag(op: Features, name: str) -> str:
    attribute = attribute_of(op.node, name)
    if attribute is None:
        return "unset"
    return "1" if attribute.i else "0"


def _element_types(op: Features) -> str:
    """Of the first input, or of the first output if there is none."""
    name = next(filter(None, (op.input(0), op.output(0))), "")
    return "" if op.node.op_type in _WITHOUT_TENSOR else op.type_of(name)


def _last_types(op: Features) -> str:
    """Of the last input that is not absent; empty if it is unknown."""
    return element_type_name(op.scope.element_type(next(filter(None, reversed(op.node.input)), "")) or 0)


def _output_types(op: Features) -> str:
    attribute = attribute_of(op.node, "to") if op.node.op_type == "Cast" else None
    if attribute is not None and attribute.type == attribute.INT:
        return element_type_name(attribute.i)
    return "" if op.node.op_type in _WITHOUT_TENSOR else op.type_of(op.output(0))


def _rank_out(op: Features) -> int:
    if op.node.op_type not in REDUCTIONS:
        return _of(op.output(0), op.scope.needed_rank, 0)
    if op.keepdims != "0":
        return int(op.rank)
    return 0 if op.reduced is None else int(op.rank) - len(op.reduced)


def _broadcast(op: Features) -> bool:
    """Unknown sizes count as equal."""
    op_type = op.node.op_type
    is_gemm, is_product = op_type == "Gemm" and len(op.node.input) > 2, op_type == "MatMul"
    if not (is_gemm or is_product or op_type in BROADCASTING):
        return False
    operand, result = op.scope.shape(op.node.input[-1]), op.scope.shape(op.node.output[0])
    if operand is None or result is None:
        return False
    if is_product:
        return len(operand) > 1 and operand[:-2] != result[:-2]
    if all(size == 1 for size in operand) and not is_gemm:
        return False
    return len(operand) != len(result) or any(one == 1 != other for one, other in zip(operand, result, strict=True))


def _no_values(op: Features) -> bool:
    shape = op.shape(0) if op.node.op_type in REDUCTIONS else None
    if not shape or 0 not in shape:
        return False
    return any(shape[axis] == 0 for axis in (range(len(shape)) if op.reduced is None else op.reduced))


def _attributes(op: Features) -> frozenset[str]:
    """Every attribute as ``name=value``, including defaults, and the names of those that the node states.

    For a tensor or graph, which may hold millions of numbers, there is only the name.
    """
    values = default_attributes(op.node.op_type, op.scope.target_opset)
    stated = {attribute.name: value_of(op.node, attribute.name) for attribute in op.node.attribute}
    texts = {name: value for name, value in {**values, **stated}.items() if not isinstance(value, Message)}
    return frozenset(stated) | {f"{name}={_text(value)}" for name, value in texts.items()}


def _text(value: object) -> object:
    """The value of an attribute as target files write it; a list of equal numbers is written as that number."""
    if isinstance(value, list) and value and value.count(value[0]) == len(value):
        return _text(value[0])
    if isinstance(value, float):
        return str(np.float32(value))  # the shortest text that stands for the number
    return value.decode() if isinstance(value, bytes) else value


def _scaled_by_size(op: Features) -> bool:
    inputs = [op.scope.known(name).elements for name in op.node.input]
    return None in inputs and any(each and len(each) == 1 and isinstance(each[0], Polynomial) for each in inputs)


def _yielded(op: Features) -> bool:
    def is_yielded(at: int) -> bool:
        return _of(op.output(at), op.scope.is_yielded, False)

    return is_yielded(0) or (is_yielded(1) and not op.first_read)


def _second_value(op: Features) -> int:
    value = op.value(1)
    return int(value.reshape(())) if value is not None and value.size == 1 and value.dtype.kind in "iu" else -1


def _holds(op: Features, at: int, is_meant: Callable[[Array], Array]) -> bool:
    """Whether an input is constant, and a number in it is as meant."""
    value = op.value(at)
    return value is not None and bool(is_meant(value).any())


def _holds_zero(op: Features) -> bool:
    parts = value_of(op.node, "split", ()) if op.node.op_type == "Split" else ()
    return 0 in (_of(op.input(1), lambda name: op.scope.known(name).elements, None) or parts)


def _per_channel(op: Features) -> bool:
    """True if sizes are unknown."""
    second, data = op.shape(1), op.shape(0)
    if second is None or data is None:
        return True
    channel = len(second) - len(data) + 1
    return all(size == 1 or at == channel for at, size in enumerate(second))


def _uneven(op: Features) -> bool:
    """For Resize: False if scales are unknown; if sizes are unknown, any fractional scale counts."""
    shape = op.shape(0)
    if op.node.op_type == "Split":
        parts = value_of(op.node, "num_outputs", 0)
        size = shape[value_of(op.node, "axis", 0)] if shape else None
        return bool(parts and size and size % parts)
    if op.node.op_type != "Resize":
        pads = value_of(op.node, "pads", ())
        return list(pads[: len(pads) // 2]) != list(pads[len(pads) // 2 :])
    optional = op.node.input[1:3]  # the scales come alone, or after a region of interest
    scales = op.scope.constant(optional[-1]) if optional and optional[-1] else None
    if scales is None:
        return False
    return any(
        not float((1 if size is None else size) * scale).is_integer()
        for size, scale in zip(shape or (None,) * scales.size, scales.astype(np.float32), strict=False)
    )


def _overhangs(op: Features) -> bool:
    shape = op.shape(0) if value_of(op.node, "ceil_mode", 0) else None
    return shape is not None and any(window.dropped for window in windows_of(op.node, shape))


def _vector(op: Features) -> bool:
    scope, node = op.scope, op.node
    if node.op_type not in BROADCASTING or (scope.rank(node.output[0]) or 0) < 2:
        return False
    return any(
        scope.rank(name) == 1 and scope.shape(name) != (1,) and scope.written_as(name) in ("dynamic", "fed")
        for name in node.input
    )


def _outer_values(op: Features) -> bool:
    outer = {name for name in read_from_outside(op.node) if name not in op.node.input}
    return any(op.scope.constant(name) is None for name in sorted(outer))


def _thin(op: Features) -> bool:
    """False if unknown."""
    shape, weights = (op.shape(0), op.shape(1)) if op.node.op_type == "Conv" else (None, None)
    return bool(shape and weights) and weights[1] == 1 != shape[1] and 1 in shape[2:]  # type: ignore[index]


FEATURES: Mapping[str, tuple[Any, Callable[[Features], Any]]] = {
    "made": (bool, lambda op: op.scope.is_made),
    "axes": (frozenset[AxesForm], lambda op: how_axes_are_given(op.node, op.scope)),
    "keepdims": (frozenset[Flag], lambda op: _flag(op, "keepdims")),
    "noop": (frozenset[Flag], lambda op: _flag(op, "noop_with_empty_axes")),
    "negative_axes": (bool, lambda op: any(axis < 0 for axis in op.reduced or ())),
    "axes_count": (Ranges, lambda op: op.rank if op.reduced is None else len(op.reduced)),
    "all_axes": (bool, lambda op: op.reduced is None or len(op.reduced) == op.rank > 0),
    "first_axis": (bool, lambda op: op.reduced is None or not {0, -op.rank}.isdisjoint(op.reduced)),
    "element_types": (frozenset[ElementType], _element_types),
    "second_types": (frozenset[ElementType], lambda op: op.type_of(op.input(1))),
    "last_types": (frozenset[ElementType], _last_types),
    "output_types": (frozenset[ElementType], _output_types),
    "data": (frozenset[Definition], lambda op: _of(op.input(0), op.scope.written_as, "")),
    "rank": (Ranges, lambda op: _of(op.input(0), op.scope.needed_rank, 0)),
    "rank_second": (Ranges, lambda op: _of(op.input(1), op.scope.needed_rank, 0)),
    "rank_out": (Ranges, _rank_out),
    # Values that the model computes do not count as fed: most runtimes know them as soon as they know the sizes.
    "fed": (bool, lambda op: any(_of(name, op.scope.written_as, "") == "fed" for name in op.node.input[1:])),
    "broadcast": (bool, _broadcast),
    "no_values": (bool, _no_values),
    "attributes": (frozenset[str], _attributes),
    "after": (frozenset[Operator], lambda op: _of(op.input(0), op.scope.made_by, "")),
    "after_second": (frozenset[Operator], lambda op: _of(op.input(1), op.scope.made_by, "")),
    "open_sizes": (Ranges, lambda op: 1 if (shape := op.shape(0)) is None else shape.count(None)),
    "second_read": (bool, lambda op: _of(op.output(1), op.scope.is_read, False)),
    "index_depth": (Ranges, lambda op: (op.shape(1) or (0,))[-1] or 0),
    "second_value": (Ranges, _second_value),
    "shifted": (bool, lambda op: _holds(op, 2, lambda value: value.astype(np.float64) != 0)),
    "negative_indices": (bool, lambda op: _holds(op, 1, lambda value: value.astype(np.int64) < 0)),
    "holds_zero": (bool, _holds_zero),
    "uneven": (bool, _uneven),
    "overhangs": (bool, _overhangs),
    "constant": (bool, lambda op: bool(op.output(0)) and op.scope.constant(op.output(0)) is not None),
    "vector": (bool, _vector),
    "thin": (bool, _thin),
    "outer_values": (bool, _outer_values),
    "per_channel": (bool, _per_channel),
    "inputs": (Ranges, lambda op: max((at for at, name in enumerate(op.node.input, 1) if name), default=0)),
    "outputs": (Ranges, lambda op: max((at for at, name in enumerate(op.node.output, 1) if name), default=0)),
    "first_read": (bool, lambda op: _of(op.output(0), op.scope.is_read, False)),
    "yielded": (bool, _yielded),
    "scaled_by_size": (bool, _scaled_by_size),
    "lengths": (frozenset[Definition], lambda op: _of(op.input(4), op.scope.written_as, "")),
    "last": (frozenset[Definition], lambda op: _of((op.node.input or [""])[-1], op.scope.written_as, "")),
}
"""By name, in the order of the checks: the kind of values that conditions allow, and how the feature is worked out."""
