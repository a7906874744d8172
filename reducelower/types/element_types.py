"""Element types of values, from the type variables and attributes of the operators that compute or read them.

The output of `Add` has the type of its inputs, that of `Shape` is int64, that of `Cast` is in its attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from onnx import TensorProto, defs

from reducelower.model.attributes import attribute_of
from reducelower.model.schemas import DEFAULT_DOMAINS, first_version, parse_element_type, schema
from reducelower.types.call import Call
from reducelower.types.contrib import own
from reducelower.types.graphs import Constant, Graph
from reducelower.types.known import Question

__all__ = ["element_type_by_readers", "element_type_of_output"]

_BY_ATTRIBUTE = {
    **dict.fromkeys(("Bernoulli", "EyeLike", "RandomNormalLike", "RandomUniformLike"), "dtype"),
    "Cast": "to",
    "ConstantOfShape": "value",
}


_NUMBERS = dict(TensorProto.DataType.items())


def element_type_of_output(call: Call, place: int) -> int:
    """The element type of an output, by an attribute or by inputs; 0 if unknown."""
    if not call.domain and call.op_type in _BY_ATTRIBUTE:
        attribute = attribute_of(call.node, _BY_ATTRIBUTE[call.op_type])
        if attribute is None:
            return TensorProto.FLOAT if call.op_type == "ConstantOfShape" else 0
        # All are 0 if it refers to an attribute of the function. Below opset 6, Cast has the name of the type.
        return attribute.i or attribute.t.data_type or _NUMBERS.get(attribute.s.decode().upper(), 0)
    version = call.graph.version(call.domain)
    if version is None:
        return 0
    answer = _by_variables(call.op_type, call.domain, version, place, len(call.inputs))
    if not answer and (row := own(call, place)) is not None:
        answer = (row.like,) if call.has(row.like) else TensorProto.FLOAT
    return answer if isinstance(answer, int) else _shared(call, answer)


def _shared(call: Call, places: Sequence[int]) -> int:
    """The element type that inputs share; if one is a constant, nothing need be resolved for the others."""
    places = [place for place in places if call.has(place)]
    for name in map(call.inputs.__getitem__, places):
        constant = call.graph.home(name).held(name)
        if isinstance(constant, Constant):
            return constant.element_type or 0
    return next(filter(None, (call.asked("element_type", place) for place in places)), 0)


@cache
def _by_variables(op_type: str, domain: str, opset: int, place: int, inputs: int) -> int | tuple[int, ...]:
    """The element type of an output, or the positions of the inputs that share its type variable, or 0."""
    operator = schema(op_type, first_version(op_type, opset) or opset, domain)
    output = None if operator is None else _formal_at(operator.outputs, place)
    if operator is None or output is None:
        return 0
    formals = [_formal_at(operator.inputs, index) for index in range(inputs)]
    alike = tuple(index for index, formal in enumerate(formals) if formal and formal.type_str == output.type_str)
    return _only_element_type(output) or alike


def _only_element_type(parameter: defs.OpSchema.FormalParameter) -> int:
    """The element type of a schema parameter that allows only one; else 0."""
    types = parameter.types
    (only,) = types if len(types) == 1 else ("",)
    return parse_element_type(only) if only.startswith("tensor(") else 0


def _formal_at(formals: Sequence[defs.OpSchema.FormalParameter], place: int) -> defs.OpSchema.FormalParameter | None:
    """The formal parameter at a position; None for a variadic one whose values may differ in type."""
    formal = formals[min(place, len(formals) - 1)] if formals else None
    if formal is None or formal.option != defs.OpSchema.FormalParameterOption.Variadic:
        return formal if place < len(formals) else None
    return formal if formal.is_homogeneous else None


def element_type_by_readers(home: Graph, name: str, ask: Callable[[Question, str], int]) -> int:
    """The element type that a value must have because other inputs or outputs of a reader share it; 0 if unknown."""
    for reader in home.readers.get(name, ()):
        operator = schema(reader.op_type, home.opset) if reader.domain in DEFAULT_DOMAINS else None
        formal = None if operator is None else _formal_at(operator.inputs, list(reader.input).index(name))
        if operator is None or formal is None:
            continue
        if only := _only_element_type(formal):
            return only
        if formal.type_str.startswith(("seq", "optional")):
            continue  # such a variable says nothing about tensors
        formals = [
            *((other, _formal_at(operator.inputs, at)) for at, other in enumerate(reader.input)),
            *((other, _formal_at(operator.outputs, at)) for at, other in enumerate(reader.output)),
        ]
        for other, alike in formals:
            is_alike = other not in ("", name) and alike is not None and alike.type_str == formal.type_str
            answer = ask("element_type", other) if is_alike else 0
            if answer:
                return answer
    return 0
