"""Shrink a case with a finding: leave out nodes, inputs, outputs and stated types one by one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from onnx import GraphProto, ModelProto, TensorProto, ValueInfoProto, helper, numpy_helper

from tools.fuzz.case import Case, all_nodes
from tools.fuzz.drawing import type_proto
from tools.fuzz.judging import judge
from tools.fuzz.runtimes import RUNTIMES, run
from tools.fuzz.values import type_string

__all__ = ["shrink"]

_SECONDS = 20.0


def shrink(case: Case, *, seconds: float = _SECONDS) -> Case:
    """Leave out everything that a finding does not need, until nothing more can go or time is up.

    Any finding counts in the smaller case, because a model that one runtime fails on may be invalid in itself.

    Args:
        case: a case with a finding.
        seconds: the time limit.
    """
    end = time.monotonic() + seconds
    improved = True
    while improved and time.monotonic() < end:
        improved = False
        for smaller in _smaller(case):
            if time.monotonic() > end:
                break
            if judge(smaller).is_finding:
                case, improved = smaller, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    yield from _one_output(case)
    yield from _cuts(case)
    yield from _without_what_is_stated(case)


def _copy(case: Case) -> ModelProto:
    return ModelProto.FromString(case.model.SerializeToString())


def _tidied(case: Case, model: ModelProto) -> Case:
    """The case with another model, without nodes, constants and inputs that nothing reads any more."""
    graph = model.graph
    needed = {value.name for value in graph.output}
    kept = []
    for node in reversed(graph.node):
        if any(name in needed for name in node.output):
            kept.append(node)
            needed |= set(node.input)
            for attribute in node.attribute:
                needed |= _read_inside(attribute.g)
    nodes = list(reversed(kept))
    del graph.node[:]
    graph.node.extend(nodes)
    for field in (graph.initializer, graph.input):
        entries = [entry for entry in field if entry.name in needed]
        del field[:]
        field.extend(entries)
    there = needed | {value.name for value in graph.input}
    stated = [value for value in graph.value_info if value.name in there]
    del graph.value_info[:]
    graph.value_info.extend(stated)
    called = {node.op_type for node in all_nodes(graph)}
    functions = [function for function in model.functions if function.name in called]
    del model.functions[:]
    model.functions.extend(functions)
    names = {value.name for value in graph.input}
    return replace(case, model=model, feeds={name: value for name, value in case.feeds.items() if name in names})


def _read_inside(graph: GraphProto) -> set[str]:
    return {name for node in all_nodes(graph) for name in node.input} | {value.name for value in graph.output}


def _one_output(case: Case) -> Iterator[Case]:
    if len(case.model.graph.output) < 2:
        return
    for output in case.model.graph.output:
        model = _copy(case)
        del model.graph.output[:]
        model.graph.output.append(output)
        yield _tidied(case, model)


def _cuts(case: Case) -> Iterator[Case]:
    """Cases with the outputs of a node as inputs, the last node first, and cases with an input as a constant."""
    nodes = list(case.model.graph.node)
    computed = [name for node in nodes for name in node.output if name]
    inner = _read_inside(case.model.graph) - {value.name for value in case.model.graph.output}
    values = _values(case, [name for name in computed if name in inner]) if len(nodes) > 1 else {}
    for name in reversed([name for name in computed if name in values]):
        model = _copy(case)
        for node in model.graph.node:
            node.output[:] = [f"{one}_unread" if one == name else one for one in node.output]
        value = values[name]
        rank_only = [f"{name}_{at}" for at in range(value.ndim)]
        model.graph.input.append(helper.make_value_info(name, type_proto(type_string(value), rank_only)))
        yield _tidied(replace(case, feeds={**case.feeds, name: value}), model)


def _values(case: Case, names: list[str]) -> dict:
    """The outputs of the nodes of the main graph, if a runtime computes them."""
    model = _copy(case)
    del model.graph.output[:]
    for name in names:
        model.graph.output.append(ValueInfoProto(name=name))
    for runtime in RUNTIMES:
        outputs = run(runtime, model, case.feeds).values
        if outputs is not None:
            return {name: value for name, value in zip(names, outputs, strict=True) if hasattr(value, "dtype")}
    return {}


def _without_what_is_stated(case: Case) -> Iterator[Case]:
    for at in range(len(case.model.graph.value_info)):
        model = _copy(case)
        del model.graph.value_info[at]
        yield replace(case, model=model)
    for at, node in enumerate(case.model.graph.node):
        for which in range(len(node.attribute)):
            model = _copy(case)
            del model.graph.node[at].attribute[which]
            yield _tidied(case, model)
        if node.name:
            model = _copy(case)
            model.graph.node[at].name = ""
            yield replace(case, model=model)
    for at, value in enumerate(case.model.graph.input):
        array = case.feeds.get(value.name)
        if getattr(array, "dtype", None) == "int64" and array.ndim < 2:
            model = _copy(case)
            del model.graph.input[at]
            tensor: TensorProto = numpy_helper.from_array(array, value.name)
            model.graph.initializer.append(tensor)
            feeds = {name: one for name, one in case.feeds.items() if name != value.name}
            yield replace(case, model=model, feeds=feeds)
