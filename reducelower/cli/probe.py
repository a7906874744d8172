"""`reducelower probe`: measure what a runtime gets right, and write a target file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from reducelower.cli.console import result
from reducelower.cli.options import option, takes
from reducelower.cli.telling import check_place
from reducelower.cli.types import FILE, OPERATOR, POSITIVE
from reducelower.errors import DONE, SettingError
from reducelower.text import counted, did_you_mean

if TYPE_CHECKING:
    from reducelower.conformance.case import Case
    from reducelower.conformance.distilling import Distilled
    from reducelower.conformance.process import Subject, Worker
    from reducelower.conformance.running import Probed

__all__ = ["command"]

Result = TypeVar("Result")


@click.command(
    "probe",
    params=takes(
        option("--runtime", "A runtime that reducelower has an adapter for.", metavar="NAME"),
        option(
            "--python function",
            "A function from model bytes and {name: array} to a list of arrays.",
            metavar="MODULE:FUNCTION",
        ),
        option(
            "--command template",
            "A command with the placeholders {model}, {inputs} and {outputs}; the last two are .npz files.",
            metavar="COMMAND",
        ),
        option("--interpreter", "The Python that has the runtime; it needs numpy.", metavar="PYTHON"),
        option("--runtime-version version", "Version of the runtime, if the runtime does not say it.", type=str),
        option("-o --output", "The target file to write.", required=True, type=FILE, metavar="FILE.toml"),
        option("--results", "Keep every result here, and go on from what is there already.", metavar="FILE.jsonl"),
        option("--op operators", "Operator to try; repeatable.  [default: all]", type=OPERATOR, multiple=True),
        option(
            "--time-limit",
            "Time for one model; taking longer is a finding.",
            type=POSITIVE,
            default=60.0,
            metavar="SECONDS",
        ),
        option(
            "--tolerance",
            "How far floating-point results may be off: 4e-3 for what computes in float16.  [default: by element type]",
            type=POSITIVE,
            metavar="RELATIVE",
        ),
        option("--force", "Replace an existing target file."),
        "--quiet",
    ),
)
def command(**options: Any) -> int:
    """Find out by measurement what a runtime gets right, and write it as a target file.

    A conformance suite of three thousand small models runs on the runtime in a worker process: one that crashes or
    hangs it is a finding, not the end. Then each model is converted by the facts found and runs again, and forms that
    are no better are left out. That takes from two minutes to an hour; with --results it goes on where it stopped.

    \b
    Examples:
      reducelower probe --runtime openvino -o openvino.toml
      reducelower probe --runtime tvm --interpreter tvm/bin/python -o tvm.toml --results tvm.jsonl
      reducelower probe --python my_runtime:run -o mine.toml
      reducelower probe --command './runner {model} {inputs} {outputs}' -o phone.toml
    """
    from reducelower.conformance.process import UnusableError, Worker
    from reducelower.conformance.target_file import target_text
    from reducelower.files.pending import write_whole

    subject, output = _subject(options), Path(options["output"])
    if output.suffix != ".toml":
        raise SettingError(f"{output}: a target file ends in .toml")
    if output.exists() and not options["force"]:
        raise SettingError(f"{output} exists; --force replaces it")
    for path in filter(None, (options["output"], options["results"])):
        check_place(path)
    try:
        about = {"version": options["version"], "tolerance": options["tolerance"]}
        with Worker(subject, options["time_limit"], **about) as worker:
            probed, distilled = _measured(worker, options)
    except UnusableError as error:
        missing = options["runtime"] and not options["interpreter"]
        hint = "; --interpreter names the Python that has it" if missing else ""
        raise SettingError(f"{error}{hint}") from None
    except ValueError as error:
        raise SettingError(str(error)) from None
    left = distilled.undescribed
    remarks = [
        "Written by reducelower probe: what was measured, the fewest facts that are true of every failure.",
        *(f"No fact explains this case, or no equivalent form avoids it: {case.name}" for case in left),
    ]
    write_whole(output, target_text(distilled.runtime, remarks), overwrite=options["force"])
    if not options["quiet"]:
        counts = Counter(each.word for each in probed.results)
        words = ", ".join(f"{counts[word]} {word}" for word in ("right", "wrong", "refused"))
        result(f"{distilled.runtime}: {counted(len(probed.results), 'case')}, {words}")
        more = f"; {counted(len(left), 'case')} that none explains stand at its top" if left else ""
        facts = counted(len(distilled.runtime.facts), "fact")
        result(f"wrote {output}: {facts}, which 'reducelower targets {output}' lists{more}")
    return DONE


def _subject(options: Mapping[str, Any]) -> Subject:
    """What to probe, by the name that its target gets."""
    from reducelower.conformance.process import Subject
    from reducelower.conformance.runtimes import RUNTIMES

    runtime, function, template = options["runtime"], options["function"], options["template"]
    if len(list(filter(None, (runtime, function, template)))) != 1:
        raise click.UsageError("say what to probe: one of --runtime, --python and --command")
    name = runtime or Path(options["output"]).stem
    if template:
        if missing := [word for word in ("{model}", "{inputs}", "{outputs}") if word not in template]:
            raise SettingError(f"the command does not mention {' and '.join(missing)}")
        return Subject.of_command(name, template)
    if function:
        if ":" not in function:
            raise SettingError(f"{function} is not a function; write MODULE:FUNCTION")
        return Subject.of_function(name, function, options["interpreter"])
    if runtime not in RUNTIMES:
        near = did_you_mean(runtime, RUNTIMES)
        hint = near or f"; there are {', '.join(RUNTIMES)}, and --python or --command for any other"
        raise SettingError(f"there is no adapter for {runtime!r}{hint}")
    return Subject.of_runtime(runtime, options["interpreter"])


def _measured(worker: Worker, options: Mapping[str, Any]) -> tuple[Probed, Distilled]:
    """What the suite gave, and the facts that it shows."""
    from reducelower.conformance.distilling import distil
    from reducelower.conformance.mending import corrected
    from reducelower.conformance.running import probe
    from reducelower.conformance.suite import suite
    from reducelower.conformance.whole_models import FEATURE_OPSETS, feature_cases

    cases = suite(options["operators"] or None)
    if not options["operators"]:
        cases += [case for opset in FEATURE_OPSETS for case in feature_cases(opset)]
    probed = _with_progress("models", cases, options, partial(probe, worker, cases))
    distilled = distil(probed, date.today())
    runtime, changes = _with_progress(
        "converted models", cases, options, partial(corrected, worker, probed, distilled.runtime)
    )
    unsolved = tuple(change.case for change in changes if change.is_bad)
    return probed, replace(distilled, runtime=runtime, undescribed=unsolved)


def _with_progress(noun: str, cases: Sequence[Case], options: Mapping[str, Any], work: Callable[..., Result]) -> Result:
    """Do work that takes, as `how`, where results are kept and what shows its progress."""
    from reducelower.cli.progress import progress
    from reducelower.conformance.running import How

    with progress(noun, len(cases), quiet=options["quiet"]) as advance:
        return work(how=How(Path(options["results"]) if options["results"] else None, advance))
