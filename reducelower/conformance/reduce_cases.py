"""Conformance cases of the ten Reduce operators: axes forms, keepdims, noop, ranks, element types, extremes.

Forms and extreme values are in `reduce_cases.toml`. Expected values are exact (`numerics.truth`), rounded once to the
element type.
"""

from __future__ import annotations

import tomllib
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np
from onnx import helper, numpy_helper

from reducelower.conformance.case import Case, make_case, takes
from reducelower.model.numbers import Array
from reducelower.model.schemas import parse_element_type, schema
from reducelower.numerics.measure import element_type_of, lowest_and_highest
from reducelower.numerics.truth import Specimen, reduce_floats, reduce_integers

__all__ = ["Depth", "reduce_cases"]

Depth = Literal["plain", "brief", "thorough"]
"""How much to try: one form; each form once and the usual element types; all combinations."""

_NEGATIVE_FROM = 11
"""First opset version at which axes may be negative, according to the operators' pages."""

_EMPTY_FROM = {"ReduceMax": 20, "ReduceMin": 20}
_EMPTY_ELSE = 18
"""Opset versions from which the operators' pages say what reducing no value gives."""

_SHAPE = (2, 3, 4)


@dataclass(frozen=True)
class _Form:
    """How a node is written, in the words of facts, and its axes (`values`)."""

    axes: str = "absent"
    values: tuple[int, ...] = ()
    keepdims: str = "unset"
    noop: str = "unset"

    def __str__(self) -> str:
        axes = f"{self.axes}({','.join(map(str, self.values))})" if self.values else self.axes
        noop = "" if self.noop == "unset" else f" noop={self.noop}"
        return f"axes={axes} keepdims={self.keepdims}{noop}"


def _read(rows: Iterable[tuple[str, Sequence[int], str, str]]) -> list[_Form]:
    """The forms in rows of the table."""
    return [
        _Form(axes, tuple(values), keepdims, noop) for axes, values, each, noop in rows for keepdims in each.split()
    ]


_TABLE = tomllib.loads((files(__package__) / "reduce_cases.toml").read_text("utf-8"))


def reduce_cases(operator: str, opset: int, depth: Depth) -> Iterator[Case]:
    """The cases of one of the ten operators at an opset version; the depth says how much to try."""
    takes_input = "axes" not in _attributes(operator, opset)
    thorough = depth == "thorough"
    forms = _read(_TABLE["input" if takes_input else "attribute"])
    for form in forms[:1] if depth == "plain" else forms if thorough else _brief(forms):
        if opset >= _NEGATIVE_FROM or min(form.values, default=0) >= 0:
            yield _case(operator, opset, _ordinary(operator, "float", _SHAPE), form)
    if depth == "plain":
        return
    axes_form = "initializer" if takes_input else "attribute"
    for shape, axes, keepdims in _TABLE["ranks"] if thorough else ():
        form = _Form(axes_form if axes else "absent", tuple(axes), keepdims)
        yield _case(operator, opset, _ordinary(operator, "float", tuple(shape)), form)
    typed = _read(_TABLE["typed_input" if takes_input else "typed_attribute"])
    for element_type in _ELEMENT_TYPES if thorough else _USUAL_TYPES:
        if takes(operator, opset, element_type):
            data = _ordinary(operator, element_type, _SHAPE)
            for form in typed if thorough else typed[:1]:
                # Any rounding error cuts the logarithm of the exponential of an integer to the next lower integer.
                if not (operator == "ReduceLogSumExp" and form.noop == "1" and data.dtype.kind in "iu"):
                    yield _case(operator, opset, data, form)
    row = _Form(axes_form, (2,), "1")
    for tag, element_type, values in _TABLE["extremes"].get(operator, ()):
        yield _case(operator, opset, np.array([[values]], element_type), row, tag)
    if thorough and takes_input and opset >= _EMPTY_FROM.get(operator, _EMPTY_ELSE):
        # The mean of nothing is undefined.
        reduced = [] if operator == "ReduceMean" else [_Form(axes_form, (1,), "1"), _Form("absent", (), "0")]
        for form in [*reduced, _Form(axes_form, (0,), "0")]:
            yield _case(operator, opset, np.zeros((2, 0, 3), np.float32), form, "empty")


_USUAL_TYPES = ("float16", "double", "int32", "int64")
_ELEMENT_TYPES = (*_USUAL_TYPES, "int8", "uint8", "uint32", "bool")


def _attributes(operator: str, opset: int) -> frozenset[str]:
    definition = schema(operator, opset)
    assert definition is not None
    return frozenset(definition.attributes)


@cache
def _ordinary(operator: str, element_type: str, shape: tuple[int, ...]) -> Array:
    """Values of everyday size; positive where the operator takes a logarithm of them."""
    dtype = helper.tensor_dtype_to_np_dtype(parse_element_type(element_type))
    seed = zlib.crc32(f"{operator} {element_type} {shape}".encode())
    for attempt in range(1000):
        data = _random_values(operator, dtype, shape, np.random.default_rng([seed, attempt]))
        if dtype.kind not in "iu" or _shows_truncation(operator, data):
            return data
    raise AssertionError(f"no integers tell how {operator} rounds")


def _shows_truncation(operator: str, data: Array) -> bool:
    """Whether integers show that the result is truncated and not rounded, over all of them and over one group."""
    if operator not in ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean"):
        return True
    groups = [data.ravel().tolist(), data[0, :, 0].tolist()]
    exact = [reduce_floats(operator, group) for group in groups]
    return all(value is not None and 0.6 < abs(value) % 1 < 0.95 for value in exact)


def _random_values(operator: str, dtype: np.dtype[Any], shape: tuple[int, ...], random: np.random.Generator) -> Array:
    if dtype == np.bool_:
        return random.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        low = 1 if dtype.kind == "u" or operator in ("ReduceLogSum", "ReduceLogSumExp", "ReduceProd") else -5
        values = random.integers(low, 4 if operator == "ReduceProd" else 10, shape)
        if operator == "ReduceProd":
            # The product of twenty-four such values leaves the type's range.
            values = np.where(np.arange(values.size).reshape(shape) % 3 == 1, values, 1)
        return np.asarray(values, dtype)
    if operator == "ReduceLogSum":
        return np.asarray(random.uniform(0.2, 3.0, shape), dtype)
    return np.asarray(random.uniform(0.2, 2.0, shape) * random.choice([-1.0, 1.0], shape), dtype)


def _expected(operator: str, data: Array, form: _Form) -> Array:
    specimen = Specimen(data, form.values or None, form.keepdims != "0", form.noop == "1")
    values: list[object] = []
    for group in specimen.groups():
        if data.dtype.kind in "iub":
            low, high = (0, 1) if data.dtype.kind == "b" else lowest_and_highest(data.dtype)
            whole = reduce_integers(operator, [int(value) for value in group], low, high)
            assert whole is not None, f"{operator} of {group} is not defined"
            values.append(whole)
        else:
            real = reduce_floats(operator, group)
            assert real is not None, f"{operator} of {group} is not defined"
            values.append(float(real))
    with np.errstate(over="ignore"):
        return (
            np.array(values, np.float64 if data.dtype.kind == "f" else None)
            .astype(data.dtype)
            .reshape(specimen.result_shape())
        )


def _case(operator: str, opset: int, data: Array, form: _Form, tag: str = "") -> Case:
    expected = _expected(operator, data, form)
    attributes: dict[str, Any] = {
        name: int(value)
        for name, value in (("keepdims", form.keepdims), ("noop_with_empty_axes", form.noop))
        if value != "unset"
    }
    node = helper.make_node(operator, ["data"], ["reduced"], name="reduce", **attributes)
    nodes, inputs, initializers = [node], {"data": data}, {}
    axes = np.array(form.values, np.int64)
    if form.axes == "attribute":
        node.attribute.append(helper.make_attribute("axes", form.values))
    elif form.axes == "omitted":
        node.input.append("")
    elif form.axes != "absent":
        node.input.append("axes")
    if form.axes in ("initializer", "empty"):
        initializers["axes"] = axes
    elif form.axes == "constant":
        nodes.insert(0, helper.make_node("Constant", [], ["axes"], value=numpy_helper.from_array(axes)))
    elif form.axes == "dynamic":
        inputs["axes"] = axes
    sizes = ",".join(map(str, data.shape))
    name = f"{element_type_of(data)}[{sizes}] {form}{f' {tag}' if tag else ''}"
    ranks = [expected.ndim] if form.axes == "dynamic" else None
    return make_case(name, nodes, opset, inputs, [expected], initializers=initializers, output_ranks=ranks, tag=tag)


def _brief(forms: list[_Form]) -> list[_Form]:
    """The first form for each way to write the axes, and each way to write keepdims for one axis and for all."""
    kept: dict[object, _Form] = {}
    for form in forms:
        keepdims = form.keepdims if form.values == (1,) or not form.values else ""
        kept.setdefault((form.axes, form.values, form.noop, keepdims), form)
    return list(kept.values())
