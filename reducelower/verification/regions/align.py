"""Aligns two models: which values are the same by construction, and which must be shown to be equal.

One table numbers the values of both (`numbering`), with guesses for the second: a value that has a counterpart in the
first, by name or because a plan says so, takes the number of its counterpart. If it is computed differently, it becomes
a *claim* that the two are equal. Names may mislead: if a claim fails, the models are aligned again without names, so
that the claims become larger. Outputs of the models are always claims, unless they are the same by construction.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from onnx import ModelProto, NodeProto

from reducelower.model.graph import inner_path, subgraphs
from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.plan import Plan, Site
from reducelower.types import Inference
from reducelower.verification.operators import of_kind
from reducelower.verification.regions.claims import Alignment, Claim, Level, Rewrites
from reducelower.verification.regions.numbering import Table, attributes
from reducelower.verification.regions.places import Place

__all__ = ["align", "start"]

_CONTROL = of_kind("control")
_SCAN_OF_TODAY = 9  # the version before took a batch axis


def align(
    before: ModelProto,
    after: ModelProto,
    plan: Plan | None,
    *,
    inferences: tuple[Inference, Inference],
    by_name: bool = True,
) -> Alignment:
    """Align two models.

    Values of the same name are claimed to be equal; the sites of a plan always become claims.

    Args:
        before, after: the models, without local functions (`inlined`).
        plan: what a conversion did; None if the models are not related.
        inferences: what is known about the values of both models.
        by_name: whether values of the same name count as counterparts; outputs of the models always do.
    """
    sites = () if plan is None else plan.sites
    applied = plan.steps[0].applied if plan is not None and len(plan.steps) == 1 else None
    level = Level("graph", Place(before, inferences[0]), Place(after, inferences[1]))
    aligner = _Aligner(sites, Rewrites(applied), by_name)
    start(aligner.table, level.left, level.right)
    aligner.run(level, {value.name: value.name for value in after.graph.output})
    return aligner.found


def start(table: Table, left: Place, right: Place, inputs: Mapping[str, str] | None = None) -> None:
    """Number the inputs and constants of two main graphs.

    `inputs` leads from inputs on the right to those on the left, if they do not correspond by name. A default that
    callers of the first model cannot override counts as a constant in the second model too.
    """
    version = left.model.ir_version
    for place, at_most in ((left, version), (right, min(version, right.model.ir_version))):
        table.start(place.holder, place.numbers, is_main=True, ir_version=at_most)
    for name, other in (inputs or {}).items():
        if right.numbers.get(name) == table.of(("input", name)):  # and is no constant
            right.numbers[name] = table.of(("input", other))


@dataclass
class _Aligner:
    _sites: Sequence[Site]
    _rewrites: Rewrites
    _by_name: bool
    table: Table = field(default_factory=Table)
    found: Alignment = field(default_factory=Alignment)

    def run(self, level: Level, outputs: Mapping[str, str]) -> None:
        """Number both sides and make the claims; `outputs` leads from outputs on the right to those on the left."""
        left, right = level.left, level.right
        for node in left.holder.node:
            self.table.add(node, left.numbers, left.opsets)
        self.found.levels.append(level)
        sites = self._sites_of(level)
        named = left.positions.keys() & right.positions.keys() if self._by_name else ()
        guesses = {**dict(zip(named, named, strict=True)), **outputs, **{name: name for name in sites}}
        claims: dict[int | str, Claim] = {}
        computed: dict[str, int] = {}
        for node in right.holder.node:
            for counterpart, name in self._differing(level, node, guesses, sites):
                if not (counterpart in sites or name in outputs or _are_of_one_type(level, counterpart, name)):
                    continue
                computed[name] = right.numbers[name]
                right.numbers[name] = left.numbers[counterpart]
                at = left.positions.get(counterpart, counterpart)
                claim = claims.setdefault(at, Claim(level, [], sites.get(counterpart)))
                claim.pairs.append((counterpart, name))
                claim.is_output |= name in outputs
        self._enter(level, claims)
        for claim in claims.values():
            self._rewrites.note(claim, computed, self.table)
        self.found.claims += claims.values()
        for name, counterpart in outputs.items():
            if counterpart not in left.numbers or name not in right.numbers:
                continue  # nothing computes the value, and no runtime accepts such a model
            if left.numbers[counterpart] != right.numbers[name]:
                self.found.claims.append(Claim(level, [(counterpart, name)], is_output=True))

    def _differing(
        self, level: Level, node: NodeProto, guesses: Mapping[str, str], sites: Mapping[str, Site]
    ) -> list[tuple[str, str]]:
        """Number the outputs of a node of the second model; return those to claim, with counterparts.

        These are computed differently, or named by the plan: runtimes may have other kernels for what means the same.
        """
        left, right = level.left.numbers, level.right.numbers
        differing: list[tuple[str, str]] = []
        for name, number in zip(node.output, self.table.add(node, right, level.right.opsets), strict=True):
            counterpart = guesses.get(name, "")
            is_other = counterpart in left and left[counterpart] != number
            # A value that the first model has under another name is none of this name.
            if counterpart in sites or (is_other and (self._rewrites.are_known or number not in level.computed)):
                differing.append((counterpart, name))
        return differing

    def _sites_of(self, level: Level) -> dict[str, Site]:
        """The sites of the plan in this graph, by the names of their outputs, which a conversion keeps."""
        made, nodes = level.right.positions, level.left.holder.node
        found: dict[str, Site] = {}
        for site in self._sites:
            position = site.raised_from[-1] if site.raised_from else site.index
            if site.graph != level.path or position >= len(nodes):
                continue
            names = [name for name in nodes[position].output if name and name in made]
            found.update(dict.fromkeys(names, site))
        return found

    # Graphs inside

    def _enter(self, level: Level, claims: dict[int | str, Claim]) -> None:
        """Align the graphs inside nodes whose results are claimed to be equal, in place of these claims."""
        for at, claim in list(claims.items()):
            other = level.right.positions.get(claim.pairs[0][1])
            if claim.site is not None or isinstance(at, str) or other is None:
                continue
            of_both = all(name in level.right.holder.node[other].output for _, name in claim.pairs)
            if of_both and self._run_inside(level, at, other):
                del claims[at]

    def _run_inside(self, level: Level, left_at: int, right_at: int) -> bool:
        """Align the graphs inside two nodes; return False if the nodes also differ in something else."""
        left, right = level.left.holder.node[left_at], level.right.holder.node[right_at]
        is_known = left.op_type in _CONTROL and left.domain in DEFAULT_DOMAINS and right.domain in DEFAULT_DOMAINS
        if not is_known or len(left.output) != len(right.output):
            return False
        if _said_outside(left, level.left) != _said_outside(right, level.right):
            return False
        inner = list(subgraphs(left)), list(subgraphs(right))
        shapes = [[(name, len(graph.input), len(graph.output)) for _, name, graph in graphs] for graphs in inner]
        if shapes[0] != shapes[1]:
            return False
        never = level.left.inference.never_taken(level.left.key, left)
        for (number, name, graph), (other_number, _, other) in zip(*inner, strict=True):
            if name == never:
                continue  # this branch never runs
            places = level.left.inside(left_at, number), level.right.inside(right_at, other_number)
            for place in places:
                self.table.start(place.holder, place.numbers)
            outputs = {b.name: a.name for a, b in zip(graph.output, other.output, strict=True)}
            self.run(Level(inner_path(level.path, left, left_at, name), *places), outputs)
        return True


def _are_of_one_type(level: Level, left: str, right: str) -> bool:
    """Whether values may have the same element type, as far as these are known."""
    types = level.left.type_of(left)[0], level.right.type_of(right)[0]
    return 0 in types or types[0] == types[1]


def _said_outside(node: NodeProto, place: Place) -> Hashable:
    """The operator of a node, the values that it reads, and its attributes, except graphs; the version may differ."""
    opset = place.opsets.get("", 1)
    read = tuple(place.numbers.get(name, -1) if name else -1 for name in node.input)
    return node.op_type, attributes(node, opset), read, node.op_type != "Scan" or opset >= _SCAN_OF_TODAY
