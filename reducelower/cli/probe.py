"""`reducelower probe`: measure what a runtime gets right, and write a target file."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reducelower.cli.console import data_result, message, result
from reducelower.cli.options import JSON_OPTION, option
from reducelower.cli.types import OPERATOR, Integer, Number
from reducelower.failures import DONE, SettingError
from reducelower.model.text import counted, did_you_mean

if TYPE_CHECKING:
    from reducelower.conformance.distilling import Distilled
    from reducelower.conformance.process import Subject

__all__ = ["command"]


@click.command("probe")
@option("--runtime", "A runtime that reducelower has an adapter for.", metavar="NAME")
@option(
    "--python function", "A function from model bytes and {name: array} to a list of arrays.", metavar="MODULE:FUNCTION"
)
@option(
    "--command template",
    "A command with the placeholders {model}, {inputs} and {outputs}; the last two are .npz files.",
    metavar="COMMAND",
)
@option("--interpreter", "The Python that has the runtime; it needs numpy.", metavar="PYTHON")
@option("--name", "Name of the target.  [default: that of the runtime, or of the output file]", type=str)
@option("--runtime-version version", "Version of the runtime, if the runtime does not say it.", type=str)
@option("-o --output", "The target file to write.", required=True, metavar="FILE.toml")
@option("--report reports", "Report to write: .html, .json or .txt; repeatable.", multiple=True, metavar="FILE")
@option("--results", "Keep every result here, and go on from what is there already.", metavar="FILE.jsonl")
@option("--op operators", "Operator to try; repeatable.  [default: all]", type=OPERATOR, multiple=True)
@option(
    "--time-limit",
    "Time for one model; taking longer is a finding.",
    type=Number(min=0, min_open=True),
    default=60.0,
    metavar="SECONDS",
)
@option(
    "--tolerance",
    "How far floating-point results may be off: 4e-3 for what computes in float16.  [default: by element type]",
    type=Number(min=0, max=1),
    metavar="RELATIVE",
)
@option("--jobs", "Workers side by side.", type=Integer(min=1), default=1)
@option("--force", "Replace an existing target file.")
@JSON_OPTION
@option("-q --quiet", "Print errors only.")
def command(**options: Any) -> int:
    """Find out by measurement what a runtime gets right, and write it as a target file.

    A conformance suite of three thousand small models runs on the runtime in a worker process: one that crashes or
    hangs it is a finding, not the end. Then each model is converted by the facts found and runs again, and forms that
    are no better are left out. That takes from two minutes to an hour; with --results it goes on where it stopped.

    \b
    Examples:
      reducelower probe --runtime openvino -o openvino.toml --report openvino.html
      reducelower probe --runtime tvm --interpreter tvm/bin/python -o tvm.toml --results tvm.jsonl
      reducelower probe --python my_runtime:run -o mine.toml
      reducelower probe --command './runner {model} {inputs} {outputs}' -o phone.toml
    """
    from reducelower.cli.progress import progress
    from reducelower.conformance.distilling import distil
    from reducelower.conformance.feature_cases import FEATURE_OPSETS, feature_cases
    from reducelower.conformance.mending import mended
    from reducelower.conformance.process import UnusableError
    from reducelower.conformance.running import How, probe
    from reducelower.conformance.suite import suite
    from reducelower.report.plain import runtime_line
    from reducelower.report.probe import as_text, write_probe_report

    subject = _subject(options)
    output = Path(options["output"])
    _check_paths(options, output)
    cases = suite(options["operators"] or None)
    if not options["operators"]:
        cases += [case for opset in FEATURE_OPSETS for case in feature_cases(opset)]
    keep = Path(options["results"]) if options["results"] else None
    try:
        with progress("models", len(cases), quiet=options["quiet"]) as advance:
            how = How(options["time_limit"], options["jobs"], keep, advance)
            probed = probe(subject, cases, how, version=options["version"], tolerance=options["tolerance"])
        distilled = distil(probed, date.today())
        with progress("converted models", len(cases), quiet=options["quiet"]) as advance:
            runtime, changes = mended(subject, probed, distilled.runtime, replace(how, advance=advance))
    except UnusableError as error:
        missing = options["runtime"] and not options["interpreter"]
        hint = "; --interpreter names the Python that has it" if missing else ""
        raise SettingError(f"{error}{hint}") from None
    except ValueError as error:
        raise SettingError(str(error)) from None
    left = tuple(change.case for change in changes if change.is_bad)
    distilled = replace(distilled, runtime=runtime, untold=left)
    _write_target(distilled, output, overwrite=options["force"])
    for path in options["reports"]:
        write_probe_report(probed, distilled, Path(path))
    if options["as_json"]:
        data_result(runtime_line(distilled.runtime))
    elif not options["quiet"]:
        result(as_text(probed, distilled))
        message(f"wrote {output}: {counted(len(distilled.runtime.facts), 'fact')}")
    return DONE


def _subject(options: Mapping[str, Any]) -> Subject:
    from reducelower.conformance.process import Subject
    from reducelower.conformance.runtimes import RUNTIMES

    given = [name for name in ("runtime", "function", "template") if options[name]]
    if len(given) != 1:
        raise click.UsageError("say what to probe: one of --runtime, --python and --command")
    name = options["name"] or options["runtime"] or Path(options["output"]).stem
    interpreter = options["interpreter"]
    if interpreter and shutil.which(interpreter) is None:
        raise SettingError(f"{interpreter} is not a program; --interpreter names a Python")
    if options["template"]:
        if interpreter:
            raise click.UsageError("--interpreter goes with --runtime and --python; a command names its own")
        missing = [word for word in ("{model}", "{inputs}", "{outputs}") if word not in options["template"]]
        if missing:
            raise SettingError(f"the command does not mention {' and '.join(missing)}")
        return Subject.of_command(name, options["template"])
    if options["function"]:
        if ":" not in options["function"]:
            raise SettingError(f"{options['function']} is not a function; write MODULE:FUNCTION")
        return Subject.of_function(name, options["function"], interpreter)
    if options["runtime"] not in RUNTIMES:
        near = did_you_mean(options["runtime"], RUNTIMES)
        known = near or f"; there are {', '.join(RUNTIMES)}, and --python or --command for any other"
        raise SettingError(f"there is no adapter for {options['runtime']!r}{known}")
    subject = Subject.of_runtime(options["runtime"], interpreter)
    return Subject(name, subject.arguments, subject.interpreter)


def _check_paths(options: Mapping[str, Any], output: Path) -> None:
    """Check before the work that its results can be written."""
    from reducelower.cli.reports import check_place
    from reducelower.report.probe import FORMATS

    if output.suffix != ".toml":
        raise SettingError(f"{output}: a target file ends in .toml")
    if output.exists() and not options["force"]:
        raise SettingError(f"{output} exists; --force replaces it")
    for path in options["reports"]:
        if Path(path).suffix.lower() not in FORMATS:
            raise SettingError(f"{path}: a report ends in one of {', '.join(FORMATS)}")
    for path in filter(None, (options["output"], options["results"], *options["reports"])):
        check_place(path)


def _write_target(distilled: Distilled, output: Path, *, overwrite: bool) -> None:
    from reducelower.conformance.target_file import target_text
    from reducelower.files.pending import write_whole

    remarks = [
        "Written by reducelower probe: what was measured, the fewest facts that are true of every failure.",
        *(f"No fact explains this case, or no equivalent form avoids it: {case.name}" for case in distilled.untold),
    ]
    write_whole(output, target_text(distilled.runtime, remarks), overwrite=overwrite)
