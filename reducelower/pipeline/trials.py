"""Try rules on cases: what they make of a model is verified, as any conversion is.

Rules that expand an operator are tried on every form of the call, of every element type that they are for. Rules of
version boundaries are tried on onnx's own cases: each is brought to the near side, and over the boundary to every opset
version from there on. What no rule has a part in goes over as the schemas and the shipped rules say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, compose, defs, helper, numpy_helper

from reducelower.api import convert_version, legalize
from reducelower.conformance.onnx_cases import cases_of
from reducelower.conformance.reduce_cases import reduce_cases
from reducelower.errors import ConversionError, RuleError
from reducelower.model.numbers import FLOATS
from reducelower.model.schemas import REDUCTIONS, element_type_name, opset_of, versions
from reducelower.options import Target
from reducelower.rulebook import Rule, RuleBook
from reducelower.rulebook.boundaries import Boundaries
from reducelower.rulebook.validation import rule_types
from reducelower.verification import verify

__all__ = ["Trial", "try_boundaries", "try_expansion"]

_IR_VERSION = 10
"""One that allows all that a rule may write."""

_OLDEST = 7
"""The oldest opset version that onnxruntime runs, and that cases are tried at."""

_NEAREST = {"absent": 0, "lacking": -1}
"""Below which version of an operator something of it may be absent."""


@dataclass
class Trial:
    """How rules fared.

    Attributes:
        rule: the rule, or the operator of rules for a boundary.
        tried: the element type, or the boundary.
        outcome: what came of it, for people.
        wrong: a sentence for each result that is wrong.
    """

    rule: str
    tried: str
    outcome: str = ""
    wrong: list[str] = field(default_factory=list)


def try_expansion(book: RuleBook, op_type: str, kinds: Collection[str] = ()) -> Iterator[Trial]:
    """Verify what the rules of a book make of an operator, on each element type that they are for.

    Args:
        book: the rule book.
        op_type: an operator that it has rules for.
        kinds: names of the only element types to try; all where there are none.

    Raises:
        RuleError: a rule is invalid.
    """
    rules = book.rules(op_type)
    forms = _forms(op_type, max(rule.opset for rule in rules))
    for rule in rules:
        for element_type in rule_types(rule.function, defs.get_schema(op_type, rule.opset)):
            is_asked = not kinds or element_type_name(element_type) in kinds
            if is_asked and book.find(op_type, element_type, rule.claim.without) is rule:
                yield _expanded(book, rule, element_type, forms)


def _expanded(book: RuleBook, rule: Rule, element_type: int, forms: Sequence[tuple[int, ModelProto]]) -> Trial:
    trial = Trial(rule.name, element_type_name(element_type))
    # What an attribute means may hang on whether the data are floats, as of Mod.
    forms = [form for form in forms if (form[0] in FLOATS) == (element_type in FLOATS)] or forms
    if not forms:
        trial.outcome = "not tried: onnx has no case of it"
        return trial
    model = _together([_of_type(form, kind, element_type, rule) for kind, form in forms], rule)
    lacking = {element_type_name(each) for each in rule.claim.without}
    try:
        made = legalize(model, Target(without={rule.function.name}, without_types=lacking), rules=book)
    except (ConversionError, RuleError) as error:
        trial.outcome, trial.wrong = f"wrong: {error}", [str(error)]
        return trial
    sites = verify(model, made.model, plan=made.plan).sites
    trial.wrong = [f"{site.signature}: {site.reason}" for site in sites if not site.ok]
    seen = [site for site in sites if site.status != "not run"]
    if not seen:
        trial.outcome = f"not tried: {sites[0].reason if sites else 'nothing is left of it'}"
        return trial
    said = "right" if any(site.max_ulp or site.status != "equal" for site in seen) else "exact"
    said = f"wrong in {len(trial.wrong)} of {len(seen)} forms" if trial.wrong else said
    left = f", {len(sites) - len(seen)} not run" if len(seen) < len(sites) else ""
    trial.outcome = f"{said}, {len(seen)} forms on {sum(site.cases for site in seen)} sets of values{left}"
    return trial


def _forms(op_type: str, opset: int) -> list[tuple[int, ModelProto]]:
    """Each form of the call once, of floats and of others: the element type of the data, and a model of the node.

    They are as the suite has reductions, or onnx's cases of one node. Of the values that come with them none is used
    but those that say where, as axes do: these are constants.
    """
    cases: Iterator[tuple[ModelProto, Mapping[str, Any]]]
    if op_type in REDUCTIONS:
        made = reduce_cases(op_type, opset, "brief")
        cases = ((ModelProto.FromString(case.model), case.inputs) for case in made if not case.tag)
    else:
        cases = ((model, feeds) for _, model, feeds in cases_of(op_type))
    found: dict[object, tuple[int, ModelProto]] = {}
    for case, feeds in cases:
        model = ModelProto.FromString(case.SerializeToString())
        graph = model.graph
        if len(graph.node) > 1 or not graph.node[0].input:
            continue
        types = {value.name: value.type.tensor_type for value in (*graph.input, *graph.output)}
        kind = types[graph.node[0].input[0]].elem_type
        held = {name: np.asarray(value) for name, value in feeds.items() if types[name].elem_type != kind}
        graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in held.items())
        fed = [value for value in graph.input if value.name not in held]
        del graph.input[:]
        graph.input.extend(fed)
        said = sorted(attribute.SerializeToString() for attribute in graph.node[0].attribute)
        ranks = [len(types[name].shape.dim) if name in types else -1 for name in graph.node[0].input]
        constants = [numpy_helper.to_array(tensor).tolist() for tensor in graph.initializer]
        key = repr((said, ranks, constants, kind in FLOATS))
        if key not in found or kind == TensorProto.FLOAT:
            found[key] = kind, model
    return list(found.values())


def _of_type(model: ModelProto, kind: int, element_type: int, rule: Rule) -> ModelProto:
    """A form on data of another element type and of open sizes, of which those that are the same stay so, as 1 does.

    A rule for targets that lack a type has no outputs of that type, as statistics beside the first one are.
    """
    form = ModelProto.FromString(model.SerializeToString())
    (node,) = form.graph.node
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
    """A model with the nodes of all forms, side by side."""
    made = helper.make_graph([], "forms", [], [])
    for at, form in enumerate(forms):
        graph = compose.add_prefix(form, f"{at}/").graph
        graph.node[0].name = f"form {at}"
        made.MergeFrom(
            GraphProto(node=graph.node, input=graph.input, output=graph.output, initializer=graph.initializer)
        )
    newest = max(rule.opset, *map(opset_of, forms))
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", newest)], ir_version=_IR_VERSION)


def try_boundaries(
    book: RuleBook, own: Boundaries, operator: str | None = None, *, at_every_opset: bool = True
) -> Iterator[Trial]:
    """Yield how the rules of each operator fared at each of their boundaries.

    Args:
        book: the rule book of the conversions.
        own: its boundary rules.
        operator: the only operator to try.
        at_every_opset: whether cases go on to every opset version behind the boundary.
    """
    for op_type in own.operators if operator is None else (operator,):
        known = versions(op_type)
        for way, boundary in sorted({(each.way, each.boundary(op_type)) for each in own.occasions(op_type)}):
            at = known[_NEAREST[way]] if way in _NEAREST and known else boundary
            yield _crossed(book, own, op_type, at, down=way != "from", at_every_opset=at_every_opset)
    for domain, rules in own.of_domains.items() if operator is None else ():
        for op_type in rules.operators:
            for said in dict.fromkeys(f"{each.way} {each.at}".strip() for each in rules.occasions(op_type)):
                yield Trial(f"{book.name}/{domain}.{op_type}", said, _in_words(Counter(), 0))


def _crossed(
    book: RuleBook, own: Boundaries, op_type: str, boundary: int, *, down: bool, at_every_opset: bool
) -> Trial:
    way = f"{boundary} to {boundary - 1}" if down else f"{boundary - 1} to {boundary}"
    trial, counts = Trial(f"{book.name}/{op_type}", way), Counter[str]()
    goals = range(boundary - 1, _OLDEST - 1, -1) if down else range(boundary, defs.onnx_opset_version() + 1)
    for name, model, _ in cases_of(op_type):
        near = max(boundary, opset_of(model)) if down else boundary - 1
        source = model if opset_of(model) == near else _by_shipped_rules(model, near)
        if source is None:
            continue  # the near side cannot say it
        for goal in goals if at_every_opset else goals[:1]:
            what, wrong = _converted(book, source, goal, is_shipped=not own.name)
            counts[what] += 1
            trial.wrong += [f"{name}, from opset {opset_of(source)} to {goal}: {wrong}"] if what == "wrong" else []
    trial.outcome = _in_words(counts, len(trial.wrong))
    return trial


def _converted(book: RuleBook, source: ModelProto, goal: int, *, is_shipped: bool) -> tuple[str, str]:
    """What came of a conversion, and what is wrong; rules of a user are held against what comes of it without them."""
    try:
        outcome = legalize(source, Target(goal), rules=book)
    except ConversionError as error:
        if is_shipped or _by_shipped_rules(source, goal) is None:
            return "refused", ""
        return "wrong", f"refused, {error.refusals[0].reason if error.refusals else error}"
    except RuleError as error:
        return "wrong", error.reason
    has_part = is_shipped or any(book.name in site.rule for site in outcome.plan.sites)
    if not has_part and outcome.model == _by_shipped_rules(source, goal):
        return "passed by", ""
    found = verify(source, outcome.model, plan=outcome.plan)
    return {"equivalent": "taken", "different": "wrong"}.get(found.verdict, "not shown"), found.why


def _in_words(counts: Counter[str], wrong: int) -> str:
    taken, others = counts["taken"], counts["passed by"]
    said = f"right in {taken} conversions by a rule, {others} others"
    if not taken:
        said = (
            f"not tried: no case of onnx took a rule, {others} others"
            if others
            else "not tried: onnx has no case of it"
        )
    if wrong:
        said = f"wrong in {wrong} of {taken + others + wrong} conversions"
    return f"{said}, {counts['refused']} refused" if counts["refused"] else said


def _by_shipped_rules(source: ModelProto, goal: int) -> ModelProto | None:
    """What comes of a conversion by the rules that come with the package; None if they refuse it."""
    try:
        return convert_version(source, goal)
    except ConversionError:
        return None
