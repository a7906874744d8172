"""`reducelower completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

__all__ = ["command"]


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> int:
    """Print the script that makes a shell complete commands, options, operators and files.

    \b
    Examples:
      eval "$(reducelower completion bash)"        # in ~/.bashrc
      eval "$(reducelower completion zsh)"         # in ~/.zshrc
      reducelower completion fish | source         # in ~/.config/fish/config.fish
    """
    from reducelower.cli.app import app
    from reducelower.cli.console import result

    # The names that click looks for when the script asks what may come next.
    kind = get_completion_class(shell)
    assert kind is not None, "click has all three"
    result(kind(app, {}, "reducelower", "_REDUCELOWER_COMPLETE").source())
    return 0
