"""A conformance case: one small model, its inputs, the expected outputs, and the features of its node."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from reducelower.errors import RefusedError
from reducelower.legalization.run import ground_of
from reducelower.model.document import Document
from reducelower.options import Settings, Target
from reducelower.runtimes.features import Features
from reducelower.scope.graph import GraphScope
from reducelower.scope.node import NodeScope

__all__ = ["Array", "Case", "CaseFeatures"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Case:
    """A model of one node, possibly with a Constant before it.

    Attributes:
        name: unique in the suite and the same in every run.
        tag: what is special about the values or sizes, since the node does not show it: ``huge``, ``tiny``, ``empty``
            (a dimension of size 0) and so on; empty for ordinary ones.
        expected: the value of each output, from exact arithmetic.
    """

    name: str
    operator: str
    opset: int
    model: bytes
    inputs: Mapping[str, Array]
    expected: tuple[Array, ...]
    tag: str = ""

    @cached_property
    def features(self) -> CaseFeatures:
        """The features that facts test (`runtimes.facts.When`); None for those known only at run time."""
        return CaseFeatures(self.model, self.opset)

    @cached_property
    def digest(self) -> str:
        """A hash of model, inputs and expected outputs, so that stored results of a changed case are not reused."""
        digest = hashlib.sha256(self.model)
        for name, value in (*self.inputs.items(), *(("", value) for value in self.expected)):
            digest.update(f"{name} {value.dtype} {value.shape}".lstrip().encode())
            digest.update(np.ascontiguousarray(value).tobytes())
        return digest.hexdigest()[:16]


class CaseFeatures:
    """The features of the last node of a model; each is worked out on first use."""

    def __init__(self, model: bytes, opset: int) -> None:
        source = Document(data=model)
        graph = source.message.graph
        ground = ground_of(source.message, source, Target(opset), Settings())
        self._node = Features(graph.node[-1], NodeScope(GraphScope(ground, graph, opset, "graph", key=()), None))

    def __getattr__(self, name: str) -> Any:
        """Compute a feature on its first use."""
        if name.startswith("_"):  # for example, `copy` looks up such names
            raise AttributeError(name)
        try:
            value = getattr(self._node, name)
        except RefusedError:
            value = None
        setattr(self, name, value)
        return value
