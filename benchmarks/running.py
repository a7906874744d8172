"""Expanded models in onnxruntime, and the time of verification."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from measuring import Line, at_most, duration, take_turns
from models import chain, reduction
from onnx import ModelProto

import reducelower
from reducelower.api import legalize
from reducelower.verification import verify_regions

__all__ = ["latency", "verification"]


def _session(model: ModelProto) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def latency(*, quick: bool) -> Iterator[Line]:
    """The operator and its expansions, with optimizations; the ratio is how many times longer the expansions take."""
    shapes = ([2, 8],) if quick else ([64, 1024, 1024], [8, 512])
    generator = np.random.default_rng(0)
    for shape in shapes:
        feeds = {"x": generator.standard_normal(shape, np.float32)}
        rounds = 1 if quick else 7 if len(shape) == 3 else 500
        for op_type in ("ReduceLogSumExp", "ReduceL2", "ReduceL1"):
            model = reduction(op_type, shape)
            sessions = {"fused": _session(model)}
            for rules in ("spec", "stable", "core"):
                sessions[rules] = _session(reducelower.expand(model, ops=[op_type], rules=rules))
            runs = {name: partial(session.run, None, feeds) for name, session in sessions.items()}
            times = take_turns(runs, rounds)
            for rules in ("spec", "stable", "core"):
                yield at_most(f"onnxruntime, {op_type} {shape}, {rules}", times[rules], times["fused"], "fused", None)


def verification(*, quick: bool) -> Iterator[Line]:
    """Verification of a long chain, compared with loading it once in onnxruntime."""
    length = 50 if quick else 50_000
    before = ModelProto.FromString(chain(length, 13))
    legalized = legalize(before, reducelower.Target(18))
    start = time.perf_counter()
    _session(before)
    loading = time.perf_counter() - start
    start = time.perf_counter()
    sites = verify_regions(before, legalized.model, legalized.plan).findings
    by_sites = time.perf_counter() - start
    whose = "loading it once in onnxruntime"
    yield at_most(f"verify 13 -> 18 by sites, {length:,} nodes ({len(sites)} distinct)", by_sites, loading, whose, 1)
    start = time.perf_counter()
    outcome = reducelower.verify(before, legalized.model, plan=legalized.plan)
    verifying = time.perf_counter() - start
    words = "equivalent" if outcome.equivalent else "not equivalent"
    yield Line(
        f"verify 13 -> 18 by sites and whole, {length:,} nodes ({words})",
        duration(verifying),
        f"{duration(loading)} {whose}",
        verifying / loading,
    )
