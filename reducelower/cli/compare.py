"""`reducelower verify` and `diff`: two models compared by running them, and by structure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from reducelower.cli.options import VERIFICATION, option, settings_of, takes
from reducelower.cli.telling import check_report_paths, tell
from reducelower.cli.text import full_text
from reducelower.cli.types import FILE
from reducelower.options import Settings, Target
from reducelower.outcome import Outcome, Verdict

if TYPE_CHECKING:
    from reducelower.files import LoadedModel
    from reducelower.verification.running.source import Source

__all__ = ["diff", "verify"]


@click.command(
    "verify",
    params=takes(
        click.Argument(["before"], type=FILE, metavar="MODEL"),
        click.Argument(["after"], type=FILE, metavar="[AFTER]", required=False),
        *(*VERIFICATION, "--assume-nonempty", "--report"),
        option("--seed", "Seed for the values of the inputs.", type=click.IntRange(min=0), default=0, metavar="N"),
        option(
            "--keep-failing",
            "Write the smallest part that shows the first difference to this folder, with what it is fed.",
            type=FILE,
            metavar="DIR",
        ),
        option(
            "--allow-not-shown",
            "Exit with status 0 even if not everything could be compared, as long as nothing differs.",
        ),
        *("--json", "--quiet", "--verbose"),
    ),
)
def verify(before: str, after: str | None, **options: Any) -> int:
    """Run what differs between two models by itself, then both, and compare; or one model in several runtimes.

    Status 0 means equivalent, 1 different or not shown.

    With one model, each --runtime is compared with a trusted one, and the first operator whose output diverges is
    named.

    \b
    Examples:
      reducelower verify model.onnx model13.onnx --dim batch=4
      reducelower verify model.onnx --runtime openvino
    """
    if after is None and not options["runtimes"]:
        raise click.UsageError("give a second model to compare with, or --runtime NAME to compare runtimes")
    from reducelower.batch.many import crashed, run_all
    from reducelower.child import FORKS
    from reducelower.cli.progress import progress
    from reducelower.pipeline.verifying import require_runtimes
    from reducelower.verification.running.conditions import under

    paths = [before] if after is None else [before, after]
    check_report_paths(options["reports"], paths)
    settings = settings_of(Target(assume_nonempty=options["assume_nonempty"]), options)
    require_runtimes(settings)
    work = partial(_outcome, partial(_compare, settings=settings, options=options))
    again = under(isolates=True)(work) if FORKS else None  # onnxruntime may have ended the process
    with progress("models", 1, quiet=options["quiet"]):
        (outcome,) = run_all(work, [paths], 1, lambda _, why: crashed(before, why), again=again, is_apart=FORKS)
    return tell("verify", [outcome], 1, options, partial(_text, verbose=options["verbose"]))


def _text(outcome: Outcome, *, verbose: bool) -> str:
    return "" if outcome.problems else full_text(outcome, verbose=verbose)


def _outcome(work: Callable[[Sequence[str]], Outcome], paths: Sequence[str]) -> Outcome:
    """The outcome of a comparison; errors are in it."""
    from reducelower.pipeline.task import outcome_of

    return replace(outcome_of(paths[0], partial(work, paths)), source=paths[0], output="".join(paths[1:]))


def _compare(paths: Sequence[str], *, settings: Settings, options: Mapping[str, Any]) -> Outcome:
    from reducelower.files import read_model
    from reducelower.pipeline.verifying import read_data_sets, verify_models

    source, *others = map(read_model, paths)
    data_sets = read_data_sets(settings, source.model)
    result, seed, folder = next(iter(others), None), options["seed"], options["keep_failing"]
    found = verify_models(source, result, settings, data_sets, seed=seed, keep_failing=folder)
    same, complete = found.verdict != "different", found.equivalent
    if settings.strict:
        complete = complete and not (found.departing or found.departs)
    details = None
    if options["reports"] and len(paths) == 2:
        from reducelower.difference import difference
        from reducelower.report.details import describe_difference

        left, right = map(_light, (source, *others))
        details = describe_difference(difference(left.proto, right.proto), found)
    unproven: Verdict = "not verified" if options["allow_not_shown"] else "not shown"
    verdict: Verdict = "different" if not same else "equivalent" if complete else unproven
    return Outcome("", verdict, verification=found, details=details)


@click.command(
    "diff",
    params=takes(
        click.Argument(["before"], type=FILE, metavar="A"),
        click.Argument(["after"], type=FILE, metavar="B"),
        *("--report", "--json", "--quiet"),
    ),
)
def diff(before: str, after: str, **options: Any) -> int:
    """Say what differs between two models by structure: operators, attributes, constants, types, metadata.

    Nothing is run. Constants count by value, however they are stored; names of values and nodes do not count, those of
    inputs and outputs do. An operator is the same at two opset versions; verify says whether it computes the same.
    The exit status is 0 if nothing differs, 1 if something does, and 2 or more if there was trouble, as with the
    command diff.

    \b
    Examples:
      reducelower diff model.onnx model13.onnx
      reducelower diff model.onnx model13.onnx --report diff.html
    """
    check_report_paths(options["reports"], [before, after])
    outcome = _outcome(partial(_structure, options=options), [before, after])
    return tell("diff", [outcome], 1, options, partial(_text, verbose=True))


def _structure(paths: Sequence[str], *, options: Mapping[str, Any]) -> Outcome:
    from reducelower.difference import difference
    from reducelower.files import read_model

    before, after = map(_light, map(read_model, paths))
    found = difference(before.proto, after.proto)
    details = None
    if options["reports"]:
        from reducelower.report.details import describe_difference

        details = describe_difference(found)
    return Outcome("", "same" if found.same else "differs", difference=found, details=details)


def _light(model: LoadedModel) -> Source:
    """A model whose large and external weights lie beside it, as arrays."""
    from reducelower.verification.running.source import Source

    return Source.of(model.document, model.place)
