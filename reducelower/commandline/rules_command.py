"""`reducelower rules`."""

from __future__ import annotations

import click

from reducelower.commandline.value_types import FOLDER, OPERATOR, RULES

__all__ = ["command"]


@click.command("rules")
@click.argument("operator", type=OPERATOR, required=False)
@click.option(
    "--rules", type=RULES, default="spec", show_default=True, metavar="spec|stable|core|DIR", help="The rule book."
)
@click.option("--test", "folder", type=FOLDER, metavar="DIR", help="Check every rule of a folder of your own.")
def command(operator: str | None, rules: str, folder: str | None) -> int:
    """List the rules of a rule book, or show those for one operator.

    \b
    Examples:
      reducelower rules --rules stable
      reducelower rules ReduceLogSumExp
      reducelower rules --test my_rules/
    """
    from reducelower.commandline.console import result
    from reducelower.commandline.report import columns
    from reducelower.rulebook import load_book

    book = load_book(folder or rules)
    if folder:
        book.check()
    if operator is None:
        entries = [rule for name in book.operators for rule in book.rules(name)]
        for line in columns((rule.name, rule.element_types, rule.identity) for rule in entries):
            result(line)
        return 0
    found = book.rules(operator)
    if not found:
        from reducelower.suggestions import did_you_mean

        raise click.UsageError(
            f"the rule book {book.name!r} has no rule for {operator}{did_you_mean(operator, book.operators)}"
        )
    from onnx.printer import to_text

    for rule in found:
        result(to_text(rule.function))
    return 0
