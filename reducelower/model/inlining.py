"""The nodes of local functions in place of their calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import TopologicalSorter

from onnx import FunctionProto, ModelProto, helper, inliner

from reducelower.model.calls import FunctionId, called_function, functions_of, reached
from reducelower.model.graph import walk
from reducelower.model.schemas import DEFAULT_DOMAINS, plain_domain
from reducelower.model.validate import find_call_defect

__all__ = ["functions_refused", "inline"]


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
        for domain, name in dict.fromkeys((domain, name) for domain, name, _ in _callers_first(functions)):
            _spell_out_defaults(model, domain, name)
            model.CopyFrom(inliner.inline_selected_functions(model, [(domain, name)]))
    except Exception:  # a call that does not fit its function, of which onnx raises several types
        return
    called = reached(model.graph.node, functions_of(model))
    del model.functions[:]
    model.functions.extend(called.values())
    for node in walk(model.graph.node):
        while node.input and not node.input[-1]:  # an input that the call leaves out
            node.input.pop()


def functions_refused(model: ModelProto) -> tuple[str, str] | None:
    """Why the functions of a model are not taken, and a hint; None if they are.

    They may stand for too many nodes, or one may shadow an operator, and so call itself.
    """
    if reason := find_call_defect(model):
        return reason, "inline the functions first"
    name = next((function.name for function in model.functions if function.domain in DEFAULT_DOMAINS), "")
    reason = f"the function {name!r} stands in the default domain, where it would be taken for an operator"
    return (reason, "give the function a domain of its own") if name else None


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


def _callers_first(functions: Mapping[FunctionId, FunctionProto]) -> Iterable[FunctionId]:
    calls = {key: [*map(called_function, walk(function.node))] for key, function in functions.items()}
    called_first = TopologicalSorter({key: [each for each in called if each in calls] for key, called in calls.items()})
    return reversed([*called_first.static_order()])


def _spell_out_defaults(model: ModelProto, domain: str, name: str) -> None:
    """Add to the calls of functions of this name the defaults that they omit, since onnx's inliner drops these."""
    functions = functions_of(model)
    for call in walk(model.graph.node):
        function = functions.get(called_function(call)) if (call.domain, call.op_type) == (domain, name) else None
        if function is not None:
            given = {attribute.name for attribute in call.attribute}
            call.attribute.extend(default for default in function.attribute_proto if default.name not in given)
