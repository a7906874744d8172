"""The smallest part of a model that a runtime gets wrong or refuses, found by cutting the model in halves.

The inputs of a part are the values that the whole model computes where it is cut. Its outputs must equal those of the
whole model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto

from reducelower.conformance.case import Case, value_info
from reducelower.conformance.judging import Verdict
from reducelower.model.graph import read_from_outside
from reducelower.model.schemas import DEFAULT_DOMAINS, opset_of
from reducelower.runtimes.facts import When

__all__ = ["Inside", "Part", "single_nodes", "smallest_part"]

Inside = Mapping[str, Any]
"""The values inside a model, by name, as a trusted runtime computes them."""

Run = Callable[[Case], Verdict]

_MOST_NAMED = 6

_MOST_ALIKE = 3
"""How many nodes to try among those that no condition tells apart. If one of them is right, something else decides."""


@dataclass(frozen=True)
class Part:
    """Some nodes of a model as a separate model, and the verdict on it.

    Attributes:
        nodes: the nodes, without the Constants that they read; the output of the last one is compared.
    """

    case: Case
    verdict: Verdict
    nodes: tuple[NodeProto, ...]

    @property
    def names(self) -> str:
        """The operators, in order; only the first and the last if there are many."""
        names = [node.op_type for node in self.nodes]
        if len(names) > _MOST_NAMED:
            names[_MOST_NAMED // 2 : -_MOST_NAMED // 2] = [f"{len(names) - _MOST_NAMED} more"]
        return " > ".join(names)


def smallest_part(whole: Case, inside: Inside, run: Run) -> Part | None:
    """The smallest failing part of a model that was found, or None.

    The sizes of a part's inputs are known, so a failure caused by unknown sizes is not found. Models are cut only at
    tensors. The search removes halves of the nodes as long as the rest fails, then quarters, and finally single nodes.
    """
    model = _Cuttable(whole, inside)
    failing = _failing(model, range(len(model.nodes)), run)
    kept, size = list(range(len(model.nodes))), len(model.nodes)
    while failing is not None and size > 1:
        size = (size + 1) // 2
        start = 0
        while start < len(kept) and len(kept) > 1:
            fewer = kept[:start] + kept[start + size :]
            smaller = _failing(model, fewer, run) if fewer else None
            if smaller is None:
                start += size
            else:
                failing, kept = smaller, fewer
    return failing


def _failing(model: _Cuttable, kept: Sequence[int], run: Run) -> Part | None:
    """The part with these nodes if it can be cut out and fails."""
    case = model.part(kept)
    verdict = None if case is None else run(case)
    if case is None or verdict is None or verdict.word == "right":
        return None
    return Part(case, verdict, tuple(model.nodes[at] for at in kept))


def single_nodes(whole: Case, op_type: str, inside: Inside, run: Run) -> Iterator[Part]:
    """Each node of an ONNX operator as a part; only a few of those that no condition of a fact tells apart."""
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
        self._model = ModelProto.FromString(whole.model)
        graph = self._model.graph
        constants = [node for node in graph.node if node.op_type == "Constant" and node.domain in DEFAULT_DOMAINS]
        self._constants = {node.output[0]: node for node in constants}
        self._weights = {tensor.name: tensor for tensor in graph.initializer}
        self._sparse = {tensor.values.name: tensor for tensor in graph.sparse_initializer}
        self.nodes = [node for node in graph.node if not node.output or node.output[0] not in self._constants]
        self._yielded = {value.name for value in graph.output}
        self._reads = [read_from_outside(node) for node in self.nodes]
        self._stored = {*self._weights, *self._sparse, *self._constants} - set(whole.inputs)
        self._values: Inside = {**inside, **whole.inputs}

    def part(self, kept: Sequence[int]) -> Case | None:
        """The part with these nodes, in order; None if no output or not every input is a tensor."""
        inner, produced = set(kept), {name for at in kept for name in self.nodes[at].output if name}
        read = dict.fromkeys(name for at in kept for name in sorted(self._reads[at]))
        read_later = {name for at, names in enumerate(self._reads) if at not in inner for name in names}
        results = [name for at in kept for name in self.nodes[at].output if name in read_later or name in self._yielded]
        needed = [name for name in read if name not in produced]
        fed = [name for name in needed if name not in self._stored]
        values = self._values
        if not all(isinstance(values.get(name), np.ndarray) for name in fed):
            return None
        outputs = [name for name in results if isinstance(values.get(name), np.ndarray)]
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
        cut.graph.input.extend(value_info(name, values[name]) for name in fed)
        cut.graph.output.extend(value_info(name, values[name]) for name in outputs)
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
