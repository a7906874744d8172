"""Shrink a case with a finding to the smallest part of its model that shows one."""

from __future__ import annotations

from collections.abc import Mapping
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
    part = smallest_part(whole, _inside(case), partial(_verdict, case))
    return case if part is None else _of_part(case, part.case)


def _of_part(case: Case, part: Whole) -> Case:
    return replace(case, model=ModelProto.FromString(part.model), feeds=part.inputs)


def _verdict(case: Case, part: Whole) -> Verdict:
    return Verdict("wrong" if judge(_of_part(case, part)).is_finding else "right")


def _inside(case: Case) -> Mapping[str, Any]:
    """The values inside a model, if a runtime computes them."""
    model = ModelProto.FromString(case.model.SerializeToString())
    names = list(dict.fromkeys(name for node in model.graph.node for name in node.output if name))
    del model.graph.output[:]
    model.graph.output.extend(ValueInfoProto(name=name) for name in names)
    outcomes = (run(runtime, model, case.feeds).values for runtime in RUNTIMES)
    values = next((values for values in outcomes if values is not None), None)
    return {} if values is None else dict(zip(names, values, strict=True))
