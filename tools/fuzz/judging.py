"""The verdict on a case: refused, equal, or a finding."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from onnx import ModelProto, checker

from reducelower import ConversionError
from tools.fuzz.case import Case
from tools.fuzz.comparing import difference
from tools.fuzz.gaps import facts_of
from tools.fuzz.runtimes import RUNTIMES, Outcome, trusted_run

__all__ = ["FINDINGS", "Verdict", "judge", "judge_source"]

FINDINGS = frozenset({"crash", "invalid", "changed input", "not idempotent", "fails", "wrong", "death"})
"""The kinds of verdict that need a fix, in the package or in `known_gaps.toml`."""
_RANDOM = frozenset({"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial"})
"""Operators with random results; Bernoulli and Dropout are drawn so that their results are certain."""

_SINGLE = frozenset({"Attention", "GroupNormalization", "LayerNormalization", "RMSNormalization"})
"""Operators with an attribute for the precision of the computation, which is single by default."""

_NEAR_ZERO = frozenset({"BatchNormalization", "BlackmanWindow", "Log", "LogSoftmax", "ReduceLogSum", "ReduceLogSumExp"})
"""Operators whose results near 0 come from numbers around 1, and have their rounding errors."""


@dataclass(frozen=True)
class Verdict:
    """The verdict on a case.

    Attributes:
        kind: ``invalid source``, ``refused``, ``no judge`` (no runtime runs the source), ``not run`` (no runtime runs
            the result), ``equal``, or one of `FINDINGS`.
        detail: more about it, in one line.
        judges: the runtimes that were compared, with themselves or with each other.
    """

    kind: str
    detail: str = ""
    judges: tuple[str, ...] = ()

    @property
    def is_finding(self) -> bool:
        """Whether something needs a fix."""
        return self.kind in FINDINGS


def judge(case: Case) -> Verdict:
    """Convert a case, run source and result, and compare their outputs; the model of the case is not changed."""
    problem, wanted = judge_source(case)
    if problem:
        return Verdict("invalid source", problem)
    before = case.model.SerializeToString(deterministic=True)
    try:
        made = case.action.apply(case.model)
    except ConversionError as refused:
        reasons = [str(refusal) for refusal in refused.refusals]
        return Verdict("refused", "; ".join(reasons)) if all(reasons) else Verdict("crash", "refused without a reason")
    except Exception as error:
        return Verdict("crash", " ".join(f"{type(error).__name__}: {error}".split()))
    if case.model.SerializeToString(deterministic=True) != before:
        return Verdict("changed input")
    problem = _invalid(made)
    if problem:
        return Verdict("invalid", problem)
    unsteady = _unsteady(case, made)
    if unsteady is not None or all(outcome.values is None for outcome in wanted.values()):
        reasons = "; ".join(f"{name}: {outcome.error}" for name, outcome in wanted.items())
        return unsteady or Verdict("no judge", reasons)
    return _compared(wanted, _outcomes(made, case.feeds), _comparison(case))


def judge_source(case: Case) -> tuple[str, Mapping[str, Outcome]]:
    """What is invalid in the source of a case, or empty, and what each runtime makes of it."""
    problem = _invalid(case.model)
    return problem, {} if problem else _outcomes(case.model, case.feeds)


def _invalid(model: ModelProto) -> str:
    try:
        checker.check_model(model, full_check=True)
    except Exception as error:  # the checker raises several kinds of its own
        return " ".join(str(error).split()) or type(error).__name__
    return ""


def _unsteady(case: Case, made: ModelProto) -> Verdict | None:
    """Whether a second conversion to the same target changes the result; a second raise may change it."""
    if case.action.kind == "raise":
        return None
    try:
        again = case.action.apply(made)
    except Exception as error:
        return Verdict("not idempotent", " ".join(f"{type(error).__name__}: {error}".split()))
    same = again.SerializeToString(deterministic=True) == made.SerializeToString(deterministic=True)
    return None if same else Verdict("not idempotent", "a second conversion changes the result")


def _outcomes(model: ModelProto, feeds: Mapping[str, Any]) -> dict[str, Outcome]:
    """The outcome of each runtime for a model, except those that are known to get it wrong."""
    facts = facts_of(model, feeds.values())
    return {runtime: trusted_run(runtime, model, feeds, facts) for runtime in RUNTIMES}


def _compared(wanted: Mapping[str, Outcome], got: Mapping[str, Outcome], compare: _Comparison) -> Verdict:
    """Compare each runtime with itself if it ran both sides, otherwise with the other."""
    both = [name for name in wanted if wanted[name].values is not None and got[name].values is not None]
    failed = [
        f"{name}: {got[name].error}"
        for name in wanted
        if wanted[name].values is not None and got[name].values is None and not got[name].lacks
    ]
    if failed:
        return Verdict("fails", "; ".join(failed))
    pairs = [(name, name) for name in both] or [
        (one, other)
        for one in wanted
        for other in got
        if wanted[one].values is not None and got[other].values is not None
    ]
    judges = tuple(dict.fromkeys(name for pair in pairs for name in pair))
    differences = []
    for one, other in pairs:
        # One runtime may compute in double precision what the other computes in single.
        rounds = one != other or wanted[one].single or got[other].single
        between = partial(compare, single=True) if rounds and compare is not _random_differ else compare
        problem = _differs(wanted[one].values or (), got[other].values or (), between)
        if problem:
            differences.append(f"{one}: {problem}" if one == other else f"{one} against {other}: {problem}")
    if differences:
        return Verdict("wrong", "; ".join(differences), judges)
    if not pairs:
        return Verdict("not run", "; ".join(f"{name}: {outcome.error}" for name, outcome in got.items()))
    return Verdict("equal", "", judges)


_Comparison: TypeAlias = Callable[..., str]


def _comparison(case: Case) -> _Comparison:
    """The comparison for the outputs of a case."""
    operators = {node.op_type for node in facts_of(case.model, ()).nodes}
    if operators & _RANDOM:
        return _random_differ
    is_single = case.action.rules == "spec" or bool(operators & _SINGLE)
    return partial(difference, single=is_single, near_zero=bool(operators & _NEAR_ZERO))


def _differs(wanted: Sequence[Any], got: Sequence[Any], compare: _Comparison) -> str:
    if len(wanted) != len(got):
        return f"{len(got)} outputs instead of {len(wanted)}"
    for at, (one, other) in enumerate(zip(wanted, got, strict=True)):
        problem = compare(one, other)
        if problem:
            return f"output {at}: {problem}"
    return ""


def _random_differ(wanted: Any, got: Any) -> str:
    """How shapes and types of random numbers differ."""
    return difference(np.zeros_like(wanted), np.zeros_like(got))
