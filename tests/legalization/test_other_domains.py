"""Operators of a vendor's domain come to another version of it by rules of the user's own, or into ONNX's operators."""

from __future__ import annotations

from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser
from onnx.reference import ReferenceEvaluator

import reducelower
from reducelower import ConversionError, RuleError, Target
from tests.table import VOCABULARY, combinations, rows

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


def model(body: str, version: int = 3) -> ModelProto:
    imports = f'"" : 18, "com.vendor" : {version}' + (', "own" : 1' if "own." in body else "")
    return parser.parse_model(
        f"<ir_version: 8, opset_import: [{imports}]> g (float[2] x, bool c) => (float[2] y) {body}"
    )


def operators(made: ModelProto) -> list[str]:
    return [f"{node.domain}.{node.op_type}".lstrip(".") for node in made.graph.node]


def versions(made: ModelProto) -> dict[str, int]:
    return {entry.domain: entry.version for entry in made.opset_import}


MODELS = rows(
    Path(__file__).with_name("domains.toml"),
    fields={
        "body", "version", "opset", "to", "each", "scale", "options", "becomes", "imports", "holds", "gives", "refused",
    },
)  # fmt: skip


@pytest.mark.parametrize("claim", MODELS)
def test_what_a_model_of_the_vendor_becomes(claim: str, rules: Path) -> None:
    for chosen in combinations(MODELS[claim].get("each", {})):
        row = {**MODELS[claim], **chosen}
        if "scale" in row:
            (rules / "versions" / "com.vendor" / "Scale.onnxtxt").write_text(row["scale"])
        source = model(Template(row["body"]).substitute(chosen), row.get("version", 3))
        target = Target(row.get("opset"), domains={"com.vendor": row["to"]})
        try:
            outcome = reducelower.legalize(source, target, rules=rules, **row.get("options", {}))
        except ConversionError as refused:
            assert "refused" in row and row["refused"] in str(refused), refused
            continue
        assert "refused" not in row
        made = outcome.model
        assert operators(made) == row.get("becomes", operators(made))
        assert versions(made) == row.get("imports", versions(made))
        for held in row.get("holds", ()):
            assert eval(held, {"made": made, "plan": outcome.plan}), held
        if "gives" in row:
            x = np.array([-3.0, 0.5], np.float32)
            (result,) = ReferenceEvaluator(made).run(None, {"x": x, "c": np.array(True)})
            np.testing.assert_array_equal(result, eval(row["gives"], {**VOCABULARY, "x": x}))


def test_without_rules_nothing_is_known_of_another_version() -> None:
    made = model("{ y = com.vendor.Widget (x) }", version=1)
    with pytest.raises(ConversionError, match=r"nothing says what Widget of com\.vendor"):
        reducelower.legalize(model("{ y = com.vendor.Widget (x) }"), Target(domains={"com.vendor": 1}))
    # The refusal of one model is not that of another, which has the version already.
    assert reducelower.legalize(made, Target(domains={"com.vendor": 1})).plan.changes_nothing


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
        ({"com.vendor": -1}, ValueError, "or 0 for no node"),
        ({"com.vendor": "1"}, TypeError, "must be a version"),
        ({1: 1}, TypeError, "each domain must be a string"),
        ("com.vendor", TypeError, "must map domains to versions"),
        (1, TypeError, "must map domains to versions"),
    ],
)
def test_a_target_checks_the_versions_of_domains(domains: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        Target(domains=domains)
