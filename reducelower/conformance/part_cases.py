"""Conformance cases of the operators that replacements of reductions consist of.

They decide which replacement of a reduction is right on a runtime. Expected values are those of onnx's reference
implementation, in double or in the integers' own type, rounded to the element type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto, ValueInfoProto, helper

from reducelower.conformance.building import element_type_of, make_case, takes
from reducelower.conformance.case import Array, Case
from reducelower.model.schemas import parse_element_type, schema

__all__ = ["PARTS", "part_cases"]

_FLOATS = ("float", "float16", "double")
_NUMBERS = (*_FLOATS, "int32", "int64")
_FOUR = ("float", "double", "int32", "int64")

_MIXED = np.array([[1.5, -2.25, 3.0, -0.5], [2.0, 1.0, -1.0, 4.0], [0.25, -3.5, 2.5, 1.25]])
_OTHER = np.array([[1.5, 2.0, -1.0, 0.5], [2.0, -1.0, 3.0, 4.0], [0.5, 1.75, 2.5, -1.25]])
_CLOSE = np.array([[1.5, -1.0, 4.0, -0.75], [2.0, -1.0, -2.0, -4.0], [0.5, -3.5, -2.5, 1.0]])
"""Some values equal those of `_MIXED`; among pairs of negative ones, sometimes the first and sometimes the other is
larger."""
_POSITIVE = np.abs(_MIXED)
_NOT_ZERO = np.where(np.abs(_OTHER) < 1, 2.0, _OTHER)
_INFINITE = np.array([[np.inf, -2.25, 3.0, -np.inf], [2.0, 1.0, -np.inf, 4.0], [0.25, -3.5, np.inf, 1.25]])
_NAN = np.where(np.isinf(_INFINITE), np.nan, _INFINITE)
_SIX = _MIXED.ravel()[:6]

_HALVES = np.resize((5, 2**31 + 9, 2**31 - 2, 2**32 - 3), 16)
"""Positive numbers whose lower halves are negative as 32-bit integers."""


def _dtype(element_type: str) -> np.dtype[np.generic]:
    return helper.tensor_dtype_to_np_dtype(parse_element_type(element_type))


def _typed(value: Any, element_type: str) -> Any:
    """A double array cast to an element type; any other value unchanged."""
    if not isinstance(value, np.ndarray) or value.dtype != np.float64:
        return value
    return value > 0 if element_type == "bool" else value.astype(_dtype(element_type))


@dataclass(frozen=True)
class _Form:
    """A form of a node and its inputs.

    Attributes:
        fed: its first inputs, which are graph inputs.
        others: by name, the constant inputs after these, and numeric attributes.
        gives: the element type of the result if it differs from the first input's.
    """

    name: str
    fed: tuple[Array, ...]
    others: Mapping[str, Any]
    gives: str = ""


def _of(types: Sequence[str], *fed: Array, name: str = "", **others: Any) -> list[_Form]:
    """The form in each of these element types; double arrays are cast to it."""
    return [
        _Form(
            f"{kind} {name}".strip(),
            tuple(_typed(value, kind) for value in fed),
            {other: _typed(value, kind) for other, value in others.items()},
        )
        for kind in types
    ]


def _pairs(first: Array, other: Array, types: Sequence[str] = _NUMBERS) -> list[_Form]:
    """Forms with two inputs of the same shape, and forms where the second is a single row."""
    few = [kind for kind in ("float", "int64") if kind in types]
    return [*_of(types, first, other), *_of(few, first, other[1], name="broadcast")]


def _cast(source: str, goal: str) -> _Form:
    data = _typed(_POSITIVE if "uint" in source + goal else _MIXED, source)
    return _Form(f"{source} to {goal}", (data,), {"to": parse_element_type(goal)}, goal)


def _cast_like(source: str, goal: str) -> _Form:
    return _Form(f"{source} to {goal}", (_typed(_MIXED, source),), {"like": _typed(np.array(1.0), goal)}, goal)


def _resized(one: Array, several: Array, scalar: Array) -> list[_Form]:
    """Forms of Squeeze and Unsqueeze on data of these shapes."""
    return [
        *_of(_FOUR, one, axes=np.array([1])),
        *_of(["float"], several, name="several", axes=np.array([0, 2])),
        *_of(["float"], scalar, name="rank 0", axes=np.array([0])),
    ]


def _shaped(data: Array, *sizes: int) -> list[_Form]:
    """Forms of Reshape and Expand, with a constant shape and with one that is a graph input."""
    shape = np.array(sizes)
    return [*_of(_FOUR, data, name="constant", shape=shape), *_of(["float"], data, shape, name="fed")]


_NARROW = ("float16", "double", "int32", "int64", "bool", "int8", "uint8", "uint32")
_CASTS = (
    *(("float", goal) for goal in _NARROW),
    *((source, "float") for source in _NARROW),
    *(("double", goal) for goal in ("int32", "int64", "float16")),
    *((source, "double") for source in ("int32", "int64", "float16")),
    ("int32", "int64"),
    ("int64", "int32"),
    ("bool", "int32"),
    ("bool", "int64"),
)
_LIKE = (("float", "double"), ("double", "float"), ("float", "int64"), ("int64", "float"))

_FORMS: Mapping[str, Sequence[_Form]] = {
    **{name: _of(_NUMBERS, _MIXED) for name in ("Abs", "Neg", "Sign")},
    **{name: _of(_FLOATS, _MIXED) for name in ("Exp", "Floor", "Ceil")},
    **{name: _of(_FLOATS, _POSITIVE) for name in ("Sqrt", "Log", "Reciprocal")},
    **{name: _of(("float", "int64"), _MIXED) for name in ("Shape", "Size")},
    "Identity": _of((*_NUMBERS, "bool"), _MIXED),
    "Not": _of(["bool"], _MIXED),
    "IsInf": _of(("float", "double"), _INFINITE),
    "IsNaN": _of(("float", "double"), _NAN),
    **{name: _pairs(_MIXED, _OTHER) for name in ("Add", "Sub", "Mul", "Equal")},
    **{name: _pairs(_MIXED, _CLOSE) for name in ("Less", "Greater")},
    **{
        name: [*_pairs(_MIXED, _CLOSE), *_of(["int64"], _HALVES, np.resize(_HALVES[3::-1], 16), name="huge")]
        for name in ("Max", "Min")
    },
    "Where": [*_of(_NUMBERS, _MIXED, _OTHER), *_of(["float"], _MIXED, _OTHER[1], name="broadcast")],
    "Div": _pairs(_MIXED, _NOT_ZERO),
    "Pow": _pairs(_POSITIVE, _OTHER, _FLOATS),
    **{name: [_Form("bool", (_MIXED > 0, _OTHER > 1), {})] for name in ("And", "Or")},
    "Cast": [_cast(*types) for types in _CASTS],
    "CastLike": [_cast_like(*types) for types in _LIKE],
    "Clip": [
        *_of(_NUMBERS, _MIXED, low=np.array(-1.0), high=np.array(2.0)),
        *_of(["int64"], _HALVES, name="huge", low=np.array(7), high=np.array(2**31 - 1)),
    ],
    "Squeeze": _resized(_SIX.reshape(2, 1, 3), _SIX.reshape(1, 2, 1, 3), np.array([1.5])),
    "Unsqueeze": _resized(_SIX.reshape(2, 3), _SIX.reshape(2, 3), np.array(1.5)),
    "Reshape": _shaped(_MIXED, 2, 6),
    "Expand": [
        *_shaped(_SIX[:3].reshape(3, 1), 2, 3, 4),
        *_of(["float"], np.array(1.5), name="rank 0", shape=np.array([2, 3, 4])),
    ],
    "Gather": _of(("float", "int64"), _MIXED, indices=np.array([2, 0]), axis=1),
    "Concat": _of(("float", "int64"), _MIXED, _OTHER, axis=0),
}
"""By operator."""

PARTS = tuple(sorted(_FORMS))
"""The operators, sorted."""


def part_cases(operator: str, opset: int) -> Iterator[Case]:
    """The cases of an operator at an opset version, without types that the version lacks."""
    if schema(operator, opset) is None:
        return
    for form in _FORMS[operator]:
        if operator == "Where" or takes(operator, opset, element_type_of(form.fed[0])):
            yield _case(form, operator, opset)


def _case(form: _Form, operator: str, opset: int) -> Case:
    inputs = dict(zip("xyz", form.fed, strict=False))
    constants = {name: value for name, value in form.others.items() if isinstance(value, np.ndarray)}
    attributes: dict[str, Any] = {name: value for name, value in form.others.items() if name not in constants}
    if operator in ("Squeeze", "Unsqueeze") and opset < 13:
        attributes, constants = {name: value.tolist() for name, value in constants.items()}, {}
    node = helper.make_node(operator, [*inputs, *constants], ["result"], name="part", **attributes)
    nodes = [node]
    if operator == "Where":  # its condition is computed, since a runtime may take no bools as inputs
        nodes.insert(0, helper.make_node("Greater", ["a", "b"], ["condition"]))
        node.input.insert(0, "condition")
        inputs = {"a": _typed(_MIXED, "float"), "b": _typed(_OTHER, "float"), **inputs}
    expected = _computed(nodes, opset, {**inputs, **constants})
    if expected.dtype == np.float64:
        expected = expected.astype(_dtype(form.gives) if form.gives else form.fed[0].dtype)
    tag = "huge" if "huge" in form.name else ""
    return make_case(form.name, nodes, opset, inputs, [expected], initializers=constants, tag=tag)


def _computed(nodes: Sequence[NodeProto], opset: int, values: Mapping[str, Array]) -> Array:
    """The result of the nodes, with floats computed in double."""
    from onnx.reference import ReferenceEvaluator  # slow to import

    graph = helper.make_graph(nodes, "part", [ValueInfoProto(name=name) for name in values], [])
    graph.output.add(name="result")
    wide = {name: value.astype(np.float64) if value.dtype.kind == "f" else value for name, value in values.items()}
    with np.errstate(all="ignore"):
        results: Any = ReferenceEvaluator(graph, opsets={"": opset}).run(None, wide)
    return np.asarray(results[0])
