"""Entry point: runs a command and turns whatever goes wrong into a sentence and an exit status."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NoReturn

import click

from reducelower.cli import console
from reducelower.failures import BAD_USAGE, INTERRUPTED, SettingError, describe, wants_trace

__all__ = ["main", "run"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and end the process with its exit status.

    By now outputs are on disk, workers have ended and both streams are flushed. What is left would be to take apart
    the modules of onnx and numpy, a tenth of the time of a short run, so the process ends without it.
    """
    os._exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Args:
        arguments: what follows the program's name; those of the process by default.
    """
    console.prepare()
    try:
        status = _run(arguments)
    except KeyboardInterrupt:
        console.problem("interrupted; no output is left half written")
        status = INTERRUPTED
    console.finish()
    return status


def _run(arguments: Sequence[str] | None) -> int:
    from reducelower.cli.app import app

    try:
        status = app.main(
            args=None if arguments is None else list(arguments), prog_name="reducelower", standalone_mode=False
        )
    except click.exceptions.NoArgsIsHelpError as error:
        console.message(error.format_message())
        return BAD_USAGE
    except click.UsageError as error:
        help_command = f" (see '{error.ctx.command_path} --help')" if error.ctx is not None else ""
        console.problem(_sentence(error) + help_command)
        return BAD_USAGE
    except click.ClickException as error:
        console.problem(error.format_message())
        return BAD_USAGE
    except SettingError as error:
        console.problem(str(error))
        return BAD_USAGE
    except click.Abort:
        raise KeyboardInterrupt from None
    except Exception as error:
        if wants_trace():
            raise
        sentences, status = describe(error)
        for sentence in sentences:
            console.problem(sentence)
        return status
    return status if isinstance(status, int) else 0


_MEANT = {
    "--target": "--opset N is the opset version to convert to, --for NAME the runtime",
    "--target-opset": "it is called --opset",
    "--target_opset": "it is called --opset",
    "--runtime-target": "it is called --for",
    "--output-folder": "it is called --output-dir",
}
"""Options by the names that they have elsewhere."""


def _sentence(error: click.UsageError) -> str:
    """What is wrong with the usage; of an option that there is not, the nearest that there is."""
    if not isinstance(error, click.NoSuchOption):
        return error.format_message().rstrip(".")
    from reducelower.model.suggestions import did_you_mean

    if (meant := _MEANT.get(error.option_name)) is not None:
        return f"there is no option {error.option_name!r}; {meant}"
    known = [flag for option in error.ctx.command.params for flag in option.opts] if error.ctx is not None else []
    return f"there is no option {error.option_name!r}{did_you_mean(error.option_name, known)}"
