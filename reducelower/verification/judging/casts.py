"""Floats that a model casts to integers: what no integer stands for comes out as anything.

https://onnx.ai/onnx/operators/onnx__Cast.html
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto

from reducelower.model.graph import all_nodes
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.numerics.measure import is_float, lowest_and_highest
from reducelower.verification.feeding.limits import INTEGERS
from reducelower.verification.running.runtimes import Session, runtime_named, try_load, try_run
from reducelower.verification.running.source import Source, giving

__all__ = ["Casts"]


class Casts:
    """The casts of one side of a region; a model that shows what they take and give is loaded when first asked."""

    def __init__(self, model: ModelProto, runtime: str) -> None:
        self._model = model
        self._runtime = runtime
        types = {item.name: item.type.tensor_type.elem_type for item in model.graph.input}
        types |= {item.name: item.data_type for item in model.graph.initializer}
        casts = [node for node in all_nodes(model) if _may_give_integers(node, types)]
        made = {name for node in model.graph.node for name in node.output}
        self._ends = [(*node.input[:1], *node.output[:1]) for node in casts]
        self._shown = list(dict.fromkeys(name for names in self._ends for name in names))
        self._are_shown = all(names[-1] in made for names in self._ends)

    @cached_property
    def _session(self) -> Session | None:
        return try_load(runtime_named(self._runtime), Source(giving(self._model, self._shown)))

    def leave_open(self, feeds: Mapping[str, Any]) -> bool:
        """Whether a float becomes an integer of a type that has none for it, or may in a graph inside."""
        if not self._shown or not self._are_shown:
            return bool(self._shown)
        values = try_run(self._session, feeds)
        if values is None:
            return True
        known = dict(zip(self._shown, values, strict=True))
        return any(_is_out_of_range(known[taken], known[given]) for taken, given in self._ends)


def _may_give_integers(node: NodeProto, types: Mapping[str, int]) -> bool:
    """Whether a node casts to an integer type; onnxruntime gives floats of eight bits as integers, too."""
    if node.op_type == "Cast" and node.domain in DEFAULT_DOMAINS:
        return any(item.name == "to" and item.i in INTEGERS for item in node.attribute)
    is_like = node.op_type == "CastLike" and node.domain in DEFAULT_DOMAINS
    return is_like and types.get(node.input[1], TensorProto.INT64) in INTEGERS


def _is_out_of_range(taken: Any, given: Any) -> bool:
    """Whether a float, cut off, is none of the integers of a type; of other types none is."""
    if not is_float(taken) or not given.dtype.name.lstrip("u").startswith("int"):
        return False
    lowest, highest = lowest_and_highest(given.dtype)
    with np.errstate(all="ignore"):
        cut = np.trunc(taken.astype(np.longdouble))
    return not bool(((cut >= lowest) & (cut <= np.longdouble(highest))).all())
