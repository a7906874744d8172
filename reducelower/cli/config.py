"""Defaults of options: `[tool.reducelower]` in the `pyproject.toml` of the current folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from reducelower.errors import SettingError
from reducelower.text import did_you_mean

__all__ = ["FILE", "NEVER", "defaults"]

FILE = "pyproject.toml"
NEVER = frozenset(
    {
        *("in_place", "overwrite", "output", "output_dir"),
        *("quiet", "verbose", "form", "as_json"),
        *("dims", "inputs", "set_sizes", "element_types", "ranks"),
    }
)
"""Parameters that a file cannot set: where outputs go, what is printed, and the names of a single model."""


def defaults(all_commands: Callable[[], Mapping[str, click.Command]]) -> dict[str, dict[str, Any]]:
    """The defaults: for each command, values by parameter name, as texts that click reads like the command line.

    A key is the name of an option without its dashes, such as ``opset`` or ``without-type``. It applies to every
    command with that option or, in a table such as ``[tool.reducelower.convert]``, only to that command.

    Raises:
        SettingError: the file is no TOML; an option does not exist, cannot be set by a file, or takes one value.
    """
    table = _table()
    if not table:  # so commands that do not run need not be imported
        return {}
    commands = all_commands()
    by_command: dict[str, dict[str, Any]] = {name: {} for name in commands}
    for key, value in table.items():
        if key in commands and isinstance(value, dict):
            for inner, its_value in value.items():
                _set(f"{key}.{inner}", inner, its_value, {key: commands[key]}, by_command)
        else:
            _set(key, key, value, commands, by_command)
    return by_command


def _table() -> Mapping[str, Any]:
    path = Path(FILE)
    try:
        # Most projects do not mention reducelower, and parsing TOML takes longer than a search for the name.
        if not path.is_file() or "reducelower" not in (text := path.read_text("utf-8")):
            return {}
        import tomllib

        tools = tomllib.loads(text).get("tool")
    except (OSError, ValueError) as error:
        raise SettingError(f"{FILE}: {error}") from None
    table = tools.get("reducelower", {}) if isinstance(tools, dict) else {}
    if not isinstance(table, dict):
        raise SettingError(f"{FILE}: tool.reducelower must be a table, and it is {table!r}")
    return table


def _set(
    place: str, key: str, value: Any, commands: Mapping[str, click.Command], by_command: dict[str, dict[str, Any]]
) -> None:
    options = [
        (name, each) for name, command in commands.items() for each in command.params if isinstance(each, click.Option)
    ]
    takers = [(name, option) for name, option in options if f"--{key.replace('_', '-')}" in option.opts]
    if not takers:
        known = {flag.removeprefix("--") for _, option in options for flag in option.opts}
        raise SettingError(f"{FILE}: there is no option {place!r}{did_you_mean(key, known)}")
    if takers[0][1].name in NEVER:
        raise SettingError(f"{FILE}: {place} cannot be set by a file; give it on the command line")
    texts = _texts(value)
    # Two commands may have an option of one name, of which one takes several values.
    takers = [(name, option) for name, option in takers if option.multiple or isinstance(texts, str)]
    if not takers:
        raise SettingError(f"{FILE}: {place} takes one value, not several")
    for name, option in takers:
        assert option.name is not None
        by_command[name][option.name] = [texts] if option.multiple and isinstance(texts, str) else texts


def _texts(value: Any) -> str | list[str]:
    """A value as the command line would have it: a table becomes pairs."""
    if isinstance(value, dict):
        return [f"{name}={item}" for name, item in value.items()]
    return [str(item) for item in value] if isinstance(value, list) else str(value)
