"""Rewrites that are right: none of them may be flagged, however extreme the inputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper, parser

from reducelower import expand
from reducelower.numerics.reductions import REDUCTIONS
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


@pytest.mark.parametrize("op_type", ["ReduceL1", "ReduceL2", "ReduceSum", "ReduceSumSquare"])
def test_bfloat16_runs_in_the_reference_evaluator(op_type: str) -> None:
    found = rewrite(
        f"y = {op_type} (x, axes)",
        f"y = {op_type} (x, axes)",
        kind="bfloat16",
        opsets=(18, 21),
        constants=("int64[1] axes = {1}",) * 2,
    ).finding()
    assert (found.status, found.runtime) == ("equal", "reference"), found


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_narrow_types_by_way_of_float_keep_the_limits_of_an_empty_reduction(kind: str) -> None:
    number, low = {"int8": (3, -128), "uint8": (2, 0)}[kind]
    found = rewrite(
        "y = ReduceMax (x, axes)",
        f"c = Cast <to = 1> (x)  r = ReduceMax (c, axes)  m = Max (r, low)  y = Cast <to = {number}> (m)",
        kind=kind,
        opsets=(20, 18),
        constants=("int64[1] axes = {0}", f"int64[1] axes = {{0}}, float low = {{{low}}}"),
    ).finding()
    assert found.status == "equal", found


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceMin"])
def test_bool_by_casts(op_type: str) -> None:
    found = rewrite(
        f"y = {op_type} (x, axes)",
        f"c = Cast <to = 6> (x)  r = {op_type} (c, axes)  z = Max (r, low)  o = Min (z, high)  y = Cast <to = 9> (o)",
        kind="bool",
        opsets=(20, 18),
        constants=("int64[1] axes = {0}", "int64[1] axes = {0}, int32 low = {0}, int32 high = {1}"),
    ).finding()
    assert found.status == "equal", found


# What a Reduce operator is by other operators, in its data's own type.
BODIES = {
    "ReduceL1": "a = Abs (x)  y = ReduceSum (a, axes)",
    "ReduceL2": "s = Mul (x, x)  t = ReduceSum (s, axes)  y = Sqrt (t)",
    "ReduceLogSum": "t = ReduceSum (x, axes)  y = Log (t)",
    "ReduceSumSquare": "s = Mul (x, x)  y = ReduceSum (s, axes)",
}


@pytest.mark.parametrize("op_type", BODIES)
@pytest.mark.parametrize("kind", ["float", "double", "float16"])
def test_bodies_in_the_datas_own_type(op_type: str, kind: str) -> None:
    found = rewrite(
        f"y = {op_type} (x, axes)", BODIES[op_type], kind=kind, constants=("int64[1] axes = {1}",) * 2
    ).finding()
    assert found.ok, found
    assert found.status != "not run"


@pytest.mark.parametrize("kind", ["float", "double", "float16"])
def test_log_sum_exp_with_its_maximum_subtracted(kind: str) -> None:
    # Where the maximum is infinite, zero is subtracted instead: inf - inf would be NaN.
    body = (
        (
            "m = ReduceMax (x, axes)  i = IsInf (m)  z = Sub (m, m)  e0 = ConstantOfShape (s)  c0 = CastLike (e0, m)"
            "  shift = Where (i, c0, m)  d = Sub (x, shift)  e = Exp (d)  t = ReduceSum (e, axes)  l = Log (t)"
            "  y = Add (l, shift)"
        )
        .replace("ConstantOfShape (s)", "ConstantOfShape (sh)")
        .replace("  z = Sub (m, m)", "  sh = Shape (m)")
    )
    found = rewrite(
        "y = ReduceLogSumExp (x, axes)", body, kind=kind, opsets=(20, 20), constants=("int64[1] axes = {1}",) * 2
    ).finding()
    assert found.ok, found


SPEC_LSE = "d = Cast <to = 11> (x)  e = Exp (d)  t = ReduceSum (e, axes)  l = Log (t)  y = CastLike (l, x)"
SPEC_LSE_NOOP = "d = Cast <to = 11> (x)  e = Exp (d)  l = Log (e)  y = CastLike (l, x)"
SPEC_L2 = "s = Mul (x, x)  t = ReduceSum (s, axes)  f = Cast <to = 1> (t)  r = Sqrt (f)  y = CastLike (r, x)"


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


def test_a_chosen_form_that_gives_no_number_for_ordinary_values_is_different() -> None:
    body = "e = Exp (x)  t = ReduceSum (e, axes)  n = Neg (t)  y = Log (n)"
    given = rewrite("y = ReduceLogSumExp (x, axes)", body, constants=("int64[1] axes = {1}",) * 2)
    chosen = replace(given, plan=replace(given.plan, sites=(replace(given.plan.sites[0], rule="spec/by hand"),)))
    assert (chosen.finding().status, chosen.finding().ok) == ("different", False)


def test_the_definitions_detour_over_float_loses_range() -> None:
    found = rewrite("y = ReduceL2 (x, axes)", SPEC_L2, kind="double", constants=("int64[1] axes = {1}",) * 2).finding()
    assert (found.status, found.ok) == ("loses range", False), found


@pytest.mark.parametrize(("rounded", "verdict"), [(1, "equivalent"), (10, "different")])
def test_of_constants_the_definition_loses_the_same_digits(rounded: int, verdict: str) -> None:
    """Below 18, where the operator is no function, they are known by the formula."""
    text = "g (float[2] a) => (double[1, 1] y, float[2] b) <double[1, 3] x = {-1.25, 0.375, 1.625}> "
    source = model(text + "{ y = ReduceL2 (x)  b = Neg (a) }", 13)
    detour = f"q = Mul (x, x)  t = ReduceSum (q)  f = Cast <to = {rounded}> (t)  r = Sqrt (f)  y = Cast <to = 11> (r)"
    assert verify(source, model(text + f"{{ {detour}  b = Neg (a) }}", 13)).verdict == verdict


@pytest.mark.parametrize("kind", ["float", "double"])
def test_a_form_that_scales_is_better_than_a_source_that_overflows(kind: str) -> None:
    largest = {"float": "3.4028234e38", "double": "1.7976931348623157e308"}[kind]
    smallest = {"float": "1.1754944e-38", "double": "2.2250738585072014e-308"}[kind]
    body = (
        "a = Abs (x)  m0 = ReduceMax (a, axes)  m1 = Min (m0, big)  m = Max (m1, small)  q = Div (a, m)"
        "  s = Mul (q, q)  t = ReduceSum (s, axes)  r = Sqrt (t)  y = Mul (r, m)"
    )
    held = f"int64[1] axes = {{1}}, {kind}[1] big = {{{largest}}}, {kind}[1] small = {{{smallest}}}"
    found = rewrite("y = ReduceL2 (x, axes)", body, kind=kind, constants=("int64[1] axes = {1}", held)).finding()
    assert (found.status, found.ok) == ("improved", True), found


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


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_a_whole_number_cut_to_the_next_lower_as_the_definition_does_is_not_failed(kind: str) -> None:
    # log(exp(-8)) is a little above -8 in double, and is cut to -7.
    planned = rewrite(
        "y = ReduceLogSumExp <noop_with_empty_axes = 1> (x)",
        SPEC_LSE_NOOP,
        kind=kind,
    )
    assert planned.finding().ok, planned.finding()


@pytest.mark.parametrize("rank", [0, 1, 3, 4])
@pytest.mark.parametrize("op_type", OPERATORS)
def test_every_rank_without_axes(op_type: str, rank: int) -> None:
    found = rewrite(
        f"y = {op_type} <keepdims = 0> (x)", f"y = {op_type} <keepdims = 0> (x)", rank=rank, opsets=(12, 18)
    )
    assert found.finding().status == "equal"


ELEMENTWISE = {
    "ReduceL1": "y = Abs (x)",
    "ReduceL2": "y = Abs (x)",
    "ReduceSumSquare": "y = Mul (x, x)",
    "ReduceLogSum": "y = Log (x)",
    "ReduceLogSumExp": "y = Identity (x)",
    **dict.fromkeys(["ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"], "y = Identity (x)"),
}


@pytest.mark.parametrize("op_type", OPERATORS)
def test_a_reduction_over_no_axes_is_its_elementwise_step(op_type: str) -> None:
    found = rewrite(f"y = {op_type} <noop_with_empty_axes = 1> (x)", ELEMENTWISE[op_type], opsets=(18, 13)).finding()
    assert found.ok, found
    assert found.status != "not run"


@pytest.mark.parametrize("op_type", OPERATORS)
def test_axes_that_are_an_input_take_many_values(op_type: str) -> None:
    found = rewrite(
        f"y = {op_type} (x, axes)", f"y = {op_type} (x, axes)", opsets=(18, 21), extra=", int64[k] axes", rank=3
    ).finding()
    assert found.status == "equal", found
    assert found.cases > 20


def test_a_sum_in_blocks_is_not_flagged() -> None:
    body = "p = ReduceSum (x, one)  y = ReduceSum (p, zero)"
    found = rewrite(
        "y = ReduceSum (x, axes)",
        body,
        constants=("int64[2] axes = {0, 1}", "int64[1] one = {1}, int64[1] zero = {0}"),
    ).finding()
    assert found.ok, found


@pytest.mark.parametrize("kind", ["float", "float16", "double"])
def test_a_product_in_another_order_is_not_flagged(kind: str) -> None:
    found = rewrite(
        "y = ReduceProd (x, axes)",
        "p = ReduceProd (x, zero)  y = ReduceProd (p, one)",
        kind=kind,
        constants=("int64[2] axes = {0, 1}", "int64[1] one = {1}, int64[1] zero = {0}"),
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


def test_what_no_runtime_takes_at_an_old_opset_is_not_run_and_not_wrong() -> None:
    body = 'a = Abs (x)  f = Cast <to = "DOUBLE"> (a)  s = ReduceSum <axes = [1]> (f)  y = Cast <to = "FLOAT"> (s)'
    found = rewrite("y = ReduceL1 <axes = [1]> (x)", body, opsets=(11, 5)).finding()
    assert (found.status, found.ok) == ("not run", True), found.reason


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


def test_digits_that_an_operator_loses_itself_are_no_difference() -> None:
    before = model("g (float[N, 4] x) => (float[N, 4] y) { y = Celu (x) }")
    after = model(
        """g (float[N, 4] x) => (float[N, 4] y) {
            zero = Constant <value_float = 0.0> ()  one = Constant <value_float = 1.0> ()
            low = Min (x, zero)  e = Exp (low)  bent = Sub (e, one)  high = Relu (x)  y = Add (high, bent)
        }"""
    )
    x = np.array([[-1.85949946e-4, -2.5e-4, -7.7e-5, 3]], np.float32)
    assert verify(before, after, inputs={"x": x}).verdict == "equivalent"
    constant = after.graph.node[1].attribute[0]
    constant.f = 1.0 + 2e-6  # an error of its own, larger than that
    assert verify(before, after, inputs={"x": x}).verdict == "different"


def test_attributes_that_a_function_hands_on_are_those_of_its_own_calls() -> None:
    before = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 13, "local" : 1]>
        g (float[3,4,5] x) => (float[3,1,5] y, float[1,4,5] z) {
            y = local.Outer <along: ints = [1]> (x) z = local.Outer <along: ints = [0]> (x)
        }
        <domain: "local", opset_import: ["" : 13, "local" : 1]>
        Outer <along> (x) => (y) { y = local.Inner <axes: ints = @along> (x) }
        <domain: "local", opset_import: ["" : 13]>
        Inner <axes> (x) => (y) { y = ReduceMax <axes: ints = @axes> (x) }"""
    )
    after = onnx.ModelProto.FromString(before.SerializeToString())
    after.functions[1].node.insert(0, helper.make_node("Identity", ["x"], ["same"]))
    after.functions[1].node[1].input[0] = "same"
    assert verify(before, after).equivalent
    after.functions[1].node[-1].op_type = "ReduceMin"
    assert verify(before, after).verdict == "different"


def test_what_one_side_takes_from_elsewhere_is_computed_from_what_the_other_reads() -> None:
    text = "g (float[N, 4] x) => (float[N, 4] y, float[N, 4] z) {{ s = Tanh (x)  t = Sigmoid (x)  z = Neg ({0})  {1} }}"
    source = model(text.format("s", "y = Mul (s, s)"))
    assert verify(source, model(text.format("s", "y = Mul (z, z)"))).verdict == "equivalent"
    assert verify(source, model(text.format("s", "y = Mul (z, s)"))).verdict == "different"
