"""Shrink a case with a finding to the smallest part of its model that shows one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from onnx import ModelProto, ValueInfoProto

from reducelower.conformance.bisection import smallest_part
from reducelower.conformance.case import Case as Whole
from reducelower.conformance.judging import Verdict
from reducelower.model.schemas import opset_of
from tools.fuzz.case import Case
from tools.fuzz.judging import judge
from tools.fuzz.runtimes import RUNTIMES, run

__all__ = ["shrink"]


def shrink(case: Case) -> Case:
    """The smallest part with a finding, any finding; the case itself if no part has one alone."""
    whole = Whole(case.name, "", opset_of(case.model), case.model.SerializeToString(), case.feeds, ())
    part = smallest_part(whole, partial(_inside, case), partial(_verdict, case))
    return case if part is None else _of_part(case, part.case)


def _of_part(case: Case, part: Whole) -> Case:
    return replace(case, model=ModelProto.FromString(part.model), feeds=part.inputs)


def _verdict(case: Case, part: Whole) -> Verdict:
    return Verdict("wrong" if judge(_of_part(case, part)).is_finding else "right")


def _inside(case: Case, names: Sequence[str]) -> Sequence[Any]:
    """The values inside a model, if a runtime computes them."""
    model = ModelProto.FromString(case.model.SerializeToString())
    del model.graph.output[:]
    model.graph.output.extend(ValueInfoProto(name=name) for name in names)
    outcomes = (run(runtime, model, case.feeds).values for runtime in RUNTIMES)
    return next((values for values in outcomes if values is not None), [None] * len(names))
