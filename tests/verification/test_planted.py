"""Faults planted in rules and in what the engine does: a verified conversion finds each, and writes nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import ModelProto, NodeProto, helper

import reducelower.pipeline.raising as raising
from reducelower.batch import Outcome, Settings, Task, convert_file
from reducelower.model.document import Document
from reducelower.numerics.reductions import REDUCTIONS
from reducelower.options import Target

from .models import model

OPERATORS = sorted(REDUCTIONS)


def source(op_type: str, kind: str = "float") -> ModelProto:
    """One reduction, flattened so that what the output declares gives no fault away before anything is run."""
    body = f"r = {op_type} (x, axes)  y = Reshape (r, flat)"
    return model(
        f"g ({kind}[A, B, C] x) => ({kind}[K] y) <int64[1] axes = {{1}}, int64[1] flat = {{-1}}> {{ {body} }}", 18
    )


def converted(folder: Path, given: ModelProto, target: Target, rules: str = "spec") -> Outcome:
    onnx.save(given, folder / "model.onnx")
    task = Task(str(folder / "model.onnx"), str(folder / "out.onnx"))
    return convert_file(task, Settings(target, rules=rules))


def assert_caught(folder: Path, outcome: Outcome) -> None:
    assert outcome.status == 1, outcome.problems
    assert outcome.verification is not None
    (found,) = [site for site in outcome.verification.sites if site.op_type in REDUCTIONS]
    assert found.status == "different"
    assert found.reason
    assert "does not compute the same" in outcome.problems[0]
    assert not (folder / "out.onnx").exists()


def attribute(node: NodeProto, name: str, value: Any) -> None:
    kept = [item for item in node.attribute if item.name != name]
    del node.attribute[:]
    node.attribute.extend(kept)
    if value is not None:
        node.attribute.append(helper.make_attribute(name, value))


OTHER = {"ReduceMax": "ReduceMin", "ReduceLogSumExp": "ReduceMax"}
ENGINE_FAULTS: dict[str, Callable[[NodeProto], None]] = {
    "keepdims dropped": lambda node: attribute(node, "keepdims", 0),
    "axis off by one": lambda node: attribute(node, "axes", [2]),
    "axis counted from the end": lambda node: attribute(node, "axes", [-1]),
    "axes lost": lambda node: attribute(node, "axes", None),
    "one axis too many": lambda node: attribute(node, "axes", [1, 2]),
    "another operator": lambda node: setattr(node, "op_type", OTHER.get(node.op_type, "ReduceMax")),
}


@pytest.mark.parametrize("op_type", OPERATORS)
@pytest.mark.parametrize("fault", ENGINE_FAULTS)
def test_fault_of_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, op_type: str, fault: str) -> None:
    honest = raising.legalized

    def faulty(*arguments: Any, **options: Any) -> Any:
        made, plan = honest(*arguments, **options)
        reductions = [node for node in made.message.graph.node if node.op_type == op_type]
        ENGINE_FAULTS[fault](reductions[0])
        return Document.of_message(made.message), plan

    monkeypatch.setattr(raising, "legalized", faulty)
    # At opset 11 every operator has its axes as an attribute.
    assert_caught(tmp_path, converted(tmp_path, source(op_type), Target(11)))


@pytest.mark.parametrize("op_type", OPERATORS)
def test_without_a_fault_nothing_is_found(tmp_path: Path, op_type: str) -> None:
    outcome = converted(tmp_path, source(op_type), Target(11))
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
    assert_caught(tmp_path, converted(tmp_path, source(op_type, kind), Target(None, frozenset({op_type})), str(rules)))


def test_a_fault_is_planted_in_every_operator() -> None:
    assert {op_type for op_type, _, _ in RULE_FAULTS.values()} == set(OPERATORS)
