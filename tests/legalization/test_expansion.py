"""Expansion: the operator is gone, the numbers stay, at every opset version and in every place."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from onnx import TensorProto, checker, helper, numpy_helper, parser

import reducelower
from reducelower import ConversionError
from tests.legalization.models import PLACES, Case, sample
from tests.legalization.test_hard_axes import AXES, dynamic_model
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


@pytest.mark.parametrize("book", BOOKS)
@pytest.mark.parametrize("op_type", COMPOSITES)
def test_dynamic_axes_stay_an_input(op_type: str, book: str) -> None:
    for keepdims, noop in itertools.product((None, 0), (None, 1)):
        model = dynamic_model(op_type, 18, keepdims, noop)
        expanded = reducelower.expand(model, rules=book)
        assert op_type not in everywhere(expanded)
        assert "If" not in everywhere(expanded)
        data = sample(np.float32)
        for axes in AXES:
            feeds = {"x": data, "axes": np.array(axes, np.int64)}
            (before,), (after,) = yields(model, feeds), yields(expanded, feeds)
            assert before.shape == after.shape
            np.testing.assert_allclose(after, before, rtol=2e-6)


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


def test_convert_can_change_the_opset_and_remove_operators_at_once() -> None:
    case = Case("ReduceLogSumExp", 20, "several")
    converted = reducelower.convert_version(case.model(), 11, without=["ReduceLogSumExp"], rules="stable")
    checker.check_model(converted, full_check=True)
    assert "ReduceLogSumExp" not in everywhere(converted)
    (result,) = yields(converted, {"x": sample(np.float32)})
    np.testing.assert_allclose(result, case.expected(sample(np.float32)), rtol=2e-6)


def test_only_the_operators_named_are_replaced() -> None:
    model = Case("ReduceL1", 18, "one").model()
    assert reducelower.expand(model, ops=["ReduceL2"]) == model


def test_an_operator_without_a_rule_is_refused() -> None:
    with pytest.raises(ConversionError, match="no rule for ReduceProd"):
        reducelower.expand(Case("ReduceProd", 18, "one").model(), ops=["ReduceProd"])


def test_float64_can_be_kept_out() -> None:
    model = Case("ReduceLogSum", 18, "one", dtype=np.int32).model()
    with pytest.raises(ConversionError, match="double"):
        reducelower.expand(model, without_types=["double"])
    floats = Case("ReduceLogSumExp", 13, "one").model()
    expanded = reducelower.expand(floats, rules="stable", without_types=["double"])
    tensors = [numpy_helper.to_array(tensor).dtype for tensor in expanded.graph.initializer]
    assert np.float64 not in tensors
    doubles = Case("ReduceL2", 13, "one", dtype=np.float64).model()
    assert reducelower.expand(doubles, rules="stable", without_types=["double"])


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


def test_names_do_not_collide_with_those_of_the_model() -> None:
    model = Case("ReduceL1", 18, "one").model()
    model.graph.node[0].name = "n"
    model.graph.node.add(op_type="Relu", name="n/ReduceL1/magnitude", input=["x"], output=["n/ReduceL1/magnitude"])
    expanded = reducelower.expand(model)
    checker.check_model(expanded, full_check=True)


def test_the_type_of_new_values_is_stated_where_it_is_known() -> None:
    model = Case("ReduceL2", 18, "one", dtype=np.float16).model()
    expanded = reducelower.expand(model)
    stated = {value.name: value.type.tensor_type.elem_type for value in expanded.graph.value_info}
    made = {name for node in expanded.graph.node for name in node.output} - {"y"}
    assert made <= stated.keys()
    assert set(stated.values()) == {TensorProto.FLOAT16, TensorProto.FLOAT}


def test_equal_constants_are_shared() -> None:
    graph = helper.make_graph(
        [helper.make_node("ReduceLogSumExp", [f"v{i}"], [f"v{i + 1}"], name=f"n{i}", keepdims=1) for i in range(5)],
        "g",
        [helper.make_tensor_value_info("v0", TensorProto.FLOAT, ["N", 3])],
        [helper.make_tensor_value_info("v5", TensorProto.FLOAT, [1, 1])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    expanded = reducelower.expand(model, rules="stable")
    values = [numpy_helper.to_array(tensor).tobytes() for tensor in expanded.graph.initializer]
    assert len(values) == len(set(values))


EXTREMES = {
    "LogSumExp of large": ("ReduceLogSumExp", [1000.0, 999.0], 1000.3132616875182),
    "LogSumExp of small": ("ReduceLogSumExp", [-1000.0, -1001.0], -999.6867383124818),
    "L2 of large": ("ReduceL2", [1e30, 1e30], 1.4142135623730951e30),
    "L2 of tiny": ("ReduceL2", [1e-30, 1e-30], 1.4142135623730951e-30),
    "LogSum of large": ("ReduceLogSum", [3e38, 3e38], 89.28999300300180),
}
"""Values that overflow or underflow on the way in the specification's bodies; answers from exact arithmetic."""


@pytest.mark.parametrize("opset", [7, 9, 11, 13, 18, 21])
@pytest.mark.parametrize("name", EXTREMES)
def test_the_stable_rules_give_every_finite_answer(name: str, opset: int) -> None:
    op_type, values, expected = EXTREMES[name]
    data = np.array([[values]], np.float32)
    expanded = reducelower.expand(Case(op_type, opset, "several", axes=(2,)).model(), rules="stable")
    (result,) = yields(expanded, {"x": data})
    np.testing.assert_allclose(result.reshape(-1), [expected], rtol=4 * np.finfo(np.float32).eps)


def test_opset_1_takes_rules_without_cast_and_broadcasting_and_the_refusal_names_them() -> None:
    case = Case("ReduceLogSum", 1, "one")
    with pytest.raises(ConversionError, match="--rules spec works here"):
        reducelower.expand(case.model(), rules="stable")
    expanded = reducelower.expand(case.model(), rules="spec")
    checker.check_model(expanded, full_check=True)
    assert everywhere(expanded) == {"ReduceSum", "Log"}
    assert everywhere(reducelower.expand(Case("ReduceL1", 1, "one").model(), rules="stable")) == {"Abs", "ReduceSum"}


@pytest.mark.parametrize("name", ["Thing", "ReduceThing", "ReduceSum"])
def test_functions_may_be_named_like_reductions(name: str) -> None:
    """What they are called tells nothing of them in a domain of their own."""
    model = parser.parse_model(
        f"""
        <ir_version: 8, opset_import: ["": 18, "my": 1]>
        g (float[2, 3] x, int64[1] axes) => (float[P, Q] y) {{ y = my.{name} (x, axes) }}
        <domain: "my", opset_import: ["": 18]>
        {name} (d, a) => (r) {{ r = ReduceLogSumExp (d, a) }}
        """
    )
    expanded = reducelower.expand(model, rules="stable")
    assert "ReduceLogSumExp" not in {node.op_type for node in expanded.functions[0].node}
    data = np.float32([[1, 2, 3], [4, 5, 6]])
    (result,) = yields(expanded, {"x": data, "axes": np.int64([1])})
    np.testing.assert_allclose(result, np.log(np.exp(data).sum(1, keepdims=True)), rtol=1e-6)


def test_sizes_that_are_not_known_are_given_no_names() -> None:
    """Inference calls each of them something, which may be what the model calls another."""
    model = parser.parse_model(
        """
        <ir_version: 8, opset_import: ["": 18]>
        g (float[N, M] x, int64[1] axes) => (float[P, Q] y) { y = ReduceLogSumExp (x, axes) }
        """
    )
    for rules in ("spec", "stable"):
        stated = reducelower.expand(model, rules=rules).graph.value_info
        names = [[dim.dim_param for dim in value.type.tensor_type.shape.dim] for value in stated]
        assert ["", ""] in names
        assert {name for sizes in names for name in sizes} <= {"N", "M", ""}


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
