"""Faults planted in rules, of boundaries and of operators: a verified conversion finds each, and writes nothing."""

from __future__ import annotations

from pathlib import Path
from string import Template

import onnx
import pytest
from onnx import ModelProto

from reducelower.batch import Outcome, Settings, Task, convert_file
from reducelower.model.schemas import REDUCTIONS
from reducelower.options import Target
from tests.models import model
from tests.table import rows

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
PARTS = {
    "how": "<keepdims = @keepdims, noop_with_empty_axes = @noop_with_empty_axes>",
    "one": "one = Constant <value_float = 1.0> ()",
    "eps": "eps = Constant <value_float = 1e-7> ()",
}
RULE_FAULTS = rows(Path(__file__).with_name("wrong_rules.toml"), fields=("operator", "type", "body"))


@pytest.mark.parametrize("fault", RULE_FAULTS)
def test_fault_of_a_rule(tmp_path: Path, fault: str) -> None:
    row = RULE_FAULTS[fault]
    op_type, kind, body = row["operator"], row.get("type", "float"), Template(row["body"]).substitute(PARTS)
    rules = tmp_path / "rules"
    rules.mkdir()
    (rules / f"{op_type}.onnxtxt").write_text(RULE.format(op_type=op_type, kind=kind, body=body))
    given, target = source(op_type, kind=kind), Target(without=frozenset({op_type}))
    assert_caught(tmp_path, converted(tmp_path, given, target, str(rules)), op_type)


def test_a_fault_is_planted_in_every_operator() -> None:
    assert {row["operator"] for row in RULE_FAULTS.values()} == set(OPERATORS)
