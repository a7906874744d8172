"""Nothing of a vendor's domain remains: rules of the user's own say what its operators become."""

from __future__ import annotations

from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, parser
from onnx.reference import ReferenceEvaluator

import reducelower
from reducelower import ConversionError, RuleError, Target
from tests.table import VOCABULARY, combinations, rows

SCALE = """<domain: "mine", overload: "absent", opset_import: ["" : 18]>
Scale <factor: float = 1.0, bias: float = 0.0> (x) => (y)
{
  scaled = Mul (x, factor)
  y = Add (scaled, bias)
}
"""
NOTHING_OF_IT = {"without_domains": {"com.vendor"}}


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """A folder with the rule for Scale(x, factor=1, bias=0) of com.vendor."""
    folder = tmp_path / "mine" / "versions" / "com.vendor"
    folder.mkdir(parents=True)
    (folder / "Scale.onnxtxt").write_text(SCALE)
    return tmp_path / "mine"


def model(body: str) -> ModelProto:
    imports = '"" : 18, "com.vendor" : 3' + (', "own" : 1' if "own." in body else "")
    return parser.parse_model(
        f"<ir_version: 8, opset_import: [{imports}]> g (float[2] x, bool c) => (float[2] y) {body}"
    )


MODELS = rows(
    Path(__file__).with_name("domains.toml"),
    fields={"body", "opset", "each", "scale", "becomes", "imports", "holds", "gives", "refused"},
)


@pytest.mark.parametrize("claim", MODELS)
def test_what_a_model_of_the_vendor_becomes(claim: str, rules: Path) -> None:
    for chosen in combinations(MODELS[claim].get("each", {})):
        row = {**MODELS[claim], **chosen}
        if "scale" in row:
            (rules / "versions" / "com.vendor" / "Scale.onnxtxt").write_text(row["scale"])
        source = model(Template(row["body"]).substitute(chosen))
        try:
            outcome = reducelower.legalize(source, Target(row.get("opset"), **NOTHING_OF_IT), rules=rules)
        except ConversionError as refused:
            assert "refused" in row and row["refused"] in str(refused), refused
            continue
        assert "refused" not in row
        made = outcome.model
        operators = [f"{node.domain}.{node.op_type}".lstrip(".") for node in made.graph.node]
        assert operators == row.get("becomes", operators)
        imports = {entry.domain: entry.version for entry in made.opset_import}
        assert imports == row.get("imports", imports)
        for held in row.get("holds", ()):
            assert eval(held, {"made": made, "plan": outcome.plan}), held
        if "gives" in row:
            x = np.array([-3.0, 0.5], np.float32)
            (result,) = ReferenceEvaluator(made).run(None, {"x": x, "c": np.array(True)})
            np.testing.assert_array_equal(result, eval(row["gives"], {**VOCABULARY, "x": x}))


def test_the_refusal_of_one_model_is_not_that_of_another() -> None:
    with pytest.raises(ConversionError, match=r"the target has nothing of com\.vendor, and no rule says .* Widget"):
        reducelower.legalize(model("{ y = com.vendor.Widget (x) }"), Target(**NOTHING_OF_IT))
    assert reducelower.legalize(model("{ y = com.vendor.Widget (x) }"), Target()).plan.changes_nothing


def test_texts_that_fill_up_a_tensor_of_unknown_type_are_no_numbers() -> None:
    branch = """() => (string[] padded_{0}) {{
        filler_{0} = Constant <value: tensor = string {{"-"}}> ()
        padded_{0} = Pad (read, pads, filler_{0})
    }}"""
    of_texts = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 15, "com.vendor" : 3]>
        g (string[2] x, bool c) => (string[4] y) <int64[2] pads = {{1, 1}}> {{
            read = com.vendor.Texts (x)
            y = If (c) <then_branch = t {branch.format(1)}, else_branch = e {branch.format(2)}>
        }}"""
    )
    with pytest.raises(ConversionError, match="the rank of 'read' is not known"):
        reducelower.convert_version(of_texts, 7)


def test_a_rule_for_a_domain_that_writes_what_is_not_valid_is_to_blame(rules: Path) -> None:
    path = rules / "versions" / "com.vendor" / "Scale.onnxtxt"
    path.write_text(SCALE.replace("scaled = Mul (x, factor)", "scaled = Transpose <perm = 3> (x)"))
    with pytest.raises(RuleError, match="for Scale is not valid") as raised:
        reducelower.legalize(model("{ y = com.vendor.Scale (x) }"), Target(**NOTHING_OF_IT), rules=rules)
    assert raised.value.path == path


@pytest.mark.parametrize(
    ("domains", "error", "says"),
    [
        ({""}, ValueError, "ONNX's own"),
        (["ai.onnx.ml"], ValueError, "ONNX's own"),
        ([1], TypeError, "an item is int"),
        ("com.vendor", TypeError, "must be a collection"),
    ],
)
def test_a_target_checks_the_names_of_domains(domains: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        Target(without_domains=domains)


def test_a_rank_that_only_the_runtime_knows_makes_no_other_length() -> None:
    """onnxruntime infers a Range up to the Size of a shape wrongly, and refuses what reads it beside the shape."""
    of_vendor = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18, "com.vendor" : 3]>
        g (float[4, 3] x, int64[2, K] i, float[2, 3] u) => (float[4, 3] y) {
            p = com.vendor.Same (x)
            v = com.vendor.Same (u)
            y = ScatterND <reduction = "add"> (p, i, v)
        }"""
    )
    made = reducelower.convert_version(of_vendor, 13)
    for node in made.graph.node[:2]:
        assert node.op_type == "Same"
        node.op_type, node.domain = "Identity", ""
    x, u = np.arange(12, dtype=np.float32).reshape(4, 3), np.ones((2, 3), np.float32)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(made.SerializeToString(), options)
    (y,) = session.run(None, {"x": x, "i": np.array([[2], [2]]), "u": u})
    assert y.tolist() == (x + 2 * (np.arange(4) == 2)[:, None]).tolist()
