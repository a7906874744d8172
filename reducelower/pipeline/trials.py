"""Try rules that expand a reduction, on every form of the node and every element type that they support.

A model of the forms is converted with the rules, and the result is verified, as for any conversion.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from onnx import GraphProto, ModelProto, compose, helper

from reducelower.api import legalize
from reducelower.conformance.reduce_cases import reduce_cases
from reducelower.errors import ConversionError, RuleError
from reducelower.model.schemas import element_type_name
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


def try_expansion(book: RuleBook, op_type: str) -> Iterator[Trial]:
    """Verify the expansions of a reduction by the rules of a book, on each element type that they support.

    Raises:
        RuleError: a rule is invalid.
    """
    for rule in book.rules(op_type):
        for element_type in rule.types:
            if book.find(op_type, element_type, rule.claim.without) is rule:
                yield _expanded(book, rule, element_type)


def _expanded(book: RuleBook, rule: Rule, element_type: int) -> Trial:
    trial = Trial(rule.name, element_type_name(element_type))
    lacking = {element_type_name(each) for each in rule.claim.without}
    target, model = Target(without={rule.function.name}, without_types=lacking), _of_forms(rule, element_type)
    try:
        legalized = legalize(model, target, rules=book)
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


def _of_forms(rule: Rule, element_type: int) -> ModelProto:
    """A model with a node of each form of the operator: those of the suite with constant axes."""
    cases = [case for case in reduce_cases(rule.function.name, rule.opset, "brief") if not case.tag]
    models = [ModelProto.FromString(case.model) for case in cases if case.features.element_types == "float"]
    forms = [model for model in models if len(model.graph.node) == len(model.graph.input) == 1]
    graph = helper.make_graph([], "forms", [], [])
    for at, form in enumerate(forms):
        _set_type(form.graph, element_type)
        part = compose.add_prefix(form, f"{at}/").graph
        part.node[0].name = f"form {at}"
        graph.MergeFrom(GraphProto(node=part.node, input=part.input, output=part.output, initializer=part.initializer))
    imports = [helper.make_opsetid("", rule.opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=_IR_VERSION)


def _set_type(graph: GraphProto, element_type: int) -> None:
    """Set the element type of the data, and make sizes symbolic: equal sizes get the same name, and 1 stays 1."""
    for value in (*graph.input, *graph.output):
        tensor = value.type.tensor_type
        tensor.elem_type = element_type
        for dim in tensor.shape.dim:
            if value.name in graph.node[0].output:
                dim.Clear()
            elif dim.dim_value != 1:
                dim.dim_param = f"size {dim.dim_value}"
