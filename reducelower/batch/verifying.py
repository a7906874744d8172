"""Verifies a conversion: every distinct rewrite first, then the whole models on each set of inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from reducelower.files import LoadedModel
from reducelower.model.document import Document
from reducelower.options import Settings
from reducelower.plan import Plan

if TYPE_CHECKING:
    from reducelower.verification import TestDataSet, Verdict, Verification

__all__ = ["OnProgress", "require_runtimes", "verify_models"]

OnProgress = Callable[[int, int], None]
"""Called with (done, total) distinct rewrites."""


def verify_models(
    source: LoadedModel,
    result: LoadedModel | Document,
    settings: Settings,
    data_sets: Sequence[TestDataSet],
    *,
    plan: Plan | None = None,
    seed: int = 0,
    on_progress: OnProgress | None = None,
) -> Verification:
    """Compare two models as the settings say.

    With a plan, every distinct rewrite is verified by itself, of which `on_progress` hears. Outputs that come with the
    data sets are compared too.
    """
    from reducelower.verification import compare_models
    from reducelower.verification.providers import on_provider
    from reducelower.verification.source import Source

    after = result.document if isinstance(result, LoadedModel) else result
    folder = source.folder if source.is_partial else None
    left = Source.of(source.path if source.is_partial else source.document, folder).light()
    right = Source.of(result.path if isinstance(result, LoadedModel) and result.is_partial else after, folder).light()
    with on_provider(settings.provider):
        runtimes, absent = _runtimes(settings)
        whole = compare_models(
            left,
            right,
            data_sets,
            plan=plan,
            seed=seed,
            dims=settings.dims,
            runtimes=runtimes,
            tolerances=settings.tolerances or None,
            budget=settings.budget,
            overrides=not settings.freeze_defaults,
            on_progress=on_progress,
            protos=(
                source.model if source.is_partial else left.proto,
                after.message if right.path or right.folder else right.proto,
            ),
        )
    if not settings.strict or not absent:
        return replace(whole, notes=(*whole.notes, *absent))
    # Strictly, a model is shown to be right for a runtime only in that runtime.
    verdict: Verdict = "not shown" if whole.verdict == "equivalent" else whole.verdict
    return replace(whole, verdict=verdict, unseen=(*whole.unseen, *absent))


def require_runtimes(settings: Settings) -> None:
    """Make sure before any work that what models are to be verified in is there.

    Raises:
        SettingError: there is no onnxruntime, or it lacks the execution provider.
    """
    if settings.verify and "onnxruntime" in settings.runtimes:
        from reducelower.verification.providers import provider_named, require_onnxruntime

        require_onnxruntime()
        if settings.provider:
            provider_named(settings.provider)


def _runtimes(settings: Settings) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Where the result is run, the runtimes it is for among them where they are installed, and notes where not."""
    from reducelower.verification.foreign import is_foreign

    goal, runtimes, notes = settings.target.runtime, tuple(settings.runtimes), []
    for target, version in [] if goal is None else [(each.name, each.version) for each in goal.members or (goal,)]:
        if target == "onnxruntime" and (installed := _other_onnxruntime(version)):
            notes.append(f"Verified in onnxruntime {installed}, which is installed, not in {version}.")
        if any(name.partition(":")[0] == target for name in runtimes):
            continue
        reason = _why_unusable(target) if is_foreign(target) else "there is no adapter for it"
        if reason:
            notes.append(f"Not verified on {target}: {reason}.")
        else:
            runtimes = (*runtimes, target)
    return runtimes, tuple(notes)


@cache
def _why_unusable(runtime: str) -> str:
    """Why a runtime cannot be used here: asked once, since starting one takes seconds."""
    from reducelower.verification.foreign import why_unusable

    return why_unusable(runtime)


def _other_onnxruntime(version: str) -> str:
    """The onnxruntime that is installed, where it is not of the release that a model is for."""
    import onnxruntime

    from reducelower.runtimes.ranges import release

    installed = str(onnxruntime.__version__)
    return "" if not version or release(installed)[:2] == release(version)[:2] else installed
