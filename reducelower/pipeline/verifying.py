"""Verify a conversion: read the inputs, run every distinct rewrite, then the whole models."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from reducelower.errors import SettingError
from reducelower.files import LoadedModel
from reducelower.model.document import Document
from reducelower.model.skeleton import declare
from reducelower.options import Settings
from reducelower.plan import Plan

if TYPE_CHECKING:
    from onnx import ModelProto

    from reducelower.verification import TestDataSet, Verdict, Verification
    from reducelower.verification.running.source import Source

__all__ = ["read_data_sets", "require_runtimes", "verify_models"]


def verify_models(
    source: LoadedModel,
    result: LoadedModel | Document | None,
    settings: Settings,
    data_sets: Sequence[TestDataSet],
    *,
    plan: Plan | None = None,
    seed: int = 0,
    keep_failing: str | None = None,
) -> Verification:
    """Compare two models, or run one model, in the runtimes of the settings.

    With a plan, every distinct rewrite is verified separately. Outputs in the data sets are compared too.
    The part with the first difference is written to the folder `keep_failing`, if given.
    """
    from reducelower.verification import verify
    from reducelower.verification.checking.cache import default_folder
    from reducelower.verification.running.source import Source

    left, right = _declared(Source.of(source.document, source.place), settings), None
    if result is not None:
        after, place = (result.document, result.place) if isinstance(result, LoadedModel) else (result, source.place)
        right = _declared(Source.of(after, place), settings)
    runtimes, absent = _runtimes(settings)
    whole = verify(
        left,
        right,
        data_sets=data_sets,
        plan=plan,
        assume_nonempty=settings.target.assume_nonempty,
        seed=seed,
        dims=settings.dims,
        runtimes=runtimes,
        tolerances=settings.tolerances or None,
        budget=settings.budget,
        memory=settings.memory,
        provider=settings.provider,
        keep_failing=keep_failing,
        cache=default_folder() if settings.cache else None,
    )
    if not settings.strict or not absent:
        return replace(whole, absent=(*whole.absent, *absent))
    # With `strict`, a model is verified for a runtime only if it ran there.
    verdict: Verdict = "not shown" if whole.verdict == "equivalent" else whole.verdict
    return replace(whole, verdict=verdict, unseen=(*whole.unseen, *absent))


def _declared(source: Source, settings: Settings) -> Source:
    """The model with the user's settings applied: declared types and ranks, and fixed defaults."""
    if not settings.element_types and not settings.ranks and not settings.freeze_defaults:
        return source
    model = deepcopy(source.proto)
    declare(model, settings.element_types or {}, settings.ranks or {})
    if settings.freeze_defaults:
        initialized = {tensor.name for tensor in model.graph.initializer}
        inputs = [value for value in model.graph.input if value.name not in initialized]
        del model.graph.input[:]
        model.graph.input.extend(inputs)
    return replace(source, proto=model)


def read_data_sets(settings: Settings, model: ModelProto) -> tuple[TestDataSet, ...]:
    """Read all sets of inputs; one set without values if none are given.

    Raises:
        UnreadableModelError: a file has no array, or a folder no test data.
        SettingError: the model lacks an input or symbolic dimension of a name, or a value does not fit its input.
    """
    from reducelower.verification import TestDataSet, load_test_data

    values = _read_inputs(settings, model)
    if not settings.test_data:
        return (_checked(TestDataSet("", values, ()), settings, model),)
    # Expected outputs are only valid for the inputs of the same data set.
    return tuple(
        _checked(TestDataSet(item.name, {**item.inputs, **values}, () if values else item.outputs), settings, model)
        for item in load_test_data(settings.test_data, model)
    )


def _checked(data: TestDataSet, settings: Settings, model: ModelProto) -> TestDataSet:
    """Check that values fit the model's inputs: another type or shape is a mistake of the user."""
    from reducelower.verification import check_given

    try:
        check_given(model, data.inputs, settings.dims)
    except SettingError as error:
        raise SettingError(f"{data.name}: {error}" if data.name else str(error)) from None
    return data


def _read_inputs(settings: Settings, model: ModelProto) -> dict[str, Any]:
    """Read the arrays for a model's inputs; a ``.npz`` file, with arrays by name, has its own path as its name."""
    if not settings.inputs:
        return {}
    from reducelower.verification import check_given, load_arrays, load_value

    kinds = {value.name: value.type for value in model.graph.input}
    arrays: dict[str, Any] = {}
    for name, path in settings.inputs.items():
        if name == path:
            arrays |= load_arrays(path)
        else:
            check_given(model, {name: None}, {})
            arrays[name] = load_value(path, kinds[name], name)
    return arrays


def require_runtimes(settings: Settings) -> None:
    """Check before any work that the verifying runtime is installed.

    Raises:
        SettingError: onnxruntime is not installed, or lacks the execution provider.
    """
    if settings.verify and "onnxruntime" in settings.runtimes:
        from reducelower.verification.running.conditions import provider_named, require_onnxruntime

        require_onnxruntime()
        if settings.provider:
            provider_named(settings.provider)


def _runtimes(settings: Settings) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The runtimes to verify in, including installed ones of the target, and a sentence for each missing one."""
    from reducelower.verification.running.foreign import is_foreign

    goal, runtimes, absent = settings.target.runtime, tuple(settings.runtimes), list[str]()
    for target, version in [] if goal is None else [(each.name, each.version) for each in goal.members or (goal,)]:
        if target == "onnxruntime" and (installed := _other_onnxruntime(version)):
            absent.append(f"verified in onnxruntime {installed}, which is installed, not in {version}")
        if any(name.partition(":")[0] == target for name in runtimes):
            continue
        reason = _why_unusable(target) if is_foreign(target) else "there is no adapter for it"
        if reason:
            absent.append(f"not verified on {target}: {reason}")
        else:
            runtimes = (*runtimes, target)
    return runtimes, tuple(dict.fromkeys(absent))  # two versions of a runtime say the same


@cache
def _why_unusable(runtime: str) -> str:
    """Why a runtime cannot be used here; cached, since starting one takes seconds."""
    from reducelower.verification.running.foreign import why_unusable

    return why_unusable(runtime)


def _other_onnxruntime(version: str) -> str:
    """The installed version of onnxruntime, if it is another release than the target's."""
    import onnxruntime

    from reducelower.runtimes.ranges import release

    installed = str(onnxruntime.__version__)
    return "" if not version or release(installed)[:2] == release(version)[:2] else installed
