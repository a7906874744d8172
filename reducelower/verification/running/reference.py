"""onnx's reference evaluator, and the operators for which it is no evidence (``reference*`` in `operators.toml`)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, helper

from reducelower.files.external import all_tensors
from reducelower.model.graph import all_nodes
from reducelower.model.numbers import FLOATS, HALVES
from reducelower.model.schemas import DEFAULT_DOMAINS, latest_opset
from reducelower.verification.operators import column
from reducelower.verification.running.conditions import conditions
from reducelower.verification.running.memory import TooLargeError, allowed_bytes, check_results
from reducelower.verification.running.onnx_runtime import OLDEST
from reducelower.verification.running.sizes import evaluator_bytes, shape_key
from reducelower.verification.running.source import (
    CannotRunError,
    Session,
    Source,
    as_declared,
    default_opset,
)

__all__ = ["TYPES_IN_ATTRIBUTES", "ReferenceRuntime", "float_types", "no_evidence", "wrong_in_reference"]

_NEWEST_BEFORE_1_23 = 27
_DOMAINS = DEFAULT_DOMAINS | {"ai.onnx.ml"}


class ReferenceRuntime:
    """onnx's own reference evaluator: numpy, every element type, every opset the installed onnx knows.

    It runs the newest behaviour of some operators under an old opset too; see `wrong_in_reference`.
    """

    name = "reference"

    def load(self, source: Source) -> Session:
        """Load with the external data, which the evaluator cannot find by itself."""
        source.refuse_endless()
        from reducelower.verification.running.evaluator import Evaluator

        model = source.complete()
        try:
            with _quiet():
                return _ReferenceSession(model, Evaluator(model))
        except Exception as error:  # the evaluator raises whatever its operators raise
            raise _reference_error(error) from error


@dataclass(frozen=True)
class _ReferenceSession:
    model: ModelProto
    evaluator: Any
    needed: dict[object, int] = field(default_factory=dict)

    def run(self, feeds: Mapping[str, Any]) -> list[Any]:
        conditions().clock.check()
        key = tuple(map(shape_key, feeds.values()))
        if key not in self.needed:
            self.needed[key] = evaluator_bytes(self.model, feeds)
        if self.needed[key] > allowed_bytes():
            raise TooLargeError.of(self.needed[key])
        graph = self.model.graph
        try:
            with _quiet():
                # Where a model is widened, its inputs are too.
                given = {item.name: as_declared(feeds[item.name], item) for item in graph.input if item.name in feeds}
                results = self.evaluator.run(None, given)
                found = list(map(as_declared, results, graph.output))
        except Exception as error:  # as above
            cause = _reference_error(error)
            is_old = default_opset(self.model) < OLDEST
            raise CannotRunError(cause.reason, unsupported=cause.unsupported or is_old) from error
        check_results(found, self.model)
        return found


def _reference_error(error: Exception) -> CannotRunError:
    """A CannotRunError; operators that the evaluator lacks, or lacks for a type, say nothing against the model."""
    from onnx.reference.op_run import RuntimeTypeError

    lacking = isinstance(error, (NotImplementedError, RuntimeTypeError))
    # Other axes of Scan and missing versions of an operator are plain RuntimeErrors.
    marks = ("Issues with types", "is not implemented", "No implementation for operator")
    unsupported = lacking or any(mark in str(error) for mark in marks)
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return CannotRunError(f"reference evaluator: {lines[0][:300].rstrip('.')}", unsupported=unsupported)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep numpy's warnings about overflow and invalid values off the terminal: such values are compared."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def wrong_in_reference(model: ModelProto) -> list[str]:
    """Operators of the model that the reference evaluator computes wrongly, or as in a newer opset version."""
    opset = default_opset(model)
    nodes = [node for node in all_nodes(model) if node.domain in _DOMAINS]
    if opset < OLDEST:
        return sorted({node.op_type for node in nodes if node.domain in DEFAULT_DOMAINS})
    columns = [column("reference")]
    if latest_opset() <= _NEWEST_BEFORE_1_23:
        columns.append(column("reference_before_1_23"))
    rows = [(node, table[node.op_type]) for node in nodes for table in columns if node.op_type in table]
    has_halves = any(row.get("halves") for _, row in rows) and not float_types(model).isdisjoint(HALVES)
    return sorted({node.op_type for node, row in rows if _is_wrong(node, row, opset, has_halves)})


def _is_wrong(node: NodeProto, row: Mapping[str, Any], opset: int, has_halves: bool) -> bool:
    if row.get("wrong") or opset < row.get("below", 0) or (has_halves and row.get("halves")):
        return True
    unread = row.get("input", len(node.input))
    if any(node.input[unread : unread + 1]):
        return True
    right = row.get("only", {})
    attributes = (item for item in node.attribute if item.name in right)
    return any(item.ref_attr_name or not _is_right(item, right[item.name]) for item in attributes)


def _is_right(item: AttributeProto, right: Any) -> bool:
    """Whether an attribute has the value that the evaluator assumes, or one of several, or repeats those."""
    value = helper.get_attribute_value(item)
    if isinstance(value, bytes):
        value = value.decode()
    if not isinstance(right, list):
        return bool(value == right)
    if isinstance(value, int):
        return value in right
    values = [each.decode() if isinstance(each, bytes) else each for each in value]
    return bool(values == right * (len(values) // len(right) if right else 1))


TYPES_IN_ATTRIBUTES = frozenset({"to", "dtype", "output_dtype"})


def float_types(model: ModelProto) -> set[int]:
    """The float types that a model mentions; casts between types round on purpose."""
    types = {value.type.tensor_type.elem_type for value in model.graph.input}
    types |= {tensor.data_type for tensor in all_tensors(model.graph)}
    for node in all_nodes(model):
        for attribute in node.attribute:
            if attribute.name in TYPES_IN_ATTRIBUTES and attribute.type == AttributeProto.INT:
                types |= {attribute.i} if attribute.name != "stash_type" else set()
            if attribute.type in (AttributeProto.FLOAT, AttributeProto.FLOATS) and node.op_type == "Constant":
                types.add(TensorProto.FLOAT)
    return types & set(FLOATS)


def no_evidence(sides: Iterable[tuple[str, ModelProto]]) -> str:
    """Why a difference between two sides says nothing against a conversion; empty if it does.

    A side is the name of a runtime and a model.
    """
    wrong = sorted({kind for runtime, model in sides if runtime == "reference" for kind in wrong_in_reference(model)})
    if not wrong:
        return ""
    operators = ", ".join(wrong[:5])
    return f"onnxruntime does not run it, and the reference evaluator is no evidence for {operators} as it stands here"
