"""Structural differences of two models; nothing is run, and names do not count. See `difference`."""

from __future__ import annotations

from reducelower.difference.changes import Change, Region
from reducelower.difference.facts import Fact
from reducelower.difference.matching import Side
from reducelower.difference.structure import Difference, changed_operators, difference

__all__ = ["Change", "Difference", "Fact", "Region", "Side", "changed_operators", "difference"]
