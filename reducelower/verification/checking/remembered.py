"""Checks distinct regions; one that was found equal is not checked again under the same conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from reducelower.model.schemas import DEFAULT_DOMAINS
from reducelower.numerics.tolerance import Tolerance
from reducelower.verification.checking.check import check
from reducelower.verification.checking.tally import describe
from reducelower.verification.feeding.nonempty import feeds_no_empty, never_zero
from reducelower.verification.judging.runs import Clock
from reducelower.verification.regions.pairs import Pair
from reducelower.verification.result import SiteVerification
from reducelower.verification.running.memory import allowed_bytes
from reducelower.verification.running.providers import chosen_provider

__all__ = ["Checker", "forget"]

_REMEMBERED = 4096
_equal: dict[object, SiteVerification] = {}
"""What was found equal in this process: models of one folder have most of their rewrites in common.

Only what is equal is kept, since the rest is told with names and inputs of the model it was found in.
"""


def forget() -> None:
    """Check everything again from now on."""
    _equal.clear()


@dataclass(frozen=True)
class Checker:
    """Checks regions with one seed, and with tolerances by element type for operators other than Reduce.

    Once the clock is over, a check ends in an OutOfTimeError.
    """

    seed: int
    tolerances: Mapping[str, Tolerance] | None
    clock: Clock = field(default_factory=lambda: Clock(None))

    def check(self, pair: Pair, others: Sequence[Pair] = (), *, declared: bool = False) -> SiteVerification:
        """What a region gives by itself; the arguments are those of `check.check`."""
        conditions = None if declared else self._conditions([pair, *others])
        known = _equal.get(conditions)
        if known is not None:
            return replace(known, signature=describe(pair))  # which gives attributes in the order in which they stand
        self.clock.check()
        found = check(pair, self.seed, self.tolerances, declared=declared, others=others, clock=self.clock)
        if conditions is not None and found.status == "equal":
            if len(_equal) >= _REMEMBERED:
                _equal.clear()
            _equal[conditions] = found
        return found

    def _conditions(self, pairs: Sequence[Pair]) -> object:
        """Everything that a check depends on except names; None where it goes by functions of its model too."""
        pair = pairs[0]
        in_function = pair.before.function is not None or pair.after.function is not None
        if in_function or any(node.domain not in DEFAULT_DOMAINS for node in (*pair.nodes, *pair.replacement)):
            return None
        versions = pair.before.model.ir_version, pair.after.model.ir_version
        sizes = tuple(tuple(item.dims for item in each.inputs) for each in pairs)
        tolerances = tuple(sorted((self.tolerances or {}).items()))
        full = never_zero() & {dim for dims in sizes for each in dims for dim in each or () if isinstance(dim, str)}
        empties = feeds_no_empty(), full
        where = chosen_provider(), allowed_bytes()
        return where, empties, pair.key, sizes, pair.is_raised, versions, self.seed, tolerances
