"""Hooks of mkdocs that replace markers by text from the code or from other files, so that nothing is committed twice.

`<!-- made: NAME -->` becomes the result of the function of that name. `<!-- file: PATH -->` becomes a code block with
that file of the repository.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from reducelower import __version__
from reducelower.adapters.absent import is_expressible
from reducelower.adapters.crossings import Crossing, crossings
from reducelower.adapters.rules import Function
from reducelower.model.schemas import all_operators, latest_opset, schema, versions
from reducelower.rulebook.rows import Row

ROOT = Path(__file__).parents[1]

_MARKER = re.compile(r"^<!-- (made|file): (\S+) -->$", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*)\]\((?!https?:)[^)]*\)")
_OUTSIDE = re.compile(r"\[([^\]]*)\]\((?:CHANGELOG|LICENSE)[^)]*\)")
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".yml": "yaml"}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page with its markers replaced; an unknown name or a missing file stops the build."""
    return _MARKER.sub(lambda marker: MAKERS[marker[2]]() if marker[1] == "made" else code_block(marker[2]), markdown)


def on_config(config: Any) -> Any:
    """Put the version at the foot of every page."""
    config.copyright = f"reducelower {__version__}"
    return config


def code_block(path: str) -> str:
    """A file of the repository, with its name above it."""
    content = (ROOT / path).read_text(encoding="utf-8")
    return f'```{_LANGUAGES[Path(path).suffix]} title="{path}"\n{content}```'


def operators() -> str:
    """The conversions by operator: a table of all operators that changed or were added after opset 1.

    Operators with equal cells share a row. Boundaries where only element types change are left out.
    """
    rows: dict[tuple[str, str], list[str]] = {}
    for op_type in sorted(all_operators()):
        down, first = _downward(op_type), _before_first(op_type)
        if down or first:
            rows.setdefault((down, first), []).append(op_type)
    lines = ["| operators | boundaries on the way down | below the first |", "|---|---|---|"]
    lines += [
        f"| {', '.join(names)} | {down} | {first} |"
        for (down, first), names in sorted(rows.items(), key=lambda row: row[1])
    ]
    return "\n".join(lines) + "\n"


def _downward(op_type: str) -> str:
    since = [number for number in versions(op_type) if schema(op_type, number) is not None]
    if len(since) < 2:
        return ""
    path = crossings(op_type, latest_opset(), since[0]) if schema(op_type, latest_opset()) else ()
    cells: dict[str, list[str]] = {}
    for crossing in path:
        cells.setdefault(_treatment(crossing), []).append(str(crossing.boundary))
    return "; ".join(f"{treatment} {', '.join(numbers)}" for treatment, numbers in cells.items() if treatment)


def _treatment(crossing: Crossing) -> str:
    if any(isinstance(rule, Function) for rule in crossing.rules):
        return "rewritten at"
    if crossing.moves:
        return "input to attribute at"
    if any(isinstance(rule, Row) and rule.refuse and not rule.occasion.guard for rule in crossing.rules):
        return "refused at"
    return "as far as the older version says it at"


def _before_first(op_type: str) -> str:
    first = versions(op_type)[0]
    if first == 1:
        return ""
    return f"{first}: expressed by others" if is_expressible(op_type) else f"{first}: refused"


def rule_book() -> str:
    """The README of the rules, one heading level lower, without links to files that are not pages."""
    text = (ROOT / "rules" / "README.md").read_text(encoding="utf-8")
    return _LINK.sub(r"`\1`", re.sub(r"^#", "##", text, flags=re.MULTILINE))


def changelog() -> str:
    """The changelog."""
    return (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def contributing() -> str:
    """How to contribute; links to files outside of the documentation become their names."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").replace("](docs/", "](")
    return _OUTSIDE.sub(r"`\1`", text)


def command_line() -> str:
    """Every command with its help, as the command line prints it."""
    from reducelower.cli.main import app

    return "\n".join(_helps(app, click.Context(app, info_name="reducelower", **app.context_settings)))


def _helps(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _helps(inner, click.Context(inner, context, info_name=name, terminal_width=80))


def configuration() -> str:
    """Every key of the configuration file with its meaning and its commands."""
    from reducelower.cli.config import NEVER
    from reducelower.cli.main import app

    context = click.Context(app, info_name="reducelower")
    keys: dict[str, tuple[str, list[str]]] = {}
    for name in app.list_commands(context):
        command = app.get_command(context, name)
        for option in command.params if command is not None else ():
            if isinstance(option, click.Option) and option.name not in NEVER and not option.is_eager:
                key = max(option.opts, key=len).removeprefix("--")
                keys.setdefault(key, (option.help or "", []))[1].append(name)
    lines = ["| key | what it sets | commands |", "|---|---|---|"]
    for key, (text, names) in sorted(keys.items()):
        escaped = text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
        lines.append(f"| `{key}` | {escaped} | {', '.join(names)} |")
    return "\n".join(lines)


MAKERS: dict[str, Callable[[], str]] = {
    "configuration": configuration,
    "changelog": changelog,
    "contributing": contributing,
    "command_line": command_line,
    "operators": operators,
    "rule_book": rule_book,
}
