"""Try rules on cases: convert a model with them and verify the result, as for any conversion.

Rules that expand an operator are tried on every form of the node and every element type that they support. Rules for
version boundaries are tried on onnx's own cases: each is converted to the near side, then across the boundary. Nodes
without such a rule are converted by the schemas and the shipped rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, compose, helper, numpy_helper

from reducelower.api import convert_version, legalize
from reducelower.conformance.onnx_cases import cases_of
from reducelower.conformance.reduce_cases import reduce_cases
from reducelower.errors import ConversionError, RuleError
from reducelower.model.numbers import FLOATS
from reducelower.model.schemas import REDUCTIONS, element_type_name, opset_of, versions
from reducelower.model.text import counted
from reducelower.options import Target
from reducelower.rulebook import Rule, RuleBook
from reducelower.rulebook.boundaries import Boundaries
from reducelower.verification import verify

__all__ = ["Trial", "try_boundaries", "try_expansion"]

_IR_VERSION = 10
"""An IR version that allows everything that a rule may write."""

_NEAREST = {"absent": 0, "lacking": -1}
"""By way, the index of the operator's version below which the rule applies."""


@dataclass
class Trial:
    """The result of trying rules.

    Attributes:
        rule: the rule, or the operator of rules for a boundary.
        tried: the element type, or the boundary.
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
    trial.wrong = [f"{site.signature}: {site.reason}" for site in sites if not site.ok]
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
        cases = ((model, feeds) for _, model, feeds in cases_of(op_type))
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


def try_boundaries(book: RuleBook, own: Boundaries, operator: str | None = None) -> Iterator[Trial]:
    """Try the boundary rules of a book (`own`), of all operators or of one, at each of their boundaries."""
    for op_type in own.operators if operator is None else (operator,):
        known, occasions = versions(op_type), [rule.occasion for rule in own.rules(op_type)]
        for way, boundary in sorted({(each.way, each.boundary(op_type)) for each in occasions}):
            at = known[_NEAREST[way]] if way in _NEAREST and known else boundary
            yield _across(book, op_type, at, down=way != "from")
    for domain, rules in own.of_domains.items() if operator is None else ():
        for op_type in rules.operators:
            yield Trial(f"{book.name}/{domain}.{op_type}", "absent", _in_words(Counter(), 0))


def _across(book: RuleBook, op_type: str, boundary: int, *, down: bool) -> Trial:
    near, far = (boundary, boundary - 1) if down else (boundary - 1, boundary)
    trial, counts = Trial(f"{book.name}/{op_type}", f"{near} to {far}"), Counter[str]()
    for name, model, _ in cases_of(op_type):
        # A case of a newer version is tried from there.
        source = model if down and opset_of(model) > near else _by_shipped_rules(model, near)
        if source is None:
            continue  # the near side cannot express it
        result, wrong = _converted(book, source, far)
        counts[result] += 1
        trial.wrong += [f"{name}, from opset {opset_of(source)} to {far}: {wrong}"] if result == "wrong" else []
    trial.outcome = _in_words(counts, len(trial.wrong))
    return trial


def _converted(book: RuleBook, source: ModelProto, goal: int) -> tuple[str, str]:
    """The result of a conversion, compared with one by the shipped rules alone, and what is wrong."""
    expected = _by_shipped_rules(source, goal)
    try:
        outcome = legalize(source, Target(goal), rules=book)
    except ConversionError as error:
        return ("refused", "") if expected is None else ("wrong", f"refused, {error}")
    except RuleError as error:
        return "wrong", error.reason
    if not any(book.name in site.rule for site in outcome.plan.sites) and outcome.model == expected:
        return "passed by", ""
    verification = verify(source, outcome.model, plan=outcome.plan)
    return {"equivalent": "taken", "different": "wrong"}.get(verification.verdict, "not shown"), verification.why


def _in_words(counts: Counter[str], wrong: int) -> str:
    taken, others = counts["taken"], counts["passed by"]
    if wrong:
        text = f"wrong in {wrong} of {counted(taken + others + wrong, 'conversion')}"
    elif taken:
        text = f"right in {counted(taken, 'conversion')} by a rule, {others} others"
    elif others:
        text = f"not tried: no case of onnx took a rule, {others} others"
    else:
        text = "not tried: onnx has no case of it"
    return f"{text}, {counts['refused']} refused" if counts["refused"] else text


def _by_shipped_rules(source: ModelProto, goal: int) -> ModelProto | None:
    """The result of a conversion by the shipped rules; None if they refuse it."""
    try:
        return convert_version(source, goal)
    except ConversionError:
        return None
