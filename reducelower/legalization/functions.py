"""Local functions: their calls, what is wrong with these, and the nodes of functions in place of their calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

from onnx import FunctionProto, ModelProto, NodeProto, helper, inliner

from reducelower.model.graph import walk
from reducelower.model.schemas import DEFAULT_DOMAINS, plain_domain

__all__ = [
    "called_function", "drop_unused", "find_call_defect", "functions_of", "functions_refused", "inline",
]  # fmt: skip

FunctionId: TypeAlias = tuple[str, str, str]
"""Domain, name and overload."""

_DEEPEST_CALL = 100

_MOST_NODES = 1_000_000
"""The most nodes that functions may expand to: inference and runtimes inline every call, so nested calls multiply."""


def called_function(node: NodeProto) -> FunctionId:
    """The id of the function that a node would call; it need not exist."""
    return node.domain, node.op_type, node.overload


def functions_of(model: ModelProto) -> dict[FunctionId, FunctionProto]:
    """The functions of a model by the ids by which calls name them."""
    return {(function.domain, function.name, function.overload): function for function in model.functions}


def _called_in(nodes: Iterable[NodeProto], functions: Mapping[FunctionId, FunctionProto]) -> list[FunctionId]:
    """The functions that nodes call, once for each call."""
    return [each for each in map(called_function, walk(nodes)) if each in functions]


# Defects


def functions_refused(model: ModelProto) -> tuple[str, str] | None:
    """Why the functions of a model are not taken, and a hint; None if they are.

    They may stand for too many nodes, or one may shadow an operator, and so call itself.
    """
    if reason := find_call_defect(model):
        return reason, "inline the functions first"
    name = next((function.name for function in model.functions if function.domain in DEFAULT_DOMAINS), "")
    reason = f"the function {name!r} stands in the default domain, where it would be taken for an operator"
    return (reason, "give the function a domain of its own") if name else None


def find_call_defect(model: ModelProto) -> str:
    """Describe functions that lack an output, call themselves or expand to too many nodes; empty if there are none."""
    # Those of the default domain are reported separately.
    functions = {key: entry for key, entry in functions_of(model).items() if entry.domain not in DEFAULT_DOMAINS}
    for key, entry in functions.items():
        defined = {*entry.input, *(name for node in entry.node for name in node.output)}
        if missing := [name for name in entry.output if name not in defined]:
            return f"nothing gives the output {missing[0]!r} of its function {key[0]}::{key[1]}"
    calls = {key: _called_in(entry.node, functions) for key, entry in functions.items()}
    sizes: dict[FunctionId, int] = {}
    depths: dict[FunctionId, int] = {}
    try:
        for key in TopologicalSorter(calls).static_order():  # those that are called come first
            sizes[key] = len(functions[key].node) + sum(map(sizes.__getitem__, calls[key]))
            depths[key] = 1 + max(map(depths.__getitem__, calls[key]), default=0)
        deep = next((key for key, depth in depths.items() if depth > _DEEPEST_CALL), None)
    except CycleError as error:
        deep = error.args[1][0]
    if deep is not None:
        return f"its function {deep[0]}::{deep[1]} calls itself, or calls go more than {_DEEPEST_CALL} deep in it"
    if sum(sizes[called] for called in _called_in(model.graph.node, functions)) <= _MOST_NODES:
        return ""
    return f"its functions call each other so often that they stand for more than {_MOST_NODES:,} nodes"


def drop_unused(model: ModelProto) -> list[str]:
    """Drop the functions that no node of the model calls, directly or through others; return their names."""
    functions = functions_of(model)
    reached = [*dict.fromkeys(_called_in(model.graph.node, functions))]
    for key in reached:  # grows while it is iterated
        reached += [each for each in dict.fromkeys(_called_in(functions[key].node, functions)) if each not in reached]
    del model.functions[:]
    model.functions.extend(map(functions.__getitem__, reached))
    return [key[1] for key in functions if key not in reached]


# Nodes in place of calls


def inline(model: ModelProto) -> None:
    """Copy functions in place of their calls.

    A function stays if a call does not fit it, or if it imports other opset versions than the model. All stay if
    something is wrong with them (`functions_refused`).
    """
    functions = functions_of(model)
    if not functions or functions_refused(model):
        return
    for function in model.functions:
        _let_outputs_be_computed(function)
    _import_the_same(model)
    try:
        # Callers first, so that an attribute that a caller leaves out has its default where it is called.
        called_first = TopologicalSorter({key: _called_in(each.node, functions) for key, each in functions.items()})
        for domain, name in dict.fromkeys(key[:2] for key in reversed([*called_first.static_order()])):
            _spell_out_defaults(model, domain, name)
            model.CopyFrom(inliner.inline_selected_functions(model, [(domain, name)]))
    except Exception:  # a call that does not fit its function, of which onnx raises several types
        return
    drop_unused(model)
    for node in walk(model.graph.node):
        while node.input and not node.input[-1]:  # an input that the call leaves out
            node.input.pop()


def _let_outputs_be_computed(function: FunctionProto) -> None:
    """Let an Identity give an output that is an input, since the inliner renames computed outputs only."""
    taken = {*function.input, *function.output, *(name for node in walk(function.node) for name in node.output)}
    for at, name in enumerate(function.output):
        if name in function.input:
            fresh = f"{name}_out"
            while fresh in taken:
                fresh += "_"
            taken.add(fresh)
            function.node.append(helper.make_node("Identity", [name], [fresh]))
            function.output[at] = fresh


def _import_the_same(model: ModelProto) -> None:
    """Import the domains that functions import and the model does not."""
    imported = {plain_domain(entry.domain) for entry in model.opset_import}
    for function in model.functions:
        for entry in function.opset_import:
            if plain_domain(entry.domain) not in imported:
                imported.add(plain_domain(entry.domain))
                model.opset_import.add(domain=entry.domain, version=entry.version)


def _spell_out_defaults(model: ModelProto, domain: str, name: str) -> None:
    """Add to the calls of functions of this name the defaults that they omit, since onnx's inliner drops these."""
    functions = functions_of(model)
    for call in walk(model.graph.node):
        function = functions.get(called_function(call)) if (call.domain, call.op_type) == (domain, name) else None
        if function is not None:
            given = {attribute.name for attribute in call.attribute}
            call.attribute.extend(default for default in function.attribute_proto if default.name not in given)
