"""Operators of a vendor's domain come to another version of it by rules of the user's own, or into ONNX's operators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser
from onnx.reference import ReferenceEvaluator

import reducelower
from reducelower import ConversionError, RuleError, Target

HEAD = '<domain: "mine", overload: "{overload}", opset_import: ["" : {opset}]>\n'
SCALE = (
    HEAD.format(overload="below 3 if bias != 0.0", opset=13)
    + "Scale <bias> (x) => (y)\n{\n  scaled = Self (x)\n  y = Add (scaled, bias)\n}\n\n"
    + HEAD.format(overload="below 2", opset=18)
    + "Scale <factor: float = 1.0> (x) => (y)\n{\n  y = com.vendor.Gain <by = @factor> (x)\n}\n\n"
    + HEAD.format(overload="from 2 if factor == 2.0", opset=18)
    + "Scale <factor> (x) => (y)\n{\n  y = com.vendor.Double (x)\n}\n\n"
    + HEAD.format(overload="absent", opset=18)
    + "Scale <factor: float = 1.0, bias: float = 0.0> (x) => (y)\n"
    + "{\n  scaled = Mul (x, factor)\n  y = Add (scaled, bias)\n}\n\n"
    + '<domain: "mine", opset_import: ["" : 18]>\nHelped (a) => (b)\n{\n  b = com.vendor.Gain (a)\n}\n'
)
ROWS = """
Scale = [{ at = "below 3 if bias == 0.0", drop = ["bias"], why = "it came with version 3" }]
"Double Widget" = []
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """A folder with rules for com.vendor: Scale(x, factor=1, bias=0), whose bias came with 3, was Gain before 2."""
    folder = tmp_path / "mine" / "versions" / "com.vendor"
    folder.mkdir(parents=True)
    (folder / "Scale.onnxtxt").write_text(SCALE)
    (folder / "attributes.toml").write_text(ROWS)
    return tmp_path / "mine"


def model(body: str, version: int = 3, opset: int = 18) -> ModelProto:
    imports = f'"" : {opset}, "com.vendor" : {version}'
    return parser.parse_model(
        f"<ir_version: 8, opset_import: [{imports}]> g (float[2] x, bool c) => (float[2] y) {body}"
    )


def operators(made: ModelProto) -> list[str]:
    return [f"{node.domain}.{node.op_type}".lstrip(".") for node in made.graph.node]


def versions(made: ModelProto) -> dict[str, int]:
    return {entry.domain: entry.version for entry in made.opset_import}


BOTH = "{ a = com.vendor.Scale <factor = 2.0, bias = 1.0> (x)  y = com.vendor.Scale <bias = 0.0> (a) }"


def test_a_node_crosses_each_boundary_by_the_rule_for_it(rules: Path) -> None:
    outcome = reducelower.legalize(model(BOTH), Target(domains={"com.vendor": 2}), rules=rules)
    assert operators(outcome.model) == ["com.vendor.Scale", "Add", "com.vendor.Scale"]
    assert [attribute.name for node in outcome.model.graph.node for attribute in node.attribute] == ["factor"]
    assert versions(outcome.model) == {"": 18, "com.vendor": 2}
    assert outcome.plan.notes == ("com.vendor goes from version 3 to 2.",)
    assert [site.rule for site in outcome.plan.sites] == ["mine/Scale", "com.vendor 2"]


def test_what_a_rule_writes_goes_on_to_the_version_that_is_wanted(rules: Path) -> None:
    made = reducelower.legalize(model(BOTH), Target(domains={"com.vendor": 1}), rules=rules).model
    assert operators(made) == ["com.vendor.Gain", "Add", "com.vendor.Gain"]
    assert [node.attribute[0].f for node in made.graph.node if node.domain] == [2.0, 1.0]


def test_nodes_cross_upward_as_well_and_in_branches(rules: Path) -> None:
    body = """{ y = If (c) <
      then_branch = t () => (float[2] p) { p = com.vendor.Scale <factor = 2.0> (x) },
      else_branch = e () => (float[2] q) { q = com.vendor.Scale <factor = 3.0> (x) }
    > }"""
    made = reducelower.legalize(model(body, version=1), Target(domains={"com.vendor": 3}), rules=rules).model
    written = [attribute.g.node[0].op_type for attribute in made.graph.node[0].attribute]
    assert sorted(written) == ["Double", "Scale"]
    assert versions(made)["com.vendor"] == 3


def test_version_zero_leaves_nothing_of_a_domain_and_the_numbers_are_those_of_the_definition(rules: Path) -> None:
    body = "{ y = com.vendor.Scale <factor = 2.5, bias = 1.0> (x) }"
    made = reducelower.legalize(model(body), Target(13, domains={"com.vendor": 0}), rules=rules).model
    assert operators(made) == ["Mul", "Add"]
    assert versions(made) == {"": 13}
    x = np.array([-3.0, 0.5], np.float32)
    (result,) = ReferenceEvaluator(made).run(None, {"x": x, "c": np.array(True)})
    np.testing.assert_array_equal(result, x * np.float32(2.5) + np.float32(1))


def test_a_guard_knows_the_default_that_stands_in_its_own_header(rules: Path) -> None:
    written = '<domain: "mine", overload: "below 3 if factor == 5.0", opset_import: ["" : 13]>\n'
    body = "Scale <factor: float = {}> (x) => (y)\n{{\n  y = {} (x)\n}}\n"
    path = rules / "versions" / "com.vendor" / "Scale.onnxtxt"
    path.write_text(written + body.format(1.0, "Neg") + "\n" + written + body.format(5.0, "Abs"))
    made = reducelower.legalize(model("{ y = com.vendor.Scale (x) }"), Target(domains={"com.vendor": 2}), rules=rules)
    assert operators(made.model) == ["Abs"]


def test_a_body_that_asks_for_some_of_the_sizes_gets_these_where_all_are_known(rules: Path) -> None:
    path = rules / "versions" / "com.vendor" / "Scale.onnxtxt"
    path.write_text(
        HEAD.format(overload="absent", opset=18)
        + "Scale (x) => (y)\n{\n  behind = Shape <start = 1> (x)\n  size = ReduceProd <keepdims = 0> (behind)\n"
        + "  size_like = CastLike (size, x)\n  y = Mul (x, size_like)\n}\n"
    )
    body = "{ y = com.vendor.Scale (x) }"
    made = reducelower.legalize(model(body), Target(domains={"com.vendor": 0}), rules=rules).model
    x = np.array([-3.0, 0.5], np.float32)
    (result,) = ReferenceEvaluator(made).run(None, {"x": x, "c": np.array(True)})
    np.testing.assert_array_equal(result, x)  # nothing stands behind the only dimension: a product of nothing


def test_both_versions_change_in_one_conversion(rules: Path) -> None:
    body = "{ s = com.vendor.Widget (x)  r = ReduceSum <keepdims = 1> (x)  y = Add (s, r) }"
    made = reducelower.legalize(
        model(body), Target(11, domains={"com.vendor": 2}), rules=rules, element_types={"s": "float"}
    ).model
    assert versions(made) == {"": 11, "com.vendor": 2}
    assert operators(made) == ["com.vendor.Widget", "ReduceSum", "Add"]


@pytest.mark.parametrize(
    ("body", "version", "reason"),
    [
        ("{ y = com.vendor.Gadget (x) }", 2, "nothing says what Gadget of com.vendor becomes between versions 3 and 2"),
        ("{ y = com.vendor.Gadget (x) }", 0, "the target has nothing of com.vendor"),
        ("{ y = com.vendor.Widget (x) }", 0, "no rule says what this Widget becomes"),
    ],
)
def test_an_operator_that_the_rules_do_not_name_is_refused(rules: Path, body: str, version: int, reason: str) -> None:
    with pytest.raises(ConversionError, match=reason):
        reducelower.legalize(model(body), Target(domains={"com.vendor": version}), rules=rules)


def test_without_rules_nothing_is_known_of_another_version() -> None:
    made = model("{ y = com.vendor.Widget (x) }", version=1)
    with pytest.raises(ConversionError, match=r"nothing says what Widget of com\.vendor"):
        reducelower.legalize(model("{ y = com.vendor.Widget (x) }"), Target(domains={"com.vendor": 1}))
    # The refusal of one model is not that of another, which has the version already.
    assert reducelower.legalize(made, Target(domains={"com.vendor": 1})).plan.changes_nothing


def test_calls_of_functions_of_the_model_are_no_operators_of_the_vendor(rules: Path) -> None:
    source = model("{ y = com.vendor.Own (x) }")
    source.functions.append(
        parser.parse_function('<opset_import: ["" : 18], domain: "com.vendor"> Own (a) => (b) { b = Neg (a) }')
    )
    made = reducelower.legalize(source, Target(domains={"com.vendor": 0}), rules=rules).model
    assert operators(made) == ["com.vendor.Own"]
    assert len(made.functions) == 1
    assert versions(made)["com.vendor"] == 3


def test_versions_without_rules_are_not_gone_through(rules: Path) -> None:
    source = model(BOTH, version=1 << 40)
    made = reducelower.legalize(source, Target(domains={"com.vendor": 2}), rules=rules).model
    assert operators(made) == ["com.vendor.Scale", "Add", "com.vendor.Scale"]


def test_two_versions_of_a_domain_in_one_model_are_refused(rules: Path) -> None:
    source = model("{ y = own.F (x) }")
    source.opset_import.add(domain="own", version=1)
    text = '<opset_import: ["" : 18, "com.vendor" : 2], domain: "own"> F (a) => (b) { b = com.vendor.Widget (a) }'
    source.functions.append(parser.parse_function(text))
    with pytest.raises(ConversionError, match=r"it imports com\.vendor at versions 2 and 3"):
        reducelower.legalize(source, Target(domains={"com.vendor": 1}), rules=rules)


def test_a_rule_for_a_domain_that_writes_what_is_not_valid_is_to_blame(rules: Path) -> None:
    path = rules / "versions" / "com.vendor" / "Scale.onnxtxt"
    path.write_text(SCALE.replace("scaled = Mul (x, factor)", "scaled = Transpose <perm = 3> (x)"))
    body = "{ y = com.vendor.Scale (x) }"
    with pytest.raises(RuleError, match="for Scale is not valid") as raised:
        reducelower.legalize(model(body), Target(domains={"com.vendor": 0}), rules=rules)
    assert raised.value.path == path


@pytest.mark.parametrize(
    ("domains", "error", "says"),
    [
        ({"": 13}, ValueError, "ONNX's own"),
        ({"ai.onnx.ml": 3}, ValueError, "ONNX's own"),
        ({"com.vendor": -1}, ValueError, "or 0 for none"),
        ({"com.vendor": "1"}, TypeError, "must be an int"),
        ({1: 1}, TypeError, "must name domains"),
        ("com.vendor", TypeError, "must map domains to versions"),
        (1, TypeError, "must map domains to versions"),
    ],
)
def test_a_target_checks_the_versions_of_domains(domains: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        Target(domains=domains)
