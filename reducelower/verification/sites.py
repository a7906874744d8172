"""Verifies every rewritten site by itself; sites that are the same up to names are verified once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from onnx import ModelProto

from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.numerics.tolerance import Tolerance
from reducelower.plan import Plan, Site
from reducelower.verification.check import check, describe
from reducelower.verification.pairs import Pair, cut
from reducelower.verification.places import find_places
from reducelower.verification.result import SiteVerification
from reducelower.verification.source import CannotRunError

__all__ = ["verify_sites"]


@dataclass
class _Sites:
    """Sites of one signature and one set of declared sizes; a reason in place of the pair when it cannot be cut."""

    pair: Pair | str
    sites: list[Site]


def verify_sites(
    before: ModelProto,
    after: ModelProto,
    plan: Plan,
    *,
    seed: int = 0,
    tolerances: Mapping[str, Tolerance] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> tuple[SiteVerification, ...]:
    """Run the original node and its replacement as two small models on the same inputs, per distinct rewrite.

    Sites count as the same when operator, attributes, constant inputs, element types, ranks, rule and replacement are.
    A Reduce operator goes through seeded values in several magnitudes, the extremes of its element type, NaN and
    infinities, and shapes with sizes 0 and 1; where the sides differ, its value in extended precision decides. Other
    operators go through gentler values and are compared by `tolerances`.

    Args:
        before: the source model.
        after: the converted model.
        plan: what the conversion did.
        seed: seed for random values.
        tolerances: by ONNX element type, for operators other than Reduce.
        on_progress: called with (done, total) distinct rewrites.

    Returns:
        One finding per distinct rewrite, in graph order of the first site of each.
    """
    places = find_places(before, after, {site.graph for site in plan.sites})
    groups: dict[object, dict[object, _Sites]] = {}
    for site in plan.sites:
        key: object
        pair: Pair | str
        try:
            if site.graph not in places:
                raise CannotRunError("its graph was not found in both models")
            pair = cut(site, *places[site.graph])
            key, sizes = pair.key, pair.data_dims
        except CannotRunError as error:
            pair, sizes = error.reason, None
            key = (site.op_type, site.rule, error.reason)
        groups.setdefault(key, {}).setdefault(sizes, _Sites(pair, [])).sites.append(site)
    found: list[SiteVerification] = []
    for done, group in enumerate(groups.values()):
        found += _check_group(list(group.values()), seed, tolerances)
        if on_progress is not None:
            on_progress(done + 1, len(groups))
    return tuple(found)


def _check_group(group: list[_Sites], seed: int, tolerances: Mapping[str, Tolerance] | None) -> list[SiteVerification]:
    """One finding for sites that differ in declared sizes only, unless their replacement rests on these."""
    nodes = tuple((site.graph, site.node) for item in group for site in item.sites)
    pair = group[0].pair
    if isinstance(pair, str):
        site = group[0].sites[0]
        return [SiteVerification(site.op_type, site.rule, site.op_type, nodes, "not run", pair)]
    finding = replace(_checked(pair, seed, tolerances), nodes=nodes)
    if finding.ok or not pair.is_reduction:
        return [finding]
    apart = [_check_declared(item, finding, seed, tolerances) for item in group]
    return apart if any(item.ok for item in apart) else [finding]


_REMEMBERED = 4096
_equal: dict[object, SiteVerification] = {}
"""What was found equal in this process: models of one folder have most of their rewrites in common.

Only what is equal is kept, since the rest is told with names and inputs of the model it was found in.
"""


def _checked(pair: Pair, seed: int, tolerances: Mapping[str, Tolerance] | None) -> SiteVerification:
    """The finding of a check, which is not repeated for a rewrite that was found equal under the same conditions."""
    conditions = _conditions(pair, seed, tolerances)
    known = _equal.get(conditions)
    if known is not None:
        return replace(known, signature=describe(pair))  # which gives attributes in the order in which they stand
    found = check(pair, seed, tolerances)
    if conditions is not None and found.status == "equal":
        if len(_equal) >= _REMEMBERED:
            _equal.clear()
        _equal[conditions] = found
    return found


def _conditions(pair: Pair, seed: int, tolerances: Mapping[str, Tolerance] | None) -> object:
    """Everything that a check goes by but for names; None where it goes by functions of its model too."""
    in_function = pair.before.function is not None or pair.after.function is not None
    if in_function or any(node.domain not in DEFAULT_DOMAINS for node in (pair.node, *pair.replacement)):
        return None
    versions = pair.before.model.ir_version, pair.after.model.ir_version
    sizes = tuple(item.dims for item in pair.inputs)
    return pair.key, sizes, pair.is_raised, versions, seed, tuple(sorted((tolerances or {}).items()))


def _check_declared(
    item: _Sites, finding: SiteVerification, seed: int, tolerances: Mapping[str, Tolerance] | None
) -> SiteVerification:
    nodes = tuple((site.graph, site.node) for site in item.sites)
    assert isinstance(item.pair, Pair)
    if not any(isinstance(dim, int) for dim in item.pair.data_dims or ()):
        return replace(finding, nodes=nodes)
    declared = check(item.pair, seed, tolerances, declared=True)
    return replace(declared if declared.status != "not run" else finding, nodes=nodes)
