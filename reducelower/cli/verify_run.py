"""What `verify` does: two models compared, or one model in several runtimes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from reducelower.batch.input_values import read_data_sets
from reducelower.batch.verifying import verify_models
from reducelower.cli import console
from reducelower.failures import DONE, REFUSED
from reducelower.files import LoadedModel, read_model
from reducelower.files.urls import as_path, is_url
from reducelower.options import Settings, Target
from reducelower.verification import RuntimeComparison, Verification, compare_runtimes

if TYPE_CHECKING:
    from reducelower.report.facts import Verdict

__all__ = ["verify_files"]


def verify_files(before: str, after: str | None, options: Mapping[str, Any]) -> int:
    """Compare what the command line names, by paths or URLs, report, and return the exit status."""
    names = [as_path(name) for name in (before, after) if name is not None]
    if not any(map(is_url, names)):
        return _verify(names, names, options)
    from reducelower.batch.staging import at_hand

    with ExitStack() as copies:
        return _verify(names, [copies.enter_context(at_hand(name)) for name in names], options)


def _verify(names: Sequence[str], paths: Sequence[str], options: Mapping[str, Any]) -> int:
    """Compare models of this machine, which the user knows by other names."""
    after = names[1] if len(names) > 1 else ""
    reports = options["reports"]
    if reports:
        from reducelower.cli.reporting import check_report_paths

        check_report_paths(reports, names)
    settings = Settings(
        Target(),
        dims=options["dims"],
        inputs=options["inputs"],
        test_data=options["test_data"] or "",
        runtimes=options["runtimes"] or ("onnxruntime",),
        tolerances=options["tolerances"],
        budget=options["budget"],
        strict=options["strict"],
    )
    source = read_model(paths[0])
    found: Verification | None = None
    comparisons: list[RuntimeComparison] = []
    if not after:
        comparisons = _in_runtimes(source, settings, options["seed"])
        same, complete = all(item.agrees for item in comparisons), all(item.ran for item in comparisons)
    else:
        data_sets = read_data_sets(settings, source.model)
        found = verify_models(source, read_model(paths[1]), settings, data_sets, seed=options["seed"])
        same, complete = found.equivalent, found.complete
    if not options["quiet"]:
        for item in [found] if found is not None else comparisons:
            console.result(console.one_line(str(item)))
    if reports:
        from reducelower.cli.reporting import write_reports
        from reducelower.report import ModelReport

        unproven: Verdict = "unverified" if settings.strict else "not verified"
        verdict: Verdict = "different" if not same else "equivalent" if complete else unproven
        model = ModelReport(names[0], verdict, after, verification=found, comparisons=tuple(comparisons))
        write_reports("verify", [model], reports)
    return DONE if same and (complete or not settings.strict) else REFUSED


def _in_runtimes(source: LoadedModel, settings: Settings, seed: int) -> list[RuntimeComparison]:
    """One comparison per runtime and set of inputs."""
    return [
        compare_runtimes(
            source.path if source.is_partial else source.model,
            runtime,
            inputs=data.inputs,
            seed=seed,
            dims=settings.dims,
            tolerances=settings.tolerances or None,
            budget=settings.budget,
        )
        for data in read_data_sets(settings, source.model)
        for runtime in dict.fromkeys(settings.runtimes)
    ]
