"""Several runtimes as one: a model that is right on it is right on all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from reducelower.model.schemas import latest_opset
from reducelower.runtimes.errors import TargetError
from reducelower.runtimes.ranges import Ranges
from reducelower.runtimes.runtime import Runtime

__all__ = ["combined"]


def combined(runtimes: Sequence[Runtime]) -> Runtime:
    """The runtime that reads what all of them read and gets wrong what any of them does.

    Raises:
        TargetError: there is no opset version that all of them read.
    """
    members = list(dict.fromkeys(runtimes))
    if len(members) == 1:
        return members[0]
    reads = reduce(Ranges.intersection, (each.reads for each in members))
    common = [opset for opset in range(1, latest_opset() + 1) if opset in reads]
    if not common:
        known = "; ".join(f"{each} reads opsets {each.reads}" for each in members)
        raise TargetError(f"no opset version suits all of them: {known}", " and ".join(each.name for each in members))
    wanted = min(each.prefer for each in members)
    limits = [each.ir_version for each in members if each.ir_version is not None]
    return Runtime(
        name="+".join(each.name for each in members),
        version="",
        about=f"A model that is right on {' and '.join(map(str, members))}.",
        reads=reads,
        prefer=min(common, key=lambda opset: (abs(opset - wanted), opset)),
        facts=tuple(replace(fact, says=f"({each}) {fact.says}") for each in members for fact in each.facts),
        ir_version=min(limits, default=None),
        rules=next((each.rules for each in members if each.rules), ""),
        members=tuple(members),
    )
