"""Structural differences of two models; nothing is run, and names do not count. See `difference`."""

from __future__ import annotations

from reducelower.difference.changes import Change
from reducelower.difference.structure import Difference, Fact, difference

__all__ = ["Change", "Difference", "Fact", "difference"]
