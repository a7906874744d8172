"""The `reducelower` command: find the subcommand, run it, and report errors in a sentence."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import click

from reducelower.cli import console
from reducelower.errors import BAD_USAGE, INTERRUPTED, TERMINATED, SettingError, describe
from reducelower.text import did_you_mean

__all__ = ["app", "main", "run"]

_COMMANDS = {
    "convert": ("convert", "convert", "Convert models to another opset version or for a runtime."),
    "expand": ("convert", "expand", "Replace composite Reduce operators by simpler ones."),
    "raise": ("convert", "raise_", "Fold primitive forms into composite operators."),
    "repair": ("convert", "repair", "Repair what runtimes accept and the ONNX checker rejects."),
    "check": ("convert", "check", "Say what a conversion would change; for CI."),
    "inspect": ("inspection", "inspect", "Say what is in a model, and where it can go."),
    "verify": ("compare", "verify", "Run two models and compare every output."),
    "diff": ("compare", "diff", "Say what differs between two models by structure."),
    "targets": ("catalog", "targets", "List the runtimes to convert for, and what is known of one."),
    "rules": ("catalog", "rules", "List the rule book, show a rule, test a folder of rules."),
    "probe": ("probe", "command", "Measure what a runtime gets right; write a target file."),
}
"""By name: the module, its function, and the line in `--help`."""


class _Commands(click.Group):
    """A group whose commands are imported when they run; listing them imports none."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return _command(cmd_name) if cmd_name in _COMMANDS else None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """``help convert`` is ``convert --help``."""
        return super().parse_args(ctx, [*args[1:2], "--help"] if args[:1] == ["help"] else args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            if args[0].endswith(".onnx"):
                ctx.fail(f"say what to do with it: inspect {args[0]}, or convert {args[0]} --opset N")
            ctx.fail(f"there is no command {args[0]!r}{did_you_mean(args[0], _COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in _COMMANDS.items()])


def _command(name: str) -> click.Command:
    module, function, _ = _COMMANDS[name]
    command: click.Command = getattr(import_module(f"reducelower.cli.{module}"), function)
    return command


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    from reducelower.versions import versions

    click.echo(versions())
    ctx.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "-V",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the versions of reducelower and of what it works with.",
)
@click.pass_context
def app(ctx: click.Context) -> None:
    """Convert ONNX models to another opset version or for a runtime.

    \b
    Example:
      reducelower convert model.onnx -o model13.onnx --opset 13

    Exit status: 0 done, 1 refused or not equivalent (check: work found), 2 bad usage or unreadable input,
    3 a fault of reducelower itself.

    Defaults of options come from [tool.reducelower] in the pyproject.toml of the current folder.

    \b
    In ~/.bashrc or ~/.zshrc (with zsh_source) this makes the shell complete commands, options and files:
      eval "$(_REDUCELOWER_COMPLETE=bash_source reducelower)"
    """
    from reducelower.cli.config import defaults

    try:
        ctx.default_map = defaults(lambda: {name: _command(name) for name in _COMMANDS})
    except SettingError:
        # Help must work, since the user may need it to correct that file.
        if {"-h", "--help"}.isdisjoint(ctx.obj or ()):
            raise


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and end the process with its exit status.

    At the end, outputs are on disk, workers have ended and both streams are flushed. The process ends without unloading
    modules such as onnx and numpy, which would take a tenth of the time of a short run.
    """
    # Imports create tens of thousands of permanent objects; collecting garbage among them takes another tenth.
    gc.set_threshold(100_000)
    signal.signal(signal.SIGTERM, _terminate)
    console.own_standard_output()
    os._exit(run(arguments))


class _Terminated(KeyboardInterrupt):
    """SIGTERM, in contrast to Ctrl-C."""


def _terminate(*_: object) -> NoReturn:
    raise _Terminated


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    console.prepare()
    try:
        status = _run(arguments)
    except KeyboardInterrupt as error:
        console.problem("interrupted; nothing is left half written")
        status = TERMINATED if isinstance(error, _Terminated) else INTERRUPTED
    return status if console.finish() else max(status, BAD_USAGE)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        words = list(sys.argv[1:] if arguments is None else arguments)
        # Reports contain the command line.
        status = app.main(args=words, prog_name="reducelower", standalone_mode=False, obj=tuple(words))
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return BAD_USAGE
    except click.UsageError as error:
        help_command = f" (see '{error.ctx.command_path} --help')" if error.ctx is not None else ""
        console.problem(_sentence(error) + help_command)
        return BAD_USAGE
    except click.Abort as error:
        raise (_Terminated if isinstance(error.__cause__, _Terminated) else KeyboardInterrupt) from None
    except Exception as error:
        sentences, status = describe(error)
        for sentence in sentences:
            console.problem(sentence)
        return status
    return status if isinstance(status, int) else 0


_OPTION_HINTS = {
    "--target": "--opset N is the opset version to convert to, --for NAME the runtime",
    **dict.fromkeys(("--target-opset", "--target-version", "--opset-version", "--to"), "it is called --opset"),
}
"""Hints for option names of other tools."""


def _sentence(error: click.UsageError) -> str:
    """A sentence about wrong usage; for an unknown option, with the nearest known one."""
    if not isinstance(error, click.NoSuchOption):
        # Of an argument, the sentence names the value; "Invalid value for '[NAME]'" before it would add nothing.
        is_bad_argument = type(error) is click.BadParameter and isinstance(error.param, click.Argument)
        return _place(error) + (error.message if is_bad_argument else error.format_message()).rstrip(".")
    if (hint := _OPTION_HINTS.get(error.option_name.replace("_", "-"))) is not None:
        return f"there is no option {error.option_name!r}; {hint}"
    options = error.ctx.command.get_params(error.ctx) if error.ctx is not None else []
    flags = [flag for option in options for flag in option.opts]
    return f"there is no option {error.option_name!r}{did_you_mean(error.option_name, flags)}"


def _place(error: click.UsageError) -> str:
    """The configuration file, if a value comes from it."""
    from reducelower.cli.config import FILE

    if not isinstance(error, click.BadParameter) or error.ctx is None or error.param is None:
        return ""
    source = error.ctx.get_parameter_source(error.param.name or "")
    return f"{FILE}: " if source is click.core.ParameterSource.DEFAULT_MAP else ""
