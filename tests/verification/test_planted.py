"""Faults planted in rules, of boundaries and of operators: a verified conversion finds each, and writes nothing."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import ModelProto

from reducelower.batch import Outcome, Settings, Task, convert_file
from reducelower.numerics.reductions import REDUCTIONS
from reducelower.options import Target

from .models import model

OPERATORS = sorted(REDUCTIONS)


def source(*op_types: str, kind: str = "float") -> ModelProto:
    """Reductions, flattened so that what the outputs declare gives no fault away before anything is run."""
    outputs = ", ".join(f"{kind}[K{op_type}] y{op_type}" for op_type in op_types)
    nodes = " ".join(f"r{each} = {each} (x, axes)  y{each} = Reshape (r{each}, flat)" for each in op_types)
    held = "int64[1] axes = {1}, int64[1] flat = {-1}"
    return model(f"g ({kind}[A, B, C] x) => ({outputs}) <{held}> {{ {nodes} }}")


def converted(folder: Path, given: ModelProto, target: Target, rules: str = "spec") -> Outcome:
    onnx.save(given, folder / "model.onnx")
    task = Task(str(folder / "model.onnx"), str(folder / "out.onnx"))
    return convert_file(task, Settings(target, rules=rules))


def assert_caught(folder: Path, outcome: Outcome, *op_types: str) -> None:
    assert outcome.status == 1, outcome.problems
    assert outcome.verification is not None
    found = [site for site in outcome.verification.sites if site.op_type in REDUCTIONS]
    assert [(site.op_type, site.status) for site in found] == [(op_type, "different") for op_type in op_types]
    assert all(site.reason for site in found)
    assert "does not compute the same" in outcome.problems[0]
    assert not (folder / "out.onnx").exists()


BOUNDARY_RULE = """<domain: "mine", overload: "below noop_with_empty_axes", opset_import: ["" : 11]>
{op_type} <keepdims> (data, axes) => (reduced)
{{
  reduced = {node} (data)
}}
"""
OTHER = {"ReduceMax": "ReduceMin", "ReduceLogSumExp": "ReduceMax"}
BOUNDARY_FAULTS = {
    "keepdims dropped": "Self <axes = [1], keepdims = 0>",
    "axis off by one": "Self <axes = [2], keepdims = @keepdims>",
    "axis counted from the end": "Self <axes = [-1], keepdims = @keepdims>",
    "axes lost": "Self <keepdims = @keepdims>",
    "one axis too many": "Self <axes = [1, 2], keepdims = @keepdims>",
    "another operator": "{other} <axes = [1], keepdims = @keepdims>",
}


def over_boundaries(folder: Path, node: str) -> Outcome:
    """Reductions at opset 11, where each has its axes as an attribute, by a rule for each."""
    (folder / "rules" / "versions").mkdir(parents=True)
    for each in OPERATORS:
        text = BOUNDARY_RULE.format(op_type=each, node=node.format(other=OTHER.get(each, "ReduceMax")))
        (folder / "rules" / "versions" / f"{each}.onnxtxt").write_text(text)
    return converted(folder, source(*OPERATORS), Target(11), str(folder / "rules"))


@pytest.mark.parametrize("fault", BOUNDARY_FAULTS)
def test_fault_of_a_boundary_rule(tmp_path: Path, fault: str) -> None:
    assert_caught(tmp_path, over_boundaries(tmp_path, BOUNDARY_FAULTS[fault]), *OPERATORS)


def test_without_a_fault_nothing_is_found(tmp_path: Path) -> None:
    outcome = over_boundaries(tmp_path, "Self <axes = [1], keepdims = @keepdims>")
    assert outcome.status == 0, outcome.problems
    assert outcome.verification is not None
    assert all(site.ok for site in outcome.verification.sites)


RULE = """<domain: "mine", overload: "{kind}", opset_import: ["" : 18]>
{op_type} <keepdims, noop_with_empty_axes> (data, axes) => (reduced)
{{
  {body}
}}
"""
HOW = "<keepdims = @keepdims, noop_with_empty_axes = @noop_with_empty_axes>"
ALL = f"{HOW} (data, axes)"
ONE = "one = Constant <value_float = 1.0> ()"
EPS = "eps = Constant <value_float = 1e-7> ()"

RULE_FAULTS = {
    "keepdims ignored": ("ReduceL1", "float", "a = Abs (data) reduced = ReduceSum <keepdims = 0> (a, axes)"),
    "axes ignored": ("ReduceL1", "float", f"a = Abs (data) reduced = ReduceSum {HOW} (a)"),
    "absolute value forgotten": ("ReduceL1", "float", f"reduced = ReduceSum {ALL}"),
    "absolute value taken too late": ("ReduceL1", "float", f"s = ReduceSum {ALL} reduced = Abs (s)"),
    "root forgotten": ("ReduceL2", "float", f"s = Mul (data, data) reduced = ReduceSum {HOW} (s, axes)"),
    "eps under the root": (
        "ReduceL2",
        "float",
        f"s = Mul (data, data) t = ReduceSum {HOW} (s, axes) {EPS} u = Add (t, eps) reduced = Sqrt (u)",
    ),
    "sums that overflow float16": (
        "ReduceL1",
        "float16",
        f"a = Abs (data) b = Add (a, a) s = ReduceSum {HOW} (b, axes) c = Constant <value_float = 2.0> ()"
        " two = CastLike (c, data) reduced = Div (s, two)",
    ),
    "eps under the logarithm": (
        "ReduceLogSum",
        "float",
        f"s = ReduceSum {ALL} {EPS} u = Add (s, eps) reduced = Log (u)",
    ),
    "logarithm of each": ("ReduceLogSum", "float", f"l = Log (data) reduced = ReduceSum {HOW} (l, axes)"),
    "logarithm of one more": ("ReduceLogSum", "float", f"s = ReduceSum {ALL} {ONE} u = Add (s, one) reduced = Log (u)"),
    "exponentials that overflow float16": (
        "ReduceLogSumExp",
        "float16",
        f"e = Exp (data) s = ReduceSum {HOW} (e, axes) reduced = Log (s)",
    ),
    "infinite maximum subtracted": (
        "ReduceLogSumExp",
        "float",
        f"m = ReduceMax <keepdims = 1, noop_with_empty_axes = @noop_with_empty_axes> (data, axes) d = Sub (data, m)"
        f" e = Exp (d) s = ReduceSum {HOW} (e, axes) l = Log (s) k = ReduceMax {ALL} reduced = Add (l, k)",
    ),
    "maximum not added back": (
        "ReduceLogSumExp",
        "float",
        f"m = ReduceMax <keepdims = 1, noop_with_empty_axes = @noop_with_empty_axes> (data, axes) d = Sub (data, m)"
        f" e = Exp (d) s = ReduceSum {HOW} (e, axes) reduced = Log (s)",
    ),
    "square forgotten": ("ReduceSumSquare", "float", f"reduced = ReduceSum {ALL}"),
    "sum squared": ("ReduceSumSquare", "float", f"s = ReduceSum {ALL} reduced = Mul (s, s)"),
    "squares through float": (
        "ReduceSumSquare",
        "double",
        f"f = Cast <to = 1> (data) s = Mul (f, f) t = ReduceSum {HOW} (s, axes) reduced = CastLike (t, data)",
    ),
    "integers through float": (
        "ReduceL1",
        "int32",
        f"f = Cast <to = 1> (data) a = Abs (f) t = ReduceSum {HOW} (a, axes) reduced = CastLike (t, data)",
    ),
    "minimum of the negated": (
        "ReduceMin",
        "float",
        f"a = Abs (data) m = ReduceMax {HOW} (a, axes) reduced = Neg (m)",
    ),
    "maximum of absolutes": ("ReduceMax", "float", f"a = Abs (data) s = ReduceMin {HOW} (a, axes) reduced = Neg (s)"),
    "mean without division": ("ReduceMean", "float", f"reduced = ReduceSum {ALL}"),
    "product by logarithms": ("ReduceProd", "float", f"l = Log (data) s = ReduceSum {HOW} (l, axes) reduced = Exp (s)"),
    "sum as a mean": ("ReduceSum", "float", f"reduced = ReduceMean {ALL}"),
}


@pytest.mark.parametrize("fault", RULE_FAULTS)
def test_fault_of_a_rule(tmp_path: Path, fault: str) -> None:
    op_type, kind, body = RULE_FAULTS[fault]
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / f"{op_type}.onnxtxt").write_text(RULE.format(op_type=op_type, kind=kind, body=body))
    given, target = source(op_type, kind=kind), Target(without=frozenset({op_type}))
    assert_caught(tmp_path, converted(tmp_path, given, target, str(rules)), op_type)


def test_a_fault_is_planted_in_every_operator() -> None:
    assert {op_type for op_type, _, _ in RULE_FAULTS.values()} == set(OPERATORS)
