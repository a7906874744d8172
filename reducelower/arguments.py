"""Check the arguments of public functions: an error names the argument and says what to pass instead."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from reducelower.model.text import did_you_mean

__all__ = ["LARGEST_RANK", "check_arguments", "domain_versions", "integer", "name_set", "value_text"]

_LONGEST = 60

LARGEST_RANK = 1024
"""The highest rank accepted: a broken model may claim any number of axes, and each takes memory in a type."""


def check_arguments(**arguments: Any) -> None:
    """Check the arguments of a public function, given by their names.

    Args:
        arguments: values by the names of the arguments, which must be in `_CHECKS`. The several rule books of
            `raise_reductions` have the name ``books``.

    Raises:
        TypeError: an argument has the wrong type, such as a path instead of a model.
        ValueError: an argument has a wrong value, such as the name of an unknown rule book.
    """
    for name, value in arguments.items():
        _CHECKS[name](_REAL_NAMES.get(name, name), value)


def integer(name: str, value: Any, example: int) -> None:
    """Check that a number is a whole one.

    Raises:
        TypeError: it is not an int.
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an int such as {example}, not {value_text(value)}")


def _opset_version(name: str, value: Any) -> None:
    integer(name, value, 13)
    from reducelower.model.schemas import latest_opset

    if not 1 <= value <= latest_opset():
        raise ValueError(
            f"{name} must be from 1 to {latest_opset()}, the newest that the installed onnx knows; "
            f"there is no opset {value}"
        )


def name_set(name: str, value: Any) -> frozenset[str]:
    """A collection of names as a set.

    Raises:
        TypeError: it is a single string, which would be read as a collection of letters, or an item is not a string.
    """
    _names(name, value)
    names = tuple(value)  # now the items of an iterator can be checked
    _names(name, names)
    return frozenset(names)


def domain_versions(value: Any) -> frozenset[tuple[str, int]]:
    """Versions by domain, from a mapping or from pairs.

    Raises:
        TypeError: it is neither, or a version is not an int.
        ValueError: a version is negative, or the domain is one of ONNX's own.
    """
    try:
        pairs = [(domain, version) for domain, version in (value.items() if isinstance(value, Mapping) else value)]
    except (TypeError, ValueError):
        example = {"com.vendor": 1}
        raise TypeError(f"domains must map domains to versions, such as {example}, not {value_text(value)}") from None
    for domain, version in pairs:
        if not isinstance(domain, str):
            raise TypeError(f"domains must name domains, and one of them is {value_text(domain)}")
        integer(f"domains[{domain!r}]", version, 1)
        if version < 0:
            raise ValueError(f"domains[{domain!r}] must be a version, or 0 for none, not {version}")
        if domain in ("", "ai.onnx") or domain.startswith("ai.onnx."):
            raise ValueError(f"domains are those of vendors; {domain!r} is ONNX's own, whose version `opset` says")
    return frozenset(pairs)


def _names(name: str, value: Any) -> None:
    if isinstance(value, str | bytes):
        raise TypeError(f"{name} must be a collection of names such as [{value!r}], not the single string {value!r}")
    if value is None:
        raise TypeError(f"{name} must be a collection of names such as ['ReduceL2'], not None; leave it out for none")
    if not isinstance(value, Iterable):
        raise TypeError(f"{name} must be a collection of names such as ['ReduceL2'], not {value_text(value)}")
    # The items of an iterator are checked where it is used.
    for item in value if isinstance(value, Collection) else ():
        if not isinstance(item, str):
            raise TypeError(f"{name} must hold strings, and one of its items is {value_text(item)}")


def _expected(name: str, value: Any) -> None:
    if value is not None and (isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable)):
        raise TypeError(f"{name} must be the outputs in graph order, such as [array], not {value_text(value)}")


def _flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {value_text(value)}")


def _seed(name: str, value: Any) -> None:
    integer(name, value, 0)
    if value < 0:
        raise ValueError(f"{name} must not be negative, and it is {value}")


def _provider(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be the name of an execution provider such as 'cuda', not {value_text(value)}")


def _runtimes(name: str, value: Any) -> None:
    _names(name, value)
    if not value:
        raise ValueError(f"{name} must name a runtime, such as ['onnxruntime']")


def _limit(name: str, value: Any, unit: str, least: str, is_allowed: Callable[[float], bool]) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, Real)):
        raise TypeError(f"{name} must be a number of {unit}, not {value_text(value)}")
    if value is not None and not is_allowed(float(value)):
        raise ValueError(f"{name} must be a number of {unit} {least}, or None for no limit, not {value}")


def _tolerances(name: str, value: Any) -> None:
    _mapping(name, value, {"float": "a Tolerance"})
    for key, item in (value or {}).items():
        if not hasattr(item, "ulp"):  # not a Tolerance, which is not imported just for this check
            raise TypeError(f"{name}[{key!r}] must be a reducelower.verification.Tolerance, not {value_text(item)}")


def _target(name: str, value: Any) -> None:
    if not hasattr(value, "without_types"):  # not a Target, which is not imported just for this check, like Plan below
        raise TypeError(f"{name} must be a reducelower.Target such as Target(13), not {value_text(value)}")


def _plan(name: str, value: Any) -> None:
    if value is not None and not hasattr(value, "source_opset"):
        raise TypeError(f"{name} must be a reducelower.Plan, as legalize gives it, not {value_text(value)}")


def _rules(name: str, value: Any) -> None:
    if isinstance(value, str | os.PathLike):
        from reducelower.rulebook import shipped_books

        known = sorted(shipped_books())
        if value in known or Path(value).is_dir():
            return
        raise ValueError(
            f"{name} must be a rule book ({', '.join(known)}) or a folder of rules, and {os.fspath(value)!r} is neither"
            f"{did_you_mean(str(value), known)}"
        )
    if not hasattr(value, "rules"):  # not a RuleBook, which is not imported just for this check
        raise TypeError(f"{name} must be the name of a rule book, a folder or a RuleBook, not {value_text(value)}")


def _books(name: str, value: Any) -> None:
    if isinstance(value, str | os.PathLike) or not isinstance(value, Iterable):
        raise TypeError(f"{name} must be a collection of rule books such as ['stable'], not {value_text(value)}")


def _ir_version(name: str, value: Any) -> None:
    if isinstance(value, str) and value in ("auto", "keep"):
        return
    from onnx import IR_VERSION

    if isinstance(value, bool) or not isinstance(value, Integral):
        raise (ValueError if isinstance(value, str) else TypeError)(
            f"{name} must be 'auto', 'keep' or an int such as 8, not {value_text(value)}"
        )
    if not 3 <= int(value) <= IR_VERSION:
        raise ValueError(
            f"{name} must be from 3, the oldest in which models state their opset version, to {IR_VERSION}, the newest "
            f"that the installed onnx knows, not {value}"
        )


def _element_types(name: str, value: Any) -> None:
    _mapping(name, value, {"y": "float32"})
    from reducelower.model.schemas import parse_element_type

    for key, item in (value or {}).items():
        if not isinstance(item, str):
            example = "the name of an element type such as 'float32'"
            raise TypeError(f"{name}[{key!r}] must be {example}, not {value_text(item)}")
        try:
            parse_element_type(item)
        except ValueError as error:
            raise ValueError(f"{name}[{key!r}]: {error}") from None


def _ranks(name: str, value: Any) -> None:
    _sizes(name, value)
    for key, item in (value or {}).items():
        if item > LARGEST_RANK:
            raise ValueError(f"{name}[{key!r}] must be at most {LARGEST_RANK}, and it is {item}")


def _sizes(name: str, value: Any) -> None:
    _mapping(name, value, {"y": 3})
    for key, item in (value or {}).items():
        integer(f"{name}[{key!r}]", item, 3)
        if item < 0:
            raise ValueError(f"{name}[{key!r}] must not be negative, and it is {item}")


def _mapping(name: str, value: Any, example: Mapping[str, object]) -> None:
    if value is not None and not isinstance(value, Mapping):
        raise TypeError(f"{name} must map names of values, such as {example}, not {value_text(value)}")


def _base_dir(name: str, value: Any) -> None:
    if value is not None and not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name} must be the path of a folder, not {value_text(value)}")


_CHECKS: Mapping[str, Callable[[str, Any], None]] = {
    "target": _target,
    "target_version": _opset_version,
    "plan": _plan,
    "ops": lambda name, value: None if value is None else _names(name, value),
    "without": _names,
    "without_types": _names,
    "rules": _rules,
    "books": _books,
    "ir_version": _ir_version,
    "element_types": _element_types,
    "ranks": _ranks,
    "base_dir": _base_dir,
    "assume_nonempty": _flag,
    "freeze_defaults": _flag,
    "validate": _flag,
    "inputs": lambda name, value: _mapping(name, value, {"x": "an array"}),
    "dims": _sizes,
    "set_sizes": _sizes,
    "runtimes": _runtimes,
    "tolerances": _tolerances,
    "budget": lambda name, value: _limit(name, value, "seconds", "from 0 on", lambda seconds: seconds >= 0),
    "memory": lambda name, value: _limit(name, value, "GB", "above 0", lambda size: size > 0),
    "expected": _expected,
    "seed": _seed,
    "provider": _provider,
}


_REAL_NAMES = {"books": "rules"}
"""The argument's real name, if its check has another one."""


def value_text(value: Any) -> str:
    """A value for an error message: its type, and its text if that is short."""
    text = repr(value)
    kind = type(value).__name__
    if value is None:
        return "None"
    return f"{kind} {text}" if len(text) <= _LONGEST and "\n" not in text else f"an object of type {kind}"
