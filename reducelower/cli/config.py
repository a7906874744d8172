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
"""Parameters that a file cannot set: the user has to give them each time, since they replace files."""


def find_here() -> tuple[Path, Mapping[str, Any]] | None:
    """The configuration file for the working directory; None if that was removed. See `find`."""
    try:
        folder = Path.cwd()
    except FileNotFoundError:
        return None
    return find(folder)


def find(folder: Path) -> tuple[Path, Mapping[str, Any]] | None:
    """The nearest configuration file in a folder or one above it, and its content; None if there is none.

    Raises:
        SettingError: a file cannot be read or is not TOML.
    """
    for place in (folder, *folder.parents):
        for name in (_OWN, _SHARED):
            path = place / name
            if path.is_file() and (content := _read(path)) is not None:
                return path, content
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


def defaults(
    path: Path, options: Mapping[str, Any], commands: Mapping[str, click.Command]
) -> dict[str, dict[str, Any]]:
    """The defaults from a configuration: for each command, values by parameter name.

    A key is the name of an option without its dashes, such as ``opset`` or ``without-type``. It applies to every
    command with that option or, in a table such as ``[tool.reducelower.convert]``, only to that command.

    Raises:
        SettingError: an option does not exist, cannot be set by a file, or has the wrong kind of value.
    """
    by_command: dict[str, dict[str, Any]] = {name: {} for name in commands}
    for key, value in options.items():
        if key in commands and isinstance(value, dict):
            for inner, its_value in value.items():
                _set(path, f"{key}.{inner}", inner, its_value, {key: commands[key]}, by_command)
        else:
            _set(path, key, key, value, commands, by_command)
    return by_command


def _set(
    path: Path,
    place: str,
    key: str,
    value: Any,
    commands: Mapping[str, click.Command],
    by_command: dict[str, dict[str, Any]],
) -> None:
    flag = f"--{key.replace('_', '-')}"
    exists = is_accepted = False
    for name, option in _options(commands):
        if flag not in option.opts:
            continue
        exists = True
        if option.name in NEVER:
            raise SettingError(f"{path}: {place} cannot be set by a file; give {flag} on the command line")
        converted = _value(value, option, path.parent)
        if isinstance(converted, list) and not option.multiple:
            continue  # another command may take several
        is_accepted = True
        if option.is_flag and not isinstance(converted, bool | str):
            raise SettingError(f"{path}: {place} is either true or false, and not {converted}")
        assert option.name is not None
        by_command[name][option.name] = converted
    if exists and not is_accepted:
        raise SettingError(f"{path}: {place} takes one value, not several")
    # If a command and an option have the same name, the option is meant.
    if not exists and key in commands:
        raise SettingError(f"{path}: {key} is the name of a command, and holds options of it: [{key}]")
    if not exists:
        flags = {flag.removeprefix("--") for _, option in _options(commands) for flag in option.opts}
        raise SettingError(f"{path}: there is no option {place!r}{did_you_mean(key, flags)}")


def _value(value: Any, option: click.Option, folder: Path) -> Any:
    """A value as the option reads it: a table becomes pairs, and a single value of a repeatable option a list."""
    if isinstance(value, dict):
        value = [f"{name}={item}" for name, item in value.items()]
    several = value if isinstance(value, list) else [value]
    if folder != Path.cwd():
        several = [beside(option.type, each, folder) if isinstance(each, str) else each for each in several]
    return several if option.multiple or isinstance(value, list) else several[0]


def _options(commands: Mapping[str, click.Command]) -> Iterator[tuple[str, click.Option]]:
    for name, command in commands.items():
        for option in command.params:
            if isinstance(option, click.Option):
                yield name, option
