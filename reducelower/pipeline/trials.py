"""Try rules that expand an operator, on every form of the node and every element type that they support.

A model of the forms is converted with the rules, and the result is verified, as for any conversion.
"""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, compose, helper, numpy_helper

from reducelower.api import legalize
from reducelower.conformance.reduce_cases import reduce_cases
from reducelower.errors import ConversionError, RuleError
from reducelower.legalization.tidying import is_repeatable
from reducelower.model.numbers import FLOATS
from reducelower.model.schemas import REDUCTIONS, element_type_name, opset_of
from reducelower.options import Target
from reducelower.rulebook import Rule, RuleBook
from reducelower.verification import verify

__all__ = ["Trial", "try_expansion"]

_IR_VERSION = 10
"""An IR version that allows everything that a rule may write."""


@dataclass
class Trial:
    """The result of trying a rule.

    Attributes:
        rule: its name.
        tried: the element type.
        outcome: a sentence for people.
        wrong: a sentence for each wrong result.
    """

    rule: str
    tried: str
    outcome: str = ""
    wrong: list[str] = field(default_factory=list)


def try_expansion(book: RuleBook, op_type: str, kinds: Collection[str] = ()) -> Iterator[Trial]:
    """Verify the expansions of an operator by the rules of a book, on each element type that they support.

    `kinds` has the names of the element types to try; all if empty.

    Raises:
        RuleError: a rule is invalid.
    """
    rules = book.rules(op_type)
    forms = list(_forms(op_type, max(rule.opset for rule in rules)))
    for rule in rules:
        for element_type in rule.types:
            is_asked = not kinds or element_type_name(element_type) in kinds
            if is_asked and book.find(op_type, element_type, rule.claim.without) is rule:
                # The meaning of an attribute may depend on whether the data are floats, as for Mod.
                like = [form for kind, form in forms if (kind in FLOATS) == (element_type in FLOATS)]
                yield _expanded(book, rule, element_type, like or [form for _, form in forms])


def _expanded(book: RuleBook, rule: Rule, element_type: int, forms: Sequence[ModelProto]) -> Trial:
    trial = Trial(rule.name, element_type_name(element_type))
    if not forms:
        trial.outcome = "not tried: onnx has no case of it"
        return trial
    model = _together([_of_type(form, element_type, rule) for form in forms], rule)
    lacking = {element_type_name(each) for each in rule.claim.without}
    try:
        legalized = legalize(model, Target(without={rule.function.name}, without_types=lacking), rules=book)
    except (ConversionError, RuleError) as error:
        trial.outcome, trial.wrong = f"wrong: {error}", [str(error)]
        return trial
    sites = verify(model, legalized.model, plan=legalized.plan).sites
    run_sites = [site for site in sites if site.status != "not run"]
    if not run_sites:
        trial.outcome = f"not tried: {sites[0].reason if sites else 'nothing is left of it'}"
        return trial
    trial.wrong = [f"{site.place}: {site.reason}" for site in sites if not site.ok]
    sets = f"{len(run_sites)} forms on {sum(site.cases for site in run_sites)} sets of values"
    not_run = f", {len(sites) - len(run_sites)} not run" if len(run_sites) < len(sites) else ""
    result = "right" if any(site.max_ulp or site.status != "equal" for site in run_sites) else "exact"
    result = f"wrong in {len(trial.wrong)} of {len(run_sites)} forms" if trial.wrong else result
    trial.outcome = f"{result}, {sets}{not_run}"
    return trial


def _forms(op_type: str, opset: int) -> Iterator[tuple[int, ModelProto]]:
    """Forms of the node: the data's element type, and a model of the node.

    They come from the suite's cases for reductions, else from onnx's single-node cases. Inputs of other types than the
    data's, such as axes, become constants; other values of the cases are not used.
    """
    cases: Iterator[tuple[ModelProto, Mapping[str, Any]]]
    if op_type in REDUCTIONS:
        suite_cases = reduce_cases(op_type, opset, "brief")
        cases = ((ModelProto.FromString(case.model), case.inputs) for case in suite_cases if not case.tag)
    else:
        cases = _onnx_cases(op_type)
    for case, feeds in cases:
        if len(case.graph.node) > 1 or not case.graph.node[0].input:
            continue
        model = ModelProto.FromString(case.SerializeToString())
        types = {value.name: value.type.tensor_type.elem_type for value in model.graph.input}
        kind = types[model.graph.node[0].input[0]]
        constant = {name: np.asarray(value) for name, value in feeds.items() if types[name] != kind}
        model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constant.items())
        inputs = [value for value in model.graph.input if value.name not in constant]
        del model.graph.input[:]
        model.graph.input.extend(inputs)
        yield kind, model


def _of_type(model: ModelProto, element_type: int, rule: Rule) -> ModelProto:
    """A form with another element type of the data and symbolic sizes: equal sizes get the same name, and 1 stays 1.

    For a rule for targets that lack a type, only the first output is kept: others may have that type.
    """
    form = ModelProto.FromString(model.SerializeToString())
    (node,) = form.graph.node
    kind = next(value.type.tensor_type.elem_type for value in form.graph.input if value.name == node.input[0])
    if rule.claim.without:
        del node.output[1:], form.graph.output[1:]
    for value in (*form.graph.input, *form.graph.output):
        tensor = value.type.tensor_type
        tensor.elem_type = element_type if tensor.elem_type == kind else tensor.elem_type
        for dim in tensor.shape.dim:
            if value.name in node.output:
                dim.Clear()
            elif dim.dim_value != 1:
                dim.dim_param = f"size {dim.dim_value} of {node.op_type}"
    return form


def _together(forms: Sequence[ModelProto], rule: Rule) -> ModelProto:
    """One model with the nodes of all forms."""
    combined = helper.make_graph([], "forms", [], [])
    for at, form in enumerate(forms):
        graph = compose.add_prefix(form, f"{at}/").graph
        graph.node[0].name = f"form {at}"
        combined.MergeFrom(
            GraphProto(node=graph.node, input=graph.input, output=graph.output, initializer=graph.initializer)
        )
    newest = max(rule.opset, *map(opset_of, forms))
    return helper.make_model(combined, opset_imports=[helper.make_opsetid("", newest)], ir_version=_IR_VERSION)


def _onnx_cases(op_type: str) -> Iterator[tuple[ModelProto, dict[str, Any]]]:
    """onnx's single-node cases of the operator, with their input values: one for each form.

    Cases have the same form if their attributes, the element types and ranks of inputs, and int64 inputs are equal.
    """
    seen = set[object]()
    for case in _cases(op_type):
        model, (inputs, _) = case.model, case.data_sets[0]
        node = model.graph.node[0]
        if not is_repeatable(node) or not all(isinstance(value, np.ndarray) for value in inputs):
            continue
        attributes = sorted(attribute.SerializeToString() for attribute in node.attribute)
        input_forms = [(value.dtype, value.ndim, value.tolist() if value.dtype == np.int64 else ()) for value in inputs]
        form = repr((opset_of(model), attributes, [bool(name) for name in (*node.input, *node.output)], input_forms))
        if form not in seen:
            seen.add(form)
            yield model, dict(zip([value.name for value in model.graph.input], inputs, strict=True))


@cache
def _cases(op_type: str) -> list[Any]:
    """The cases in modules named like the operator. Loading a module computes its cases; all of them take seconds."""
    from onnx.backend.test.case import node

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _, name, _ in pkgutil.iter_modules(node.__path__):
            if name.replace("_", "").startswith(op_type.lower()):
                importlib.import_module(f"{node.__name__}.{name}")
    cases = [case for case in node._NodeTestCases if case.model is not None and case.data_sets]
    return [case for case in cases if [each.op_type for each in case.model.graph.node] == [op_type]]
