"""Read a target file as a `Runtime`."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from reducelower.errors import TargetError
from reducelower.model.schemas import latest_opset
from reducelower.model.text import did_you_mean
from reducelower.runtimes.facts import Fact
from reducelower.runtimes.ranges import Ranges, release
from reducelower.runtimes.runtime import Runtime
from reducelower.runtimes.structure import HINT, structure

__all__ = ["SUFFIX", "load_runtime", "read_runtime", "shipped_names", "shipped_versions"]

SUFFIX = ".toml"


@dataclass(frozen=True)
class _About:
    """The table ``[runtime]``; None means as in the file that is extended."""

    name: str | None = None
    version: str | None = None
    about: str | None = None
    rules: Literal["stable", "core", "portable"] | None = None


@dataclass(frozen=True)
class _Opsets:
    """The table ``[opsets]``; None means as in the file that is extended."""

    reads: Ranges | None = None
    prefer: int | None = None
    ir_version: int | None = None
    ml: int | None = None


@dataclass(frozen=True)
class _Version:
    """An entry of the table ``[versions]``."""

    reads: Ranges = field(metadata={HINT: 'write the opset versions it reads, such as "7-21"'})
    prefer: int | None = None
    ir_version: int | None = None
    ml: int | None = None


@dataclass(frozen=True)
class _File:
    """A target file."""

    extends: str | None = None
    runtime: _About = _About()
    opsets: _Opsets = _Opsets()
    versions: dict[str, _Version] = field(default_factory=dict)
    fact: tuple[Fact, ...] = ()


def shipped_names() -> tuple[str, ...]:
    """The names of the targets that come with the package, sorted."""
    return tuple(sorted(path.stem for path in _folder().glob(f"*{SUFFIX}")))


def shipped_versions(name: str) -> tuple[str, ...]:
    """The versions that a shipped target has an entry for, in the order of its file; its own one first."""
    file = structure(_File, _parsed((_folder() / f"{name}{SUFFIX}").read_text(encoding="utf-8"), name), name)
    own = file.runtime.version or ""
    return (own, *(version for version in file.versions if _is_of(own, version) is False))


def load_runtime(name: str | os.PathLike[str]) -> Runtime:
    """The runtime of a shipped target by its name, or of a file ending in ``.toml``.

    A name may be followed by ``@`` and a version that the file has an entry for, such as ``onnxruntime@1.10``; a
    release of that version, such as 1.10.0, is taken for it.

    Args:
        name: name of a target, in any case, or path of a file.

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
    text = os.fspath(name)
    base, at, version = text.partition("@") if not text.endswith(SUFFIX) else (text, "", "")
    if not base.endswith(SUFFIX):
        base = base.lower()
    path = Path(base) if base.endswith(SUFFIX) else _folder() / f"{base}{SUFFIX}"
    if not base.endswith(SUFFIX) and base not in shipped_names():
        known = ", ".join(shipped_names())
        near = did_you_mean(base, shipped_names()) or f"; there are {known}"
        raise TargetError(f"there is no such target{near}", text)
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is not UTF-8 text"
        raise TargetError(f"cannot be read: {reason}", str(path)) from None
    source = str(path) if base.endswith(SUFFIX) else base
    return _read_once(content, source, folder=str(path.parent), version=version if at else None)


def read_runtime(
    content: str, source: str = "target", *, folder: str | os.PathLike[str] = "", version: str | None = None
) -> Runtime:
    """Read the text of a target file.

    Args:
        content: TOML.
        source: what errors call the file.
        folder: folder that a relative path in ``extends`` starts from.
        version: one of the versions that the file lists; None for the one that it is about.

    Raises:
        TargetError: the text is no TOML, or says something a target file cannot say.
    """
    file = structure(_File, _parsed(content, source), source)
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


def _parsed(content: str, source: str) -> dict[str, Any]:
    try:
        return dict(tomllib.loads(content))
    except ValueError as error:
        raise TargetError(f"is not TOML: {error}", source) from None


def _extended(name: str, source: str, folder: Path) -> Runtime:
    """The runtime that a file extends."""
    if name.endswith(SUFFIX):
        name = str(folder / name)
        if Path(name).resolve() == Path(source).resolve():
            raise TargetError("names the file itself", source, "extends")
    elif name == source:
        raise TargetError("names the target itself", source, "extends")
    try:
        return load_runtime(name)
    except TargetError as error:
        raise TargetError(str(error), source, "extends") from None
    except RecursionError:
        raise TargetError("leads back to the file itself", source, "extends") from None


def _runtime(file: _File, base: Runtime | None, source: str) -> Runtime:
    """The runtime in a file, with the facts of all versions and the defaults of the file that it extends."""
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
    # Version entries of the other file are about the version that is extended.
    facts = (*(replace(fact, versions=None) for fact in base.facts), *file.fact)
    return replace(base, **{**stated, "name": name, "facts": facts})


def _of_version(runtime: Runtime, file: _File, version: str | None, source: str) -> Runtime:
    """The runtime at a version, with the facts that are true of it."""
    if version is not None and not _is_of(version, runtime.version):
        entry = next((entry for name, entry in file.versions.items() if _is_of(version, name)), None)
        if entry is None:
            known = ", ".join(file.versions) or "none other than its own"
            raise TargetError(f"has no entry for version {version!r}; it has {known}", source)
        prefer = _newest(entry.reads) if entry.prefer is None else entry.prefer
        runtime = replace(runtime, **{**vars(entry), "version": version, "prefer": prefer})
    if not runtime.version:
        return runtime
    facts = tuple(fact for fact in runtime.facts if fact.versions is None or runtime.version in fact.versions)
    return replace(runtime, facts=facts)


def _is_of(version: str, entry: str) -> bool:
    """Whether a version is that of an entry, or a release of it."""
    numbers, wanted = release(version), release(entry)
    return version == entry or bool(wanted and numbers[: len(wanted)] == wanted)


def _newest(reads: Ranges) -> int:
    last = max((latest_opset() if high is None else high) for _, high in reads.pairs)
    return min(last, latest_opset())
