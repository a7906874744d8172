"""The `reducelower` command: finds its subcommands and imports only the one that runs."""

from __future__ import annotations

from importlib import import_module

import click

__all__ = ["app"]

_COMMANDS = {
    "convert": ("reducelower.cli.convert", "Convert models to another opset version."),
    "expand": ("reducelower.cli.expand", "Replace composite Reduce operators by simpler ones."),
    "raise": ("reducelower.cli.raising", "Fold primitive forms into composite Reduce operators."),
    "check": ("reducelower.cli.check", "Say what a conversion would change; for CI."),
    "inspect": ("reducelower.cli.inspect", "Say what is in a model, and where it can go."),
    "verify": ("reducelower.cli.verify", "Run two models and compare every output."),
    "diff": ("reducelower.cli.diff", "Say what differs between two models by structure."),
    "repair": ("reducelower.cli.repair", "Mend what runtimes run and the ONNX checker refuses."),
    "targets": (
        "reducelower.cli.targets",
        "List the runtimes to convert for, and what is known of one.",
    ),
    "probe": ("reducelower.cli.probe", "Measure what is legal on a runtime; write a target file."),
    "rules": ("reducelower.cli.rules", "List the rule book, show a rule, test a folder of rules."),
    "completion": ("reducelower.cli.completion", "Print what makes a shell complete the commands."),
}


class _Commands(click.Group):
    """A group whose commands are imported when they run; listing them imports none."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = import_module(_COMMANDS[cmd_name][0]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            from reducelower.model.suggestions import did_you_mean

            ctx.fail(f"there is no command {args[0]!r}{did_you_mean(args[0], _COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in _COMMANDS.items()])


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    from reducelower.versions import versions

    click.echo(versions())
    ctx.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the versions of reducelower and of what it works with.",
)
@click.pass_context
def app(ctx: click.Context) -> None:
    """Make ONNX models legal for their runtime: opset versions both ways, Reduce operators rewritten, with proof.

    \b
    Example:
      reducelower convert model.onnx -o model13.onnx --opset 13

    Exit status: 0 done, 1 refused or not equivalent (check: work found), 2 bad usage or unreadable input,
    3 a fault of reducelower itself.

    Defaults of options come from reducelower.toml or [tool.reducelower] in pyproject.toml, here or in a folder above.
    """
    from pathlib import Path

    from reducelower.cli.config import defaults, find

    found = find(Path.cwd())
    if found is not None and isinstance(ctx.command, click.Group):
        commands = {name: ctx.command.get_command(ctx, name) for name in _COMMANDS}
        ctx.default_map = defaults(*found, {name: command for name, command in commands.items() if command is not None})
