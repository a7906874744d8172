"""Verdicts on sites and on whole models together; `test_rewrites.py` has what the check of a single rewrite gives."""

from __future__ import annotations

import re

from onnx import TensorProto, helper, parser

from reducelower import expand
from reducelower.recompose.run import raise_with_plan
from reducelower.verification import verify, verify_regions
from tests.models import model

from .planned import rewrite


def test_that_a_form_read_back_is_better_is_told() -> None:
    """Of rows that hold an infinity the nodes give NaN, and the operator the infinity."""
    source = model(
        "g (float[N, 4] x) => (float[N, 1] y) <int64[1] a = {1}>"
        "{ m = ReduceMax (x, a)  d = Sub (x, m)  e = Exp (d)  s = ReduceSum (e, a)  l = Log (s)  y = Add (l, m) }"
    )
    made = raise_with_plan(source)
    (node,) = made.model.graph.node
    assert node.op_type == "ReduceLogSumExp"
    with_plan = verify(source, made.model, plan=made.plan)
    assert with_plan.equivalent
    told = [line.text for line in with_plan.lines if line.is_detail]
    assert [text for text in told if "right where the source is not" in text]
    without = verify(source, made.model)
    assert "nan before" in str(without) and not without.equivalent


def test_a_form_that_is_not_that_of_the_operator_differs_by_itself() -> None:
    """The operator's own body is what may excuse a loss, and not the form that it replaces."""
    graph = "g (float[N, 4] x) => (float[N, 1] y) <int64[1] a = {{1}}> {{ p = {} (x)  y = ReduceSum (p, a) }}"
    made = raise_with_plan(model(graph.format("Abs")))
    assert [node.op_type for node in made.model.graph.node] == ["ReduceL1"]
    (finding,) = verify_regions(model(graph.format("Relu")), made.model, made.plan).findings
    assert finding.status == "different"
    before, after = (float(number) for number in re.findall(r"(\S+) (?:before|after)", finding.reason))
    assert before < after, finding.reason  # what is negative counts in the norm alone


def test_whole_models_and_sites_give_one_verdict() -> None:
    planned = rewrite(
        "y = ReduceMean <axes = [1]> (x)", "y = ReduceMean (x, a)", opsets=(11, 18), constants=("", "int64[1] a = {1}")
    )
    found = verify(planned.before, planned.after, plan=planned.plan)
    assert found.equivalent
    assert found.ran
    assert len(found.sites) == 1
    assert "the rewrite also holds by itself" in str(found)


def test_what_is_drawn_of_few_elements_is_random_though_many_draws_are_the_same() -> None:
    graph = "g (float[2] x, float r) => (float[2] y) <bool t = {1}> { %s }"
    source = model(graph % "y = Dropout (x, r, t)", 13)
    other = model(graph % "n = Neg (x)  d = Dropout (n, r, t)  y = Neg (d)", 13)
    (found,) = verify_regions(source, other).findings
    assert (found.status, "draws random numbers" in found.reason) == ("not run", True), found


def test_a_count_may_rest_on_sizes_that_value_info_leaves_open() -> None:
    source = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 13]>
        g (float[3, 2] x, float[n] z) => (float[a, b] y, float[c, d] w) <float[3, 1] k = {1, 2, 4}> {
            v = Mul (x, k) y = ReduceMean (v) r = Relu (v) w = Add (r, z)
        }"""
    )
    source.graph.value_info.append(helper.make_tensor_value_info("v", TensorProto.FLOAT, [None, None]))
    found = verify(source, expand(source, rules="core"))
    assert found.verdict == "equivalent", str(found)


def test_a_cast_back_that_is_forgotten_is_told() -> None:
    body = "c = Cast <to = 6> (x)  y = ReduceMax (c, axes)"
    planned = rewrite(
        "y = ReduceMax (x, axes)", body, kind="uint8", opsets=(20, 18), constants=("int64[1] axes = {1}",) * 2
    )
    planned.after.graph.output[0].type.tensor_type.elem_type = 6
    assert "element type" in planned.finding().reason
