"""Draw the distance between the two sides of a rewrite: how many sets of inputs have which ULP distance."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from reducelower.verification.result import INFINITE, SiteVerification

__all__ = ["draw", "of_site"]

_BOUNDS = (0, 1, 2, 4, 8, 16, 64, 256, 1024, 2**20)
_ALWAYS = 3  # buckets that are shown even when empty, so that plots compare
_BAR, _STEP, _HEIGHT, _TOP, _LEFT = 34, 46, 84, 20, 10


def of_site(site: SiteVerification) -> Markup | None:
    """The plot of a rewrite that was verified; None if nothing differs."""
    return draw(site.ulps) if any(site.ulps) else None


def draw(ulps: Sequence[int]) -> Markup:
    """A bar per range of ULP distances."""
    finite = [distance for distance in ulps if distance != INFINITE]
    counts = [0] * (len(_BOUNDS) + 1)
    for distance in finite:
        counts[next((at for at, bound in enumerate(_BOUNDS) if distance <= bound), len(_BOUNDS))] += 1
    last = max([at for at, count in enumerate(counts) if count] + [_ALWAYS - 1])
    counts = counts[: last + 1]
    names = [_name(at) for at in range(len(counts))]
    if len(finite) < len(ulps):
        counts.append(len(ulps) - len(finite))
        names.append("∞")
    highest = max(counts) or 1
    bars = Markup("").join(
        _bar(at, name, count, _HEIGHT * count / highest)
        for at, (name, count) in enumerate(zip(names, counts, strict=True))
    )
    words = ", ".join(f"{name} ULP: {count}" for name, count in zip(names, counts, strict=True) if count)
    width, height = 2 * _LEFT + _STEP * len(counts), _TOP + _HEIGHT + 34
    return Markup(
        '<svg class="plot" role="img" xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" '
        'viewBox="0 0 {w} {h}">'
        "<title>Sets of inputs by largest distance. {words}</title>"
        '<path class="axis" d="M{l} {y}h{r}"/>{bars}'
        '<text class="axis" x="{m}" y="{b}">largest distance, ULP</text></svg>'
    ).format(
        w=width,
        h=height,
        words=words,
        l=_LEFT,
        y=_TOP + _HEIGHT,
        r=width - 2 * _LEFT,
        bars=bars,
        m=width / 2,
        b=height - 3,
    )


def _bar(at: int, name: str, count: int, height: float) -> Markup:
    x = _LEFT + _STEP * at + (_STEP - _BAR) / 2
    base = _TOP + _HEIGHT
    height = max(height, 2.0) if count else 0.0
    return Markup(
        '<rect x="{:.1f}" y="{:.1f}" width="{}" height="{:.1f}"/><text x="{m:.1f}" y="{:.1f}">{}</text>'
        '<text class="axis" x="{m:.1f}" y="{}">{}</text>'
    ).format(x, base - height, _BAR, height, base - height - 4, count or "", base + 14, name, m=x + _BAR / 2)


def _name(at: int) -> str:
    if at == len(_BOUNDS):
        return f">{_short(_BOUNDS[-1])}"
    low = _BOUNDS[at - 1] + 1 if at else 0
    return str(low) if low == _BOUNDS[at] else f"{_short(low)}–{_short(_BOUNDS[at])}"


def _short(number: int) -> str:
    return str(number) if number < 1024 else f"{number // 1024}k" if number < 2**20 else f"{number // 2**20}M"
