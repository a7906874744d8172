"""Rules of version boundaries, tried on onnx's own cases: those that come with the package, and those of a user."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

import reducelower
from reducelower import ConversionError
from reducelower.cli import run
from reducelower.conformance.boundary_trial import BoundaryTrial, try_boundaries, try_expansion
from reducelower.rulebook import RuleError, load_book
from reducelower.rulebook.boundaries import boundaries_of, shipped
from reducelower.rulebook.boundary_validation import check_boundaries

pytestmark = pytest.mark.xdist_group("onnx's cases")

SHAPE = """<
  domain: "mine", overload: "below 15 if start == 1 and absent(end)", opset_import: ["" : 14],
  doc_string: "all sizes but the first"
>
Shape <start, first: ints = [1], end: ints = [64]> (data) => (shape)
{
  sizes = Shape (data)
  shape = Slice (sizes, first, end)
}
"""
CELU = """<domain: "mine", overload: "absent", opset_import: ["" : 8]>
Celu <alpha> (X) => (Y)
{
  Y = Elu <alpha: float = @alpha> (X)
}
"""
ROW = 'Concat = [{ at = "below 13 if axis == 1", set = { axis = "axis - 1" }, why = "wrong" }]\n'


def folder(path: Path, **files: str) -> Path:
    """A folder of rules with these files for version boundaries."""
    (path / "versions").mkdir()
    for name, text in files.items():
        (path / "versions" / f"{name}{'.toml' if name == 'attributes' else '.onnxtxt'}").write_text(text)
    return path


def tried(path: Path) -> list[BoundaryTrial]:
    book = load_book(path)
    own = boundaries_of(book.directory)
    assert own is not None
    return list(try_boundaries(book, own, at_every_opset=False))


ASKING = """<domain: "mine", overload: "below 15", opset_import: ["" : 14]>
Shape (data) => (shape)
{
  negated = Neg (data)
  shape = Asked (negated, data)
}

<domain: "mine", opset_import: ["" : 14]>
Asked (data, whole) => (shape)
{
  rank = Answer <to = "needed_rank(data)"> ()
  shape = Shape (whole)
}
"""
"""The helper calls a computed value as the rule calls its input."""

SLOW = {"Abs", "Attention", "AveragePool", "Clip", "LpPool"}
"""Operators whose cases have so many values that onnx.reference takes half a minute; they have tests elsewhere."""

SPREADING = {"RoiAlign"}
"""Operators written as products with weights, of which some are zero: infinite data make a whole region NaN."""


@pytest.mark.parametrize("operator", sorted({*shipped().operators} - SLOW - SPREADING))
def test_what_crosses_a_boundary_by_a_shipped_rule_gives_what_it_gave(operator: str) -> None:
    for trial in try_boundaries(load_book("stable"), shipped(), operator, at_every_opset=False):
        assert not trial.wrong


def test_a_right_rule_is_right_and_the_cases_that_take_it_are_counted(tmp_path: Path) -> None:
    (trial,) = tried(folder(tmp_path, Shape=SHAPE))
    assert trial.wrong == []
    assert trial.taken > 0
    assert trial.passed_by > 0
    assert trial.outcome.startswith("right in ")


@pytest.mark.parametrize("wrong", ["first: ints = [0]", "first: ints = [2]"])
def test_a_wrong_rule_is_told_with_its_case(tmp_path: Path, wrong: str) -> None:
    (trial,) = tried(folder(tmp_path, Shape=SHAPE.replace("first: ints = [1]", wrong)))
    assert "test_shape_start_1" in trial.wrong[0]


def test_a_wrong_row_is_told(tmp_path: Path) -> None:
    (trial,) = tried(folder(tmp_path, attributes=ROW))
    assert any(said.startswith("test_concat_2d_axis_1") for said in trial.wrong)


def test_a_rule_for_an_absent_operator_is_tried_below_its_first_version(tmp_path: Path) -> None:
    """Elu is Celu with alpha 1 only: (exp(x) - 1) * alpha is not (exp(x / alpha) - 1) * alpha."""
    (trial,) = tried(folder(tmp_path, Celu=CELU))
    assert trial.way == "12 to 11"
    assert trial.wrong


def test_a_rule_has_no_blame_for_what_it_had_no_part_in(tmp_path: Path) -> None:
    """A conversion that gives another result without the rule as well is not laid at its door."""
    never = '<domain: "mine", overload: "below 22 if rank(X) == 9", opset_import: ["" : 21]>\nAveragePool (X) => (Y)\n'
    (trial,) = tried(folder(tmp_path, AveragePool=never + "{\n  Y = Self (X)\n}\n"))
    assert trial.wrong == []
    assert trial.taken == 0
    assert trial.outcome.startswith("not tried: no case of onnx took a rule")


COSH = """<domain: "mine", opset_import: ["" : 18]>
Cosh (x) => (y)
{
  up = Exp (x)
  minus = Neg (x)
  down = Exp (minus)
  both = Add (up, down)
  half = Constant <value_float = 0.5> ()
  typed = CastLike (half, x)
  y = Mul (both, typed)
}
"""


@pytest.mark.parametrize(("both", "is_wrong"), [("Add", False), ("Sub", True)])
def test_an_operator_without_known_answers_is_tried_on_its_cases(tmp_path: Path, both: str, is_wrong: bool) -> None:
    (tmp_path / "Cosh.onnxtxt").write_text(COSH.replace("Add", both))
    trial = try_expansion(load_book(tmp_path), "Cosh")
    assert bool(trial.wrong) == is_wrong
    assert bool(trial.taken) != is_wrong


@pytest.mark.parametrize(("asked", "is_refused"), [("data", True), ("whole", False)])
def test_a_helper_asks_about_inputs_by_its_own_names_for_them(tmp_path: Path, asked: str, is_refused: bool) -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> g (float[a,b] x) => (int64[n] y) { y = Shape <start = 0> (x) }'
    )
    rules = folder(tmp_path, Shape=ASKING.replace("needed_rank(data)", f"needed_rank({asked})"))
    if is_refused:
        with pytest.raises(ConversionError, match="which is no input"):
            reducelower.convert_version(model, 13, rules=rules)
    else:
        assert [node.op_type for node in reducelower.convert_version(model, 13, rules=rules).graph.node] == ["Shape"]


RELU = """<domain: "mine", overload: "lacking if type(X) == int32", opset_import: ["" : 13]>
Relu <zero: float = 0.0> (X) => (Y)
{
  is_above = Less (zero, X)
  Y = Where (is_above, X, zero)
}
"""


def test_a_rule_for_a_lacking_element_type_is_for_opsets_that_lack_it(tmp_path: Path) -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 15]> g (int32[3] x) => (int32[3] y) { y = Relu (x) }'
    )
    rules = folder(tmp_path, Relu=RELU)
    made = reducelower.convert_version(model, 13, rules=rules)
    assert [node.op_type for node in made.graph.node] == ["Less", "Where"]
    (result,) = ReferenceEvaluator(made).run(None, {"x": np.array([-2, 0, 3], np.int32)})
    np.testing.assert_array_equal(result, [0, 0, 3])
    assert [node.op_type for node in reducelower.convert_version(model, 14, rules=rules).graph.node] == ["Relu"]


def test_a_rule_for_a_lacking_element_type_is_written_for_the_opset_of_casts(tmp_path: Path) -> None:
    own = boundaries_of(folder(tmp_path, Relu=RELU.replace(": 13]", ": 12]")))
    assert own is not None
    with pytest.raises(RuleError, match="written for opset 13"):
        check_boundaries(own)


def test_a_rule_of_ones_own_goes_before_that_of_the_package(tmp_path: Path) -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> g (float[a,b] x) => (int64[n] y) { y = Shape <start = 1> (x) }'
    )
    outcome = reducelower.legalize(model, reducelower.Target(opset=13), rules=folder(tmp_path, Shape=SHAPE))
    assert [site.rule for site in outcome.plan.sites] == [f"{tmp_path.name}/Shape"]
    assert [node.op_type for node in outcome.model.graph.node] == ["Shape", "Slice"]


def with_body(body: str) -> str:
    return f"{SHAPE.partition('{')[0]}{{\n  {body}\n}}\n"


def test_rows_that_are_no_text_are_refused(tmp_path: Path) -> None:
    folder(tmp_path, attributes="")
    (tmp_path / "versions" / "attributes.toml").write_bytes(b"\xff")
    own = boundaries_of(tmp_path)
    assert own is not None
    with pytest.raises(RuleError, match="is not TOML"):
        check_boundaries(own)


def test_trying_a_folder_says_what_is_wrong_with_it_as_converting_does(tmp_path: Path) -> None:
    rules = folder(tmp_path, Shape=SHAPE.replace("below 15", "below 16"))
    assert run(["rules", "--test", str(rules)]) == 2


@pytest.mark.parametrize(("body", "opset"), [("Self (X)", 13), ("Celu (X)", 13), ("Celu (X)", 8)])
def test_a_rule_for_an_absent_operator_that_writes_it_is_to_blame(tmp_path: Path, body: str, opset: int) -> None:
    """Whether the body ends is told when it is written out; Self says at once that it does not."""
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> g (float[3] x) => (float[3] y) { y = Celu (x) }'
    )
    rules = folder(tmp_path, Celu=CELU.replace("Elu <alpha: float = @alpha> (X)", body).replace(": 8]", f": {opset}]"))
    with pytest.raises(RuleError, match="Celu") as raised:
        reducelower.convert_version(model, 11, rules=rules)
    assert raised.value.path == rules / "versions" / "Celu.onnxtxt"
    assert raised.value.line


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("shape = Transpose <perm = 3> (data)", "for Shape is not valid at opset 13"),
        ("other = Cast (data)\n  shape = Shape (other)", "Required attribute 'to' is missing"),
        ("shape = Relu (data)", "does not fit the model"),
        ("other = Expand (data, data)\n  shape = Shape (other)", "does not fit the model"),
    ],
)
def test_a_rule_that_writes_what_is_not_valid_is_to_blame(tmp_path: Path, body: str, says: str) -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> g (float[2,3] x) => (int64[n] y) { y = Shape <start = 1> (x) }'
    )
    rules = folder(tmp_path, Shape=with_body(body))
    with pytest.raises(RuleError, match=says) as raised:
        reducelower.convert_version(model, 13, rules=rules)
    assert raised.value.path == rules / "versions" / "Shape.onnxtxt"
    assert raised.value.line == 1


def test_a_row_that_writes_what_is_not_valid_is_to_blame(tmp_path: Path) -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> g (float[2] x) => (float[n] y) { y = Concat <axis = 0> (x, x) }'
    )
    rules = folder(tmp_path, attributes="# mine\n" + ROW.replace("axis == 1", "axis == 0").replace('"axis - 1"', "7"))
    with pytest.raises(RuleError, match="does not fit the model") as raised:
        reducelower.convert_version(model, 12, rules=rules)
    assert raised.value.path == rules / "versions" / "attributes.toml"
    assert raised.value.line == 2


def test_a_body_that_is_not_valid_at_its_node_is_to_blame(tmp_path: Path) -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> g (float[2,3] x) => (float[1,1] y) { y = ReduceL1 (x) }'
    )
    (tmp_path / "ReduceL1.onnxtxt").write_text(
        """<domain: "mine", opset_import: ["" : 18]>
ReduceL1 <keepdims, noop_with_empty_axes> (data, axes) => (reduced)
{
  turned = Transpose <perm = [0, 0]> (data)
  reduced = ReduceSum <keepdims = @keepdims, noop_with_empty_axes = @noop_with_empty_axes> (turned, axes)
}
"""
    )
    with pytest.raises(RuleError, match="does not fit the model") as raised:
        reducelower.expand(model, rules=tmp_path)
    assert (raised.value.path, raised.value.line) == (tmp_path / "ReduceL1.onnxtxt", 1)
