"""How much memory a run of a model takes, worked out from the sizes of all values beforehand, and how much it may."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, helper, inliner, numpy_helper, shape_inference

from reducelower.model.graph import all_nodes, subgraphs, walk
from reducelower.model.inference.protected import infer_shapes
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.model.skeleton import skeleton
from reducelower.model.value_info import sizes
from reducelower.types import ContradictionError, infer
from reducelower.verification.running.conditions import conditions
from reducelower.verification.running.needs import GROWING, Peak
from reducelower.verification.running.source import CannotRunError, Session

__all__ = [
    "Bounded",
    "TooLargeError",
    "allowed_bytes",
    "as_fed",
    "check_elements",
    "held_bytes",
    "inferred",
    "most_elements",
]

_A_SHAPE = 64
"""Whole numbers of one input that may be a shape."""


def inferred(model: ModelProto, given: Mapping[str, Any]) -> GraphProto | None:
    """The graph with the shapes of its values on inputs of these shapes (see `as_fed`); None where they do not fit."""
    fed = as_fed(model, given)
    try:
        found = infer_shapes(fed, data_prop=True).graph  # which does not follow all computed sizes, and is fast
        told = {value.name: sizes(value.type) for value in (*found.value_info, *found.output)}
        computed = (name for node in found.node if node.op_type != "Constant" for name in node.output if name)
        if all((shape := told.get(name)) is not None and None not in shape for name in computed):
            return found
        return infer(fed).graph
    except (ContradictionError, shape_inference.InferenceError):
        return None


def as_fed(model: ModelProto, given: Mapping[str, Any]) -> ModelProto:
    """A model without weights whose inputs have these shapes, or those of arrays, and that states no other shapes.

    Small whole numbers become constants, since they may be shapes.
    """
    bare = skeleton(model)
    for node in walk(bare.graph.node):  # of what is inside, types do not matter
        for _, _, graph in subgraphs(node):
            del graph.value_info[:]
    held = {tensor.name for tensor in bare.graph.initializer}  # whose shapes exporters state, too
    for value in (*bare.graph.value_info, *bare.graph.output):
        if value.name not in held and value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    inputs = list(bare.graph.input)
    del bare.graph.input[:]
    for value in inputs:
        fed = given.get(value.name)
        dims = fed.shape if isinstance(fed, np.ndarray) else fed
        if isinstance(dims, tuple):
            value.type.CopyFrom(helper.make_tensor_type_proto(value.type.tensor_type.elem_type, dims))
        if isinstance(fed, np.ndarray) and fed.dtype == np.int64 and fed.size <= _A_SHAPE and value.name not in held:
            bare.graph.initializer.append(numpy_helper.from_array(fed, value.name))
        else:
            bare.graph.input.append(value)
    return bare


_GB = 1e9
_DRAWN = 12  # bytes for each element of an input that is made: a double, and what becomes of it
_JUDGED = 64  # bytes for each element of a result that is compared
_FEW = 1 << 16  # bytes of inputs, from which no model gets large without one of the operators below


def allowed_bytes() -> float:
    """How many bytes a run may take now."""
    allowed = conditions().memory
    return float("inf") if allowed is None else allowed * _GB


def most_elements() -> int:
    """How many elements of one input may be made now."""
    return int(min(allowed_bytes() / _DRAWN, 1 << 40))


def check_elements(count: int) -> None:
    """Raise a TooLargeError where an input of so many elements is not made."""
    if count > most_elements():
        raise TooLargeError.of(count * _DRAWN)


class TooLargeError(CannotRunError):
    """A run that was not begun, since it would take more memory than is allowed; it says nothing against the model."""

    @staticmethod
    def of(count: float) -> TooLargeError:
        """For what takes so many bytes."""
        return TooLargeError(
            f"it takes about {_shown(count)} of memory at these sizes, and --verify-memory allows "
            f"{_shown(allowed_bytes())}",
            unsupported=True,
        )


def _shown(count: float) -> str:
    return f"{count / _GB:.1f} GB" if count >= _GB / 10 else f"{count / 1e6:.0f} MB"


def held_bytes(values: Iterable[Any]) -> int:
    """How much tensors take, and those in sequences."""
    return sum(
        value.nbytes if isinstance(value, np.ndarray) else held_bytes(value) if isinstance(value, list) else 0
        for value in values
    )


@dataclass
class Bounded:
    """A session that runs nothing which takes more memory than is allowed.

    The reference evaluator keeps all values until the end, and lays out much of what it computes on.
    """

    session: Session
    model: ModelProto
    keeps_all: bool = False
    _known: dict[Any, float] = field(default_factory=dict)

    def run(self, feeds: Mapping[str, Any], timeout: float | None = None) -> list[Any]:
        """As the session; a TooLargeError where it would take too much."""
        count = self.needs(feeds)
        if count > allowed_bytes():
            raise TooLargeError.of(count)
        return self.session.run(feeds, timeout)

    def needs(self, feeds: Mapping[str, Any]) -> float:
        """How many bytes a run on these inputs takes, made and compared."""
        fed = held_bytes(feeds.values())
        if fed <= _FEW and self._stays_small:
            return 0.0
        key = tuple(sorted((name, _key(value)) for name, value in feeds.items()))
        if key not in self._known:
            self._known[key] = 2 * fed + self._inside(feeds)  # onnxruntime may write to what it is fed
        return self._known[key]

    @cached_property
    def _flat(self) -> ModelProto:
        """The model with the bodies of its functions in place of their calls, as far as they can be put there."""
        if not self.model.functions:
            return self.model
        try:
            return inliner.inline_local_functions(skeleton(self.model))
        except Exception:  # of calls that do not fit, the runtime says so
            return self.model

    @cached_property
    def _stays_small(self) -> bool:
        """Whether it has no operator that makes much of little."""
        return not any(node.op_type in GROWING or node.domain not in DEFAULT_DOMAINS for node in all_nodes(self.model))

    def _inside(self, feeds: Mapping[str, Any]) -> float:
        graph = inferred(self._flat, feeds)
        if graph is None:
            return 0.0  # the runtime says what it makes of shapes that inference objects to
        # What is only looked at was made an output without a type (`giving`).
        judged = {value.name for value in self.model.graph.output if value.HasField("type")}
        inside, results = Peak(self.keeps_all, judged).of(graph)
        return inside + results * _JUDGED


def _key(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return ()
    return value.shape, tuple(value.ravel().tolist()) if value.dtype == np.int64 and value.size <= 64 else ()
