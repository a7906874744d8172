"""Structural difference of two models; nothing is run, and names of values and nodes do not count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

from reducelower.difference.changes import Change, Region, changes_of
from reducelower.difference.matching import Matched, match
from reducelower.difference.side import Side
from reducelower.difference.stated import Fact, interface_facts, model_facts, stated_facts
from reducelower.lines import Line
from reducelower.model.graph import all_nodes, function_path, may_hold_graphs, subgraphs
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.model.spelled import operator_name
from reducelower.model.text import counted
from reducelower.types import Inference
from reducelower.verification.regions.numbering import Functions, Numbers, Table, formals, inside, opsets_of
from reducelower.verification.regions.places import Place
from reducelower.verification.result import to_plain

__all__ = ["Change", "Difference", "Fact", "changed_operators", "difference"]


@dataclass(frozen=True)
class Difference:
    """The differences of two models.

    Attributes:
        facts: versions, metadata, inputs and outputs, and types that differ.
        changes: nodes that differ; equal changes count as one.
        operators: operators whose number of nodes changed, with both numbers, including subgraphs.
        alike: the number of nodes that both models have.
        regions: the first place of each change, with its nodes.
    """

    facts: tuple[Fact, ...] = ()
    changes: tuple[Change, ...] = ()
    operators: tuple[tuple[str, int, int], ...] = ()
    alike: int = 0
    regions: tuple[Region, ...] = field(default=(), repr=False, compare=False)

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return not (self.facts or self.changes or self.operators)

    @property
    def sentence(self) -> str:
        """A sentence with the number of differences."""
        if self.same:
            return f"the same structure: {counted(self.alike, 'node')}, whatever they are called"
        places = sum(len(change.nodes) for change in self.changes)
        parts = [f"nodes differ at {counted(places, 'place')}"] if places else []
        if self.facts:
            parts.append(counted(len(self.facts), "other difference" if places else "difference"))
        return f"{', '.join(parts) or 'operators differ in number'}; {counted(self.alike, 'node')} alike"

    @property
    def lines(self) -> Iterator[Line]:
        """The lines for every output; the nodes are details, which the HTML page shows in its own way."""
        for fact in self.facts:
            yield Line(fact.kind, f"{fact.what}: {fact.before or 'none'} -> {fact.after or 'none'}")
        for change in self.changes:
            yield from change.lines
        if self.operators:
            counts = ", ".join(f"{name} {before} -> {after}" for name, before, after in self.operators)
            yield Line("operators", counts, is_detail=True)

    def to_dict(self) -> dict[str, Any]:
        """The same facts as plain JSON values."""
        operators = [{"operator": name, "before": one, "after": two} for name, one, two in self.operators]
        return {
            "same": self.same,
            "facts": to_plain(self.facts),
            "changes": to_plain(self.changes),
            "operators": operators,
            "alike": self.alike,
        }


def difference(before: ModelProto, after: ModelProto) -> Difference:
    """Compare two models by structure.

    Operators, attributes, constants by value (however they are spelled), connections, types, versions and metadata
    count. Names of values, nodes and graphs do not, except inputs and outputs of models and functions. Operators are
    compared at the newer of the two opset versions, so a converted model differs in what was rewritten. Tensors with
    external data are equal if they refer to the same place; `difference.digests.digested` compares them by content. The
    models are not changed.
    """
    table = Table()
    opsets = opsets_of(before)
    holders: list[ModelProto | FunctionProto] = [after, *before.functions, *after.functions]
    for holder in holders:
        for domain, version in opsets_of(holder).items():
            opsets[domain] = max(opsets.get(domain, 0), version)
    names = _inputs(before.graph, after.graph)
    left = _main(before, {}, table, opsets)
    right = _main(after, names, table, opsets)
    levels = list(_levels(left, right, table, set()))
    regions = [region for level in levels for region in changes_of(level)]
    changes, first = _merged(regions)
    facts = (*model_facts(before, after), *interface_facts(before.graph, after.graph, names), *stated_facts(levels))
    alike = sum(len(level.pairs) for level in levels) - sum(
        len(change.nodes) for change in changes if change.kind in ("changed", "connected otherwise") and change.before
    )
    return Difference(facts, changes, changed_operators(before, after), alike, first)


def _main(model: ModelProto, names: Mapping[str, str], table: Table, opsets: Mapping[str, int]) -> Side:
    """The main graph of a model, with inputs numbered by the names that `names` gives them."""
    numbers: Numbers = {}
    table.start(model.graph, numbers, is_main=True, ir_version=model.ir_version)
    for name, other in names.items():
        if numbers.get(name) == table.of(("input", name)):  # and not a constant, as below IR version 4
            numbers[name] = table.of(("input", other))
    place = Place(model, Inference(lambda: model))
    return Side("graph", place, numbers, table, opsets, Functions(model, opsets))


def _inputs(before: GraphProto, after: GraphProto) -> dict[str, str]:
    """Maps input names of the second graph to the first: the same name, or else the same position."""
    first, second = [value.name for value in before.input], [value.name for value in after.input]
    names = {name: name for name in second if name in first}
    if len(first) == len(second):
        rest = [name for name in first if name not in names]
        names |= zip((name for name in second if name not in names), rest, strict=True)
    return names


def _levels(left: Side, right: Side, table: Table, opened: set[tuple[str, str]]) -> Iterator[Matched]:
    """The matched graphs, then those in matched nodes and in the functions that they call."""
    names, others = left.outputs, right.outputs
    shared = left.path == "graph" and set(names) == set(others)
    matched = match(left, right, [(name, name) for name in names] if shared else list(zip(names, others, strict=False)))
    yield matched
    nested = [(at, other) for at, other in matched.pairs.items() if may_hold_graphs(left.nodes[at])]
    if not nested:
        return
    # Subgraphs may read values that are computed here. Values of the same name count as the same there, unless matched
    # with others, since the nodes that compute them are already reported.
    same = {name: name for name in left.producers.keys() & right.producers.keys() if matched.is_free(name, name)}
    for at, other in matched.pairs.items():
        same.update(zip(right.nodes[other].output, left.nodes[at].output, strict=False))
    outer_numbers = {new: left.numbers[name] for new, name in same.items() if new and name}
    for at, other in nested:
        node, new_node = left.nodes[at], right.nodes[other]
        called = left.functions.get(node), right.functions.get(new_node)
        if called[0] is not None and called[1] is not None:
            yield from _functions(left, right, called[0], called[1], table, opened)
        graphs, new_graphs = list(subgraphs(node)), list(subgraphs(new_node))
        if [name for _, name, _ in graphs] != [name for _, name, _ in new_graphs]:
            continue
        for (number, name, graph), (new_number, _, new_graph) in zip(graphs, new_graphs, strict=True):
            path = f"{left.path}/{left.label(at)}.{name}"
            inner = _inside(left, path, graph, (at, number), table, {})
            new_inner = _inside(right, path, new_graph, (other, new_number), table, outer_numbers)
            yield from _levels(inner, new_inner, table, opened)


def _inside(
    side: Side, path: str, graph: GraphProto, step: tuple[int, int], table: Table, outer_numbers: Mapping[str, int]
) -> Side:
    numbers = inside(side.numbers)
    numbers.update(outer_numbers)
    table.start(graph, numbers)
    return Side(path, side.place.inside(*step), numbers, table, side.opsets, side.functions)


def _functions(
    left: Side, right: Side, before: FunctionProto, after: FunctionProto, table: Table, opened: set[tuple[str, str]]
) -> Iterator[Matched]:
    path = function_path(before)
    if (path, function_path(after)) in opened:
        return
    opened.add((path, function_path(after)))
    yield from _levels(_body(left, path, before, table), _body(right, path, after, table), table, opened)


def _body(side: Side, path: str, function: FunctionProto, table: Table) -> Side:
    numbers: Numbers = {}
    formals(table, function, numbers)
    return Side(path, side.place.body(function), numbers, table, side.opsets, side.functions)


def _merged(regions: list[Region]) -> tuple[tuple[Change, ...], tuple[Region, ...]]:
    """Changes that differ only in their place merged into one, and the first region of each."""
    groups: dict[tuple[object, ...], list[Region]] = {}
    for region in regions:
        change = region.change
        groups.setdefault((change.kind, change.before, change.after, change.details), []).append(region)
    first = tuple(group[0] for group in groups.values())
    changes = tuple(
        replace(group[0].change, nodes=tuple(place for region in group for place in region.change.nodes))
        for group in groups.values()
    )
    return changes, first


def changed_operators(before: ModelProto, after: ModelProto) -> tuple[tuple[str, int, int], ...]:
    """The operators whose number of nodes differs, with both numbers."""
    old, new = _operators_in(before), _operators_in(after)
    return tuple((name, old[name], new[name]) for name in sorted(old | new) if old[name] != new[name])


def _operators_in(model: ModelProto) -> Counter[str]:
    """The number of nodes per operator; constants count by value and are left out."""
    counts: Counter[str] = Counter()
    for (domain, op_type), count in Counter((node.domain, node.op_type) for node in all_nodes(model)).items():
        if op_type != "Constant" or domain not in DEFAULT_DOMAINS:
            counts[operator_name(NodeProto(op_type=op_type, domain=domain))] += count
    return counts
