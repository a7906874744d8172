"""The ten Reduce operators keep their numbers across every boundary, in every form and every place."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from onnx import checker

import reducelower
from tests.legalization.models import FORMS, OPERATORS, PLACES, Case, operators_of, sample
from tests.legalization.running import run

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
    (result,) = run(converted, {"x": data})
    expected = case.expected(data)
    if target < 27 and np.dtype(case.dtype).kind != "u":  # The reference evaluator, which runs those, widens sums.
        assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    tolerance = 2e-2 if case.dtype == np.float16 else 1e-5
    np.testing.assert_allclose(result.astype(np.float64), expected.astype(np.float64), rtol=tolerance)


@pytest.mark.opset("pair")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("pair", PAIRS, ids="{0[0]}-{0[1]}".format)
@pytest.mark.parametrize("op_type", OPERATORS)
def test_every_form_of_axes_keeps_its_numbers(op_type: str, pair: tuple[int, int], form: str) -> None:
    source, target = pair
    tried = 0
    for keepdims, noop in itertools.product((None, 0, 1), (None, 0, 1)):
        case = Case(op_type, source, form, keepdims, noop)
        axes = case.given_axes
        if not case.is_possible() or (axes and min(axes) < 0 and target < 11 and source < 11):
            continue
        convert_and_compare(Case(op_type, source, form, keepdims, noop), target)
        tried += 1
    if not tried:
        pytest.skip("this opset version cannot say it")


@pytest.mark.parametrize("place", PLACES[1:])
@pytest.mark.parametrize("pair", [(18, 13), (18, 11), (13, 18), (11, 21), (20, 15), (21, 17)], ids=str)
@pytest.mark.parametrize("op_type", OPERATORS)
def test_every_place_keeps_its_numbers(op_type: str, pair: tuple[int, int], place: str) -> None:
    source, target = pair
    for form, keepdims in itertools.product(("absent", "one", "several", "Constant value", "outer"), (None, 0)):
        case = Case(op_type, source, form, keepdims, place=place)
        if case.is_possible():
            convert_and_compare(case, target)


ELEMENT_TYPES = dict.fromkeys(
    OPERATORS, (np.float16, np.float64, np.int32, np.int64, np.uint32, np.uint64)
) | dict.fromkeys(("ReduceMax", "ReduceMin"), (np.float16, np.float64, np.int32, np.int64, np.int8, np.uint8, np.bool_))


def takes(op_type: str, opset: int, dtype: type) -> bool:
    """Since which opset version the operator takes an element type: the operators' pages."""
    if dtype == np.bool_:
        return opset >= 20
    if dtype in (np.int8, np.uint8):
        return opset >= 12
    return not (opset >= 28 and op_type in ("ReduceLogSum", "ReduceLogSumExp") and np.dtype(dtype).kind in "iu")


@pytest.mark.opset("source", "target")
@pytest.mark.parametrize("target", [9, 11, 12, 13, 17, 18, 20, 28])
@pytest.mark.parametrize("source", [11, 13, 18, 20, 28])
@pytest.mark.parametrize("op_type", OPERATORS)
def test_every_element_type_keeps_its_numbers(op_type: str, source: int, target: int) -> None:
    for dtype, form in itertools.product(ELEMENT_TYPES[op_type], ("absent", "one")):
        if not takes(op_type, source, dtype):
            continue
        logarithm = op_type in ("ReduceLogSum", "ReduceLogSumExp")
        if logarithm and np.dtype(dtype).kind in "iu" and target < 28:
            continue  # Runtimes have no kernel for it, or one that truncates on the way.
        convert_and_compare(Case(op_type, source, form, dtype=dtype), target)


@pytest.mark.parametrize("target", [9, 11, 13, 18])
@pytest.mark.parametrize("op_type", OPERATORS)
def test_noop_reduction_leaves_only_the_elementwise_step(op_type: str, target: int) -> None:
    for form in ("absent", "empty", "empty name"):
        for keepdims in (None, 0, 1):
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


@pytest.mark.parametrize("target", [11, 13, 18])
@pytest.mark.parametrize("op_type", OPERATORS)
def test_rank_0_and_empty_dimensions(op_type: str, target: int) -> None:
    source = 20 if target != 20 else 13
    convert_and_compare(Case(op_type, source, "absent", shape=()), target)
    for keepdims in (0, 1):
        case = Case(op_type, source, "one", keepdims, shape=(2, 0, 4))
        converted = reducelower.convert_version(case.model(), target)
        (result,) = run(converted, {"x": np.zeros((2, 0, 4), np.float32)})
        assert result.shape == ((2, 1, 4) if keepdims else (2, 4))
        if op_type != "ReduceMean":  # The mean of nothing is not defined.
            assert set(result.reshape(-1).tolist()) == {OF_NOTHING[op_type]}


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint8])
@pytest.mark.parametrize("target", [11, 18])
def test_the_extreme_of_nothing_is_the_end_of_the_narrow_type(op_type: str, dtype: type, target: int) -> None:
    case = Case(op_type, 20, "one", 1, shape=(2, 0, 4), dtype=dtype)
    (result,) = run(reducelower.convert_version(case.model(), target), {"x": np.zeros((2, 0, 4), dtype)})
    lowest, highest = (False, True) if dtype is np.bool_ else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    assert result.tolist() == [[[lowest if op_type == "ReduceMax" else highest] * 4]] * 2


@pytest.mark.parametrize("op_type", OPERATORS)
def test_no_noop_attribute_is_left_below_its_opset(op_type: str) -> None:
    converted = reducelower.convert_version(Case(op_type, 20, "one", noop=0).model(), 11)
    (node,) = converted.graph.node
    assert {attribute.name for attribute in node.attribute} == {"axes"}
    assert not converted.graph.initializer


@pytest.mark.parametrize("op_type", OPERATORS)
def test_a_noop_reduction_does_not_remain_a_reduction(op_type: str) -> None:
    converted = reducelower.convert_version(Case(op_type, 20, "empty", noop=1).model(), 11)
    assert not any(name.startswith("Reduce") for name in operators_of(converted.graph))
    assert not converted.graph.initializer
