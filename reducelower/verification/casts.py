"""Floats that a model casts to integers: what comes of those that no integer stands for is not defined.

https://onnx.ai/onnx/operators/onnx__Cast.html
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from onnx import ModelProto

from reducelower.model.graph import all_nodes
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.numerics.measure import is_float, lowest_and_highest
from reducelower.verification.runtimes import Session, runtime_named
from reducelower.verification.source import CannotRunError, Source

__all__ = ["CASTING", "Casts"]

CASTING = frozenset({"Cast", "CastLike"})
"""Operators that may cast floats to integers."""


class Casts:
    """The casts of one side of a region; a model that shows what they take and give is loaded when first asked."""

    def __init__(self, model: ModelProto, runtime: str) -> None:
        """Stand by for a model, to be run where it ran."""
        self._model = model
        self._runtime = runtime
        casts = [node for node in all_nodes(model) if node.op_type in CASTING and node.domain in DEFAULT_DOMAINS]
        made = {name for node in model.graph.node for name in node.output}
        self._ends = [(node.input[0], node.output[0]) for node in casts]
        self._are_shown = all(end in made for _, end in self._ends)

    @cached_property
    def _session(self) -> Session:
        shown = ModelProto()
        shown.CopyFrom(self._model)
        shown.graph.ClearField("output")
        for name in dict.fromkeys(name for ends in self._ends for name in ends):
            shown.graph.output.add(name=name)
        return runtime_named(self._runtime).load(Source(shown))

    def leave_open(self, feeds: Mapping[str, Any]) -> bool:
        """Whether a float is cast to an integer type that has none for it, or may be in a graph inside.

        Args:
            feeds: what the model is run on.
        """
        if not self._ends or not self._are_shown:
            return bool(self._ends)
        try:
            values = self._session.run(feeds)
        except CannotRunError:
            return True
        known = dict(zip(dict.fromkeys(name for ends in self._ends for name in ends), values, strict=True))
        return any(_is_out_of_range(known[taken], known[given]) for taken, given in self._ends)


def _is_out_of_range(taken: Any, given: Any) -> bool:
    if not is_float(taken) or not given.dtype.name.lstrip("u").startswith("int"):
        return False
    lowest, highest = lowest_and_highest(given.dtype)
    with np.errstate(all="ignore"):
        cut = np.trunc(taken.astype(np.longdouble))
    return not bool(((cut >= lowest) & (cut <= np.longdouble(highest))).all())
