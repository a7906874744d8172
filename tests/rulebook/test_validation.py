"""A rule reads and runs nothing else, and what cannot be used of it is refused; `broken.toml` has single mistakes."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from onnx import TensorProto, parser

import reducelower
from reducelower import ConversionError
from reducelower.rulebook import RuleError, load_book

GOOD = """# A comment.
<
  domain: "mine",
  opset_import: ["" : 18]
>
ReduceL1 <keepdims, noop_with_empty_axes> (data, axes) => (reduced)
{
  magnitude = Abs (data)
  reduced = ReduceSum <keepdims = @keepdims, noop_with_empty_axes = @noop_with_empty_axes> (magnitude, axes)
}
"""


EXTERNAL = 'float[2] held = ["location": "values.bin"]'
READING = [
    f"held = Constant <value = {EXTERNAL}> ()",
    f"""yes = Constant <value = bool {{1}}> ()
    held = If (yes) <then_branch = t () => (float[2] a) <{EXTERNAL}> {{ a = Identity (held) }},
        else_branch = e () => (float[2] b) {{ b = Constant <value_floats = [1.0, 2.0]> () }}>""",
]


@pytest.mark.parametrize("node", READING, ids=["Constant", "branch"])
def test_a_rule_reads_no_other_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, node: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "values.bin").write_bytes(bytes(8))
    (tmp_path / "ReduceL1.onnxtxt").write_text(GOOD.replace("  magnitude = ", f"  {node}\n  magnitude = ", 1))
    with pytest.raises(RuleError, match="reads no other file"):
        load_book(tmp_path).find("ReduceL1", TensorProto.FLOAT)


def test_a_book_runs_no_code_that_lies_beside_its_rules(tmp_path: Path) -> None:
    (tmp_path / "ReduceL1.onnxtxt").write_text(GOOD)
    for name in ("__init__.py", "ReduceL1.py", "conftest.py", "ReduceL2.py"):
        (tmp_path / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    book = load_book(tmp_path)
    assert book.find("ReduceL1", TensorProto.FLOAT) is not None
    assert book.find("ReduceL2", TensorProto.FLOAT) is None
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("header", "body", "says"),
    [
        (
            "<largest_power, ",
            "Abs (data)\n  power = Constant <value = @largest_power> ()",
            "takes 'largest_power', which int32",
        ),
        ("<", "Scaled (data)", "the helper Scaled of its rule is not written for int32"),
    ],
)
def test_what_a_rule_does_not_have_for_an_element_type_is_refused_there(
    tmp_path: Path, header: str, body: str, says: str
) -> None:
    helper = """
<domain: "mine", overload: "floating", opset_import: ["" : 18]>
Scaled (x) => (y)
{
  y = Abs (x)
}
"""
    text = GOOD.replace("ReduceL1 <", f"ReduceL1 {header}").replace("Abs (data)", body)
    (tmp_path / "ReduceL1.onnxtxt").write_text(text)
    (tmp_path / "helpers.onnxtxt").write_text(helper.lstrip())
    for kind in ("float", "int32"):
        model = parser.parse_model(
            f"""<ir_version: 8, opset_import: ["": 18]> g ({kind}[3] x) => ({kind}[1] y) {{ y = ReduceL1 (x) }}"""
        )
        with nullcontext() if kind == "float" else pytest.raises(ConversionError, match=f"{says}.*narrow the overload"):
            reducelower.expand(model, rules=tmp_path)


def test_two_rules_for_the_same_element_types_are_refused(tmp_path: Path) -> None:
    (tmp_path / "ReduceL1.onnxtxt").write_text(GOOD + GOOD)
    with pytest.raises(RuleError, match=r"ReduceL1.onnxtxt:12: a second rule for the element types ''"):
        load_book(tmp_path).check()


@pytest.mark.parametrize("content", [b"", b"# nothing but a comment\n", b"\xff\xfe\x00"])
def test_a_file_without_a_function_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "ReduceL1.onnxtxt").write_bytes(content)
    with pytest.raises(RuleError, match=r"ReduceL1\.onnxtxt"):
        load_book(tmp_path).check()


def test_an_operator_that_onnx_does_not_have_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ReduceMedian.onnxtxt").write_text(GOOD.replace("ReduceL1", "ReduceMedian"))
    with pytest.raises(RuleError, match=r"ReduceMedian\.onnxtxt:6: opset 18 has no operator ReduceMedian to replace"):
        load_book(tmp_path).check()


def test_an_attribute_with_a_default_may_stand_in_a_constant(tmp_path: Path) -> None:
    (tmp_path / "LeakyRelu.onnxtxt").write_text(
        """<domain: "mine", opset_import: ["" : 18]>
LeakyRelu <alpha> (X) => (Y)
{
  alpha_float = Constant <value_float = @alpha> ()
  slope = CastLike (alpha_float, X)
  Y = PRelu (X, slope)
}
"""
    )
    load_book(tmp_path).check()


def test_an_operator_without_inputs_has_no_rules(tmp_path: Path) -> None:
    head = '<domain: "mine", opset_import: ["" : 18]>\nRandomUniform () => (output)'
    text = head + "\n{\n  output = Constant <value = float {0.0}> ()\n}\n"
    (tmp_path / "RandomUniform.onnxtxt").write_text(text)
    with pytest.raises(RuleError, match="RandomUniform has no inputs"):
        load_book(tmp_path).check()


@pytest.mark.parametrize(("step", "kind"), [("Log", "int32"), ("Cast <to = 11>", "float")])
def test_element_types_that_do_not_fit_are_refused_where_the_rule_is_applied(
    tmp_path: Path, step: str, kind: str
) -> None:
    (tmp_path / "ReduceL1.onnxtxt").write_text(GOOD.replace("Abs", step))
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g ({kind}[3] x) => ({kind}[1] y) {{ y = ReduceL1 (x) }}"""
    )
    with pytest.raises(RuleError, match=r"ReduceL1\.onnxtxt:2: what it writes does not fit the model"):
        reducelower.expand(model, rules=tmp_path)
