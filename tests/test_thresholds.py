"""Models just below and just above every size at which the code goes another way: the results are as right.

What is not written above some size is refused with it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, checker, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import reducelower
from reducelower.verification import verify
from tests.models import model, yields
from tests.runtimes.toaster import runtime
from tests.table import VOCABULARY, rows

_RNG = np.random.default_rng(0)


def same_all_ways(given: ModelProto, opset: int) -> ModelProto:
    """The result, which is the same from the message and from bytes."""
    made = reducelower.convert_version(given, opset)
    checker.check_model(made, full_check=True)
    assert reducelower.convert_version(given.SerializeToString(), opset) == made.SerializeToString()
    return made


# Weights are copied without values where shapes are inferred (1,024 elements), cut off the model (16 KiB, 4 KiB a
# node), and read in stretches (4 KiB to 1 MiB).
@pytest.mark.parametrize("count", [1023, 1024, 1025, 1026, 2 * 4095, 2 * 4096, 2 * 4097])
def test_weights_of_any_length_stay_as_they_are(count: int) -> None:
    weight, x = _RNG.standard_normal(count).astype(np.float32), _RNG.standard_normal((2, count)).astype(np.float32)
    given = model(f"(float[2, {count}] x) => (float[2, 1] y) {{ p = Mul (x, w) y = ReduceSum (p, a) }}", 13,
                  w=weight, a=np.array([1]))  # fmt: skip
    made = same_all_ways(given, 11)
    assert made.graph.initializer[0] == given.graph.initializer[0]
    expected = (x.astype(np.float64) * weight).sum(1, keepdims=True)
    np.testing.assert_allclose(yields(made, {"x": x})[0], expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("length", [126, 127, 128, 129, 4095, 4096, 4097, (1 << 20) - 1, 1 << 20, (1 << 20) + 1])
def test_texts_of_any_length_stay_as_they_are(length: int) -> None:
    given = model("(float[2, 3] x) => (float[2, 1] y) { y = ReduceSum (x, a) }", 13, a=np.array([1]))
    given.graph.node[0].name = "n" * min(length, 5000)
    given.graph.node[0].doc_string = "d" * length
    given.metadata_props.add(key="k", value="v" * length)
    made = same_all_ways(given, 11)
    (node,) = made.graph.node
    assert (node.name, node.doc_string) == (given.graph.node[0].name, given.graph.node[0].doc_string)
    assert made.metadata_props == given.metadata_props


@pytest.mark.parametrize("count", [256, 257, 258, 259, 1040, 1041, 4200, 33_000])
def test_products_of_bytes_are_exact_whatever_is_added_up(count: int) -> None:
    """Float holds sums up to 2^24: from 259 products of bytes on they are added up in parts."""
    left, right = (np.full(shape, 255, np.uint8) for shape in ((2, count), (count, 2)))
    left[0, ::3], right[::5, 1] = 254, 1
    given = model(f"(uint8[2, {count}] x, uint8[{count}, 2] w) => (int32[2, 2] y) {{ y = MatMulInteger (x, w) }}", 10)
    made = reducelower.convert_version(given, 9)
    expected = left.astype(np.int64) @ right.astype(np.int64)
    np.testing.assert_array_equal(yields(made, {"x": left, "w": right})[0], expected)


@pytest.mark.parametrize(("rows", "fits"), [(256, True), (257, False)])
def test_determinants_are_written_out_up_to_a_size_that_is_said(rows: int, fits: bool) -> None:
    given = model(f"(float[{rows}, {rows}] x) => (float y) {{ y = Det (x) }}", 11)
    if fits:
        checker.check_model(reducelower.convert_version(given, 10), full_check=True)
        return
    with pytest.raises(reducelower.ConversionError, match="have more than 256 rows"):
        reducelower.convert_version(given, 10)


# Weights are lent to onnxruntime from 64 KiB on; models start with threads from 1 MiB on; values are numbered in
# stretches of 1 MiB.
@pytest.mark.parametrize("size", [(1 << 16) - 4, 1 << 16, (1 << 16) + 4, (1 << 20) - 4, 1 << 20, (1 << 20) + 4])
def test_models_are_verified_whatever_their_weights_take(size: int) -> None:
    weight = _RNG.standard_normal(size // 4).astype(np.float32)
    given = model(f"(float[2, {size // 4}] x) => (float[2, 1] y) {{ p = Mul (x, w) y = ReduceMax (p, a) }}", 18,
                  w=weight, a=np.array([1]))  # fmt: skip
    made = reducelower.convert_version(given, 13)
    assert verify(given, made).equivalent
    other = ModelProto()
    other.CopyFrom(made)
    changed = weight.copy()
    changed[-1] += 1e6
    other.graph.initializer[0].CopyFrom(numpy_helper.from_array(changed, "w"))
    assert verify(given, other).verdict == "different"


# What is fed and what is held of tables goes by their length: 64, 256, 1,000, 4,096 and 20,000 elements.
@pytest.mark.parametrize("count", [63, 64, 65, 256, 257, 1000, 1001, 4096, 4097, 20_000, 20_001])
@pytest.mark.parametrize(
    "text",
    [
        "(int64[3] x) => (float[3] y) {{ y = Gather (table, x) }}",
        "(float[2,{count}] x) => (float[2,{count}] y) {{ y = Mul (table, x) }}",
        "(float[{count}] x) => (float[{count}] y) {{ sum = Add (x, table) y = Relu (sum) }}",
    ],
)
def test_one_other_entry_of_a_table_is_found_whatever_its_length(text: str, count: int) -> None:
    table = _RNG.standard_normal(count).astype(np.float32)
    changed = np.concatenate([table[:-1], table[-1:] + 1])
    given, other = (model(text.format(count=count), 13, table=each) for each in (table, changed))
    assert verify(given, reducelower.convert_version(given, 11)).equivalent
    assert verify(given, other).verdict == "different"


WRITTEN = rows(
    Path(__file__).with_name("thresholds.toml"),
    fields={"wrong", "goal", "text", "opset", "constants", "most", "nodes", "above", "right"},
)


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("beyond", [-1, 0, 1])
def test_nodes_are_written_out_up_to_a_size(name: str, beyond: int) -> None:
    row = WRITTEN[name]
    size = row["most"] + beyond
    names = {**VOCABULARY, "count": size}
    constants = {held: eval(text, names) for held, text in row.get("constants", {}).items()}
    given = model(row["text"].format(size), row.get("opset", 13), **constants)
    lacking = runtime(f"{row['wrong']}\nis = 'wrong'") if "wrong" in row else None
    target = reducelower.Target(row.get("goal"), runtime=lacking)
    if beyond > 0 and "above" in row:
        with pytest.raises(reducelower.ConversionError, match=row["above"]):
            reducelower.legalize(given, target)
        return
    made = reducelower.legalize(given, target).model
    checker.check_model(made, full_check=True)
    assert (len(made.graph.node) == eval(row["nodes"], names)) is (beyond <= 0)
    (fed,) = (value.type.tensor_type for value in made.graph.input)
    shape = [each.dim_value for each in fed.shape.dim]
    x = _RNG.uniform(0.9, 1.1, shape).astype(helper.tensor_dtype_to_np_dtype(fed.elem_type))
    right = eval(row["right"], {**names, "x": x})
    if made.opset_import[0].version >= 7:
        np.testing.assert_allclose(yields(made, {"x": x})[0], right, rtol=1e-5)
    else:
        np.testing.assert_array_equal(ReferenceEvaluator(made).run(None, {"x": x})[0], right)
