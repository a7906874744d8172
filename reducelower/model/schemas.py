"""Facts about operators from the installed onnx, cached.

Facts about operator versions always come from `onnx.defs`, not from tables here, so that they follow a new onnx
release.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from onnx import FunctionProto, ModelProto, TensorProto, TypeProto, defs, helper

from reducelower.text import did_you_mean

__all__ = [
    "DEFAULT_DOMAINS",
    "REDUCTIONS",
    "all_operators",
    "default_attributes",
    "element_type_name",
    "first_version",
    "has_body",
    "is_deprecated",
    "is_runtime_name",
    "latest_opset",
    "opset_of",
    "parse_element_type",
    "plain_domain",
    "schema",
    "schema_in_force",
    "since_version",
    "type_string",
    "versions",
]

DEFAULT_DOMAINS = frozenset({"", "ai.onnx"})
"""The two spellings of the default operator domain."""


REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSum", "ReduceSumSquare",
)  # fmt: skip
"""The Reduce operators, as their pages list them."""


def plain_domain(domain: str) -> str:
    """A domain as `onnx.defs` spells it: empty for the default one."""
    return "" if domain in DEFAULT_DOMAINS else domain


@cache
def latest_opset() -> int:
    """The newest opset version of the default domain that the installed onnx defines."""
    return defs.onnx_opset_version()


def opset_of(holder: ModelProto | FunctionProto, default: int = 0) -> int:
    """The default-domain opset version that a model or function imports, or `default` if it imports none."""
    return next((entry.version for entry in holder.opset_import if entry.domain in DEFAULT_DOMAINS), default)


_LARGEST_OPSET = 2**31 - 1
"""The largest version that `onnx.defs` accepts; an import may name a larger one."""


@cache
def schema_in_force(op_type: str, opset: int, domain: str) -> defs.OpSchema | None:
    """The schema in force at an opset version, deprecated or not; None if the operator does not exist there."""
    if abs(opset) > _LARGEST_OPSET:
        return None
    try:
        return defs.get_schema(op_type, opset, domain)
    except defs.SchemaError:
        return None


def schema(op_type: str, opset: int, domain: str = "") -> defs.OpSchema | None:
    """The schema in force at an opset version; None if the operator does not exist there or is deprecated."""
    in_force = schema_in_force(op_type, opset, domain)
    return None if in_force is None or in_force.deprecated else in_force


def has_body(operator: defs.OpSchema) -> bool:
    """Whether an operator is defined by a function body, fixed or made for its context."""
    untyped: Any = operator  # the stubs lack these attributes
    return bool(untyped.has_function or untyped.has_context_dependent_function)


def since_version(op_type: str, opset: int) -> int:
    """The opset version that introduced the schema in force; 0 if there is none."""
    in_force = schema(op_type, opset)
    return 0 if in_force is None else in_force.since_version


def is_deprecated(op_type: str, opset: int) -> bool:
    """Whether the operator is deprecated at the opset version."""
    in_force = schema_in_force(op_type, opset, "")
    return in_force is not None and in_force.deprecated


_WRITTEN_EARLY: Mapping[str, int] = {"LayerNormalization": 17}
# onnxruntime's name for RMSNormalization, before ONNX had that operator.
_RUNTIME_NAMES = frozenset({"SimplifiedLayerNormalization"})


def first_version(op_type: str, opset: int) -> int | None:
    """The first opset version with an operator that onnxruntime also writes into models of earlier versions.

    Its optimizer writes LayerNormalization into the default domain at any opset version, and means the operator of
    opset 17. None for every other operator, and if the opset version has the operator.
    """
    early = _WRITTEN_EARLY.get(op_type)
    return early if early is not None and opset < early else None


def is_runtime_name(op_type: str) -> bool:
    """Whether this is onnxruntime's name, in the default domain, for an operator that ONNX names differently."""
    return op_type in _RUNTIME_NAMES


@cache
def all_operators() -> Collection[str]:
    """Every operator of the default domain in the installed onnx."""
    return frozenset(entry.name for entry in defs.get_all_schemas_with_history() if entry.domain == "")


_ANY_OPSET = 1 << 30


@cache
def versions(op_type: str) -> tuple[int, ...]:
    """Every default-domain opset version at which the operator changed, oldest first; empty if it is unknown."""
    # Stepping back from version to version takes microseconds; listing all schemas with history takes 15 ms.
    newest_first: list[int] = []
    opset = _ANY_OPSET
    while opset > 0 and (operator := schema_in_force(op_type, opset, "")) is not None:
        newest_first.append(operator.since_version)
        opset = operator.since_version - 1
    return tuple(reversed(newest_first))


@cache
def element_type_name(element_type: int) -> str:
    """ONNX's lower-case name of an element type, such as ``float16``; ``unknown`` if there is none."""
    exists = element_type in TensorProto.DataType.values()
    return str(TensorProto.DataType.Name(element_type)).lower() if exists else "unknown"


@cache
def _element_types() -> Mapping[str, int]:
    names = {name.lower(): number for name, number in TensorProto.DataType.items() if number}
    # numpy's spellings.
    return {**names, "float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE}


def parse_element_type(name: str) -> int:
    """The element type of a name such as ``float``, ``float32`` or ``tensor(float)``.

    Raises:
        ValueError: there is no such type.
    """
    plain = name.removeprefix("tensor(").removesuffix(")").lower()
    if plain not in _element_types():
        near = did_you_mean(plain, _element_types()) or f"; use one of {', '.join(_element_types())}"
        raise ValueError(f"{name!r} is not an ONNX element type{near}")
    return _element_types()[plain]


def type_string(value_type: TypeProto) -> str | None:
    """The type as schemas spell it, such as ``tensor(float)`` or ``seq(tensor(int64))``; None if not stated."""
    kind = value_type.WhichOneof("value")
    if kind == "tensor_type":
        element = value_type.tensor_type.elem_type
        return f"tensor({element_type_name(element)})" if element else None
    if kind == "sparse_tensor_type":
        return f"sparse_tensor({element_type_name(value_type.sparse_tensor_type.elem_type)})"
    if kind in ("sequence_type", "optional_type"):
        inner = type_string(getattr(value_type, kind).elem_type)
        return None if inner is None else f"{'seq' if kind == 'sequence_type' else 'optional'}({inner})"
    if kind == "map_type":
        inner = type_string(value_type.map_type.value_type)
        return None if inner is None else f"map({element_type_name(value_type.map_type.key_type)},{inner})"
    return None


@cache
def default_attributes(op_type: str, opset: int) -> Mapping[str, Any]:
    """The default values of an operator's attributes, for those that have one."""
    operator = schema(op_type, opset)
    return {
        name: helper.get_attribute_value(attribute.default_value)
        for name, attribute in (operator.attributes.items() if operator is not None else ())
        if attribute.default_value.type
    }
