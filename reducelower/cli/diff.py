"""`reducelower diff`: what differs between two models by structure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from reducelower.cli.options import JSON_OPTION, Command, report_option
from reducelower.cli.types import FILE
from reducelower.failures import DONE, REFUSED

if TYPE_CHECKING:
    from onnx import ModelProto

    from reducelower.report.facts import Verdict
    from reducelower.verification.difference import Change, Difference

__all__ = ["command"]

_MOST_NODES = 12


@click.command("diff", cls=Command)
@click.argument("before", type=FILE, metavar="A")
@click.argument("after", type=FILE, metavar="B")
@JSON_OPTION
@report_option
@click.option("-q", "--quiet", is_flag=True, help="Print errors only; the exit status tells.")
def command(before: str, after: str, **options: Any) -> int:
    """Say what differs between two models by structure: operators, attributes, constants, types, metadata.

    Nothing is run. Constants count by value, however they are stored; names of values and nodes do not count, those of
    inputs and outputs do. An operator is the same at two opset versions; whether it computes the same is what verify
    tells. The exit status is 0 where nothing differs, 1 where something does, 2 or more where there was trouble, as of
    the command diff.

    \b
    Examples:
      reducelower diff model.onnx model13.onnx
      reducelower diff model.onnx model13.onnx --report diff.html
    """
    from reducelower.cli.streams import at_hand, on_standard_output

    on_standard_output(options)
    with at_hand([before, after]) as (names, paths):
        return _diff(names, paths, options)


def _diff(names: Sequence[str], paths: Sequence[str], options: dict[str, Any]) -> int:
    from reducelower.cli import console
    from reducelower.cli.reports import check_report_paths, write_reports
    from reducelower.report import ModelReport
    from reducelower.verification.difference import difference

    check_report_paths(options["reports"], names)
    before, after = map(_read, paths)
    found = difference(before, after)
    if not options["quiet"] and not options["as_json"]:
        console.result("\n".join(_lines(names, found)))
    if options["reports"] or options["as_json"]:
        from reducelower.report.details import describe_difference
        from reducelower.report.plain import json_line

        details = describe_difference(before, after, found) if options["reports"] else None
        verdict: Verdict = "same" if found.same else "differs"
        model = ModelReport(names[0], verdict, names[1], difference=found, details=details)
        if options["as_json"]:
            console.data_result(json_line(model))
        write_reports("diff", [model], options["reports"])
    return DONE if found.same else REFUSED


def _read(path: str) -> ModelProto:
    """A model whose weights in other files, and large ones in its own, count by what they hold; they are not kept."""
    from reducelower.files import read_model
    from reducelower.verification.numbering import digested

    source = read_model(path)
    digested(source.model, source.folder)
    return source.model


def _lines(names: Sequence[str], found: Difference) -> Iterator[str]:
    from reducelower.cli.console import shown
    from reducelower.cli.text import paragraph

    yield f"{shown(names[0])} -> {shown(names[1])}: {found.sentence}"
    for fact in found.facts:
        yield from paragraph(fact.kind, f"{fact.what}: {fact.before or 'none'} -> {fact.after or 'none'}")
    for change in found.changes:
        yield from _change(change)
    if found.operators:
        yield from paragraph("operators", ", ".join(f"{name} {old} -> {new}" for name, old, new in found.operators))


def _change(change: Change) -> Iterator[str]:
    from reducelower.cli.text import paragraph

    graph, node = change.nodes[0]
    more = f" and {len(change.nodes) - 1} more like it" if len(change.nodes) > 1 else ""
    yield from paragraph(change.kind.partition(" ")[0], f"{graph}: {node!r}{more}")
    if change.details:
        kinds = " -> ".join(dict.fromkeys(text.partition(" ")[0] for text in (*change.before, *change.after)))
        for detail in change.details:
            yield from paragraph("", f"{kinds}: {detail}" if kinds else detail)
        return
    for sign, texts in (("-", change.before), ("+", change.after)):
        for text in texts[:_MOST_NODES]:
            yield from paragraph("", f"{sign} {text}")
        if len(texts) > _MOST_NODES:
            yield from paragraph("", f"{sign} and {len(texts) - _MOST_NODES} more nodes")
