"""Attention by other operators, and its caches across opset version 25.

The schema's function body serves every form: it works out at run time how many heads there are and repeats those of key
and value, in some sixty nodes. What exporters write has as many heads in key and value as in the query and no caches,
and takes five to eight. Of query and key one is scaled, where the body scales both by the root and so rounds otherwise.
The schema's body also takes query and value for one type, so others are computed in the wider one.

Source: https://onnx.ai/onnx/operators/onnx__Attention.html (23, 24, 25).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from onnx import NodeProto, TensorProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.decompose import expresses
from reducelower.adapters.registry import ItsBody, Outcome, lowers, raises
from reducelower.errors import RefusedError
from reducelower.model.numbers import Array
from reducelower.scope.scope import Scope

_WIDTH: Mapping[int, int] = {
    TensorProto.BFLOAT16: 1,
    TensorProto.FLOAT16: 1,
    TensorProto.FLOAT: 2,
    TensorProto.DOUBLE: 3,
}
_INPUTS = (0, 1, 2, 3, 4, 5)
"""Query, key, value, mask, past key and past value."""

_PAST_KEY = 4
_SCORES = 3
"""The output qk_matmul_output."""

_LENGTHS = 6
"""The input nonpad_kv_seqlen."""

_TYPE_OF_OUTPUT = (0, 0, 2, 0)
"""Which input each output shares its element type with: result, present key, present value, output of the product."""


_WINDOW = ("left_window_size", "right_window_size")


def _has_window(op: Writer) -> bool:
    return any(op.attribute(name, -1) != -1 for name in _WINDOW)


@expresses("Attention", opset=25)
def _of_one_type_in_windows(op: Writer) -> list[NodeProto] | None:
    return _of_one_type(op) if _has_window(op) else None


@expresses("Attention", opset=24)
def _of_one_type_over_all(op: Writer) -> list[NodeProto] | None:
    return None if _has_window(op) else _of_one_type(op)


def _check_scores(op: Writer) -> None:
    """Refuse a model that states of the scores what inference (onnx 1.23) says, which leaves the past out."""
    if not (op.wants(_SCORES) and op.input(_PAST_KEY) and op.scope.is_yielded(op.node.output[_SCORES])):
        return
    scores = op.node.output[_SCORES]
    stated, present, past = (op.scope.shape(name) for name in (scores, op.input(1), op.input(_PAST_KEY)))
    if not (stated and present and past):
        return
    size, new, old = stated[-1], present[-2], past[-2]
    if size is not None and new is not None and old is not None and size != new + old:
        reason = f"it states that qk_matmul_output is of {size} keys, and past and present are {new + old}"
        raise RefusedError(reason, f"state no size there for {scores!r}")


def _of_one_type(op: Writer) -> list[NodeProto] | None:
    """The same with query, key and value in the widest of their types."""
    _check_scores(op)
    types = {
        index: op.scope.element_type(name) for index, name in enumerate(op.node.input) if name and index in _INPUTS
    }
    query, value = types.get(0), types.get(2)
    if query is None or value is None or query == value:
        return None
    # Two sixteen-bit floats of different kinds have only float32 in common.
    wide = max(query, value, TensorProto.FLOAT, key=lambda found: _WIDTH.get(found, 0))
    inputs = [
        op.add("Cast", name, tail="wide", to=wide) if types.get(index) in _WIDTH and types[index] != wide else name
        for index, name in enumerate(op.node.input)
    ]
    tails = [f"output_{index}" if name else "" for index, name in enumerate(op.node.output)]
    results = op.add_many("Attention", inputs, tails, copied=op.node.attribute)
    for index, result in enumerate(results):
        if result:
            op.yields("Cast", result, output=index, to=types[_TYPE_OF_OUTPUT[index]])
    return op.nodes


_KNOWN = frozenset(
    {"is_causal", "kv_num_heads", "q_num_heads", "qk_matmul_output_mode", "scale", "softcap", "softmax_precision"}
)
"""The attributes of opset version 23; later ones, such as windows, are left to the schema's body."""

_LENGTH_OF_MASK_IS_GIVEN = 24
"""Opset version from which on a mask may be shorter than the keys, and is then filled up."""


@expresses("Attention", opset=24)
def _with_equal_heads(op: Writer) -> list[NodeProto] | None:
    """The sums and products of the schema's body, where nothing is to be repeated, kept or cut off."""
    query, key, value, mask = (op.input(index) for index in range(4))
    if any(attribute.ref_attr_name or attribute.name not in _KNOWN for attribute in op.node.attribute):
        return None
    element_type = op.scope.element_type(query)
    shapes = [op.scope.shape(name) for name in (query, key, value)]
    is_plain = (
        not any(map(op.wants, (1, 2, 3)))
        and not any(op.input(index) for index in (4, 5, 6))
        and not op.attribute("is_causal", 0)
        and not op.attribute("softcap", 0.0)
        and element_type in _WIDTH
        and all(shape is not None and len(shape) == 4 and shape[1] for shape in shapes)
        and len({shape[1] for shape in shapes if shape is not None}) == 1
    )
    if not is_plain or element_type is None or not _suits(mask, shapes[1], element_type, op.scope):
        return None
    head_size = shapes[0][3] if shapes[0] else None
    scale = op.attribute("scale", 1 / np.sqrt(np.float32(head_size)) if head_size else None)
    if scale is None:
        return None
    if scale != 1:
        # Of the key, since onnxruntime (1.31) carries its quantization past a Transpose, and then loads no such model.
        key = op.add("Mul", key, op.constant(np.float32(scale), element_type, "scale"), tail="key")
    turned = op.add("Transpose", key, tail="turned_key", perm=[0, 1, 3, 2])
    scores = op.add("MatMul", query, turned, tail="scores")
    precision = int(op.attribute("softmax_precision", 0)) or element_type
    of_bool = bool(mask) and op.scope.element_type(mask) == TensorProto.BOOL
    lowest = op.constant(-np.inf, element_type, "lowest") if mask else ""
    zero = op.constant(0, element_type, "zero") if mask else ""
    if mask:
        bias = op.add("Where", mask, zero, lowest, tail="bias") if of_bool else mask
        scores = op.add("Add", scores, bias, tail="masked_scores")
    weights = op.add("Softmax", op.cast(scores, element_type, precision, "precise_scores"), tail="weights", axis=-1)
    weights = op.cast(weights, precision, element_type, "weights_back")
    if mask and not _leaves_something(op.scope.constant(mask)):
        # Where a row is masked as a whole, its weights are zero; elsewhere those of what is masked are so already.
        if of_bool:
            weights = op.add("Where", mask, weights, zero, tail="kept_weights")
        else:
            weights = op.add(
                "Where", op.add("Equal", mask, lowest, tail="is_masked"), zero, weights, tail="kept_weights"
            )
    return op.yields("MatMul", weights, value)


def _suits(mask: str, keys: tuple[int | None, ...] | None, element_type: int, scope: Scope) -> bool:
    """Whether a mask can be taken as it is; an absent one always can."""
    if not mask:
        return True
    if scope.element_type(mask) not in (TensorProto.BOOL, element_type):
        return False
    shape = scope.shape(mask)
    is_long_enough = shape and keys is not None and shape[-1] is not None and shape[-1] == keys[2]
    return bool(scope.opset < _LENGTH_OF_MASK_IS_GIVEN or is_long_enough)


def _leaves_something(mask: Array | None) -> bool:
    """Whether a mask is known, and masks no row as a whole."""
    return mask is not None and bool(((mask if mask.dtype == np.bool_ else mask != -np.inf).any(axis=-1)).all())


@lowers("Attention", 25)
def _lower_windows(op: Writer) -> Outcome | ItsBody:
    """Before 25 onnxruntime does not run what is given a past and yields no present (1.32)."""
    if _has_window(op):
        return ItsBody("it attends to a window of keys", "opset 25 is the oldest that has windows")
    if op.input(_PAST_KEY):
        _yield_present(op, _missing(op))
    return None


@lowers("Attention", 24)
def _lower_lengths(op: Writer) -> Outcome | ItsBody:
    if op.input(_LENGTHS):
        return ItsBody("it states how many keys count", "opset 24 is the oldest that has nonpad_kv_seqlen")
    mask, keys = (op.scope.shape(name) if name else None for name in (op.input(3), op.input(1)))
    if mask and keys and None not in (mask[-1], keys[-2]) and mask[-1] != keys[-2] and not op.input(4):
        return ItsBody("its mask is shorter than its keys", "opset 24 is the oldest that fills masks up")
    return None


_PRESENT = {1: "present_key", 2: "present_value"}


@raises("Attention", 25)
def _raise_present(op: Writer) -> Outcome:
    """Since 25 present_key and present_value are yielded together or not at all."""
    missing = _missing(op)
    if len(missing) == 1:
        _yield_present(op, missing)
    return None


def _missing(op: Writer) -> list[int]:
    """Which of present_key and present_value the node does not yield."""
    return [place for place in _PRESENT if len(op.node.output) <= place or not op.node.output[place]]


def _yield_present(op: Writer, places: Sequence[int]) -> None:
    for place in places:
        op.node.output.extend([""] * (place + 1 - len(op.node.output)))
        op.node.output[place] = op.scope.fresh(op.node.name or op.node.output[0], f"/Attention/{_PRESENT[place]}")
