"""How far the two sides of a rewrite are apart: how many sets of inputs have which largest distance, in ULP."""

from __future__ import annotations

from collections.abc import Sequence

from reducelower.verification.result import INFINITE, SiteVerification

__all__ = ["of_site", "ranges"]

_BOUNDS = (0, 1, 2, 4, 8, 16, 64, 256, 1024, 2**20)


def of_site(site: SiteVerification) -> list[tuple[str, int]]:
    """That of a rewrite that was verified; nothing if no number differs."""
    return ranges(site.ulps) if any(site.ulps) else []


def ranges(ulps: Sequence[int]) -> list[tuple[str, int]]:
    """Each range of distances that occurs, and how often it does; infinite ones last."""
    found = [0] * (len(_BOUNDS) + 2)
    for distance in ulps:
        at = next((at for at, bound in enumerate(_BOUNDS) if distance <= bound), len(_BOUNDS))
        found[-1 if distance == INFINITE else at] += 1
    names = [_name(at) for at in range(len(_BOUNDS))]
    return [(name, count) for name, count in zip([*names, "more", "∞"], found, strict=True) if count]


def _name(at: int) -> str:
    low, high = _BOUNDS[at - 1] + 1 if at else 0, _BOUNDS[at]
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
