"""Known faults of the runtimes, read from `known_gaps.toml`, and whether they concern a model."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper, shape_inference

from reducelower.files.external import all_tensors
from reducelower.model.graph import all_nodes, bodies
from reducelower.model.schemas import DEFAULT_DOMAINS, opset_of
from tools.fuzz.case import runnable
from tools.fuzz.values import type_string

__all__ = ["CONDITIONS", "Facts", "Gap", "facts_of", "gap_of", "is_single", "known_gaps", "never_run"]

_FILE = Path(__file__).with_name("known_gaps.toml")
CONDITIONS = frozenset({"empty", "not finite", "NaN", "scalar", "function", "default of a function", "subgraph"})
"""Conditions on a model and its values; the largest numbers of a type count as not finite."""


@dataclass(frozen=True)
class Gap:
    """A fault of a runtime.

    Attributes:
        runtime: its name.
        reason: what it does, and how that is known to be wrong.
        operators: the operators; all if empty.
        opsets: the first and the last opset version.
        types: element types, one of which the model has anywhere; any if empty.
        data: element types, one of which the node's first output has; any if empty.
        when: further conditions on the model, from `CONDITIONS`.
        outputs: the least number of outputs of the node.
        input: the index of an input that the node has; None for any node.
        attributes: attributes of the node, each with values of which it has one; "absent" means not stated, "stated"
            means any value, "negative" means numbers with one below zero.
        shared: whether the node must read a value that is read again, by itself, by others or in the next step.
        single: whether the only fault is that it computes doubles in single precision. It runs all the same, and is
            compared with that precision.
    """

    runtime: str
    reason: str
    operators: Collection[str] = ()
    opsets: Sequence[int] = (1, 99)
    types: Collection[str] = ()
    data: Collection[str] = ()
    when: Collection[str] = ()
    outputs: int = 0
    input: int | None = None
    attributes: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    shared: bool = False
    single: bool = False


@dataclass(frozen=True)
class Facts:
    """The facts that gaps ask for about a model and its values."""

    opset: int
    nodes: tuple[NodeProto, ...]
    types: frozenset[str]
    made_types: Mapping[str, str]
    conditions: frozenset[str]
    read_again: frozenset[str] = frozenset()

    def also(self, values: Iterable[Any]) -> Facts:
        """The facts with more values, such as those of the outputs."""
        tensors = list(_tensors(values))
        return replace(self, types=self.types | _types(tensors), conditions=self.conditions | _conditions(tensors))


@cache
def _read() -> Mapping[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


@cache
def known_gaps() -> tuple[Gap, ...]:
    """All gaps in the order of the file."""
    return tuple(Gap(**entry) for entry in _read()["gap"])


def never_run() -> Mapping[str, str]:
    """Operators that no judge runs, with the reason."""
    return {entry["operator"]: entry["reason"] for entry in _read()["never_run"]}


def facts_of(model: ModelProto, values: Iterable[Any]) -> Facts:
    """The facts about a model; `values` are those of its inputs."""
    nodes = tuple(all_nodes(model))
    tensors = [*_tensors(values), *map(numpy_helper.to_array, all_tensors(model))]
    conditions = set(_conditions(tensors))
    if model.functions:
        conditions.add("function")
    if any(function.attribute_proto for function in model.functions):
        conditions.add("default of a function")
    if any(attribute.type == AttributeProto.GRAPH for node in nodes for attribute in node.attribute):
        conditions.add("subgraph")
    made = _made_types(model)
    types = _types(tensors) | set(made.values())
    return Facts(opset_of(model), nodes, frozenset(types), made, frozenset(conditions), _read_again(model, nodes))


def _read_again(model: ModelProto, nodes: Iterable[NodeProto]) -> frozenset[str]:
    """Names that are read more than once; what is read inside of a subgraph or function is read in each step."""
    reads = Counter(name for node in nodes for name in (*node.input, *node.input))
    reads.subtract(name for node in model.graph.node for name in node.input)
    reads.update(value.name for value in model.graph.output)
    return frozenset(name for name, count in reads.items() if name and count > 1)


def _made_types(model: ModelProto) -> Mapping[str, str]:
    """The element types of values by name, as far as they are stated or can be inferred."""
    try:
        inferred = shape_inference.infer_shapes(runnable(model))
    except Exception:  # it raises several kinds of its own
        inferred = model
    graphs = [holder for _, holder in bodies(inferred) if isinstance(holder, GraphProto)]
    stated = [value for graph in graphs for value in (*graph.input, *graph.value_info, *graph.output)]
    elements = {value.name: value.type.tensor_type.elem_type for value in stated}
    return {name: TensorProto.DataType.Name(element).lower() for name, element in elements.items() if element}


def _types(tensors: Iterable[np.ndarray]) -> frozenset[str]:
    return frozenset(type_string(tensor).removeprefix("tensor(")[:-1] for tensor in tensors)


def _conditions(tensors: Sequence[np.ndarray]) -> frozenset[str]:
    tests = {
        "empty": lambda tensor: tensor.size == 0 and not (tensor.ndim == 1 and tensor.dtype == np.int64),  # axes
        "scalar": lambda tensor: tensor.ndim == 0,
        "not finite": lambda tensor: not _is_finite(tensor),
        "NaN": lambda tensor: tensor.dtype.kind not in "OUS" and bool(np.any(tensor != tensor)),
    }
    return frozenset(name for name, test in tests.items() if any(map(test, tensors)))


def _tensors(values: Iterable[Any]) -> Iterable[np.ndarray]:
    for value in values:
        if isinstance(value, list):
            yield from _tensors(value)
        elif value is not None:
            yield np.asarray(value)


def _is_finite(tensor: np.ndarray) -> bool:
    """Whether no value is infinite or NaN, or so large that sums could be infinite."""
    if tensor.dtype.kind in "OUSb":
        return True
    with np.errstate(all="ignore"):
        wide = tensor if tensor.dtype.kind == "c" else tensor.astype(np.float64)
        small = {8: 1e18, 4: 1e9}.get(tensor.dtype.itemsize, 1e3)
        largest = 1e30 if tensor.dtype in (np.float32, np.float64) else small
        return bool(np.all(np.isfinite(wide)) and np.all(np.abs(wide) < largest))


def gap_of(runtime: str, facts: Facts) -> Gap | None:
    """The first gap that excludes a runtime for a model; None if there is none."""
    return next((gap for gap in known_gaps() if not gap.single and _concerns(gap, runtime, facts)), None)


def is_single(runtime: str, facts: Facts) -> bool:
    """Whether a runtime computes doubles of a model in single precision."""
    return any(gap.single and _concerns(gap, runtime, facts) for gap in known_gaps())


def _concerns(gap: Gap, runtime: str, facts: Facts) -> bool:
    if gap.runtime != runtime:
        return False
    if not gap.opsets[0] <= facts.opset <= gap.opsets[1] or not facts.conditions.issuperset(gap.when):
        return False
    if gap.types and facts.types.isdisjoint(gap.types):
        return False
    return not gap.operators or any(_is_meant(gap, node, facts) for node in facts.nodes)


def _is_meant(gap: Gap, node: NodeProto, facts: Facts) -> bool:
    if node.op_type not in gap.operators or node.domain not in DEFAULT_DOMAINS or len(node.output) < gap.outputs:
        return False
    if gap.data and node.output and facts.made_types.get(node.output[0], "") not in (*gap.data, ""):
        return False
    if gap.shared and facts.read_again.isdisjoint(node.input):
        return False
    if gap.input is not None and (len(node.input) <= gap.input or not node.input[gap.input]):
        return False
    stated = {attribute.name: _value(attribute) for attribute in node.attribute}
    return all(_is_among(values, stated.get(name, "absent")) for name, values in gap.attributes.items())


def _is_among(values: Sequence[Any], found: Any) -> bool:
    if "negative" in values and isinstance(found, list) and any(number < 0 for number in found):
        return True
    return found in (*values, _REFERRED) or ("stated" in values and found != "absent")


_REFERRED = object()
"""The value of an attribute that the call of its function states; it may have any value."""


def _value(attribute: AttributeProto) -> Any:
    if attribute.ref_attr_name:
        return _REFERRED
    value = helper.get_attribute_value(attribute)
    return value.decode() if isinstance(value, bytes) else value
