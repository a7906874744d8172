"""Expanding and raising gives the original operators back, and the same numbers."""

from __future__ import annotations

from itertools import cycle, product
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto

import reducelower
from reducelower.recompose import raise_with_plan
from tests.legalization.models import FORMS, Case, sample
from tests.models import model, yields
from tests.pairwise import pairwise
from tests.recompose.listed import operators_by_graph

MODELS = sorted((Path(__file__).parents[1] / "data" / "models").glob("*.onnx"))
BOOKS = ("spec", "stable", "core")
RAISED = ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceMin", "ReduceSumSquare")


@pytest.mark.parametrize(
    ("path", "book"), list(zip(MODELS, cycle(BOOKS), strict=False)), ids=lambda each: getattr(each, "stem", each)
)
def test_a_model_of_an_exporter_gets_its_operators_back(path: Path, book: str) -> None:
    model = onnx.load(path)
    # Some of the models hold forms that scikit-learn's converter wrote, Softmax and ReduceMean as the specification has
    # them.
    itself = raise_with_plan(model, ops=RAISED)
    for rules in {book, "core"}:
        expanded = reducelower.expand(model, rules=rules)
        raised = raise_with_plan(expanded, ops=RAISED)
        onnx.checker.check_model(raised.model, full_check=True)
        assert operators_by_graph(raised.model) == operators_by_graph(itself.model)
        assert len(raised.plan.sites) == _replaced(model, rules) + len(itself.plan.sites)


def _replaced(model: ModelProto, book: str) -> int:
    return len(reducelower.check(model, target=reducelower.Target(None, frozenset(_rules(book))), rules=book).sites)


def _rules(book: str) -> tuple[str, ...]:
    return RAISED if book == "core" else tuple(name for name in RAISED if name not in ("ReduceMean", "ReduceMin"))


@pytest.mark.parametrize(
    "name", ["skl_gmm_20", "skl_bnb_15", "torch_cond_dyn_21", "torch_amin_ts_9", "torch_n1_dyn_20"]
)
@pytest.mark.parametrize("book", BOOKS)
def test_a_raised_model_verifies_as_a_whole_and_site_by_site(name: str, book: str, models: Path) -> None:
    expanded = reducelower.expand(onnx.load(models / f"{name}.onnx"), rules=book)
    raised = raise_with_plan(expanded)
    verified = reducelower.verify(expanded, raised.model, plan=raised.plan, strict=True)
    assert verified.equivalent, str(verified)
    assert sum(len(site.nodes) for site in verified.sites) == len(raised.plan.sites)


def test_types_that_are_stated_no_more_are_not_looked_for_in_branches() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 18]>
        g (float[3,4] x, bool b) => (float[n] o) <float e = {0.1}, float[4] s = {1, 1, 1, 1}, int64[1] k = {-1}> {
            m = ReduceMean (x, k) d = Sub (x, m) dd = Mul (d, d) v = ReduceMean (dd, k)
            a = Add (v, e) r = Sqrt (a) u = Div (d, r) y = Mul (u, s)
            z = If (b) <
                then_branch = t () => (float[d,1] p) { w = ReduceL1 (y, k) p = Identity (w) },
                else_branch = e () => (float[h,1] q) { q = ReduceL1 (x, k) }>
            o = Reshape (z, k)
        }
    """)
    raised = reducelower.raise_reductions(reducelower.expand(model, rules="core", ops=["ReduceMean"]))
    assert [node.op_type for node in raised.graph.node] == ["LayerNormalization", "If", "Reshape"]


def check_case(case: Case, book: str) -> None:
    model, data = case.model(), sample(case.dtype)
    expanded = reducelower.expand(model, ops=[case.op_type], rules=book)
    assert not any(case.op_type in graph for graph in operators_by_graph(expanded))
    raised = reducelower.raise_reductions(expanded)
    onnx.checker.check_model(raised, full_check=True)
    assert _computing(raised) == _computing(model)
    (result,) = yields(raised, {"x": data})
    expected = case.expected(data)
    assert result.shape == expected.shape
    np.testing.assert_allclose(
        result.astype(np.float64), expected.astype(np.float64), rtol=4e-3 if case.dtype is np.float16 else 1e-5
    )


def _computing(model: ModelProto) -> list[list[str]]:
    """The operators but for constants, which an expansion turns into initializers."""
    return [[name for name in graph if name != "Constant"] for graph in operators_by_graph(model)]


HOW = ((11, 0, None), (13, None, None), (18, 1, None), (18, 1, 0), (21, 0, None))
CASES = pairwise(
    FORMS,
    RAISED,
    HOW,
    possible=lambda form, op_type, how: Case(op_type, how[0], form, how[1], how[2]).is_possible(),
)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_axes_comes_back(form: str) -> None:
    for _, op_type, (opset, keepdims, noop) in [row for row in CASES if row[0] == form]:
        check_case(Case(op_type, opset, form, keepdims, noop), "core")


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32, np.int64])
@pytest.mark.parametrize("book", BOOKS)
def test_every_element_type_comes_back(dtype: type, book: str) -> None:
    for op_type, opset in zip(_rules(book), cycle((13, 18)), strict=False):
        check_case(Case(op_type, opset, "one", 0, dtype=dtype), book)


@pytest.mark.parametrize("place", ["If", "nested If", "Loop", "Scan"])
def test_every_place_comes_back(place: str) -> None:
    for op_type, form in product(("ReduceL2", "ReduceLogSumExp"), ("one", "outer")):
        check_case(Case(op_type, 18, form, 0, place=place), "stable")


@pytest.mark.parametrize(("opset", "keepdims"), [(11, 0), (13, 1), (18, 0)])
def test_the_portable_rules_come_back(opset: int, keepdims: int) -> None:
    check_case(Case("ReduceL2", opset, "one", keepdims), "portable")


def test_raising_twice_changes_nothing() -> None:
    expanded = reducelower.expand(Case("ReduceLogSumExp", 18, "one").model(), rules="stable")
    once = reducelower.raise_reductions(expanded)
    assert reducelower.raise_reductions(once).SerializeToString() == once.SerializeToString()


def test_the_node_takes_over_what_the_last_one_said_of_itself() -> None:
    model = Case("ReduceL2", 18, "one").model()
    model.graph.node[0].doc_string = "the norm"
    model.graph.node[0].metadata_props.add(key="layer", value="7")
    raised = reducelower.raise_reductions(reducelower.expand(model, rules="stable"))
    (node,) = raised.graph.node
    assert (node.name, node.doc_string, node.metadata_props[0].value) == ("reduce", "the norm", "7")


def test_what_only_the_form_read_goes_with_it() -> None:
    model = Case("ReduceL2", 13, "one", keepdims=1).model()
    expanded = reducelower.expand(model, rules="stable")
    assert len(expanded.graph.initializer) > 4
    assert len(expanded.graph.value_info) > 9
    raised = reducelower.raise_reductions(expanded)
    assert not raised.graph.initializer
    assert not raised.graph.value_info


def test_functions_are_inlined_where_something_comes_back() -> None:
    body = '<domain: "local", opset_import: ["": 18]> f (a) => (b) { c = Exp (a)  b = Neg (c) }'
    text = "(float[2,3] x) => (float[2,1] y) <int64[1] one = {1}> { v = local.f (x)  %s }"
    spelled = model(text % "s = Mul (v, v)  r = ReduceSum (s, one)  y = Sqrt (r)", 18, functions=body)
    raised = raise_with_plan(spelled)
    assert [node.op_type for node in raised.model.graph.node] == ["Exp", "Neg", "ReduceL2"]
    assert reducelower.verify(spelled, raised.model, plan=raised.plan).equivalent
    without = model(text % "y = ReduceMax (v, one)", 18, functions=body)
    assert raise_with_plan(without).model == without


def test_a_raised_operator_may_lose_the_digits_that_its_definition_loses() -> None:
    """The body of GroupNormalization, which onnxruntime runs, subtracts the square of a mean from that of squares."""
    written = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21]> g (float[N, 4, H, W] x) => (float[N, 4, H, W] y)
        <int64[3] k = {0, 2, -1}, float[2] one = {1, 1}, float[2] zero = {0, 0},
         float[4, 1, 1] s = {0.7, -0.6, -0.5, 0.5}, float[4, 1, 1] b = {-0.5, 0.7, 2.3, -1.6}> {
            t = Shape (x)
            r = Reshape (x, k)
            i = InstanceNormalization (r, one, zero)
            q = Reshape (i, t)
            m = Mul (q, s)
            y = Add (m, b)
        }"""
    )
    raised = raise_with_plan(written)
    assert [node.op_type for node in raised.model.graph.node] == ["GroupNormalization"]
    assert reducelower.verify(written, raised.model, plan=raised.plan).equivalent
