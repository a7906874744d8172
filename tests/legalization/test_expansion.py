"""Expansion: the operator is gone, the numbers stay, at every opset version and in every place."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from onnx import checker, helper

import reducelower
from tests.legalization.models import PLACES, Case, sample
from tests.models import everywhere, yields
from tests.pairwise import pairwise

COMPOSITES = ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare")
BOOKS = ("spec", "stable")
OPSETS = (7, 9, 11, 12, 13, 15, 17, 18, 20, 21, 26, 28)
FORMS = ("absent", "one", "several", "negative", "empty", "Constant value")


def expand_and_compare(case: Case, book: str) -> None:
    model = case.model()
    expanded = reducelower.expand(model, ops=[case.op_type], rules=book)
    checker.check_model(expanded, full_check=True)
    assert case.op_type not in everywhere(expanded)
    data = sample(case.dtype, case.shape)
    if case.opset == 7 and case.dtype == np.float64:
        return  # No runtime here has opset 7's Max for it; the model is checked above.
    (result,) = yields(expanded, {"x": data})
    expected = case.expected(data)
    assert result.shape == expected.shape, (case, book)
    tolerance = {np.float16: 2e-2, np.float64: 1e-6 if book == "spec" else 1e-14}.get(case.dtype, 2e-6)
    # Integer logarithms are small: one off in the last place of a double is one whole.
    absolute = 1 if np.dtype(case.dtype).kind in "iu" and "Log" in case.op_type else 0
    np.testing.assert_allclose(
        result.astype(np.float64), expected.astype(np.float64), tolerance, absolute, err_msg=f"{case}, {book}"
    )


AT_OPSETS = pairwise(
    OPSETS,
    COMPOSITES,
    BOOKS,
    FORMS,
    (None, 0),
    (None, 1),
    possible=lambda opset, op_type, book, *form: Case(op_type, opset, *form).is_possible(),
)


@pytest.mark.opset("opset")
@pytest.mark.parametrize("opset", OPSETS)
def test_every_form_of_axes_at_every_opset(opset: int) -> None:
    for _, op_type, book, form, keepdims, noop in [row for row in AT_OPSETS if row[0] == opset]:
        expand_and_compare(Case(op_type, opset, form, keepdims, noop), book)


def _runs(opset: int, op_type: str, book: str, dtype: type) -> bool:
    """Whether the operator takes the type, and a runtime has kernels for what comes out."""
    kind = np.dtype(dtype).kind
    if "Log" in op_type and opset >= 28:
        return kind == "f"
    return opset >= {"u": 13, "i": 9, "f": 7}[kind]


TYPES = (np.float16, np.float64, np.int32, np.int64, np.uint32, np.uint64)
TYPES_AT_OPSETS = pairwise(OPSETS, COMPOSITES, BOOKS, TYPES, possible=_runs)


@pytest.mark.opset("opset")
@pytest.mark.parametrize("opset", OPSETS)
def test_every_element_type_at_every_opset(opset: int) -> None:
    for _, op_type, book, dtype in [row for row in TYPES_AT_OPSETS if row[0] == opset]:
        expand_and_compare(Case(op_type, opset, "one", dtype=dtype), book)


AT_PLACES = pairwise(
    PLACES,
    (11, 13, 18, 21),
    COMPOSITES,
    ("absent", "several", "outer"),
    BOOKS,
    possible=lambda place, opset, op_type, form, book: Case(op_type, opset, form, place=place).is_possible(),
)


@pytest.mark.parametrize("place", PLACES)
def test_every_place(place: str) -> None:
    for _, opset, op_type, form, book in [row for row in AT_PLACES if row[0] == place]:
        expand_and_compare(Case(op_type, opset, form, place=place), book)


@pytest.mark.parametrize("opset", [9, 13, 18, 21])
@pytest.mark.parametrize("op_type", ["ReduceMin", "ReduceMean"])
def test_core_needs_only_sum_and_max(op_type: str, opset: int) -> None:
    types = (np.float32, np.float16, np.float64, np.int32, np.int64)
    if op_type == "ReduceMin" and opset >= 20:
        types = (*types, np.int8, np.uint8, np.bool_)
    for dtype, form in itertools.product(types, ("absent", "several")):
        case = Case(op_type, opset, form, dtype=dtype)
        expanded = reducelower.expand(case.model(), ops=[op_type], rules="core")
        checker.check_model(expanded, full_check=True)
        reductions = {name for name in everywhere(expanded) if name.startswith("Reduce")}
        assert reductions <= {"ReduceSum", "ReduceMax"}
        (result,) = yields(expanded, {"x": sample(dtype)})
        np.testing.assert_allclose(
            result.astype(float), case.expected(sample(dtype)).astype(float), rtol=1e-2 if dtype == np.float16 else 2e-6
        )


def test_new_names_come_from_the_node_and_its_marks_go_to_the_last() -> None:
    model = Case("ReduceL2", 18, "one").model()
    node = model.graph.node[0]
    node.name, node.doc_string = "norm", "of the rows"
    node.metadata_props.add(key="namespace", value="block/norm")
    expanded = reducelower.expand(model)
    *inner, last = expanded.graph.node
    assert (last.name, last.doc_string) == ("norm", "of the rows")
    assert [(entry.key, entry.value) for entry in last.metadata_props] == [("namespace", "block/norm")]
    assert last.output == node.output
    assert all(name.startswith("norm/ReduceL2/") for other in inner for name in (other.name, *other.output))
    assert len({other.name for other in expanded.graph.node}) == len(expanded.graph.node)


@pytest.mark.parametrize("place", ["main", "If", "function"])
def test_axes_become_attributes_where_no_initializer_may_stand_alone(place: str) -> None:
    for op_type, book, form, opset in pairwise(COMPOSITES, BOOKS, ("one", "several", "negative"), (7, 8)):
        model = Case(op_type, opset, form, place=place).model()
        model.ir_version = 3
        for tensor in model.graph.initializer:
            value = helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            model.graph.input.append(value)
        checker.check_model(model, full_check=True)
        expanded = reducelower.expand(model, ops=[op_type], rules=book)
        checker.check_model(expanded, full_check=True)
        assert expanded.ir_version == 3
        assert [value.name for value in expanded.graph.input] == [value.name for value in model.graph.input]
        assert op_type not in everywhere(expanded)
        assert "Cast" not in {
            node.op_type for node in expanded.graph.node if any("axes" in name for name in node.input)
        }
