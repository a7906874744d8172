"""The ten Reduce operators keep their numbers across every boundary, in every form and every place."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from onnx import checker, defs

import reducelower
from tests.legalization.models import FORMS, OPERATORS, PLACES, Case, sample
from tests.models import everywhere, yields
from tests.pairwise import pairwise

# Every boundary of a Reduce operator alone, both ways, and conversions across several of them.
_BOUNDARIES = tuple(itertools.pairwise((9, 11, 12, 13, 17, 18, 20, 28)))
PAIRS = [
    *_BOUNDARIES,
    *((newer, older) for older, newer in _BOUNDARIES),
    *((18, 13), (18, 11), (20, 9), (28, 13), (13, 18), (1, 13), (11, 28)),
]


def convert_and_compare(case: Case, target: int) -> None:
    data = sample(case.dtype, case.shape)
    model = case.model()
    checker.check_model(model, full_check=True)
    before = model.SerializeToString()
    converted = reducelower.convert_version(model, target)
    assert model.SerializeToString() == before
    checker.check_model(converted, full_check=True)
    assert [entry.version for entry in converted.opset_import if not entry.domain] == [target]
    (result,) = yields(converted, {"x": data})
    expected = case.expected(data)
    if target < 27 and np.dtype(case.dtype).kind != "u":  # The reference evaluator, which runs those, widens sums.
        assert result.dtype == expected.dtype
    assert result.shape == expected.shape, (case, target)
    tolerance = 2e-2 if case.dtype == np.float16 else 1e-5
    said = f"{case} to {target}"
    np.testing.assert_allclose(result.astype(np.float64), expected.astype(np.float64), rtol=tolerance, err_msg=said)


KEEPDIMS_AND_NOOP = ((None, 0, 1), (None, 0, 1))


def _can_be_said(op_type: str, pair: tuple[int, int], form: str, keepdims: int | None, noop: int | None) -> bool:
    case = Case(op_type, pair[0], form, keepdims, noop)
    return case.is_possible() and not (min(case.given_axes or (0,)) < 0 and max(pair) < 11)


FORMS_AT_BOUNDARIES = pairwise(OPERATORS, PAIRS, FORMS, *KEEPDIMS_AND_NOOP, possible=_can_be_said)


@pytest.mark.opset("pair")
@pytest.mark.parametrize("pair", PAIRS, ids="{0[0]}-{0[1]}".format)
def test_every_form_of_axes_keeps_its_numbers(pair: tuple[int, int]) -> None:
    rows = [row for row in FORMS_AT_BOUNDARIES if row[1] == pair]
    assert {row[0] for row in rows} == set(OPERATORS)
    for op_type, (source, target), form, keepdims, noop in rows:
        convert_and_compare(Case(op_type, source, form, keepdims, noop), target)


AT_PLACES = pairwise(
    OPERATORS,
    PLACES[1:],
    ((18, 13), (18, 11), (13, 18), (11, 21), (20, 15), (21, 17)),
    ("absent", "one", "several", "Constant value", "outer"),
    (None, 0),
    possible=lambda op_type, place, pair, form, keepdims: Case(op_type, pair[0], form, keepdims).is_possible(),
)


@pytest.mark.parametrize("place", PLACES[1:])
def test_every_place_keeps_its_numbers(place: str) -> None:
    for op_type, where, (source, target), form, keepdims in AT_PLACES:
        if where == place:
            convert_and_compare(Case(op_type, source, form, keepdims, place=place), target)


FLOATS_AND_INTEGERS = (np.float16, np.float64, np.int32, np.int64, np.uint32, np.uint64)
NARROW = (np.int8, np.uint8, np.bool_)


def takes(op_type: str, dtype: type, source: int, target: int) -> bool:
    """Whether the operator takes an element type, by its pages, and a runtime has kernels for it on both sides."""
    if dtype in NARROW:
        return op_type in ("ReduceMax", "ReduceMin") and source >= (20 if dtype == np.bool_ else 12)
    has_logarithm = op_type in ("ReduceLogSum", "ReduceLogSumExp")
    # Opset 28 takes no integers; below it runtimes have no kernel for them, or one that truncates on the way.
    return not (has_logarithm and np.dtype(dtype).kind in "iu")


OPSETS = tuple(opset for opset in (9, 11, 12, 13, 17, 18, 20, 28) if opset <= defs.onnx_opset_version())
AT_ELEMENT_TYPES = pairwise(OPERATORS, (*FLOATS_AND_INTEGERS, *NARROW), OPSETS[1:], OPSETS, possible=takes)


@pytest.mark.parametrize("dtype", [*FLOATS_AND_INTEGERS, *NARROW])
def test_every_element_type_keeps_its_numbers(dtype: type) -> None:
    for op_type, taken, source, target in AT_ELEMENT_TYPES:
        if taken == dtype:
            for form in ("absent", "one"):
                convert_and_compare(Case(op_type, source, form, dtype=dtype), target)


@pytest.mark.parametrize("target", [9, 11, 13, 18])
def test_noop_reduction_leaves_only_the_elementwise_step(target: int) -> None:
    forms = pairwise(OPERATORS, ("absent", "empty", "empty name"), (None, 0, 1))
    for op_type, form, keepdims in forms:
        convert_and_compare(Case(op_type, 20, form, keepdims, 1), target)


OF_NOTHING = {
    "ReduceL1": 0.0,
    "ReduceL2": 0.0,
    "ReduceLogSum": -np.inf,
    "ReduceLogSumExp": -np.inf,
    "ReduceMax": -np.inf,
    "ReduceMin": np.inf,
    "ReduceProd": 1.0,
    "ReduceSum": 0.0,
    "ReduceSumSquare": 0.0,
}
"""What the operators' pages say about reducing an empty set of values."""


@pytest.mark.parametrize("op_type", OPERATORS)
def test_rank_0_and_empty_dimensions(op_type: str) -> None:
    for target in (11, 13, 18):
        convert_and_compare(Case(op_type, 20, "absent", shape=()), target)
        for keepdims in (0, 1):
            case = Case(op_type, 20, "one", keepdims, shape=(2, 0, 4))
            (result,) = yields(
                reducelower.convert_version(case.model(), target), {"x": np.zeros((2, 0, 4), np.float32)}
            )
            assert result.shape == ((2, 1, 4) if keepdims else (2, 4))
            if op_type != "ReduceMean":  # The mean of nothing is not defined.
                assert set(result.reshape(-1).tolist()) == {OF_NOTHING[op_type]}


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint8])
@pytest.mark.parametrize("target", [11, 18])
def test_the_extreme_of_nothing_is_the_end_of_the_narrow_type(op_type: str, dtype: type, target: int) -> None:
    case = Case(op_type, 20, "one", 1, shape=(2, 0, 4), dtype=dtype)
    (result,) = yields(reducelower.convert_version(case.model(), target), {"x": np.zeros((2, 0, 4), dtype)})
    lowest, highest = (False, True) if dtype is np.bool_ else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    assert result.tolist() == [[[lowest if op_type == "ReduceMax" else highest] * 4]] * 2


def test_no_noop_attribute_is_left_below_its_opset() -> None:
    for op_type in OPERATORS:
        converted = reducelower.convert_version(Case(op_type, 20, "one", noop=0).model(), 11)
        (node,) = converted.graph.node
        assert {attribute.name for attribute in node.attribute} == {"axes"}
        assert not converted.graph.initializer


def test_a_noop_reduction_does_not_remain_a_reduction() -> None:
    for op_type in OPERATORS:
        converted = reducelower.convert_version(Case(op_type, 20, "empty", noop=1).model(), 11)
        assert not any(name.startswith("Reduce") for name in everywhere(converted))
        assert not converted.graph.initializer
