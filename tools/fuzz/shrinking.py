"""Shrink a case with a finding to the smallest part of its model that shows one.

The inputs of a part are the values that the whole model computes where it is cut. It is cut only at tensors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import ModelProto, ValueInfoProto, helper

from reducelower.model.graph import read_from_outside
from tools.fuzz.case import Case
from tools.fuzz.judging import judge
from tools.fuzz.runtimes import RUNTIMES, run

__all__ = ["shrink"]


def shrink(case: Case) -> Case:
    """The smallest part with a finding, any finding; the case itself if no part has one alone.

    Halves of the nodes are left out as long as the rest has one, then quarters, and so on.
    """
    kept = [at for at, node in enumerate(case.model.graph.node) if node.op_type != "Constant"]
    values, failing, size = {**_inside(case), **case.feeds}, case, len(kept)
    while size > 1:
        size = (size + 1) // 2
        start = 0
        while start < len(kept) and len(kept) > 1:
            fewer = kept[:start] + kept[start + size :]
            part = _part(case, fewer, values) if fewer else None
            if part is not None and judge(part).is_finding:
                failing, kept = part, fewer
            else:
                start += size
    return failing


def _part(case: Case, kept: Sequence[int], values: Mapping[str, Any]) -> Case | None:
    """The part with these nodes, and the Constants that they read; None if no output or not every input is a tensor."""
    graph = case.model.graph
    nodes = [graph.node[at] for at in kept]
    reads = {at: read_from_outside(node) for at, node in enumerate(graph.node)}
    produced = {name for node in nodes for name in node.output if name}
    needed = {name for at in kept for name in reads[at]} - produced
    read_later = {name for at, names in reads.items() if at not in kept for name in names}
    results = [name for name in produced if name in read_later or any(name == each.name for each in graph.output)]
    constants = [node for node in graph.node if node.op_type == "Constant" and node.output[0] in needed]
    weights = [tensor for tensor in graph.initializer if tensor.name in needed and tensor.name not in case.feeds]
    stored = {tensor.name for tensor in weights} | {node.output[0] for node in constants}
    fed = sorted(needed - stored - {tensor.values.name for tensor in graph.sparse_initializer})
    outputs = sorted(name for name in results if isinstance(values.get(name), np.ndarray))
    if not outputs or not all(isinstance(values.get(name), np.ndarray) for name in fed):
        return None
    cut = ModelProto()
    cut.CopyFrom(case.model)
    for field in ("node", "initializer", "input", "output", "value_info"):
        cut.graph.ClearField(field)
    cut.graph.node.extend([*constants, *nodes])
    cut.graph.initializer.extend(weights)
    cut.graph.input.extend(_described(name, values[name]) for name in fed)
    cut.graph.output.extend(_described(name, values[name]) for name in outputs)
    return replace(case, model=cut, feeds={name: values[name] for name in fed})


def _described(name: str, value: Any) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)


def _inside(case: Case) -> Mapping[str, Any]:
    """The values inside a model, if a runtime computes them."""
    model = ModelProto.FromString(case.model.SerializeToString())
    names = list(dict.fromkeys(name for node in model.graph.node for name in node.output if name))
    del model.graph.output[:]
    model.graph.output.extend(ValueInfoProto(name=name) for name in names)
    outcomes = (run(runtime, model, case.feeds).values for runtime in RUNTIMES)
    values = next((values for values in outcomes if values is not None), None)
    return {} if values is None else dict(zip(names, values, strict=True))
