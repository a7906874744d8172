"""The features of a node that facts about runtimes ask for."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from google.protobuf.message import Message
from onnx import NodeProto

from reducelower.adapters.ops.pooling import windows_of
from reducelower.errors import RefusedError
from reducelower.model.attributes import attribute_of, value_of
from reducelower.model.schemas import REDUCTIONS, default_attributes, element_type_name
from reducelower.scope.scope import Scope
from reducelower.types.sizes import Polynomial

__all__ = ["BROADCASTING", "Features", "given_axes"]

BROADCASTING = frozenset(
    {
        "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater",
        "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "PRelu", "Pow", "Sub",
        "Sum", "Where", "Xor",
    }
)  # fmt: skip
"""Operators that broadcast smaller operands."""


def given_axes(node: NodeProto, scope: Scope) -> tuple[int, ...]:
    """The axes of a reduction, from an attribute or an input; empty if they are absent or empty.

    Raises:
        RefusedError: they are known only at run time, or only where a function is called.
    """
    if attribute_of(node, "axes") is not None:
        return tuple(value_of(node, "axes"))
    if len(node.input) < 2 or not node.input[1] or _is_empty(node.input[1], scope):
        return ()
    value = scope.constant(node.input[1])
    if value is None:
        raise RefusedError("its axes are known at run time only", "make them constant")
    return tuple(int(axis) for axis in value.reshape(-1))


def _is_empty(name: str, scope: Scope) -> bool:
    """Whether a list is empty; one that is not constant is judged by its shape."""
    value = scope.constant(name)
    return scope.shape(name) == (0,) if value is None else not value.size


class Features:
    """The features of one node in its scope, computed on demand.

    A property raises RefusedError if its value is unknown; the error says what to declare.
    """

    def __init__(self, node: NodeProto, scope: Scope) -> None:
        self._node = node
        self._scope = scope

    @property
    def made(self) -> bool:
        """Whether the conversion added the node."""
        return self._scope.is_made

    @cached_property
    def _second_input(self) -> str:
        return self._node.input[1] if len(self._node.input) > 1 else ""

    def _output(self, index: int) -> str:
        return self._node.output[index] if len(self._node.output) > index else ""

    @cached_property
    def axes(self) -> str:
        """How the axes of a reduction are written, see `facts.AxesForm`; empty for other operators."""
        if self._node.op_type not in REDUCTIONS:
            return ""
        attribute = attribute_of(self._node, "axes")
        if attribute is not None:
            return "attribute" if attribute.ints or attribute.ref_attr_name else "empty"
        name = self._second_input
        if not name:
            return "omitted" if len(self._node.input) > 1 else "absent"
        if _is_empty(name, self._scope):
            return "empty"
        definition = self._scope.written_as(name)
        return "dynamic" if definition == "fed" else definition

    @cached_property
    def _axes(self) -> tuple[int, ...] | None:
        """The axes; None if all dimensions are reduced, empty for operators without axes."""
        if self._node.op_type not in (*REDUCTIONS, "Squeeze", "Unsqueeze"):
            return ()
        axes = given_axes(self._node, self._scope)
        if axes:
            return axes
        return () if self.noop == "1" else None

    @property
    def negative_axes(self) -> bool:
        """Whether an axis is negative."""
        return any(axis < 0 for axis in self._axes or ())

    @property
    def axes_count(self) -> int:
        """How many dimensions are reduced."""
        return self.rank if self._axes is None else len(self._axes)

    @property
    def all_axes(self) -> bool:
        """Whether every dimension is reduced; false for rank 0."""
        return self._axes is None or (len(self._axes) == self.rank > 0)

    @property
    def keepdims(self) -> str:
        """The attribute keepdims as written: ``0``, ``1`` or ``unset``."""
        return self._flag("keepdims")

    @property
    def noop(self) -> str:
        """The attribute noop_with_empty_axes as written: ``0``, ``1`` or ``unset``."""
        return self._flag("noop_with_empty_axes")

    def _flag(self, name: str) -> str:
        attribute = attribute_of(self._node, name)
        if attribute is None:
            return "unset"
        if attribute.ref_attr_name:
            raise RefusedError(f"{name} is an attribute of the function, so its value is not known here", _INLINE)
        return "1" if attribute.i else "0"

    @property
    def element_types(self) -> str:
        """The element type of the first input, or of the first output if there is none."""
        names = [*filter(None, (*self._node.input[:1], *self._node.output[:1]))]
        if self._node.op_type in _WITHOUT_TENSOR or not names:
            return ""
        return element_type_name(self._scope.needed_element_type(names[0]))

    @property
    def second_types(self) -> str:
        """The element type of the second input."""
        name = self._second_input
        return element_type_name(self._scope.needed_element_type(name)) if name else ""

    @property
    def output_types(self) -> str:
        """The element type of the first output."""
        if self._node.op_type in _WITHOUT_TENSOR or not self._output(0):
            return ""
        if self._node.op_type == "Cast":
            attribute = attribute_of(self._node, "to")
            if attribute is not None and attribute.type == attribute.INT and not attribute.ref_attr_name:
                return element_type_name(attribute.i)
        return element_type_name(self._scope.needed_element_type(self._node.output[0]))

    @cached_property
    def rank(self) -> int:
        """The number of dimensions of the first input."""
        return self._scope.needed_rank(self._node.input[0]) if self._node.input else 0

    @property
    def data(self) -> str:
        """How the first input is defined, see `facts.Definition`."""
        return self._scope.written_as(self._node.input[0]) if self._node.input else ""

    @property
    def rank_second(self) -> int:
        """The number of dimensions of the second input."""
        return self._scope.needed_rank(self._second_input) if self._second_input else 0

    @property
    def fed(self) -> bool:
        """Whether an input after the first is a model input, which a caller feeds.

        Values that the model computes do not count: most runtimes know them as soon as they know the sizes.
        """
        return any(name and self._scope.written_as(name) == "fed" for name in self._node.input[1:])

    @property
    def broadcast(self) -> bool:
        """Whether the last operand has several values and is broadcast; unknown sizes count as equal.

        For Gemm a single value counts as well; for MatMul only the sizes before the last two count.
        """
        is_gemm, is_product = self._node.op_type == "Gemm" and len(self._node.input) > 2, self._node.op_type == "MatMul"
        if not (is_gemm or is_product or self._node.op_type in BROADCASTING):
            return False
        operand, result = self._scope.shape(self._node.input[-1]), self._scope.shape(self._node.output[0])
        if operand is None or result is None:
            return False
        if is_product:
            return len(operand) > 1 and operand[:-2] != result[:-2]
        if all(size == 1 for size in operand) and not is_gemm:
            return False
        return len(operand) != len(result) or any(one == 1 != other for one, other in zip(operand, result, strict=True))

    @property
    def reads_nothing(self) -> bool:
        """Whether the node reads no values, so that none can overflow."""
        shape = self._scope.shape(self._node.input[0]) if self._node.input else None
        return shape is not None and 0 in shape

    @property
    def no_values(self) -> bool:
        """Whether a dimension of size 0 is reduced, so that results come from no values; False if sizes are unknown."""
        shape = self._scope.shape(self._node.input[0]) if self._node.op_type in REDUCTIONS else None
        if not shape or 0 not in shape:
            return False
        axes = self._axes
        return any(shape[axis] == 0 for axis in (range(len(shape)) if axes is None else axes))

    @property
    def attributes(self) -> frozenset[str]:
        """Every attribute as ``name=value``, including defaults, and the names of those that the node states.

        For a tensor or graph, which may hold millions of numbers, there is only the name.
        """
        values = default_attributes(self._node.op_type, self._scope.target_opset)
        stated = {attribute.name: value_of(self._node, attribute.name) for attribute in self._node.attribute}
        texts = {name: value for name, value in {**values, **stated}.items() if not isinstance(value, Message)}
        return frozenset(stated) | {f"{name}={_text(value)}" for name, value in texts.items()}

    @property
    def after(self) -> str:
        """The operator that computes the first input."""
        return self._scope.made_by(self._node.input[0]) if self._node.input else ""

    @property
    def after_second(self) -> str:
        """The operator that computes the second input."""
        return self._scope.made_by(self._second_input) if self._second_input else ""

    @property
    def open_sizes(self) -> int:
        """How many sizes of the first input are not known as numbers; 1 if the rank is unknown."""
        shape = self._scope.shape(self._node.input[0])
        return 1 if shape is None else shape.count(None)

    @property
    def scaled_by_size(self) -> bool:
        """Whether one input is a named size, and the other depends on more than sizes and constants."""
        inputs = [self._scope.known(name).elements for name in self._node.input]
        return None in inputs and any(each and len(each) == 1 and isinstance(each[0], Polynomial) for each in inputs)

    @property
    def inputs(self) -> int:
        """How many inputs are given, up to the last one."""
        return max((at for at, name in enumerate(self._node.input, 1) if name), default=0)

    @property
    def outputs(self) -> int:
        """How many outputs are named, up to the last one."""
        return max((at for at, name in enumerate(self._node.output, 1) if name), default=0)

    @property
    def first_read(self) -> bool:
        """Whether anything reads the first output."""
        return bool(self._output(0)) and self._scope.is_read(self._output(0))

    @property
    def yielded(self) -> bool:
        """Whether the first output, or the second where nothing reads the first, is a model output."""
        first, second = self._output(0), self._output(1)
        if first and self._scope.is_yielded(first):
            return True
        return bool(second) and self._scope.is_yielded(second) and not self.first_read

    @property
    def second_read(self) -> bool:
        """Whether anything reads the second output."""
        return bool(self._output(1)) and self._scope.is_read(self._output(1))

    @property
    def index_depth(self) -> int:
        """The last size of the second input; 0 if unknown."""
        shape = self._scope.shape(self._second_input) if self._second_input else None
        return shape[-1] or 0 if shape else 0

    @property
    def second_value(self) -> int:
        """The constant integer in the second input; -1 if it is not a single constant integer."""
        value = self._scope.constant(self._second_input) if self._second_input else None
        return int(value.reshape(())) if value is not None and value.size == 1 and value.dtype.kind in "iu" else -1

    @property
    def shifted(self) -> bool:
        """Whether the third input is constant and not zero."""
        value = self._scope.constant(self._node.input[2]) if any(self._node.input[2:3]) else None
        return value is not None and bool(value.astype(np.float64).any())

    @property
    def negative_indices(self) -> bool:
        """Whether a constant index is negative."""
        indices = self._scope.constant(self._second_input) if self._second_input else None
        return indices is not None and bool((indices.astype(np.int64) < 0).any())

    @property
    def holds_zero(self) -> bool:
        """Whether the second input is a constant list that holds a zero."""
        value = self._scope.constant(self._second_input) if self._second_input else None
        return value is not None and bool((value == 0).any())

    @property
    def last_types(self) -> str:
        """The element type of the last input that is not absent."""
        return element_type_name(self._scope.element_type(next(filter(None, reversed(self._node.input)), "")) or 0)

    @property
    def last(self) -> str:
        """How the last input is defined, see `facts.Definition`."""
        return self._scope.written_as(self._node.input[-1]) if self._node.input and self._node.input[-1] else ""

    @property
    def per_channel(self) -> bool:
        """Whether the second input has one value, or one per entry of the second dimension of the first.

        True if sizes are unknown.
        """
        second, data = (self._scope.shape(name) if name else None for name in (self._second_input, self._node.input[0]))
        if second is None or data is None:
            return True
        channel = len(second) - len(data) + 1
        return all(size == 1 or at == channel for at, size in enumerate(second))

    @property
    def uneven(self) -> bool:
        """Whether Resize may scale to a fractional size, pads at the two ends differ, or Split makes unequal parts.

        For Resize: False if scales are unknown; if sizes are unknown, any fractional scale counts.
        """
        if self._node.op_type == "Split":
            shape, parts = self._scope.shape(self._node.input[0]), value_of(self._node, "num_outputs", 0)
            size = shape[value_of(self._node, "axis", 0)] if shape else None
            return bool(parts and size and size % parts)
        if self._node.op_type != "Resize":
            pads = value_of(self._node, "pads", ())
            return list(pads[: len(pads) // 2]) != list(pads[len(pads) // 2 :])
        optional = self._node.input[1:3]  # the scales come alone, or after a region of interest
        scales = self._scope.constant(optional[-1]) if optional and optional[-1] else None
        if scales is None:
            return False
        sizes = self._scope.shape(self._node.input[0]) or (None,) * scales.size
        return any(
            not float((1 if size is None else size) * scale).is_integer()
            for size, scale in zip(sizes, scales.astype(np.float32), strict=False)
        )

    @property
    def overhangs(self) -> bool:
        """Whether the last window of a pool would begin behind the data and their begin padding, and is left out."""
        shape = self._scope.shape(self._node.input[0])
        if not value_of(self._node, "ceil_mode", 0) or shape is None:
            return False
        return any(window.dropped for window in windows_of(self._node, shape))

    @property
    def constant(self) -> bool:
        """Whether the value of the first output is known, because it depends only on constants."""
        return bool(self._node.output[:1]) and self._scope.constant(self._node.output[0]) is not None

    @property
    def vector(self) -> bool:
        """Whether an input that is not constant is a vector of several values that is broadcast to more dimensions."""
        scope, node = self._scope, self._node
        if node.op_type not in BROADCASTING or (scope.rank(node.output[0]) or 0) < 2:
            return False
        return any(
            scope.rank(name) == 1 and scope.shape(name) != (1,) and scope.written_as(name) in ("dynamic", "fed")
            for name in node.input
        )

    @property
    def thin(self) -> bool:
        """Whether a convolution is depthwise and a side of the data has size 1; False if unknown."""
        if self._node.op_type != "Conv":
            return False
        shape, weights = (self._scope.shape(name) for name in self._node.input[:2])
        if not shape or not weights:
            return False
        return weights[1] == 1 != shape[1] and 1 in shape[2:]

    @property
    def rank_out(self) -> int:
        """The number of dimensions of the first output."""
        if self._node.op_type not in REDUCTIONS:
            return self._scope.needed_rank(self._node.output[0])
        if self.keepdims != "0":
            return self.rank
        if self._axes is None:
            return 0
        return self.rank - len(self._axes)


def _text(value: object) -> object:
    """The value of an attribute as target files write it; a list of equal numbers is written as that number."""
    if isinstance(value, list) and value and value.count(value[0]) == len(value):
        return _text(value[0])
    if isinstance(value, float):
        return str(np.float32(value))  # the shortest text that stands for the number
    return value.decode() if isinstance(value, bytes) else value


_INLINE = "inline the function first"

_WITHOUT_TENSOR = frozenset({"If", "Loop", "Scan", "SequenceMap", "SequenceEmpty", "Optional"})
"""Operators whose first input does not tell the element type in which they compute."""
