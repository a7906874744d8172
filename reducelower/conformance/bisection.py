"""The smallest part of a model that a runtime gets wrong or refuses, found by cutting the model in halves.

A part is fed what the whole model computes where it was cut, and has to give what the whole model computes next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, ValueInfoProto, helper

from reducelower.conformance.case import Array, Case
from reducelower.conformance.judging import Verdict
from reducelower.model.graph import read_from_outside
from reducelower.model.schemas import DEFAULT_DOMAINS, opset_of
from reducelower.runtimes.facts import When

__all__ = ["Inside", "Part", "alone", "smallest_part"]

Inside = Callable[[Sequence[str]], Sequence[Any]]
"""Values inside a model, by their names, as a runtime that is trusted computes them; an array for each tensor."""

Run = Callable[[Case], Verdict]

_MOST_NAMED = 6

_MOST_ALIKE = 3
"""How many nodes are tried of those that no condition tells apart: a right one among them shows that something else
decides."""


@dataclass(frozen=True)
class Part:
    """Some nodes of a model as a model of their own, and the verdict on it.

    Attributes:
        nodes: the nodes, without the Constants that they read; the last one yields what is compared.
    """

    case: Case
    verdict: Verdict
    nodes: tuple[NodeProto, ...]

    @property
    def names(self) -> str:
        """The operators, in order; of many the first and the last ones."""
        names = [node.op_type for node in self.nodes]
        if len(names) > _MOST_NAMED:
            names[_MOST_NAMED // 2 : -_MOST_NAMED // 2] = [f"{len(names) - _MOST_NAMED} more"]
        return " > ".join(names)


def smallest_part(whole: Case, inside: Inside, run: Run) -> Part | None:
    """The smallest part of a model found to fail; None if none does, of which sizes that are not set are one cause.

    A part has inputs of known sizes. Where models are cut, only tensors can be fed. Halves of the nodes are left out as
    long as what is left fails, then quarters, and in the end single nodes.
    """
    model = _Cuttable(whole, inside)
    found = _failing(model, range(len(model.nodes)), run)
    kept, size = list(range(len(model.nodes))), len(model.nodes)
    while found is not None and size > 1:
        size = (size + 1) // 2
        start = 0
        while start < len(kept) and len(kept) > 1:
            fewer = kept[:start] + kept[start + size :]
            smaller = _failing(model, fewer, run) if fewer else None
            if smaller is None:
                start += size
            else:
                found, kept = smaller, fewer
    return found


def _failing(model: _Cuttable, kept: Sequence[int], run: Run) -> Part | None:
    """The part of these nodes, if it fails; one that cannot be cut does not."""
    case = model.part(kept)
    verdict = None if case is None else run(case)
    if case is None or verdict is None or verdict.word == "right":
        return None
    return Part(case, verdict, tuple(model.nodes[at] for at in kept))


def alone(whole: Case, op_type: str, inside: Inside, run: Run) -> Iterator[Part]:
    """Nodes of an operator of ONNX as parts of their own; a few of those that no condition of a fact tells apart."""
    model = _Cuttable(whole, inside)
    tried: Counter[Hashable] = Counter()
    for at, node in enumerate(model.nodes):
        if node.op_type != op_type or node.domain not in DEFAULT_DOMAINS:
            continue
        part = model.part([at])
        if part is None:
            continue
        form = tuple(getattr(part.features, field.name) for field in fields(When))
        tried[form] += 1
        if tried[form] <= _MOST_ALIKE:
            yield Part(part, run(part), (node,))


class _Cuttable:
    """A model whose nodes can be cut out."""

    def __init__(self, whole: Case, inside: Inside) -> None:
        self._whole = whole
        self._inside = inside
        self._model = ModelProto.FromString(whole.model)
        graph = self._model.graph
        constants = [node for node in graph.node if node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS]
        self._constants = {node.output[0]: node for node in constants}
        self._weights = {tensor.name: tensor for tensor in graph.initializer}
        self._sparse = {tensor.values.name: tensor for tensor in graph.sparse_initializer}
        self.nodes = [node for node in graph.node if not node.output or node.output[0] not in self._constants]
        self._yielded = {value.name for value in graph.output}
        self._reads = [read_from_outside(node) for node in self.nodes]
        self._values: dict[str, Any] = dict(whole.inputs)

    def part(self, kept: Sequence[int]) -> Case | None:
        """The part of these nodes, which are in order; None if no tensor leaves it or something else has to be fed."""
        inner, made = set(kept), {name for at in kept for name in self.nodes[at].output if name}
        read = dict.fromkeys(name for at in kept for name in sorted(self._reads[at]))
        behind = {name for at, names in enumerate(self._reads) if at not in inner for name in names}
        left = [name for at in kept for name in self.nodes[at].output if name in behind or name in self._yielded]
        needed = [name for name in read if name not in made]
        fed = [name for name in needed if not self._is_known(name)]
        values = self._known([*fed, *left])
        if not all(isinstance(values[name], np.ndarray) for name in fed):
            return None
        outputs = [name for name in left if isinstance(values[name], np.ndarray)]
        if not outputs:
            return None
        cut = ModelProto(ir_version=self._model.ir_version, producer_name=self._model.producer_name)
        cut.opset_import.extend(self._model.opset_import)
        cut.functions.extend(self._model.functions)
        cut.graph.name = "part"
        cut.graph.node.extend(self._constants[name] for name in needed if name in self._constants)
        cut.graph.node.extend(self.nodes[at] for at in kept)
        cut.graph.initializer.extend(self._weights[name] for name in needed if name in self._weights)
        cut.graph.sparse_initializer.extend(self._sparse[name] for name in needed if name in self._sparse)
        cut.graph.input.extend(_stated(name, values[name]) for name in fed)
        cut.graph.output.extend(_stated(name, values[name]) for name in outputs)
        operator = self.nodes[kept[-1]].op_type
        return Case(
            f"{operator} of {self._whole.name}",
            operator,
            opset_of(self._model, default=1),
            cut.SerializeToString(deterministic=True),
            {name: values[name] for name in fed},
            tuple(values[name] for name in outputs),
            self._whole.tag,
        )

    def _is_known(self, name: str) -> bool:
        is_held = name in self._weights or name in self._sparse or name in self._constants
        return is_held and name not in self._whole.inputs

    def _known(self, names: Sequence[str]) -> Mapping[str, Any]:
        new = [name for name in dict.fromkeys(names) if name not in self._values]
        if new:
            self._values.update(zip(new, self._inside(new), strict=True))
        return self._values


def _stated(name: str, value: Array) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
