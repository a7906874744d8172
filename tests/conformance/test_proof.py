"""The comparison of before and after says which way each case went."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable

import pytest
from onnx import helper, load_model_from_string

from reducelower.conformance.mending import Change, Converted, compare
from reducelower.conformance.process import Worker
from reducelower.conformance.running import probe
from reducelower.conformance.suite import suite
from reducelower.errors import ConversionError, Refusal
from reducelower.model.schemas import REDUCTIONS
from tests.conformance.made import fake, reductions
from tools.conformance.proof import is_left, sample, step

CASES = [
    case
    for case in reductions("ReduceSum")
    if case.opset == 18 and case.features.element_types == "float" and case.features.axes == "initializer"
]
UNSET = sum(case.features.keepdims == "unset" for case in CASES)


def written(model: bytes) -> bytes:
    """Write keepdims where it is not: what heals the fake."""
    changed = load_model_from_string(model)
    node = changed.graph.node[-1]
    if all(attribute.name != "keepdims" for attribute in node.attribute):
        node.attribute.append(helper.make_attribute("keepdims", 1))
    return bytes(changed.SerializeToString(deterministic=True))


def unwritten(model: bytes) -> bytes:
    """Leave keepdims out, which breaks what it says."""
    changed = load_model_from_string(model)
    del changed.graph.node[-1].attribute[:]
    return bytes(changed.SerializeToString(deterministic=True))


def refused(model: bytes) -> bytes:
    raise ConversionError([Refusal("graph", "reduce", "ReduceSum", "nothing helps")])


def changes(transform: Callable[[bytes], bytes]) -> list[Change]:
    with Worker(fake("without_keepdims_default"), 60) as worker:
        return compare(worker, probe(worker, CASES), lambda model: Converted(transform(model)))


def test_what_is_healed_and_what_is_left_alone() -> None:
    found = changes(written)
    assert Counter(step(change) for change in found) == {
        "wrong -> right": UNSET,
        "right -> right": len(CASES) - UNSET,
    }
    assert sum(map(is_left, found)) == len(CASES) - UNSET
    assert not any(change.is_bad for change in found)


def test_what_is_broken_is_bad() -> None:
    found = [change for change in changes(unwritten) if change.before.word == "right" and not is_left(change)]
    assert found
    assert all(change.is_bad for change in found if step(change) == "right -> wrong")
    assert any(step(change) == "right -> wrong" for change in found)


def test_a_refusal_is_bad_only_for_what_was_right() -> None:
    found = changes(refused)
    assert {step(change) for change in found} == {
        "right -> refused by the conversion",
        "wrong -> refused by the conversion",
    }
    assert all(change.is_bad == (change.before.word == "right") for change in found)
    assert "nothing helps" in found[0].after.detail


def test_a_sample_is_the_same_each_time_and_spread_over_operators_and_opset_versions() -> None:
    cases = suite()
    chosen = sample(cases, 600)
    assert [case.name for case in chosen] == [case.name for case in sample(cases, 600)]
    assert len(chosen) == 600
    for operator, opset in itertools.product(REDUCTIONS, (11, 13, 18)):
        all_of_it, some = (
            sum((case.operator, case.opset) == (operator, opset) for case in of) for of in (cases, chosen)
        )
        assert some == pytest.approx(all_of_it / 5, abs=5)
    assert sample(cases, len(cases) + 1) == cases
