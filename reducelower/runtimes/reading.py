"""From a target file to a `Runtime`, every mistake in it told with its place."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from reducelower.model.schemas import latest_opset, parse_element_type, versions
from reducelower.model.suggestions import did_you_mean
from reducelower.runtimes.errors import TargetError
from reducelower.runtimes.facts import ANY_OPERATOR, AXES_FORMS, OUTCOMES, Evidence, Fact, Is, When
from reducelower.runtimes.ranges import Ranges
from reducelower.runtimes.runtime import Runtime

__all__ = ["SUFFIX", "load_runtime", "read_runtime", "shipped_names"]

SUFFIX = ".toml"

Found = TypeVar("Found")


def shipped_names() -> tuple[str, ...]:
    """The names of the targets that come with the package, sorted."""
    return tuple(sorted(path.stem for path in _folder().glob(f"*{SUFFIX}")))


def load_runtime(name: str | os.PathLike[str]) -> Runtime:
    """The runtime of a shipped target by its name, or of a file ending in ``.toml``.

    A name may be followed by ``@`` and a version that the file has an entry for, such as ``onnxruntime@1.10``.

    Raises:
        TargetError: there is no such target, or the file is not one.
    """
    text = os.fspath(name)
    base, at, version = text.partition("@") if not text.endswith(SUFFIX) else (text, "", "")
    path = Path(base) if base.endswith(SUFFIX) else _folder() / f"{base}{SUFFIX}"
    if not base.endswith(SUFFIX) and base not in shipped_names():
        known = ", ".join(shipped_names())
        raise TargetError(f"there is no such target{did_you_mean(base, shipped_names())}; there are {known}", text)
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is not UTF-8 text"
        raise TargetError(f"cannot be read: {reason}", str(path)) from None
    return _cached(content, str(path) if base.endswith(SUFFIX) else base, str(path.parent), version if at else None)


@cache
def _cached(content: str, source: str, folder: str, version: str | None) -> Runtime:
    return read_runtime(content, source, folder=folder, version=version)


def read_runtime(
    content: str, source: str = "target", *, folder: str | os.PathLike[str] = "", version: str | None = None
) -> Runtime:
    """Read the text of a target file.

    Args:
        content: TOML.
        source: what errors call the file.
        folder: folder that a relative path in ``extends`` starts from.
        version: one of the versions that the file lists; None for the one its facts are about.

    Raises:
        TargetError: the text is no TOML, or says something a target file cannot say.
    """
    return _Reader(content, source, Path(folder)).runtime(version)


@cache
def _folder() -> Path:
    here = Path(__file__).resolve().parent.parent
    inside = here / "rules" / "targets"
    return inside if inside.is_dir() else here.parent / "rules" / "targets"


def _parsed(content: str, source: str) -> dict[str, Any]:
    try:
        return dict(tomllib.loads(content))
    except ValueError as error:
        raise TargetError(f"is not TOML: {error}", source) from None


class _Reader:
    """One file."""

    def __init__(self, content: str, source: str, folder: Path) -> None:
        self.source = source
        self.folder = folder
        self.top = _parsed(content, source)

    def runtime(self, version: str | None) -> Runtime:
        top = self.top
        self._keys(top, "", {"extends", "runtime", "opsets", "versions", "fact"})
        base = self._base(self._get(top, "", "extends", str, None))
        about = self._get(top, "", "runtime", dict, {})
        self._keys(about, "runtime", {"name", "version", "about", "rules"})
        opsets = self._get(top, "", "opsets", dict, {})
        self._keys(opsets, "opsets", {"reads", "prefer", "ir_version"})
        reads = self._ranges(opsets, "opsets", "reads") or (base and base.reads)
        prefer = self._get(opsets, "opsets", "prefer", int, base and base.prefer)
        name = self._get(about, "runtime", "name", str, base and base.name)
        if not name:
            raise self._error("is missing; write the name of the runtime", "runtime.name")
        if not reads:
            raise self._error('is missing; write the opset versions it reads, such as "7-21"', "opsets.reads")
        entries = self._get(top, "", "fact", list, [])
        facts = [self._fact(entry, f"fact {number}") for number, entry in enumerate(entries, start=1)]
        runtime = Runtime(
            name,
            self._get(about, "runtime", "version", str, base.version if base else ""),
            self._get(about, "runtime", "about", str, base.about if base else ""),
            reads,
            prefer if prefer is not None else _newest(reads),
            (*(base.facts if base else ()), *facts),
            self._get(opsets, "opsets", "ir_version", int, base and base.ir_version),
            self._rules(about, base.rules if base else ""),
        )
        runtime = self._of_version(runtime, version)
        if runtime.prefer not in runtime.reads:
            raise self._error(f"is {runtime.prefer}, which is not among the opsets it reads", "opsets.prefer")
        return runtime

    def _rules(self, about: Mapping[str, Any], default: str) -> str:
        name: str = self._get(about, "runtime", "rules", str, default)
        if name:
            self._one_of(name, ("stable", "core", "portable"), "runtime.rules")
        return name

    def _base(self, name: str | None) -> Runtime | None:
        if name is None:
            return None
        if name.endswith(SUFFIX):
            name = str(self.folder / name)
            if Path(name).resolve() == Path(self.source).resolve():
                raise self._error("names the file itself", "extends")
        elif name == self.source:
            raise self._error("names the target itself", "extends")
        try:
            return load_runtime(name)
        except TargetError as error:
            raise self._error(str(error), "extends") from None
        except RecursionError:
            raise self._error("leads back to the file itself", "extends") from None

    def _of_version(self, runtime: Runtime, version: str | None) -> Runtime:
        versions = self._get(self.top, "", "versions", dict, {})
        read = {name: self._version(entry, f"versions.{name}") for name, entry in versions.items()}
        if version is None or version == runtime.version:
            return runtime
        if version not in read:
            known = ", ".join(read) or "none other than its own"
            raise TargetError(f"has no entry for version {version!r}; it has {known}", self.source)
        reads, ir_version = read[version]
        return replace(runtime, version=version, reads=reads, prefer=_newest(reads), ir_version=ir_version)

    def _version(self, entry: object, place: str) -> tuple[Ranges, int | None]:
        if not isinstance(entry, dict):
            raise self._error("must be a table with reads and ir_version", place)
        self._keys(entry, place, {"reads", "ir_version"})
        reads = self._ranges(entry, place, "reads")
        if reads is None:
            raise self._error("is missing", f"{place}.reads")
        return reads, self._get(entry, place, "ir_version", int, None)

    def _fact(self, entry: object, place: str) -> Fact:
        if not isinstance(entry, dict):
            raise self._error("must be a table", place)
        self._keys(entry, place, {"says", "operators", "opsets", "is", "when", "evidence"})
        says = self._get(entry, place, "says", str, "")
        if not says.strip():
            raise self._error("is missing; say in a sentence what goes wrong", f"{place}.says")
        outcome = self._get(entry, place, "is", str, "")
        self._one_of(outcome, OUTCOMES, f"{place}.is")
        operators = self._strings(entry, place, "operators", self._check_operator)
        if not operators:
            raise self._error(f'is missing; name operators, or "{ANY_OPERATOR}" for all', f"{place}.operators")
        return Fact(
            " ".join(says.split()),
            operators,
            cast(Is, outcome),
            self._evidence(entry, f"{place}.evidence"),
            self._ranges(entry, place, "opsets"),
            self._when(self._get(entry, place, "when", dict, {}), f"{place}.when"),
        )

    def _evidence(self, entry: Mapping[str, Any], place: str) -> Evidence:
        given = entry.get("evidence")
        if not isinstance(given, dict):
            reason = 'is missing; write { measured = "NAME VERSION", on = DATE } or { documented = "ADDRESS" }'
            raise self._error(reason, place)
        self._keys(given, place, {"measured", "on", "documented"})
        measured = self._get(given, place, "measured", str, "")
        on = self._get(given, place, "on", date, None)
        documented = self._get(given, place, "documented", str, "")
        if bool(measured) == bool(documented) or (measured and on is None):
            raise self._error("says either what was measured and on which date, or where it is documented", place)
        return Evidence(measured, on, documented)

    def _when(self, given: Mapping[str, Any], place: str) -> When:
        known = set(When.__dataclass_fields__)
        self._keys(given, place, known)
        flag = ("0", "1", "unset")
        return When(
            axes=self._among(given, place, "axes", AXES_FORMS),
            keepdims=self._among(given, place, "keepdims", flag),
            noop=self._among(given, place, "noop", flag),
            negative_axes=self._get(given, place, "negative_axes", bool, None),
            axes_count=self._ranges(given, place, "axes_count"),
            all_axes=self._get(given, place, "all_axes", bool, None),
            element_types=self._strings(given, place, "element_types", self._check_element_type) or None,
            output_types=self._strings(given, place, "output_types", self._check_element_type) or None,
            rank=self._ranges(given, place, "rank"),
            rank_out=self._ranges(given, place, "rank_out"),
        )

    # Single values

    def _get(self, table: Mapping[str, Any], place: str, key: str, kind: type[Found], default: Any) -> Any:
        value = table.get(key, default)
        if value is default:
            return default
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self._error(f"is {value!r}; it must be {_KINDS[kind]}", f"{place}.{key}".lstrip("."))
        return value

    def _ranges(self, table: Mapping[str, Any], place: str, key: str) -> Ranges | None:
        text = table.get(key)
        if isinstance(text, int) and not isinstance(text, bool):
            text = str(text)
        if text is None:
            return None
        if not isinstance(text, str):
            raise self._error(f'is {text!r}; write a range such as "13-17"', f"{place}.{key}")
        try:
            return Ranges.parse(text)
        except ValueError as error:
            raise self._error(str(error), f"{place}.{key}") from None

    def _strings(
        self, table: Mapping[str, Any], place: str, key: str, check: Callable[[str, str], None]
    ) -> frozenset[str]:
        values = table.get(key, [])
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise self._error(f"is {values!r}; it must be a list of strings", f"{place}.{key}")
        for value in values:
            check(value, f"{place}.{key}")
        return frozenset(values)

    def _among(self, table: Mapping[str, Any], place: str, key: str, known: tuple[str, ...]) -> frozenset[str] | None:
        found = self._strings(table, place, key, lambda value, where: self._one_of(value, known, where))
        return found or None

    def _one_of(self, value: str, known: tuple[str, ...], place: str) -> None:
        if value not in known:
            raise self._error(f"is {value!r}; it must be one of {', '.join(known)}", place)

    def _check_operator(self, name: str, place: str) -> None:
        if not name.endswith(ANY_OPERATOR) and not versions(name):
            from reducelower.model.suggestions import operator_names

            raise self._error(f"names {name!r}, which is no operator{did_you_mean(name, operator_names())}", place)

    def _check_element_type(self, name: str, place: str) -> None:
        from reducelower.model.schemas import element_type_name

        try:
            written = element_type_name(parse_element_type(name))
        except ValueError as error:
            raise self._error(str(error), place) from None
        if written != name:
            raise self._error(f"names {name!r}, which ONNX writes {written!r}", place)

    def _keys(self, table: Mapping[str, Any], place: str, known: set[str]) -> None:
        for key in table:
            if key not in known:
                hint = did_you_mean(key, sorted(known)) or f"; there are {', '.join(sorted(known))}"
                raise self._error(f"a target file has no such key{hint}", f"{place}.{key}".lstrip("."))

    def _error(self, reason: str, place: str) -> TargetError:
        return TargetError(reason, self.source, place)


def _newest(reads: Ranges) -> int:
    last = max((latest_opset() if high is None else high) for _, high in reads.pairs)
    return min(last, latest_opset())


_KINDS: Mapping[type, str] = {
    str: "a string",
    int: "a whole number",
    bool: "true or false",
    list: "a list of tables",
    dict: "a table",
    date: "a date such as 2026-11-01",
}
