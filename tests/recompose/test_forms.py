"""What people write by hand is raised where it means the operator, and left alone where it does not."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

import reducelower
from reducelower.recompose import raise_with_plan
from tests.models import model, yields
from tests.recompose.listed import changed, operators_by_graph

DATA = np.random.default_rng(5).uniform(0.5, 2.5, (2, 3, 4)).astype(np.float32)


AXES = "int64[1] a = {1}"


def reducing(
    body: str, opset: int = 18, *, output: str = "float[r0, r1, r2] y", initializers: str = AXES
) -> ModelProto:
    """A model of one input x of shape [2, 3, 4]."""
    return model(f"(float[2, 3, 4] x) => ({output}) <{initializers}> {{ {body} }}", opset)


def operators(given: ModelProto, **options: object) -> list[str]:
    raised = reducelower.raise_reductions(given, **options)  # type: ignore[arg-type]
    onnx.checker.check_model(raised, full_check=True)
    (graph,) = operators_by_graph(raised)
    return graph


def table(name: str) -> dict[str, dict[str, Any]]:
    return tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


FORMS, LEFT = table("forms.toml"), table("others.toml")


def form(name: str) -> ModelProto:
    row = FORMS[name]
    return reducing(row["nodes"], row.get("opset", 18), initializers=row.get("constants", AXES))


def _lse(data: np.ndarray) -> np.ndarray:
    return np.log(np.exp(data.astype(np.float64)).sum(1, keepdims=True))


@pytest.mark.parametrize("name", FORMS)
def test_a_form_becomes_its_operator_and_keeps_its_numbers(name: str) -> None:
    given, op_type = form(name), FORMS[name]["becomes"]
    raised = raise_with_plan(given)
    assert operators(given) == [op_type]
    (result,) = yields(raised.model, {"x": DATA})
    np.testing.assert_allclose(result, eval(FORMS[name]["gives"], {**vars(np), "x": DATA}), rtol=1e-5)
    (site,) = raised.plan.sites
    assert (site.op_type, site.raised_from) == (op_type, tuple(range(len(given.graph.node))))
    verified = reducelower.verify(given, raised.model, plan=raised.plan, strict=True)
    assert verified.equivalent, str(verified)


def test_a_squeezed_maximum_is_raised_without_the_reduced_dimension() -> None:
    body = (
        "m = ReduceMax(x, a) d = Sub(x, m) e = Exp(d) s = ReduceSum<keepdims = 0>(e, a) "
        "l = Log(s) q = Squeeze(m, a) y = Add(l, q)"
    )
    given = reducing(body, output="float[r0, r2] y")
    raised = reducelower.raise_reductions(given)
    assert [node.op_type for node in raised.graph.node] == ["ReduceLogSumExp"]
    (result,) = yields(raised, {"x": DATA})
    np.testing.assert_allclose(result, _lse(DATA)[:, 0], rtol=1e-5)


def test_a_naive_form_gains_the_range_of_the_operator() -> None:
    given = form("LogSumExp")
    large = np.full((2, 3, 4), 500, np.float32)
    with np.errstate(over="ignore"):
        assert np.isinf(yields(given, {"x": large})[0]).all()
    (result,) = yields(reducelower.raise_reductions(given), {"x": large})
    np.testing.assert_allclose(result, 500 + np.log(3), rtol=1e-6)


def test_a_larger_form_wins_over_one_inside_it() -> None:
    given = reducing("e = Exp(x) s = ReduceSum(e, a) y = Log(s)")
    assert operators(given) == ["ReduceLogSumExp"]
    assert operators(given, ops=["ReduceLogSum"]) == ["Exp", "ReduceLogSum"]


def test_a_form_inside_is_taken_where_the_larger_one_is_not_closed() -> None:
    given = reducing("e = Exp(x) s = ReduceSum(e, a) y = Log(s)", output="float[r0, r1, r2] y, float[2, 3, 4] e")
    assert operators(given) == ["Exp", "ReduceLogSum"]


def test_only_the_operators_asked_for_are_raised() -> None:
    body = "m = Abs(x) b = ReduceSum(m, a) s = Mul(x, x) c = ReduceSum(s, a) y = Add(b, c)"
    assert operators(reducing(body), ops=["ReduceL1"]) == ["ReduceL1", "Mul", "ReduceSum", "Add"]
    with pytest.raises(ValueError, match="no form of 'ReduceProd'"):
        reducelower.raise_reductions(reducing(body), ops=["ReduceProd"])


def test_axes_known_at_run_time_are_kept_where_the_operator_takes_them() -> None:
    text = "(float[2, 3, 4] x, int64[1] a) => (float[r0, r1, r2] y) { m = Abs(x) y = ReduceSum(m, a) }"
    given = {opset: model(text, opset) for opset in (13, 18)}
    assert operators(given[18]) == ["ReduceL1"]
    assert list(reducelower.raise_reductions(given[18]).graph.node[0].input) == ["x", "a"]
    assert operators(given[13]) == ["Abs", "ReduceSum"]


def composites(given: ModelProto) -> list[str]:
    """The composite operators that read the model's input itself."""
    known = {row["becomes"] for row in FORMS.values()}
    return [node.op_type for node in given.graph.node if node.op_type in known and node.input[0] == "x"]


@pytest.mark.parametrize("name", LEFT)
def test_what_means_something_else_is_left_alone(name: str) -> None:
    held, nodes = LEFT[name].get("constants", AXES), LEFT[name]["nodes"]
    given = model(f"(float[2, 3, 4] x) => (float y) <{held}> {{ {nodes} }}", imports='"other": 1')
    raised = raise_with_plan(given)
    assert composites(raised.model) == composites(given)
    if not raised.plan.sites:
        assert raised.model.SerializeToString() == given.SerializeToString()


@pytest.mark.parametrize(
    ("body", "number"),
    [("s = Pow(x, n) y = ReduceSum(s, a)", 2), ("s = ReduceSum(x, a) y = Div(s, n)", 3)],
    ids=["an exponent", "a count"],
)
def test_a_constant_that_adds_a_dimension_stays_where_the_result_states_it(body: str, number: int) -> None:
    initializers = f"int64[1] a = {{1}}, float[1, 1, 1, 1] n = {{{number}}}"
    given = reducing(body, output="float[r0, r1, r2, r3] y", initializers=initializers)
    raised = reducelower.raise_reductions(given)
    assert composites(raised) == composites(given)
    (before,), (after,) = yields(given, {"x": DATA}), yields(raised, {"x": DATA})
    assert before.shape == after.shape


@pytest.mark.parametrize("name", sorted(FORMS))
@pytest.mark.parametrize("use", ["another node", "a graph output", "a branch", "an annotation"])
def test_a_value_that_is_used_elsewhere_stays(name: str, use: str) -> None:
    given = form(name)
    inner = given.graph.node[0].output[0]
    branch = "() => (float b) {{ b = Identity ({0}) }}"
    nodes = {
        "another node": "z = Identity ({0})",
        "a branch": f"z = If (c) <then_branch = t {branch}, else_branch = e {branch}>",
    }
    if use in nodes:
        given.graph.node.extend(parser.parse_graph(f"g () => () {{ {nodes[use].format(inner)} }}").node)
        given.graph.initializer.append(numpy_helper.from_array(np.array(True), "c"))
    if use == "an annotation":
        given.graph.quantization_annotation.add(tensor_name=inner)
    else:
        result = "z" if use in nodes else inner
        given.graph.output.append(helper.make_tensor_value_info(result, TensorProto.FLOAT, None))
    raised = reducelower.raise_reductions(given)
    assert inner in {name for node in raised.graph.node for name in node.output}
    assert len(composites(raised)) == len(composites(given))


def test_a_constant_that_a_caller_may_override_is_none() -> None:
    given = form("SumSquare by power")
    given.graph.input.append(helper.make_tensor_value_info("two", TensorProto.FLOAT, []))
    assert operators(given) == ["Pow", "ReduceSum"]
    assert operators(given, freeze_defaults=True) == ["ReduceSumSquare"]


def test_an_element_type_that_the_operator_does_not_take_is_left() -> None:
    # ReduceMin takes bool from opset 20 on; so does ReduceMax, without which there is no form.
    text = "(bool[2, 3] x) => (bool[2, 1] y) <int64[1] a = {1}> { n = Not(x) m = ReduceMax(n, a) y = Not(m) }"
    assert operators(model(text, 20, 9)) == ["ReduceMin"]
    wrong = reducelower.raise_reductions(model(text, 18, 9))
    assert [node.op_type for node in wrong.graph.node] == ["Not", "ReduceMax", "Not"]


@pytest.mark.parametrize("op_type", ["ReduceL2", "ReduceLogSumExp", "ReduceLogSum"])
def test_a_form_with_any_node_changed_is_no_form(op_type: str) -> None:
    expanded = reducelower.expand(reducing(f"y = {op_type}(x, a)"), rules="stable")
    assert operators(expanded) == [op_type]
    for other in changed(expanded):
        raised = reducelower.raise_reductions(other)
        assert composites(raised) in ([], ["ReduceL1"])
        result, expected = yields(raised, {"x": DATA})[0], yields(other, {"x": DATA})[0]
        # What overflowed may be right now.
        held = np.isfinite(expected)
        np.testing.assert_allclose(result[held], expected[held], rtol=1e-4)


def test_a_site_that_was_raised_wrongly_does_not_verify() -> None:
    given = reducing("e = Exp(x) s = ReduceSum(e, a) y = Log(s)")
    raised = raise_with_plan(given)
    given.graph.node[0].op_type = "Sqrt"
    (site,) = reducelower.verify(given, raised.model, plan=raised.plan).sites
    assert site.status == "different"


def test_the_source_model_stays_as_it_is_unless_asked() -> None:
    given = form("L2")
    before = given.SerializeToString()
    raised = reducelower.raise_reductions(given)
    assert given.SerializeToString() == before
    assert reducelower.raise_reductions(given, in_place=True) is given
    assert given.SerializeToString() == raised.SerializeToString()


def test_a_model_without_an_opset_is_refused() -> None:
    given = form("L2")
    del given.opset_import[:]
    with pytest.raises(reducelower.ConversionError, match="imports no opset"):
        reducelower.raise_reductions(given)


@pytest.mark.parametrize("noop", [0, 1])
@pytest.mark.parametrize("opset", [13, 17, 18])
def test_axes_that_are_constant_and_empty_are_no_hindrance(opset: int, noop: int) -> None:
    body = f"m = Abs (x) y = ReduceSum <noop_with_empty_axes = {noop}> (m, none)"
    raised = reducelower.raise_reductions(reducing(body, opset, initializers="int64[0] none = {}"))
    onnx.checker.check_model(raised, full_check=True)
    (result,) = yields(raised, {"x": -DATA})
    np.testing.assert_allclose(result, DATA if noop else DATA.sum(keepdims=True), rtol=1e-5)
