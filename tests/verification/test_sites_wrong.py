"""Rewrites that are wrong, planted one by one: site verification finds each."""

from __future__ import annotations

import pytest

from reducelower.numerics.reductions import REDUCTIONS
from reducelower.verification import verify

from .planned import rewrite

OPERATORS = sorted(REDUCTIONS)
FUNCTIONS = ["ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"]
AXIS_1 = "int64[1] axes = {1}"


def assert_caught(before: str, after: str, words: str = "", **how: object) -> None:
    found = rewrite(before, after, **how).finding()  # type: ignore[arg-type]
    assert (found.status, found.ok) == ("different", False), found
    assert found.reason
    assert words in found.reason


@pytest.mark.parametrize("op_type", OPERATORS)
def test_keepdims_dropped(op_type: str) -> None:
    assert_caught(
        f"y = {op_type} <axes = [1]> (x)", f"y = {op_type} <axes = [1], keepdims = 0> (x)", "shape", opsets=(11, 11)
    )


@pytest.mark.parametrize("op_type", OPERATORS)
def test_axis_off_by_one(op_type: str) -> None:
    assert_caught(
        f"y = {op_type} <axes = [1], keepdims = 0> (x)",
        f"y = {op_type} <keepdims = 0> (x, axes)",
        opsets=(11, 18),
        constants=("", "int64[1] axes = {0}"),
    )


@pytest.mark.parametrize("op_type", OPERATORS)
def test_every_axis_reduced(op_type: str) -> None:
    assert_caught(f"y = {op_type} <axes = [1]> (x)", f"y = {op_type} (x)", opsets=(11, 18))


@pytest.mark.parametrize("op_type", OPERATORS)
def test_negative_axis_counted_from_the_wrong_end(op_type: str) -> None:
    assert_caught(f"y = {op_type} <axes = [-1]> (x)", f"y = {op_type} <axes = [1]> (x)", opsets=(11, 9), rank=3)


@pytest.mark.parametrize("op_type", OPERATORS)
def test_noop_ignored(op_type: str) -> None:
    assert_caught(
        f"y = {op_type} <noop_with_empty_axes = 1> (x)",
        f"y = {op_type} (x)",
        "shape",
        opsets=(18, 17 if op_type != "ReduceSum" else 18),
    )


@pytest.mark.parametrize("op_type", FUNCTIONS[:3] + FUNCTIONS[4:])
def test_elementwise_step_of_a_noop_forgotten(op_type: str) -> None:
    assert_caught(f"y = {op_type} <noop_with_empty_axes = 1> (x)", "y = Identity (x)", opsets=(18, 13))


@pytest.mark.parametrize("op_type", OPERATORS)
@pytest.mark.parametrize("kind", ["float", "float16", "double", "int32", "int64"])
def test_another_operator(op_type: str, kind: str) -> None:
    other = {"ReduceMax": "ReduceMin", "ReduceLogSumExp": "ReduceMin"}.get(op_type, "ReduceMax")
    assert_caught(f"y = {op_type} (x, axes)", f"y = {other} (x, axes)", kind=kind, constants=(AXIS_1, AXIS_1))


@pytest.mark.parametrize("op_type", OPERATORS)
def test_one_last_place_too_many_in_every_value(op_type: str) -> None:
    body = f"r = {op_type} (x, axes)  y = Mul (r, f)"
    assert_caught(f"y = {op_type} (x, axes)", body, constants=(AXIS_1, f"{AXIS_1}, float f = {{1.00002}}"))


BODIES = {
    "square root missing": ("ReduceL2", "s = Mul (x, x)  y = ReduceSum (s, axes)"),
    "absolute value missing": ("ReduceL1", "y = ReduceSum (x, axes)"),
    "square missing": ("ReduceSumSquare", "y = ReduceSum (x, axes)"),
    "logarithm missing": ("ReduceLogSum", "y = ReduceSum (x, axes)"),
    "exponential missing": ("ReduceLogSumExp", "t = ReduceSum (x, axes)  y = Log (t)"),
    "maximum not added back": (
        "ReduceLogSumExp",
        "m = ReduceMax (x, axes)  d = Sub (x, m)  e = Exp (d)  t = ReduceSum (e, axes)  y = Log (t)",
    ),
    "infinite maximum subtracted": (
        "ReduceLogSumExp",
        "m = ReduceMax (x, axes)  d = Sub (x, m)  e = Exp (d)  t = ReduceSum (e, axes)  l = Log (t)  y = Add (l, m)",
    ),
    "exponentials that overflow in the data's own type": (
        "ReduceLogSumExp",
        "e = Exp (x)  t = ReduceSum (e, axes)  y = Log (t)",
    ),
    "eps added under the logarithm": ("ReduceLogSum", "t = ReduceSum (x, axes)  u = Add (t, eps)  y = Log (u)"),
    "eps added under the square root": (
        "ReduceL2",
        "s = Mul (x, x)  t = ReduceSum (s, axes)  u = Add (t, eps)  y = Sqrt (u)",
    ),
    "eps added to a sum": ("ReduceL1", "a = Abs (x)  t = ReduceSum (a, axes)  y = Add (t, eps)"),
    "scale that is zero for zeros": (
        "ReduceL2",
        "a = Abs (x)  m = ReduceMax (a, axes)  q = Div (a, m)  s = Mul (q, q)  t = ReduceSum (s, axes)  r = Sqrt (t)"
        "  y = Mul (r, m)",
    ),
    "mean divided by a wrong count": ("ReduceMean", "t = ReduceSum (x, axes)  y = Div (t, three)"),
    "mean by a rounded reciprocal": ("ReduceMean", "t = ReduceSum (x, axes)  y = Mul (t, third)"),
    "minimum as negated maximum of absolutes": ("ReduceMin", "a = Abs (x)  m = ReduceMax (a, axes)  y = Neg (m)"),
    "product by logarithms": ("ReduceProd", "l = Log (x)  s = ReduceSum (l, axes)  y = Exp (s)"),
    "sum by a mean": ("ReduceSum", "m = ReduceMean (x, axes)  y = Mul (m, three)"),
    "maximum clamped at zero": ("ReduceMax", "m = ReduceMax (x, axes)  y = Relu (m)"),
}


@pytest.mark.parametrize("fault", BODIES)
def test_fault_in_a_body(fault: str) -> None:
    op_type, body = BODIES[fault]
    held = f"{AXIS_1}, float eps = {{1e-7}}, float three = {{3}}, float third = {{0.333}}"
    assert_caught(f"y = {op_type} (x, axes)", body, constants=(AXIS_1, held))


FLOAT16 = {
    "mean by a sum that overflows": ("ReduceMean", "t = ReduceSum (x, axes)  y = Div (t, n)"),
    "exponentials that overflow": ("ReduceLogSumExp", "e = Exp (x)  t = ReduceSum (e, axes)  y = Log (t)"),
    "values clamped below the largest": ("ReduceMax", "c = Min (x, limit)  y = ReduceMax (c, axes)"),
}


@pytest.mark.parametrize("fault", FLOAT16)
def test_float16_overflow(fault: str) -> None:
    op_type, body = FLOAT16[fault]
    held = f"{AXIS_1}, float16 n = {{4}}, float16 limit = {{60000}}"
    assert_caught(f"y = {op_type} (x, axes)", body, kind="float16", constants=(AXIS_1, held))


def test_double_through_float() -> None:
    body = "f = Cast <to = 1> (x)  s = ReduceSum (f, axes)  y = Cast <to = 11> (s)"
    assert_caught("y = ReduceSum (x, axes)", body, kind="double", constants=(AXIS_1, AXIS_1))


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceMin", "ReduceSum", "ReduceProd", "ReduceL1"])
@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_integers_through_float(op_type: str, kind: str) -> None:
    number = {"int32": 6, "int64": 7}[kind]
    body = f"f = Cast <to = 1> (x)  s = {op_type} (f, axes)  y = Cast <to = {number}> (s)"
    assert_caught(f"y = {op_type} (x, axes)", body, kind=kind, constants=(AXIS_1, AXIS_1))


def test_int64_through_double() -> None:
    body = "f = Cast <to = 11> (x)  s = ReduceMax (f, axes)  y = Cast <to = 7> (s)"
    assert_caught("y = ReduceMax (x, axes)", body, kind="int64", constants=(AXIS_1, AXIS_1))


def test_minimum_of_integers_by_negation() -> None:
    body = "n = Neg (x)  m = ReduceMax (n, axes)  y = Neg (m)"
    assert_caught("y = ReduceMin (x, axes)", body, kind="int32", constants=(AXIS_1, AXIS_1))


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceMin"])
def test_int8_through_int32_loses_the_limit_of_an_empty_reduction(op_type: str) -> None:
    body = f"c = Cast <to = 6> (x)  r = {op_type} (c, axes)  y = Cast <to = 3> (r)"
    assert_caught(
        f"y = {op_type} (x, axes)", body, "[[0, ", kind="int8", opsets=(20, 18), constants=("int64[1] axes = {0}",) * 2
    )


def test_cast_back_forgotten() -> None:
    body = "c = Cast <to = 6> (x)  y = ReduceMax (c, axes)"
    planned = rewrite("y = ReduceMax (x, axes)", body, kind="uint8", opsets=(20, 18), constants=(AXIS_1, AXIS_1))
    planned.after.graph.output[0].type.tensor_type.elem_type = 6
    assert "element type" in planned.finding().reason


def test_dynamic_axes_taken_for_constant() -> None:
    assert_caught(
        "y = ReduceMax (x, axes)",
        "y = ReduceMax <axes = [1]> (x)",
        opsets=(18, 13),
        extra=", int64[k] axes",
    )


def test_dynamic_empty_axes_taken_for_all() -> None:
    assert_caught(
        "y = ReduceSum <noop_with_empty_axes = 1> (x, axes)",
        "y = ReduceSum (x, axes)",
        "[0]]",
        extra=", int64[k] axes",
    )


def test_a_replacement_that_computes_something_else_entirely() -> None:
    assert_caught("y = ReduceMax (x)", "z = ReduceMax (x)", "computes none of")


def test_a_replacement_that_no_runtime_loads() -> None:
    assert_caught("y = ReduceMax (x)", "y = ReduceMax <axes = [0]> (x)", "does not load", opsets=(18, 18))


def test_other_operators_are_compared_by_tolerance() -> None:
    assert (
        rewrite("y = Softmax <axis = 1> (x)", "y = Softmax <axis = 1> (x)", opsets=(11, 13)).finding().status == "equal"
    )
    assert_caught("y = Softmax <axis = 0> (x)", "y = Softmax <axis = 0> (x)", opsets=(11, 13))
    assert_caught("y = Elu <alpha = 1.0> (x)", "y = Elu <alpha = 1.01> (x)")


def test_a_wrong_site_fails_the_verdict_though_the_whole_model_agrees() -> None:
    planned = rewrite(
        "y = ReduceL2 (x, axes)",
        BODIES["eps added under the square root"][1],
        constants=(AXIS_1, f"{AXIS_1}, float eps = {{1e-9}}"),
    )
    found = verify(planned.before, planned.after, plan=planned.plan)
    assert {item.verdict for item in found.outputs} == {"equal"}
    assert (found.equivalent, found.ran) == (False, True)
    assert "ReduceL2#0" in str(found)
