"""Defaults of options from a file: `reducelower.toml`, or `[tool.reducelower]` in `pyproject.toml`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from reducelower.cli.types import beside
from reducelower.failures import SettingError
from reducelower.model.text import did_you_mean

__all__ = ["NEVER", "defaults", "find", "find_here"]

_OWN, _SHARED = "reducelower.toml", "pyproject.toml"
NEVER = frozenset({"in_place", "overwrite", "output"})
"""Parameters that a file may not set: the user has to give them each time, since they replace files."""


def find_here() -> tuple[Path, Mapping[str, Any]] | None:
    """The configuration file of the working directory; none where that was removed. See `find`."""
    try:
        folder = Path.cwd()
    except FileNotFoundError:
        return None
    return find(folder)


def find(folder: Path) -> tuple[Path, Mapping[str, Any]] | None:
    """The nearest configuration file in a folder or above it, and its content; None if there is none.

    Raises:
        SettingError: a file cannot be read or is not TOML.
    """
    for place in (folder, *folder.parents):
        for name in (_OWN, _SHARED):
            path = place / name
            if path.is_file() and (said := _read(path)) is not None:
                return path, said
    return None


def _read(path: Path) -> Mapping[str, Any] | None:
    try:
        text = path.read_text("utf-8")
        # Most projects do not mention reducelower, and parsing TOML takes longer than a search for the name.
        if path.name == _SHARED and not ("tool" in text and "reducelower" in text):
            return None
        import tomllib

        content = tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise SettingError(f"{path}: {error}") from None
    if path.name == _OWN:
        return content
    for place in ("tool", "tool.reducelower"):
        inner = content.get(place.rpartition(".")[2])
        if inner is None:
            return None
        if not isinstance(inner, dict):
            raise SettingError(
                f"{path}: {place} must be a table, and it is {inner!r}; write options under [tool.reducelower]"
            )
        content = inner
    return content


def defaults(path: Path, said: Mapping[str, Any], commands: Mapping[str, click.Command]) -> dict[str, dict[str, Any]]:
    """The defaults in a configuration, for each command by the names of its parameters.

    A key is the name of an option without its dashes, such as ``opset`` or ``without-type``. It holds for every command
    that has the option; under the name of a command, such as ``[tool.reducelower.convert]``, for that one alone.

    Raises:
        SettingError: no command has an option of a name, or an option cannot be set by a file, or is set twice.
    """
    found: dict[str, dict[str, Any]] = {name: {} for name in commands}
    for key, value in said.items():
        if key in commands and isinstance(value, dict):
            for inner, its_value in value.items():
                _set(path, f"{key}.{inner}", inner, its_value, {key: commands[key]}, found)
        else:
            _set(path, key, key, value, commands, found)
    return found


def _set(
    path: Path,
    place: str,
    key: str,
    value: Any,
    commands: Mapping[str, click.Command],
    found: dict[str, dict[str, Any]],
) -> None:
    flag = f"--{key.replace('_', '-')}"
    known = is_taken = False
    for name, option in _options(commands):
        if flag not in option.opts:
            continue
        known = True
        if option.name in NEVER:
            raise SettingError(f"{path}: {place} cannot be set by a file; give {flag} on the command line")
        given = _value(value, option, path.parent)
        if isinstance(given, list) and not option.multiple:
            continue  # another command may take several
        is_taken = True
        if option.is_flag and not isinstance(given, bool | str):
            raise SettingError(f"{path}: {place} is either true or false, and not {given}")
        assert option.name is not None
        found[name][option.name] = given
    if known and not is_taken:
        raise SettingError(f"{path}: {place} takes one value, not several")
    # Some commands have the name of an option; then the option is meant.
    if not known and key in commands:
        raise SettingError(f"{path}: {key} is the name of a command, and holds options of it: [{key}]")
    if not known:
        flags = {flag.removeprefix("--") for _, option in _options(commands) for flag in option.opts}
        raise SettingError(f"{path}: there is no option {place!r}{did_you_mean(key, flags)}")


def _value(value: Any, option: click.Option, folder: Path) -> Any:
    """A value in the form that the option reads: a table as pairs, a single value of a repeatable option as a list."""
    if isinstance(value, dict):
        value = [f"{name}={given}" for name, given in value.items()]
    several = value if isinstance(value, list) else [value]
    if folder != Path.cwd():
        several = [beside(option.type, each, folder) if isinstance(each, str) else each for each in several]
    return several if option.multiple or isinstance(value, list) else several[0]


def _options(commands: Mapping[str, click.Command]) -> Iterator[tuple[str, click.Option]]:
    for name, command in commands.items():
        for option in command.params:
            if isinstance(option, click.Option):
                yield name, option
