"""Read a target file as a `Runtime`."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from reducelower.errors import TargetError
from reducelower.model.schemas import latest_opset
from reducelower.runtimes.facts import Fact
from reducelower.runtimes.ranges import Ranges, release
from reducelower.runtimes.runtime import Runtime, combined
from reducelower.runtimes.structure import structure

__all__ = ["SUFFIX", "aliases", "load_runtime", "read_runtime", "shipped_names", "shipped_versions"]

SUFFIX = ".toml"

_SPELLED = re.compile(r"(.*[^=@\s])\s*(?:@|==?)\s*v?([^=@]*)")
"""A name with a version, as people and package managers write them."""


@dataclass(frozen=True)
class _About:
    """The table ``[runtime]``; None stands for the value in the extended file."""

    name: str | None = None
    version: str | None = None
    about: str | None = None
    measures: Literal["operators"] | None = None


@dataclass(frozen=True)
class _Opsets:
    """The table ``[opsets]``, or an entry of ``[versions]``; None stands for the value in the extended file."""

    reads: Ranges | None = None
    prefer: int | None = None
    ir_version: int | None = None
    ml: int | None = None


@dataclass(frozen=True)
class _File:
    """A target file."""

    extends: str | None = None
    runtime: _About = _About()
    opsets: _Opsets = _Opsets()
    versions: dict[str, _Opsets] = field(default_factory=dict)
    fact: tuple[Fact, ...] = ()


@cache
def aliases() -> Mapping[str, str]:
    """The target that each other name means (of a package, short, former), as `names.toml` has them."""
    names = tomllib.loads((files(__package__) / "names.toml").read_text("utf-8"))
    return {alias: target for target, text in names.items() for alias in text.split()}


@cache
def shipped_names() -> tuple[str, ...]:
    """The names of the targets that come with the package, sorted."""
    return tuple(sorted(path.stem for path in _folder().glob(f"*{SUFFIX}")))


def shipped_versions(name: str) -> tuple[str, ...]:
    """The versions that a shipped target has facts about, oldest first; the file's own replaces its entry."""
    file = _file((_folder() / f"{name}{SUFFIX}").read_text(encoding="utf-8"), name)
    own = file.runtime.version or ""
    return _in_order([own, *(version for version in file.versions if not _is_of(own, version))])


def load_runtime(name: str | os.PathLike[str]) -> Runtime:
    """The runtime of a shipped target by its name, or of a file ending in ``.toml``.

    A name may be followed by ``@`` or ``==`` and a version, such as ``onnxruntime@1.10``. The version may be a release
    of one that the file is about, such as 1.10.0, or the beginning of several, which means the newest of them. Any
    other version gets the facts of the next older and the next newer one, and `Runtime.note` says so.

    Args:
        name: name of a target or of a package, in any case, or path of a file.

    Returns:
        The runtime, for `Target(runtime=...)`.

    Raises:
        TargetError: there is no such target, or the file is not one.

    Example:
        >>> import reducelower
        >>> runtime = reducelower.load_runtime("onnxruntime@1.16")
        >>> str(runtime), 20 in runtime.reads
        ('onnxruntime 1.16', False)
    """
    base, version = os.fspath(name), None
    if (spelled := _SPELLED.fullmatch(base)) and not base.endswith(SUFFIX):
        base, version = spelled.groups()
    if not base.endswith(SUFFIX):
        plain = base.strip().lower().replace("_", "-")
        base = aliases().get(plain, plain)
        if base not in shipped_names():
            # No similar name is suggested, since that would mostly be another runtime.
            raise TargetError(
                f"no target has this name; there are {', '.join(shipped_names())}. `reducelower probe` measures any "
                "other runtime and writes a target file; one can also be written by hand from its documentation",
                os.fspath(name),
            )
    path = Path(base) if base.endswith(SUFFIX) else _folder() / f"{base}{SUFFIX}"
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is not UTF-8 text"
        raise TargetError(f"cannot be read: {reason}", str(path)) from None
    source = str(path) if base.endswith(SUFFIX) else base
    return _read_once(content, source, folder=str(path.parent), version=version)


def read_runtime(
    content: str, source: str = "target", *, folder: str | os.PathLike[str] = "", version: str | None = None
) -> Runtime:
    """Read the text of a target file.

    Args:
        content: TOML.
        source: name of the file in errors.
        folder: folder that a relative path in ``extends`` starts from.
        version: any version; None for the one that the file is about.

    Raises:
        TargetError: the text is not TOML, or not a valid target file.
    """
    file = _file(content, source)
    base = None if file.extends is None else _extended(file.extends, source, Path(folder))
    runtime = _of_version(_runtime(file, base, source), file, version, source)
    if runtime.prefer not in runtime.reads:
        raise TargetError(f"is {runtime.prefer}, which is not among the opsets it reads", source, "opsets.prefer")
    if runtime.version:
        return runtime
    if any(fact.versions for fact in runtime.facts):
        raise TargetError("is missing; facts about versions ask which one this is", source, "runtime.version")
    return runtime


_read_once = cache(read_runtime)


@cache
def _folder() -> Path:
    here = Path(__file__).resolve().parent.parent
    inside = here / "rules" / "targets"
    return inside if inside.is_dir() else here.parent / "rules" / "targets"


@cache  # each version of a runtime is read from the same file
def _file(content: str, source: str) -> _File:
    try:
        table = tomllib.loads(content)
    except ValueError as error:
        raise TargetError(f"is not TOML: {error}", source) from None
    return structure(_File, table, source)


def _extended(name: str, source: str, folder: Path) -> Runtime:
    """The runtime that a file extends."""
    try:
        return load_runtime(folder / name if name.endswith(SUFFIX) else name)
    except TargetError as error:
        raise TargetError(str(error), source, "extends") from None
    except RecursionError:
        raise TargetError("leads back to the file itself", source, "extends") from None


def _runtime(file: _File, base: Runtime | None, source: str) -> Runtime:
    """The runtime in a file, with the facts of all versions and what the extended file states."""
    tables = {**vars(file.runtime), **vars(file.opsets)}
    stated = {name: value for name, value in tables.items() if value is not None}
    name = file.runtime.name or (base and base.name)
    if not name:
        raise TargetError("is missing; write the name of the runtime", source, "runtime.name")
    if base is None:
        reads = file.opsets.reads
        if reads is None:
            raise TargetError('is missing; write the opset versions it reads, such as "7-21"', source, "opsets.reads")
        base = Runtime("", "", "", reads, _newest(reads), ())
    # The extended runtime already is the one of a version, so its facts hold for every version of this file.
    facts = (*(replace(fact, versions=None) for fact in base.facts), *file.fact)
    return replace(base, **{**stated, "name": name, "facts": facts})


def _of_version(runtime: Runtime, file: _File, version: str | None, source: str) -> Runtime:
    """The runtime at a version, with the facts about it; if there are none, about the next older and newer versions."""
    if version is None:
        return _at(runtime, file, runtime.version)
    if not release(version):
        raise TargetError(f"{version!r} is no version; write numbers, such as 1.16", source)
    versions = _in_order([runtime.version, *file.versions])
    if not any(versions):
        return replace(runtime, version=version, note="Its facts are about no version in particular.")
    if newest := next((each for each in reversed(versions) if _is_of(version, each) or _is_of(each, version)), ""):
        return replace(_at(runtime, file, newest), version=max(version, newest, key=len))
    older = [each for each in versions if release(each) < release(version)][-1:]
    newer = [each for each in versions if release(each) > release(version)][:1]
    how = "measured" if any(fact.evidence.measured for fact in runtime.facts) else "documented here"
    suffix = "" if older and newer else f", the {'newest' if older else 'oldest'} that was"
    note = f"{runtime.name} {version} was not {how}; facts of {' and '.join(older + newer)}{suffix}."
    neighbours = [_at(runtime, file, each) for each in older + newer]
    facts = tuple(fact for fact in runtime.facts if any(fact in neighbour.facts for neighbour in neighbours))
    both = replace(combined(neighbours), name=runtime.name, about=runtime.about, members=())
    return replace(both, version=version, facts=facts, note=note)


def _at(runtime: Runtime, file: _File, version: str) -> Runtime:
    """The runtime at a version that the file is about or has an entry for."""
    if version != runtime.version:
        entry = file.versions[version]
        reads = entry.reads or runtime.reads
        prefer = _newest(reads) if entry.prefer is None else entry.prefer
        runtime = replace(runtime, **{**vars(entry), "reads": reads, "version": version, "prefer": prefer})
    if not version:
        return runtime
    return replace(
        runtime, facts=tuple(fact for fact in runtime.facts if fact.versions is None or version in fact.versions)
    )


def _in_order(versions: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(versions, key=release))


def _is_of(version: str, entry: str) -> bool:
    """Whether a version equals that of an entry, or is a release of it."""
    numbers, prefix = release(version), release(entry)
    return version == entry or bool(prefix and numbers[: len(prefix)] == prefix)


def _newest(reads: Ranges) -> int:
    last = max((high[0] if high else latest_opset()) for _, high in reads.pairs)
    return min(last, latest_opset())
