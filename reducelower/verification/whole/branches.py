"""Which branches of If and bodies of Loop the runs of a whole model took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, numpy_helper

from reducelower.model.graph import inner_path
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.model.text import counted
from reducelower.verification.judging.runs import Clock, Run
from reducelower.verification.running.runtimes import Session, runtime_named
from reducelower.verification.running.source import CannotRunError, Source

__all__ = ["taken"]

_DECIDED = {"If": ("then_branch", "else_branch"), "Loop": ("body",)}


def taken(source: Source, run: Run, clock: Clock) -> tuple[str, ...]:
    """Each branch and body of the main graph, with on how many sets of inputs it ran; nothing once the time is over.

    These are the ends of sentences, such as ``graph/pick.then_branch: ran on 2 of 5 sets of inputs``.
    """
    graph = source.proto.graph
    nodes = [(at, node) for at, node in enumerate(graph.node) if _is_decided(node)]
    if not nodes:
        return ()
    computed = {name for node in graph.node for name in node.output}
    read = {name for _, node in nodes for name in node.input[:2]}
    deciding = sorted(read & computed)
    constants = {item.name: numpy_helper.to_array(item) for item in graph.initializer if item.name in read}
    try:
        shown = Source(_with_outputs(source.proto, deciding), folder=source.folder)
        session = runtime_named(run.runtime).load(shown)
        known = [dict(zip(deciding, _last(session, feeds, clock, len(deciding)), strict=True)) for feeds in run.cases]
    except CannotRunError:
        return ()
    counts = dict.fromkeys((label for at, node in nodes for label, _ in _branches(at, node)), 0)
    for feeds, values in zip(run.cases, known, strict=True):
        for at, node in nodes:
            ways = _ways(node, {**constants, **feeds, **values})
            for label, branch in _branches(at, node):
                counts[label] += branch in ways
    total = f"{counted(len(run.cases), 'set')} of inputs"
    return tuple(f"{label}: ran on {count} of {total}" for label, count in counts.items())


def _is_decided(node: NodeProto) -> bool:
    return node.op_type in _DECIDED and node.domain in DEFAULT_DOMAINS


def _branches(at: int, node: NodeProto) -> Iterator[tuple[str, str]]:
    for branch in _DECIDED[node.op_type]:
        yield inner_path("graph", node, at, branch), branch


def _with_outputs(model: ModelProto, names: list[str]) -> ModelProto:
    copied = deepcopy(model)
    for name in names:
        copied.graph.output.add(name=name)
    return copied


def _last(session: Session, feeds: Mapping[str, Any], clock: Clock, count: int) -> list[Any]:
    clock.check()
    results = session.run(feeds, clock.left)
    return results[len(results) - count :]


def _ways(node: NodeProto, values: Mapping[str, Any]) -> tuple[str, ...]:
    """What a node took."""
    given = [values.get(name) for name in node.input[:2]]
    if node.op_type == "If":
        return ("then_branch",) if np.all(given[0]) else ("else_branch",)
    stops = [value is not None and not np.all(np.asarray(value) > 0) for value in given]
    return () if any(stops) else ("body",)
