"""A result for a runtime is settled: for the same runtime nothing of it is rewritten or refused again, unless told."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import onnx
import pytest
from onnx import ModelProto, checker
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests

from reducelower import ConversionError, Target, check, legalize, load_runtime, verify
from tests.models import model


@cache
def cases() -> Sequence[TestCase]:
    """Some of onnx's own cases."""
    return [case for case in load_model_tests(kind="node") if case.model is not None][::41]


@pytest.mark.xdist_group("onnx's cases")
@pytest.mark.parametrize("runtime", ["openvino", "rknn", "mnn", "opencv@4.14", "pnnx"])
def test_results_of_many_operators_are_settled(runtime: str) -> None:
    known = load_runtime(runtime)
    opsets = [opset for opset in (21, 17, 13, 11) if opset in known.reads]
    for number, case in enumerate(cases()):
        target = Target(opsets[number % len(opsets)], runtime=known)
        try:
            found = legalize(case.model, target)
        except ConversionError:
            continue
        assert is_settled(found.model, target), case.name


def is_settled(given: ModelProto, target: Target) -> bool:
    try:
        return legalize(given, target).model == given
    except ConversionError:
        return False


# What is written in the first pass is got wrong in turn: branches for axes known at run time; a mean over every axis.
WRITTEN_ONLY_THEN = {
    "branches": ("openvino", 17, "g (float[2, 3] x, int64[K] a) => (float[A, B] y) { y = ReduceMax (x, a) }", 18),
    "a mean": (
        "rknn", 13,
        "g (float[3, 4] x, float[3, 4] s) => (float[3, 4] y) { y = RMSNormalization <axis = 0> (x, s) }", 23,
    ),
    "rounding": (
        "mnn", 21,
        'g (float[1, 1, 4, 4] x, float[1, 3, 3, 2] p) => (float[A, B, C, D] y) '
        '{ y = GridSample <mode = "nearest"> (x, p) }', 22,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WRITTEN_ONLY_THEN)
def test_what_is_written_is_looked_at_again(what: str) -> None:
    runtime, opset, text, own = WRITTEN_ONLY_THEN[what]
    source = model(text, own, 9)
    target = Target(opset, runtime=load_runtime(runtime))
    found = legalize(source, target)
    checker.check_model(found.model, full_check=True)
    assert is_settled(found.model, target)
    assert not check(found.model, target=target).refusals
    # The plan's sites are where the plan says that they are.
    assert [site.op_type for site in found.plan.sites] == [node.op_type for node in source.graph.node]
    verdict = verify(source, found.model, plan=found.plan)
    assert verdict.equivalent and verdict.sites, verdict
    assert all(site.ok and site.status != "not run" for site in verdict.sites), verdict.sites
    changed = ModelProto()
    changed.CopyFrom(source)
    legalize(changed, target, in_place=True)
    assert changed == found.model


@pytest.mark.parametrize("in_place", [False, True])
def test_what_nothing_mends_afterwards_is_refused(in_place: bool) -> None:
    text = "(uint8[4] x, uint8[4] z) => (uint8[4] y) { a = Identity (x)  [quotient] y = Div (a, z) }"
    source = model(text, 14)
    with pytest.raises(ConversionError) as found:
        legalize(source, Target(11, runtime=load_runtime("opencv@4.14")), in_place=in_place)
    (refusal,) = found.value.refusals
    assert (refusal.node, refusal.operator) == ("quotient", "Div")
    assert "The quotient of integers keeps its fraction" in refusal.reason
    assert source == model(text, 14)


def test_a_site_of_a_later_pass_is_a_site_of_the_source() -> None:
    text = """(float[1, 1, 4, 4] x, float[1, 3, 3, 2] p, float[4] v) => (float[A, B, C, D] y, float[4] z) {
        z = Abs (v)  y = GridSample <mode = "nearest"> (x, p) }"""
    source = model(text, 22, 9)
    found = legalize(source, Target(21, runtime=load_runtime("mnn")))
    assert [(site.index, site.op_type) for site in found.plan.sites if site.op_type == "GridSample"] == [
        (1, "GridSample")
    ]
    assert onnx.checker.check_model(found.model, full_check=True) is None


@pytest.mark.parametrize("runtime", ["opencv", "mnn"])
def test_allowzero_is_a_fault_only_where_a_zero_is_asked_for(runtime: str) -> None:
    """torch's dynamo writes it at every Reshape whose target it computes."""
    text = """(float[n, 4, 6] x) => (float[a, b] y) <int64[1] k = {24}, int64[2] z = {0, 24}> {
            s = Shape<start = 0, end = 1>(x) t = Concat<axis = 0>(s, k)
            r = Reshape<allowzero = 1>(x, TARGET) y = Relu(r)
        }"""
    target = Target(runtime=load_runtime(runtime))
    computed = model(text.replace("TARGET", "t"))
    reshape = computed.graph.node[2]
    assert reshape in legalize(computed, target).model.graph.node
    given = legalize(model(text.replace("TARGET", "z")), target).model
    assert not any(attribute.name == "allowzero" for node in given.graph.node for attribute in node.attribute)
