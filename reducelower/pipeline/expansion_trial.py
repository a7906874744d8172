"""Try the rules that expand an operator: what they make of every form of the call is verified, as a conversion is.

The forms are nodes of one model for each element type of a rule. Of the values that come with them none is used but
those that say where, as axes do: these are constants.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, defs, helper, numpy_helper

from reducelower.api import legalize
from reducelower.conformance.onnx_cases import cases_of
from reducelower.conformance.reduce_cases import reduce_cases
from reducelower.errors import ConversionError, RuleError
from reducelower.model.numbers import FLOATS
from reducelower.model.schemas import REDUCTIONS, element_type_name, opset_of
from reducelower.options import Target
from reducelower.rulebook import Rule, RuleBook
from reducelower.rulebook.validation import rule_types
from reducelower.verification import SiteVerification, verify

__all__ = ["ExpansionTrial", "try_expansion"]

_IR_VERSION = 10
"""One that allows all that a rule may write."""


@dataclass(frozen=True)
class ExpansionTrial:
    """How a rule fared on one element type.

    Attributes:
        sites: what each form of the call gave.
        problem: why there are no forms, or why no model came of them.
        is_refused: whether the problem is one of the rule.
    """

    rule: str
    element_type: str
    sites: tuple[SiteVerification, ...] = ()
    problem: str = ""
    is_refused: bool = False

    @property
    def wrong(self) -> tuple[str, ...]:
        """A sentence for each form that is computed otherwise."""
        found = [f"{site.signature}: {site.reason}" for site in self.sites if not site.ok]
        return (self.problem,) if self.is_refused else tuple(found)

    @property
    def outcome(self) -> str:
        """The outcome in words."""
        seen = [site for site in self.sites if site.status != "not run"]
        if self.problem or not seen:
            reason = self.problem or (self.sites[0].reason if self.sites else "nothing is left of it")
            return f"wrong: {reason}" if self.is_refused else f"not tried: {reason}"
        said = "right" if any(site.max_ulp or site.status != "equal" for site in seen) else "exact"
        said = f"wrong in {len(self.wrong)} of {len(seen)} forms" if self.wrong else said
        sets = f"{len(seen)} forms on {sum(site.cases for site in seen)} sets of values"
        left = f", {len(self.sites) - len(seen)} not run" if len(seen) < len(self.sites) else ""
        return f"{said}, {sets}{left}"


def try_expansion(book: RuleBook, op_type: str, kinds: Collection[str] = ()) -> Iterator[ExpansionTrial]:
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
                yield _tried(book, rule, element_type, forms)


def _tried(book: RuleBook, rule: Rule, element_type: int, forms: Sequence[_Form]) -> ExpansionTrial:
    names = rule.name, element_type_name(element_type)
    # What an attribute means may hang on whether the data are floats, as of Mod.
    forms = [form for form in forms if (form.element_type in FLOATS) == (element_type in FLOATS)] or forms
    if not forms:
        return ExpansionTrial(*names, problem="onnx has no case of it")
    model = _model(forms, element_type, rule)
    target = Target(
        without={rule.function.name}, without_types={element_type_name(each) for each in rule.claim.without}
    )
    try:
        made = legalize(model, target, rules=book)
    except (ConversionError, RuleError) as error:
        return ExpansionTrial(*names, problem=str(error), is_refused=True)
    return ExpansionTrial(*names, verify(model, made.model, plan=made.plan).sites)


@dataclass(frozen=True)
class _Form:
    """One form of the call.

    Attributes:
        values: its inputs and outputs, by name.
        held: the values of those that say where.
        element_type: that of the data.
    """

    node: NodeProto
    opset: int
    values: Mapping[str, ValueInfoProto]
    held: Mapping[str, Any]
    element_type: int


def _forms(op_type: str, opset: int) -> list[_Form]:
    """Each form of the call once, of floats and of others: as the suite has reductions, or onnx's cases of one node."""
    cases: Iterator[tuple[ModelProto, Mapping[str, Any]]]
    if op_type in REDUCTIONS:
        made = reduce_cases(op_type, opset, "brief")
        cases = ((ModelProto.FromString(case.model), case.inputs) for case in made if not case.tag)
    else:
        cases = ((model, feeds) for _, model, feeds in cases_of(op_type))
    found: dict[object, _Form] = {}
    for model, feeds in cases:
        *others, node = model.graph.node
        if others or not node.input:
            continue
        values = {value.name: value for value in (*model.graph.input, *model.graph.output)}
        kind = values[node.input[0]].type.tensor_type.elem_type
        held = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        held |= {name: value for name, value in feeds.items() if values[name].type.tensor_type.elem_type != kind}
        said = sorted(attribute.SerializeToString() for attribute in node.attribute)
        ranks = [len(values[name].type.tensor_type.shape.dim) if name in values else -1 for name in node.input]
        key = repr((said, ranks, [value.tolist() for value in held.values()], kind in FLOATS))
        if key not in found or kind == TensorProto.FLOAT:
            found[key] = _Form(node, opset_of(model), values, held, kind)
    return list(found.values())


def _model(forms: Sequence[_Form], element_type: int, rule: Rule) -> ModelProto:
    """A model with a node for each form, on data of one element type and of open sizes.

    A rule for targets that lack a type has no outputs of that type, as statistics beside the first one are.
    """
    nodes: list[NodeProto] = []
    inputs: list[ValueInfoProto] = []
    outputs: list[ValueInfoProto] = []
    held: list[TensorProto] = []
    for at, form in enumerate(forms):
        node = NodeProto()
        node.CopyFrom(form.node)
        node.name = f"form {at}"
        if rule.claim.without:
            del node.output[1:]
        for names, made in ((node.input, inputs), (node.output, outputs)):
            for place, name in enumerate(names):
                if not name:
                    continue
                names[place] = f"{name}/{at}"
                if name in form.held:
                    held.append(numpy_helper.from_array(np.asarray(form.held[name]), names[place]))
                else:
                    made.append(_value(names[place], form, name, element_type, is_open=made is outputs))
        nodes.append(node)
    graph = helper.make_graph(nodes, "forms", inputs, outputs, held)
    newest = max(rule.opset, *(form.opset for form in forms))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", newest)], ir_version=_IR_VERSION)


def _value(name: str, form: _Form, own: str, element_type: int, *, is_open: bool) -> ValueInfoProto:
    """The type of an input or output; sizes that are the same in a form are the same, and those of 1 are repeated."""
    tensor = form.values[own].type.tensor_type
    kind = element_type if tensor.elem_type == form.element_type else tensor.elem_type
    sizes = [dim.dim_value for dim in tensor.shape.dim]
    dims = [None if is_open else size if size == 1 else f"size {size} of {form.node.op_type}" for size in sizes]
    return helper.make_tensor_value_info(name, kind, dims)
