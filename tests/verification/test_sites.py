"""Sites: where they stand, what is said of them, and what they make of the verdict on whole models."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper, parser

from reducelower import expand
from reducelower.model.schemas import REDUCTIONS
from reducelower.options import Target
from reducelower.plan import Plan, Site
from reducelower.recompose.run import raise_with_plan
from reducelower.verification import verify, verify_regions

from .models import model
from .planned import rewrite

OPERATORS = sorted(REDUCTIONS)
KINDS = ["float", "double", "float16", "int32", "int64", "uint32", "uint64"]


# No kernel of onnxruntime and no operator of the reference evaluator takes these.
NOWHERE = {(op_type, kind) for op_type in ("ReduceLogSum", "ReduceLogSumExp") for kind in ("uint32", "uint64")}
# onnxruntime runs the function body at 18: it overflows in float.
BODY_AT_18 = {("ReduceLogSumExp", "float16")}
# The evaluator of an onnx that does not know opset 28 yet, whose logarithms take no integers, still runs these.
RAN_BEFORE_28 = {(op_type, kind) for op_type in ("ReduceLogSum", "ReduceLogSumExp") for kind in ("uint32", "uint64")}


@pytest.mark.parametrize("op_type", OPERATORS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("keepdims", [0, 1])
def test_axes_moved_from_attribute_to_input(op_type: str, kind: str, keepdims: int) -> None:
    found = rewrite(
        f"y = {op_type} <axes = [1], keepdims = {keepdims}> (x)",
        f"y = {op_type} <keepdims = {keepdims}> (x, axes)",
        kind=kind,
        opsets=(12, 18),
        constants=("", "int64[1] axes = {1}"),
    ).finding()
    if (op_type, kind) in RAN_BEFORE_28 and onnx.defs.onnx_opset_version() < 28:
        assert (found.status, found.ok) == ("equal", True)
    elif (op_type, kind) in NOWHERE:
        assert (found.status, found.ok) == ("not run", True)
        assert found.reason
    elif (op_type, kind) in BODY_AT_18:
        assert (found.status, found.ok) == ("departs", True)
    else:
        assert found.status == "equal", found
        assert found.cases > 8
        assert found.max_ulp == 0
        assert found.runtime == ("reference" if kind in ("uint32", "uint64") else "onnxruntime")


SPEC_LSE = "d = Cast <to = 11> (x)  e = Exp (d)  t = ReduceSum (e, axes)  l = Log (t)  y = CastLike (l, x)"


@pytest.mark.parametrize("kind", ["float", "double"])
def test_the_definitions_own_overflow_loses_range_and_fails_unless_it_was_chosen(kind: str) -> None:
    given = rewrite("y = ReduceLogSumExp (x, axes)", SPEC_LSE, kind=kind, constants=("int64[1] axes = {1}",) * 2)
    found = given.finding()
    assert (found.status, found.ok) == ("loses range", False), found
    assert "definition" in found.reason
    assert found.holds.startswith("up to ")
    assert found.example_inputs
    chosen = replace(given, plan=replace(given.plan, sites=(replace(given.plan.sites[0], rule="spec/by hand"),)))
    assert (chosen.finding().status, chosen.finding().ok) == ("loses range", True)


def test_what_is_drawn_of_few_elements_is_random_though_many_draws_are_the_same() -> None:
    graph = "g (float[2] x, float r) => (float[2] y) <bool t = {1}> { %s }"
    source = model(graph % "y = Dropout (x, r, t)", 13)
    other = model(graph % "n = Neg (x)  d = Dropout (n, r, t)  y = Neg (d)", 13)
    (found,) = verify_regions(source, other).findings
    assert (found.status, "draws random numbers" in found.reason) == ("not run", True), found


def test_inputs_that_show_a_difference_have_their_own_names() -> None:
    """What says where is drawn after the data that it is for."""
    graph = "g (int64[A] i, float[2, 3] v) => (float[B, C] y) { %s }"
    source = model(graph % "y = Gather <axis = 1> (v, i)")
    other = model(graph % "n = Gather <axis = 1> (v, i)  y = Neg (n)")
    (found,) = verify_regions(source, other).findings
    assert re.fullmatch(r"i = \[[\d .]*\]; v = \[\[.*\]\]", found.example_inputs), found.example_inputs


def test_a_chosen_form_that_gives_no_number_for_ordinary_values_is_different() -> None:
    body = "e = Exp (x)  t = ReduceSum (e, axes)  n = Neg (t)  y = Log (n)"
    given = rewrite("y = ReduceLogSumExp (x, axes)", body, constants=("int64[1] axes = {1}",) * 2)
    chosen = replace(given, plan=replace(given.plan, sites=(replace(given.plan.sites[0], rule="spec/by hand"),)))
    assert (chosen.finding().status, chosen.finding().ok) == ("different", False)


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


def test_integers_through_double_as_the_definition_does() -> None:
    newest = onnx.defs.onnx_opset_version()
    body = "d = Cast <to = 11> (x)  t = ReduceSum (d, axes)  l = Log (t)  y = Cast <to = 6> (l)"
    found = rewrite(
        "y = ReduceLogSum (x, axes)", body, kind="int32", opsets=(26, newest), constants=("int64[1] axes = {1}",) * 2
    ).finding()
    assert found.ok, found


def test_a_mean_by_a_declared_count_is_held_to_the_declared_sizes() -> None:
    planned = rewrite(
        "y = ReduceMean (x, axes)",
        "s = ReduceSum (x, axes)  y = Div (s, n)",
        constants=("int64[1] axes = {1}", "int64[1] axes = {1}, float n = {7}"),
    )
    for side in (planned.before, planned.after):
        side.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 7
    found = planned.finding()
    assert found.ok, found


def test_equal_sites_are_checked_once_and_all_named() -> None:
    count = 300
    chain = "  ".join(f"[n{at}] v{at + 1} = ReduceMean <axes = [1]> (v{at})" for at in range(count))
    before = model(f"g (float[N, M] v0) => (float[N, 1] v{count}) {{ {chain} }}", 11)
    after = model(f"g (float[N, M] v0) => (float[N, 1] v{count}) {{ {chain} }}", 18)
    for node in after.graph.node:
        del node.attribute[:]
        node.input.append("axes")
    after.graph.initializer.append(numpy_helper.from_array(np.array([1]), "axes"))
    sites = tuple(Site("graph", f"n{at}", "ReduceMean", "axes", at, at, 1) for at in range(count))
    (found,) = verify_regions(before, after, Plan(11, Target(opset=18), sites)).findings
    assert found.status == "equal"
    assert found.nodes == tuple(("graph", f"n{at}") for at in range(count))


def test_sites_inside_subgraphs_and_functions_are_found() -> None:
    def text(node: str) -> str:
        return (
            f"g (bool c, float[N, M] x) => (float[K, L] y) {{ [pick] h = If (c) <then_branch = t () => (float[K, L] p) "
            f"{{ {node.format('p', 'x')} }}, else_branch = e () => (float[K, L] q) {{ q = Identity (x) }}> "
            "y = local.total (h) }"
        )

    old = '<opset_import: ["": 11], domain: "local"> total (v) => (w) { w = ReduceSum <axes = [0]> (v) }'
    new = (
        '<opset_import: ["": 13], domain: "local"> total (v) => (w) '
        "{ a = Constant <value_ints = [0]> ()  w = ReduceSum (v, a) }"
    )
    before = model(text("{0} = ReduceMax <axes = [1]> ({1})"), 11, 8, old)
    after = model(
        text("a = Constant <value_ints = [1]> ()  {0} = ReduceMax (x, a)".replace("(x,", "({1},")), 18, 8, new
    )
    sites = (
        Site("graph/pick.then_branch", "ReduceMax#0", "ReduceMax", "axes", 0, 0, 2),
        Site("functions/local::total", "ReduceSum#0", "ReduceSum", "axes", 0, 0, 2),
    )
    found = verify_regions(before, after, Plan(11, Target(opset=18), sites)).findings
    assert [item.status for item in found] == ["equal", "equal"], found


def test_attributes_of_a_function_take_the_values_of_its_calls() -> None:
    body = (
        '<opset_import: ["": {}], domain: "local"> total <axes, keepdims> (v) => (w) '
        "{{ w = ReduceMax <axes: ints = @axes, keepdims: int = @keepdims> (v) }}"
    )
    graph = (
        "g (float[N, M] x) => (float[K] a, float[K, L] b) { a = local.total <axes = [1], keepdims = 0> (x) "
        " b = local.total <axes = [0], keepdims = 1> (x) }"
    )
    before, after = model(graph, 11, 8, body.format(11)), model(graph, 13, 8, body.format(13))
    site = Site("functions/local::total", "ReduceMax#0", "ReduceMax", "as it is", 0, 0, 1)
    (found,) = verify_regions(before, after, Plan(11, Target(opset=13), (site,))).findings
    assert found.status == "equal"
    after.functions[0].node[0].op_type = "ReduceMin"
    (wrong,) = verify_regions(before, after, Plan(11, Target(opset=13), (site,))).findings
    assert wrong.status == "different"


def test_axes_computed_from_constants_are_constants() -> None:
    before = model(
        "g (float[N, M] x) => (float[N] y) <int64 one = {1}, int64[1] zero = {0}> "
        "{ u = Unsqueeze (one, zero)  y = ReduceMax <keepdims = 0> (x, u) }"
    )
    after = model("g (float[N, M] x) => (float[N] y) { y = ReduceMax <keepdims = 0, axes = [1]> (x) }", 13)
    site = Site("graph", "ReduceMax#1", "ReduceMax", "axes", 1, 0, 1)
    (found,) = verify_regions(before, after, Plan(18, Target(opset=13), (site,))).findings
    assert found.status == "equal"


def test_whole_models_and_sites_give_one_verdict() -> None:
    planned = rewrite(
        "y = ReduceMean <axes = [1]> (x)", "y = ReduceMean (x, a)", opsets=(11, 18), constants=("", "int64[1] a = {1}")
    )
    steps: list[tuple[int, int]] = []
    found = verify(planned.before, planned.after, plan=planned.plan, on_progress=lambda *step: steps.append(step))
    assert found.equivalent
    assert found.ran
    assert len(found.sites) == 1
    assert steps == [(1, 1)]
    assert "the rewrite also holds by itself" in str(found)


def test_a_count_may_rest_on_sizes_that_value_info_leaves_open() -> None:
    source = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 13]>
        g (float[3, 2] x, float[n] z) => (float[a, b] y, float[c, d] w) <float[3, 1] k = {1, 2, 4}> {
            v = Mul (x, k) y = ReduceMean (v) r = Relu (v) w = Add (r, z)
        }"""
    )
    source.graph.value_info.append(helper.make_tensor_value_info("v", onnx.TensorProto.FLOAT, [None, None]))
    found = verify(source, expand(source, rules="core"))
    assert found.verdict == "equivalent", str(found)


AXIS_1 = "int64[1] axes = {1}"


def test_a_cast_back_that_is_forgotten_is_told() -> None:
    body = "c = Cast <to = 6> (x)  y = ReduceMax (c, axes)"
    planned = rewrite("y = ReduceMax (x, axes)", body, kind="uint8", opsets=(20, 18), constants=(AXIS_1, AXIS_1))
    planned.after.graph.output[0].type.tensor_type.elem_type = 6
    assert "element type" in planned.finding().reason


def test_a_wrong_site_fails_the_verdict_though_the_whole_model_agrees() -> None:
    planned = rewrite(
        "y = ReduceL2 (x, axes)",
        "s = Mul (x, x)  t = ReduceSum (s, axes)  u = Add (t, eps)  y = Sqrt (u)",
        constants=(AXIS_1, f"{AXIS_1}, float eps = {{1e-9}}"),
    )
    found = verify(planned.before, planned.after, plan=planned.plan)
    assert {item.verdict for item in found.outputs} == {"equal"}
    assert (found.equivalent, found.ran) == (False, True)
    assert "ReduceL2#0" in str(found)
