"""Helper functions of rule files, values taken by name, and overloads of several element types."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import reducelower
from reducelower.rulebook import RuleBook, RuleError, load_book

HEADER = '<domain: "mine", opset_import: ["" : 18]>\n'
RULE = """<
  domain: "mine", overload: "float, double", opset_import: ["" : 18], doc_string: "ReduceL2(x) = Sqrt(Sum(x * x))"
>
ReduceL2 <keepdims, noop_with_empty_axes> (data, axes) => (reduced)
{
  square = Squared (data)
  sum = Summed (square, axes)
  reduced = Sqrt (sum)
}
"""
SQUARED = HEADER + "Squared (x) => (y)\n{\n  y = Mul (x, x)\n}\n"
SUMMED = (
    HEADER + "Summed <keepdims> (x, axes) => (sum)\n{\n  part = ReduceSum <keepdims = @keepdims> (x, axes)\n"
    "  sum = Identity (part)\n}\n"
)


def write(folder: Path, *parts: str, helpers: str = "") -> RuleBook:
    (folder / "ReduceL2.onnxtxt").write_text("\n".join(parts))
    if helpers:
        (folder / "helpers.onnxtxt").write_text(helpers)
    return load_book(folder)


def body(book: RuleBook, element_type: int = TensorProto.FLOAT) -> list[str]:
    rule = book.find("ReduceL2", element_type)
    assert rule is not None
    return [node.op_type for node in rule.function.node]


def test_a_helper_of_the_file_is_written_into_the_body(tmp_path: Path) -> None:
    assert body(write(tmp_path, RULE, SQUARED, SUMMED)) == ["Mul", "ReduceSum", "Identity", "Sqrt"]


def test_a_helper_of_the_folder_is_written_into_the_body(tmp_path: Path) -> None:
    book = write(tmp_path, RULE, helpers=SQUARED + SUMMED)
    assert book.operators == ("ReduceL2",)
    assert body(book) == ["Mul", "ReduceSum", "Identity", "Sqrt"]


def test_a_helper_takes_the_attributes_of_the_rule_that_it_is_not_given(tmp_path: Path) -> None:
    rule = write(tmp_path, RULE, SQUARED, SUMMED).find("ReduceL2", TensorProto.FLOAT)
    assert rule is not None
    (attribute,) = rule.function.node[1].attribute
    assert (attribute.name, attribute.ref_attr_name, attribute.type) == ("keepdims", "keepdims", attribute.INT)


def test_values_of_a_helper_that_is_used_twice_keep_apart(tmp_path: Path) -> None:
    twice = RULE.replace("reduced = Sqrt (sum)", "again = Summed (square, axes)\n  reduced = Add (sum, again)")
    book = write(tmp_path, twice, SQUARED, SUMMED)
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("ReduceL2", ["x"], ["y"])],
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
        ),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=8,
    )
    expanded = reducelower.expand(model, rules=book)
    session = onnxruntime.InferenceSession(expanded.SerializeToString(), providers=["CPUExecutionProvider"])
    assert session.run(None, {"x": np.array([1, 2], np.float32)})[0].tolist() == [10]


def test_a_binding_is_a_value_by_its_name(tmp_path: Path) -> None:
    rule = RULE.replace("noop_with_empty_axes>", "noop_with_empty_axes, one>").replace("Sqrt (sum)", "Max (sum, one)")
    found = write(tmp_path, rule, SQUARED, SUMMED).find("ReduceL2", TensorProto.FLOAT)
    assert found is not None
    assert found.bindings == ("one",)
    assert (found.function.node[0].op_type, found.function.node[0].output[0]) == ("Constant", "one")


def test_one_overload_lists_several_element_types(tmp_path: Path) -> None:
    book = write(tmp_path, RULE, SQUARED, SUMMED)
    assert book.find("ReduceL2", TensorProto.FLOAT) is book.find("ReduceL2", TensorProto.DOUBLE)
    assert book.find("ReduceL2", TensorProto.FLOAT16) is None


def test_a_rule_may_be_for_targets_without_an_element_type(tmp_path: Path) -> None:
    narrow = RULE.replace("float, double", "double without float")
    book = write(tmp_path, RULE, narrow, SQUARED, SUMMED)
    plain = book.find("ReduceL2", TensorProto.DOUBLE)
    told = book.find("ReduceL2", TensorProto.DOUBLE, frozenset({TensorProto.FLOAT}))
    assert plain and told
    assert (plain.element_types, told.element_types) == ("float, double", "double without float")


def test_a_helper_of_the_folder_is_not_called_like_an_operator(tmp_path: Path) -> None:
    helpers = HEADER + "Abs (x) => (y)\n{\n  y = Neg (x)\n}\n"
    with pytest.raises(RuleError, match=r"helpers\.onnxtxt:2: a helper may not be called Abs"):
        write(tmp_path, RULE, SQUARED, SUMMED, helpers=helpers).check()


def test_what_is_wrong_in_a_helper_is_shown_where_it_stands(tmp_path: Path) -> None:
    with pytest.raises(RuleError) as caught:
        write(tmp_path, RULE, SUMMED, SQUARED.replace("Mul (x, x)", "Mull (x, x)")).check()
    assert caught.value.line is not None
    assert "Mull" in (tmp_path / "ReduceL2.onnxtxt").read_text().splitlines()[caught.value.line - 1]


def test_a_helper_written_once_more_for_an_element_type_is_used_for_that_type_alone(tmp_path: Path) -> None:
    doubled = SQUARED.replace('domain: "mine"', 'domain: "mine", overload: "double"').replace("Mul", "Pow")
    book = write(tmp_path, RULE, SQUARED, doubled, SUMMED)
    assert body(book, TensorProto.FLOAT) == ["Mul", "ReduceSum", "Identity", "Sqrt"]
    assert body(book, TensorProto.DOUBLE) == ["Pow", "ReduceSum", "Identity", "Sqrt"]
    assert [rule.element_types for rule in book.rules("ReduceL2")] == ["double", "float, double"]


@pytest.mark.parametrize("overload", ["double, float16", "double, bfloat16", "double"])
def test_a_helper_for_more_types_than_the_rule_is_used_for_those_of_the_rule(tmp_path: Path, overload: str) -> None:
    other = SQUARED.replace('domain: "mine"', f'domain: "mine", overload: "{overload}"').replace("Mul", "Pow")
    book = write(tmp_path, RULE, SQUARED, other, SUMMED)
    assert body(book, TensorProto.FLOAT)[0] == "Mul"
    assert body(book, TensorProto.DOUBLE)[0] == "Pow"
    assert [rule.element_types for rule in book.rules("ReduceL2")] == ["double", "float, double"]


def test_a_helper_for_types_that_the_operator_does_not_take_makes_no_rule(tmp_path: Path) -> None:
    other = SQUARED.replace('domain: "mine"', 'domain: "mine", overload: "int8, bool"').replace("Mul", "Pow")
    rule = RULE.replace(' overload: "float, double",', "").replace("Sqrt", "Identity")
    book = write(tmp_path, rule, SQUARED, other, SUMMED)
    assert [rule.element_types for rule in book.rules("ReduceL2")] == [""]


def test_a_helper_that_is_not_written_for_every_type_of_the_rule_is_refused(tmp_path: Path) -> None:
    doubled = SQUARED.replace('domain: "mine"', 'domain: "mine", overload: "double"')
    with pytest.raises(RuleError, match="the helper Squared is not written for every element type"):
        write(tmp_path, RULE, doubled, SUMMED).check()


def test_a_helper_for_a_class_that_there_is_not_is_refused(tmp_path: Path) -> None:
    odd = SQUARED.replace('domain: "mine"', 'domain: "mine", overload: "quarter"')
    with pytest.raises(RuleError, match="unknown class of element types 'quarter'"):
        write(tmp_path, RULE, SQUARED, odd, SUMMED).check()


def test_one_rule_may_be_for_several_claims(tmp_path: Path) -> None:
    book = write(tmp_path, RULE.replace('"float, double"', '"double; float16 without float"'), SQUARED, SUMMED)
    float16, forbidden = TensorProto.FLOAT16, frozenset({int(TensorProto.FLOAT)})
    assert book.find("ReduceL2", TensorProto.DOUBLE) is not None
    assert book.find("ReduceL2", float16) is None
    assert book.find("ReduceL2", float16, forbidden) is not None
