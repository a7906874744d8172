"""How the nodes of the conformance cases of the Reduce operators are written."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FORMS", "RANKS", "TYPED_FORMS", "Form", "brief"]


@dataclass(frozen=True)
class Form:
    """How a node is written, in the terms of `Features`, over which axes."""

    axes: str = "absent"
    values: tuple[int, ...] = ()
    keepdims: str = "unset"
    noop: str = "unset"

    def __str__(self) -> str:
        axes = f"{self.axes}({','.join(map(str, self.values))})" if self.values else self.axes
        noop = "" if self.noop == "unset" else f" noop={self.noop}"
        return f"axes={axes} keepdims={self.keepdims}{noop}"


def brief(forms: list[Form]) -> list[Form]:
    """The first form for each way to write the axes, and each way to write keepdims for one axis and for all."""
    kept: dict[object, Form] = {}
    for form in forms:
        keepdims = form.keepdims if form.values == (1,) or not form.values else ""
        kept.setdefault((form.axes, form.values, form.noop, keepdims), form)
    return list(kept.values())


def _forms(given: tuple[str, ...], axes_lists: tuple[tuple[int, ...], ...]) -> list[Form]:
    """Axes forms and lists with each way to write keepdims, the plainest first; absent axes too."""
    found = [Form(given[0], (1,), "0")]
    for form in given:
        for values in axes_lists:
            found += [Form(form, values, keepdims) for keepdims in ("0", "1", "unset")]
    found += [Form("absent", (), keepdims) for keepdims in ("0", "1", "unset")]
    return list(dict.fromkeys(found))


def _input_forms() -> list[Form]:
    found = _forms(("initializer",), ((1,), (-1,), (0, 2), (0, 1, 2)))
    for form in ("constant", "dynamic"):
        found += [Form(form, (1,), keepdims) for keepdims in ("0", "1", "unset")]
        found.append(Form(form, (-3, 2), "1"))
    found += [Form("empty", (), "0"), Form("empty", (), "1"), Form("omitted", (), "0")]
    for form in ("absent", "empty"):
        found += [Form(form, (), keepdims, "1") for keepdims in ("0", "1", "unset")]
        found.append(Form(form, (), "0", "0"))
    found.append(Form("omitted", (), "1", "1"))
    # noop_with_empty_axes means nothing where axes are given.
    return [
        *found,
        Form("initializer", (1,), "0", "1"),
        Form("initializer", (0, 2), "1", "0"),
        Form("constant", (1,), "1", "1"),
        Form("dynamic", (1,), "1", "1"),
    ]


FORMS = {
    False: _forms(("attribute",), ((1,), (-1,), (0, 2), (-3, 1), (0, 1, 2))),
    True: _input_forms(),
}
"""How a node is written, by whether axes are an input."""

TYPED_FORMS = {
    False: (Form("attribute", (1,), "1"), Form("absent", (), "0")),
    True: (Form("initializer", (1,), "1"), Form("absent", (), "0"), Form("absent", (), "1", "1")),
}

RANKS = (
    ((), Form("absent", (), "0")),
    ((5,), Form("attribute", (0,), "0")),
    ((5,), Form("attribute", (0,), "1")),
    ((3, 4), Form("attribute", (0,), "0")),
    ((3, 4), Form("attribute", (1,), "1")),
    ((2, 3, 2, 2), Form("attribute", (1,), "0")),
    ((2, 3, 2, 2), Form("attribute", (2, 3), "1")),
    ((2, 3, 2, 2), Form("absent", (), "0")),
    ((2, 3, 2, 4), Form("attribute", (1, 2, 3), "1")),
    ((2, 3, 2, 3, 2), Form("attribute", (1, 2, 4), "1")),
)
"""Ranks other than three; the form in which axes are given depends on the opset version."""
