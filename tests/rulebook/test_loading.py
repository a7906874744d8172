"""Finding books and the rules in them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from onnx import TensorProto, numpy_helper, parser

import reducelower
from reducelower.errors import ConversionError
from reducelower.rulebook import RuleBook, RuleError, load_book
from reducelower.rulebook.boundaries import shipped
from reducelower.rulebook.validation import check_boundaries
from tests.models import model

NEGATED_MIN = """<
  domain: "mine", overload: "floating", opset_import: ["" : 18], doc_string: "ReduceMin(x) = -ReduceMax(-x)"
>
ReduceMin <keepdims, noop_with_empty_axes> (data, axes) => (reduced)
{
  negative = Neg (data)
  maximum = ReduceMax <keepdims = @keepdims, noop_with_empty_axes = @noop_with_empty_axes> (negative, axes)
  reduced = Neg (maximum)
}
"""


def write(folder: Path, text: str, name: str = "ReduceMin") -> RuleBook:
    (folder / f"{name}.onnxtxt").write_text(text)
    return load_book(folder)


@pytest.mark.parametrize("name", ["spec", "stable", "core"])
def test_a_shipped_book_is_found_by_name_and_loaded_once(name: str) -> None:
    book = load_book(name)
    assert book.name == name
    assert load_book(name) is book
    assert {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"} <= set(book.operators)


RULES = Path(__file__).parents[2] / "rules"
BOOKS = sorted({path.parent for path in RULES.glob("*/*.onnxtxt")} - {RULES / "versions"})


@pytest.mark.parametrize("directory", BOOKS, ids=lambda path: path.name)
def test_a_shipped_book_is_valid(directory: Path) -> None:
    RuleBook(directory.name, directory).check()


def test_the_rules_of_version_boundaries_name_only_what_there_is() -> None:
    check_boundaries(shipped())


def test_core_answers_with_the_stable_rule_where_it_has_none_of_its_own() -> None:
    core, stable = load_book("core"), load_book("stable")
    assert core.find("ReduceL2", TensorProto.FLOAT) is stable.find("ReduceL2", TensorProto.FLOAT)
    assert stable.find("ReduceMin", TensorProto.FLOAT) is None


def test_an_operator_without_a_rule_is_none() -> None:
    assert load_book("spec").find("Relu", TensorProto.FLOAT) is None
    assert load_book("spec").rules("Relu") == ()


def test_the_most_specific_rule_wins() -> None:
    book = load_book("core")
    chosen = {
        element_type: rule.element_types
        for element_type in (TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.INT64)
        if (rule := book.find("ReduceMean", element_type))
    }
    assert chosen == {
        TensorProto.FLOAT16: "float16",
        TensorProto.DOUBLE: "",
        TensorProto.INT32: "narrow",
        TensorProto.INT64: "",
    }


def test_an_element_type_outside_every_class_has_no_rule() -> None:
    assert load_book("spec").find("ReduceLogSum", TensorProto.STRING) is None


def test_a_folder_is_a_book_and_only_the_file_asked_for_is_read(tmp_path: Path) -> None:
    (tmp_path / "ReduceL1.onnxtxt").write_text("not ONNX text at all")
    book = write(tmp_path, NEGATED_MIN)
    rule = book.find("ReduceMin", TensorProto.FLOAT)
    assert rule is not None
    assert rule.name == f"{tmp_path.name}/ReduceMin"
    assert rule.place.path == tmp_path / "ReduceMin.onnxtxt"
    assert rule.identity == "ReduceMin(x) = -ReduceMax(-x)"
    assert rule.opset == 18
    with pytest.raises(RuleError):
        book.check()


def test_functions_make_a_book_and_are_not_changed() -> None:
    function = parser.parse_function(NEGATED_MIN)
    before = function.SerializeToString()
    rule = RuleBook.from_functions([function]).find("ReduceMin", TensorProto.FLOAT)
    assert rule is not None
    assert rule.name == "functions/ReduceMin"
    assert function.SerializeToString() == before


def test_an_onnxscript_function_makes_a_book() -> None:
    onnxscript = pytest.importorskip("onnxscript")
    from onnxscript import opset18 as op

    domain = onnxscript.values.Opset("mine", 1)

    @onnxscript.script(domain)
    def ReduceL1(data, axes, keepdims: int = 1, noop_with_empty_axes: int = 0):  # type: ignore[no-untyped-def]  # noqa: N802
        return op.ReduceSum(op.Abs(data), axes, keepdims=keepdims, noop_with_empty_axes=noop_with_empty_axes)

    book = RuleBook.from_functions([ReduceL1])
    rule = book.find("ReduceL1", TensorProto.FLOAT)
    assert rule is not None
    assert [node.op_type for node in rule.function.node] == ["Abs", "ReduceSum"]


def test_neither_a_function_nor_a_script_is_refused() -> None:
    for function in (len, SimpleNamespace(to_function_proto=str)):
        with pytest.raises(RuleError, match="neither a FunctionProto nor an onnxscript function"):
            RuleBook.from_functions([function])


def test_no_such_book_names_the_shipped_ones(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match=r"nowhere: neither a folder of rules nor a shipped book \(.*spec, stable"):
        load_book(tmp_path / "nowhere")
    with pytest.raises(RuleError, match="holds no rule"):
        load_book(tmp_path)


@pytest.mark.parametrize(
    ("element_type", "name", "value"),
    [
        (TensorProto.FLOAT16, "largest", 65504.0),
        (TensorProto.FLOAT, "largest", 3.4028234663852886e38),
        (TensorProto.DOUBLE, "lowest", -1.7976931348623157e308),
        (TensorProto.BFLOAT16, "largest", 3.3895313892515355e38),
        (TensorProto.FLOAT, "largest_power", 2.0**127),
    ],
)
def test_a_binding_is_a_scalar_of_the_element_type(element_type: int, name: str, value: float) -> None:
    function = parser.parse_function(
        f"""<domain: "mine", opset_import: ["" : 18]>
        ReduceL1 <keepdims, noop_with_empty_axes, {name}> (data, axes) => (reduced)
        {{
          sum = ReduceSum (data, axes)
          reduced = Mul (sum, {name})
        }}"""
    )
    function.overload = "floating"
    source = model("(float[2] x) => (float[1] y) { y = ReduceL1 (x) }")
    for each in (*source.graph.input, *source.graph.output):
        each.type.tensor_type.elem_type = element_type
    expanded = reducelower.expand(source, rules=RuleBook.from_functions([function]))
    (tensor,) = expanded.graph.initializer
    assert tensor.data_type == element_type
    assert list(tensor.dims) == []
    assert float(numpy_helper.to_array(tensor)) == value


def test_an_axis_that_the_data_does_not_have_is_refused() -> None:
    source = model("(float[2,3,4] x, float[1] s) => (float[2,3,4] y) { y = LayerNormalization <axis = 3> (x, s) }")
    with pytest.raises(ConversionError, match="its axis 3 is out of range for rank 3"):
        reducelower.expand(source, ops=["LayerNormalization"], rules="stable")


def test_the_ends_of_the_integer_types() -> None:
    from reducelower.rulebook.bindings import BINDINGS

    assert BINDINGS["largest"][TensorProto.UINT64] == 2**64 - 1
    assert BINDINGS["lowest"][TensorProto.INT8] == -128
    assert BINDINGS["largest"][TensorProto.INT64] == 2**63 - 1
    assert BINDINGS["lowest"][TensorProto.UINT8] == 0


def test_importing_the_rule_book_imports_no_runtime() -> None:
    code = "import sys, reducelower.rulebook; print(sorted({'onnxruntime', 'onnxscript', 'rich'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
