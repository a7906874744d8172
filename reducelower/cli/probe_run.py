"""The work of `reducelower probe`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import click

from reducelower.cli.console import message, result
from reducelower.cli.progress import progress
from reducelower.conformance.distilling import Distilled, NothingRightError, distil
from reducelower.conformance.process import Subject, UnusableError
from reducelower.conformance.report import FORMATS, as_text, write_probe_report
from reducelower.conformance.running import Probed, probe
from reducelower.conformance.runtimes import RUNTIMES
from reducelower.conformance.suite import suite
from reducelower.conformance.target_file import target_text
from reducelower.failures import DONE, SettingError
from reducelower.files.pending import PendingFile
from reducelower.model.suggestions import did_you_mean

__all__ = ["run_probe"]


def run_probe(options: Mapping[str, Any]) -> int:
    """Probe, distil, write.

    Raises:
        SettingError: something about the runtime, the options or the files makes no sense.
        OSError: a file cannot be written.
    """
    subject = _subject(options)
    output = Path(options["output"])
    _check_paths(options, output)
    cases = suite(options["operators"] or None)
    keep = Path(options["results"]) if options["results"] else None
    try:
        with progress("models", len(cases), quiet=options["quiet"]) as advance:
            probed = probe(
                subject,
                cases,
                version=options["version"],
                time_limit=options["time_limit"],
                jobs=options["jobs"],
                keep=keep,
                advance=advance,
            )
        distilled = distil(probed, date.today())
    except (UnusableError, NothingRightError) as error:
        raise SettingError(f"{error}{_hint(options, error)}") from None
    except ValueError as error:
        raise SettingError(str(error)) from None
    _write_target(distilled, output, overwrite=options["force"])
    for path in options["reports"]:
        write_probe_report(probed, distilled, Path(path))
    if not options["quiet"]:
        _show(probed, distilled, output)
    return DONE


def _show(probed: Probed, distilled: Distilled, output: Path) -> None:
    result(as_text(probed, distilled))
    count = len(distilled.runtime.facts)
    message(f"wrote {output}: {count} fact{'' if count == 1 else 's'}")


def _subject(options: Mapping[str, Any]) -> Subject:
    given = [name for name in ("runtime", "function", "template") if options[name]]
    if len(given) != 1:
        raise click.UsageError("say what to probe: one of --runtime, --python and --command")
    name = options["name"] or options["runtime"] or Path(options["output"]).stem
    interpreter = options["interpreter"]
    if interpreter and shutil.which(interpreter) is None:
        raise SettingError(f"{interpreter} is no program; --interpreter names a Python")
    if options["template"]:
        if interpreter:
            raise click.UsageError("--interpreter goes with --runtime and --python; a command names its own")
        missing = [word for word in ("{model}", "{inputs}", "{outputs}") if word not in options["template"]]
        if missing:
            raise SettingError(f"the command does not mention {' and '.join(missing)}")
        return Subject.of_command(name, options["template"])
    if options["function"]:
        if ":" not in options["function"]:
            raise SettingError(f"{options['function']} is no function; write MODULE:FUNCTION")
        return Subject.of_function(name, options["function"], interpreter)
    if options["runtime"] not in RUNTIMES:
        hint = did_you_mean(options["runtime"], RUNTIMES)
        raise SettingError(
            f"there is no adapter for {options['runtime']!r}{hint}; there are {', '.join(RUNTIMES)}, "
            "and --python or --command for any other"
        )
    subject = Subject.of_runtime(options["runtime"], interpreter)
    return Subject(name, subject.arguments, subject.interpreter)


def _check_paths(options: Mapping[str, Any], output: Path) -> None:
    """Find out before the work whether its results can be written."""
    if output.suffix != ".toml":
        raise SettingError(f"{output}: a target file ends in .toml")
    if output.exists() and not options["force"]:
        raise SettingError(f"{output} exists; --force replaces it")
    for path in map(Path, options["reports"]):
        if path.suffix.lower() not in FORMATS:
            raise SettingError(f"{path}: a report ends in one of {', '.join(FORMATS)}")
    for path in [output, *map(Path, options["reports"]), *([Path(options["results"])] if options["results"] else [])]:
        if not path.parent.is_dir():
            raise SettingError(f"{path}: there is no folder {path.parent}")
        if path.is_dir():
            raise SettingError(f"{path} is a folder")


def _hint(options: Mapping[str, Any], error: Exception) -> str:
    if isinstance(error, UnusableError) and options["runtime"] and not options["interpreter"]:
        return "; --interpreter names the Python that has it"
    return ""


def _write_target(distilled: Distilled, output: Path, *, overwrite: bool) -> None:
    remarks = [
        "Written by reducelower probe: what was measured, the fewest facts that are true of every failure.",
        *(f"No condition tells this failing case from right ones: {case.name}" for case in distilled.untold),
    ]
    with PendingFile(Path(os.path.realpath(output))) as file:
        file.write(target_text(distilled.runtime, remarks).encode())
        file.publish(overwrite=overwrite)
