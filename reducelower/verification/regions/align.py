"""Aligns two models: which values are the same by construction, and which must be shown to be equal.

One table numbers the values of both (`numbering`), with guesses for the second: a value that has a counterpart in the
first, by name, by the order of like nodes, or because a plan says so, takes the number of its counterpart. If it is
computed differently, it becomes a *claim* that the two are equal. A guess may be wrong, since names may mislead: a
claim that fails is dropped, and another counterpart is tried; without one, the claims downstream become larger. Outputs
of the models are always claims, unless they are the same by construction.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from onnx import ModelProto, NodeProto

from reducelower.model.graph import inner_path, may_hold_graphs, subgraphs
from reducelower.model.schemas import DEFAULT_DOMAINS, REDUCTIONS
from reducelower.plan import Plan, Site
from reducelower.types import Inference
from reducelower.verification.operators import of_kind
from reducelower.verification.regions.claims import Alignment, Claim, Level
from reducelower.verification.regions.guesses import Guesses, Names, is_constant
from reducelower.verification.regions.numbering import Numbers, Table, attributes, inside
from reducelower.verification.regions.places import Place
from reducelower.verification.regions.rewrites import Rewrites

__all__ = ["align"]

_CONTROL = of_kind("control")
_SCAN_OF_TODAY = 9  # the version before took a batch axis


def align(
    before: ModelProto,
    after: ModelProto,
    plan: Plan | None,
    *,
    dropped: Collection[Hashable] = (),
    inferences: tuple[Inference, Inference],
    interface: Interface | None = None,
    names: Names = "hints",
    everywhere: bool = False,
) -> Alignment:
    """Align two models.

    Claims that failed are `dropped`, by their keys, and not made again; the sites of a plan always become claims.
    Values of the same name are claimed to be equal, then the other values in the order of nodes; only by name if names
    are kept, as a conversion keeps them. A plan with a record of the rewrites says so.

    Args:
        before, after: the models, without local functions (`inlined`).
        plan: what a conversion did; None if the models are not related.
        dropped: keys of claims.
        inferences: what is known about the values of both models.
        interface: which inputs and outputs correspond; by default those of the same name.
        names: what equal names of values mean.
        everywhere: whether all graphs inside matched nodes are aligned, not only those that differ.
    """
    sites = () if plan is None else plan.sites
    applied = plan.steps[0].applied if plan is not None and len(plan.steps) == 1 else None
    rewrites = Rewrites(applied)
    names = "kept" if rewrites.are_known else names
    aligner = _Aligner((before, after), inferences, sites, rewrites, frozenset(dropped), names, everywhere)
    return aligner.run(interface)


Interface = tuple[Mapping[str, str], Mapping[str, str]]
"""Inputs and outputs of the second model, with those of the first that correspond."""


@dataclass
class _Aligner:
    _models: tuple[ModelProto, ModelProto]
    _inferences: tuple[Inference, Inference]
    _sites: Sequence[Site]
    _rewrites: Rewrites
    _dropped: frozenset[Hashable]
    _names: Names
    _everywhere: bool
    _table: Table = field(default_factory=Table)
    _found: Alignment = field(default_factory=Alignment)

    def run(self, interface: Interface | None) -> Alignment:
        before, after = self._models
        left, right = (Place(model, known) for model, known in zip(self._models, self._inferences, strict=True))
        level = Level("graph", left, right, {}, {})
        # A default that callers of the first model cannot override counts as a constant in the second model too.
        versions = before.ir_version, min(before.ir_version, after.ir_version)
        for graph, numbers, version in zip(
            (before.graph, after.graph), (level.left_numbers, level.right_numbers), versions, strict=True
        ):
            self._table.start(graph, numbers, is_main=True, ir_version=version)
        inputs, outputs = interface or ({}, {value.name: value.name for value in after.graph.output})
        for name, other in inputs.items():
            if level.right_numbers.get(name) == self._table.of(("input", name)):  # and is no constant
                level.right_numbers[name] = self._table.of(("input", other))
        self._align(level, outputs)
        return self._found

    def _align(self, level: Level, outputs: Mapping[str, str]) -> None:
        """Number both sides and make the claims; `outputs` leads from outputs on the right to those on the left."""
        left, right = level.left, level.right
        for node in left.holder.node:
            self._table.add(node, level.left_numbers, left.opsets)
        self._found.levels.append(level)
        sites = self._sites_of(level)
        guesses = Guesses(self._table, self._dropped, self._names).of(level, outputs)
        guesses.update((name, name) for name in sites)
        producers = {name: (at, node) for at, node in enumerate(left.holder.node) for name in node.output if name}
        claims: dict[object, Claim] = {}
        computed: dict[str, int] = {}
        for at, node in enumerate(right.holder.node):
            differing = self._differing(level, node, guesses, sites)
            if not differing:
                continue
            computed |= {name: level.right_numbers[name] for _, name in differing}
            source = producers.get(differing[0][0])
            known = any(counterpart in sites for counterpart, _ in differing)
            descended = False
            if source is not None and not known and not self._everywhere:
                descended = self._descend(level, source, (at, node))
            for counterpart, name in differing:
                level.right_numbers[name] = level.left_numbers[counterpart]
                if not descended:
                    origin = producers.get(counterpart)
                    key = counterpart if origin is None else origin[0]
                    claim = claims.setdefault(key, Claim(level, [], sites.get(counterpart)))
                    claim.pairs.append((counterpart, name))
                    claim.is_output |= name in outputs
        if self._everywhere:
            self._descend_everywhere(level)
        for claim in claims.values():
            self._rewrites.note(claim, computed, self._table)
        self._found.claims += claims.values()
        for name, counterpart in outputs.items():
            if counterpart not in level.left_numbers or name not in level.right_numbers:
                continue  # nothing computes the value, and no runtime accepts such a model
            if level.left_numbers[counterpart] != level.right_numbers[name]:
                self._found.claims.append(Claim(level, [(counterpart, name)], is_output=True))

    def _differing(
        self, level: Level, node: NodeProto, guesses: Mapping[str, str], sites: Mapping[str, Site]
    ) -> list[tuple[str, str]]:
        """Number the outputs of a node of the second model; return those computed differently, with counterparts."""
        differing: list[tuple[str, str]] = []
        numbers = self._table.outputs(node, level.right_numbers, level.right.opsets)
        for name, number in zip(node.output, numbers, strict=True):
            if not name:
                continue
            level.right_numbers[name] = number
            counterpart = guesses.get(name)
            if counterpart is None or counterpart not in level.left_numbers:
                continue
            is_same = level.left_numbers[counterpart] == number
            site = sites.get(counterpart)
            if number in level.computed and not (is_same or site or self._names == "kept"):
                continue  # another value of the first model is computed in this way
            if not (is_same or site or self._names == "kept" or level.may_be_one(counterpart, name)):
                continue  # optimizers reuse a name for another value
            is_told = site is not None and self._rewrites.are_known
            if not is_same or is_told or _is_tried(site, level.left, counterpart, node):
                differing.append((counterpart, name))
            elif counterpart not in sites and not is_constant(node):
                self._found.shared += level.path == "graph"
        return differing

    def _sites_of(self, level: Level) -> dict[str, Site]:
        """The sites of the plan in this graph, by the names of their outputs, which a conversion keeps."""
        made = {name for node in level.right.holder.node for name in node.output}
        found: dict[str, Site] = {}
        for site in self._sites:
            if site.graph != level.path:
                continue
            nodes = level.left.holder.node
            position = site.raised_from[-1] if site.raised_from else site.index
            if position >= len(nodes):
                continue
            names = [name for name in nodes[position].output if name in made]
            if not names and site.count:
                self._found.missing.append(site)
            found.update(dict.fromkeys(names, site))
        return found

    # Graphs inside

    def _descend_everywhere(self, level: Level) -> None:
        """Align the graphs inside nodes that compute the same, or that were claimed to."""
        holding = [
            [(at, node) for at, node in enumerate(place.holder.node) if may_hold_graphs(node)]
            for place in (level.left, level.right)
        ]
        left: dict[int, list[tuple[int, NodeProto]]] = {}
        for at, node in holding[0]:
            left.setdefault(_first(node, level.left_numbers), []).append((at, node))
        for at, node in holding[1]:
            number = _first(node, level.right_numbers)
            others = left.get(number, [])
            # Nodes that compute the same are matched in order; the last one also with those that are left.
            source = None if not others else others.pop(0) if len(others) > 1 else others[0]
            if source is not None and self._descend(level, source, (at, node)):
                level.entered.add(number)

    def _descend(self, level: Level, source: tuple[int, NodeProto], result: tuple[int, NodeProto]) -> bool:
        """Align the graphs inside two nodes; return False if the nodes also differ in something else."""
        (left_at, left), (right_at, right) = source, result
        if (left.op_type, len(left.output)) != (right.op_type, len(right.output)):
            return False
        inner = list(subgraphs(left)), list(subgraphs(right))
        is_known = self._everywhere or (left.op_type in _CONTROL and left.domain in DEFAULT_DOMAINS)
        if not (inner[0] and is_known):
            return False
        if not self._everywhere and not self._alike_outside(level, left, right):
            return False
        shapes = [[(name, len(graph.input), len(graph.output)) for _, name, graph in graphs] for graphs in inner]
        if shapes[0] != shapes[1]:
            return False
        place = level.left
        never = place.inference.never_taken(place.key, left)
        for (number, name, graph), (other_number, _, other) in zip(*inner, strict=True):
            if name == never and not self._everywhere:
                continue  # this branch never runs
            path = inner_path(level.path, left, left_at, name)
            child = Level(
                path,
                level.left.inside(left_at, number),
                level.right.inside(right_at, other_number),
                inside(level.left_numbers),
                inside(level.right_numbers),
            )
            self._table.start(graph, child.left_numbers)
            self._table.start(other, child.right_numbers)
            outputs = {b.name: a.name for a, b in zip(graph.output, other.output, strict=True)}
            self._align(child, outputs)
        return True

    def _alike_outside(self, level: Level, left: NodeProto, right: NodeProto) -> bool:
        """Whether two nodes read the same values and have the same attributes, except graphs."""
        said = []
        for node, numbers, place in ((left, level.left_numbers, level.left), (right, level.right_numbers, level.right)):
            opset = place.opsets.get("" if node.domain in DEFAULT_DOMAINS else node.domain, 1)
            read = [numbers.get(name, -1) if name else -1 for name in node.input]
            is_of_today = node.op_type != "Scan" or opset >= _SCAN_OF_TODAY
            said.append((attributes(node, opset), read, is_of_today))
        return said[0] == said[1]


def _first(node: NodeProto, numbers: Numbers) -> int:
    """The number of the first output of a node."""
    return next((numbers[name] for name in node.output if name), -1)


def _is_tried(site: Site | None, place: Place, name: str, after: NodeProto) -> bool:
    """Whether to run a site that value numbering already proves: yes, unless the node only drops a default attribute.

    A reduction may have its axes as an attribute or an input, and runtimes have separate kernels for these.
    """
    before = None if site is None else place.producer(name)
    if site is None or before is None or site.count != 1 or after.op_type in REDUCTIONS:
        return site is not None
    return before.op_type != after.op_type or list(before.attribute) == list(after.attribute)
