"""A conformance case: one small model, its inputs, the expected outputs, and what is known of its node."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from reducelower.errors import RefusedError
from reducelower.legalization.run import ground_of
from reducelower.model.document import Document
from reducelower.options import Settings, Target
from reducelower.runtimes.facts import When
from reducelower.runtimes.features import Features
from reducelower.scope.graph import GraphScope
from reducelower.scope.node import NodeScope

__all__ = ["Array", "Case"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Case:
    """One model of a single node, before which a Constant may stand.

    Attributes:
        name: unique in the suite and the same in every run.
        tag: what is special about values or sizes, which the node does not show: ``huge``, ``tiny``, ``empty`` (a
            dimension of size 0) and so on; empty for ordinary ones.
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
    def features(self) -> SimpleNamespace:
        """What facts may ask of the node (`runtimes.facts.When`); None for what is known only at run time."""
        source = Document.of_bytes(self.model)
        graph = source.message.graph
        scope = GraphScope(
            ground_of(source.message, source, Target(self.opset), Settings()), graph, self.opset, "graph", key=()
        )
        for index, name, node in scope.node_list.constants():
            scope.constant_nodes[name] = (index, node)
        features = Features(graph.node[-1], NodeScope(scope, None))
        found: dict[str, Any] = {}
        for field in fields(When):
            try:
                found[field.name] = getattr(features, field.name)
            except RefusedError:
                found[field.name] = None
        return SimpleNamespace(**found)

    @cached_property
    def digest(self) -> str:
        """A fingerprint of model, inputs and expected outputs, so that results of another case are not taken for it."""
        found = hashlib.sha256(self.model)
        for name, value in self.inputs.items():
            found.update(f"{name} {value.dtype} {value.shape}".encode())
            found.update(np.ascontiguousarray(value).tobytes())
        for value in self.expected:
            found.update(f"{value.dtype} {value.shape}".encode())
            found.update(np.ascontiguousarray(value).tobytes())
        return found.hexdigest()[:16]
