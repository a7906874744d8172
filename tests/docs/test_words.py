"""Phrases that native readers stumbled over do not come back, in pages, help, messages and reports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

import reducelower
from reducelower.cli.main import app

ROOT = Path(__file__).parents[2]
PACKAGE = Path(reducelower.__file__).parent

STUMBLED_OVER = {
    "takes the rest of the model along": "leaves the rest unchanged",
    "| to | say |": "goal, command",
    "lose an operator on the way": "remove an operator while converting",
    "a runtime departs": "diverges",
    "departs from": "diverges from",
    "writes what came of a run": "writes a report",
    "as often as it is given": "repeatable",
    "hold by themselves": "verified in isolation",
    "at most 0 ULP": "0 ULP apart",
    "Say nothing but problems": "print errors only",
    "an attribute but of": "except for",
    "an attribute but\nof": "except for",
    "Most is right at": "best opset",
    "both fare alike": "both are the same",
    "carried over  ": "unchanged",
    "bring along ": "also needed",
    "other ones each time": "different ones each time",
    "gives other values each": "gives different values each",
    "is no range": "is not a range",
    "is no tolerance": "is not a tolerance",
    "Nothing equivalent mends": "no equivalent form avoids",
    "the exit status tells": "the exit status gives the answer",
}


def pages() -> Iterator[tuple[str, str]]:
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "action.yml", *(ROOT / "docs").rglob("*.md")]:
        yield path.name, path.read_text("utf-8")
    for path in [*PACKAGE.rglob("*.html"), PACKAGE / "report" / "schema.json", *PACKAGE.rglob("*.py")]:
        yield path.name, path.read_text("utf-8")


def helps() -> Iterator[tuple[str, str]]:
    context = click.Context(app, info_name="reducelower")
    for name in app.list_commands(context):
        command = app.get_command(context, name)
        assert command is not None
        yield name, re.sub(r"\s+", " ", command.get_help(click.Context(command, context, info_name=name)))


@cache
def texts() -> tuple[tuple[str, str], ...]:
    return (*pages(), *helps())


@pytest.mark.parametrize("phrase", STUMBLED_OVER)
def test_no_text_has_it(phrase: str) -> None:
    assert [name for name, text in texts() if phrase in text] == []


def test_options_say_what_they_do_in_one_or_two_sentences() -> None:
    context = click.Context(app, info_name="reducelower")
    for name in app.list_commands(context):
        command = app.get_command(context, name)
        assert command is not None
        for option in command.params:
            if isinstance(option, click.Option) and option.name != "help":
                assert option.help, f"{name} {option.opts}"
                assert option.help[0].isupper(), option.help
                assert option.help.partition("  [")[0].rstrip().endswith("."), option.help
