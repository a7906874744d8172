"""What options say of themselves."""

from __future__ import annotations

import click

from reducelower.cli.main import app


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
