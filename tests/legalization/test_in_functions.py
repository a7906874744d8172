"""What rules do inside of functions, where attributes have no value yet and values no stated type."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, checker, parser

import reducelower


def _calling(opset: int, signature: str, body: str, *, call: str = "f", ir_version: int = 8) -> ModelProto:
    """A model that calls a function of one node, whose attribute `given` it sets to 1."""
    return parser.parse_model(f"""
        <ir_version: {ir_version}, opset_import: ["" : {opset}, "local" : 1]>
        main {signature} {{ y = local.{call}(x) }}
        <domain: "local", opset_import: ["" : {opset}]> f {body}
    """)


def test_a_rule_reads_an_attribute_of_the_function_where_it_is_known() -> None:
    model = _calling(
        10,
        "(float[2,3] x) => (float[2,3] y)",
        "<given>(x) => (y) { y = EyeLike<k: int = @given>(x) }",
        call="f<given=1>",
    )
    converted = reducelower.convert_version(model, 8)
    checker.check_model(converted, full_check=True)
    session = onnxruntime.InferenceSession(converted.SerializeToString())
    np.testing.assert_array_equal(session.run(None, {"x": np.zeros((2, 3), np.float32)})[0], np.eye(2, 3, 1))


def test_a_rule_hands_on_an_attribute_of_the_function() -> None:
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 10, "local" : 1]>
        main (float[2,3] x) => (float[2,3] y) <int64[2,3] places = {2,1,0, 0,1,2}> { y = local.f(x, places) }
        <domain: "local", opset_import: ["" : 10]>
        f <along: int = 1>(x, places) => (y) { y = Scatter<axis: int = @along>(x, places, x) }
    """)
    converted = reducelower.convert_version(model, 16)
    checker.check_model(converted, full_check=True)
    session = onnxruntime.InferenceSession(converted.SerializeToString())
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], [[2, 1, 0], [3, 4, 5]])


def test_a_rule_that_needs_the_number_is_refused_where_calls_decide_it() -> None:
    model = _calling(
        26,
        "(int32 x) => (float[5] y)",
        "<given>(x) => (y) { y = HammingWindow<periodic: int = @given>(x) }",
        call="f<given=1>",
        ir_version=13,
    )
    with pytest.raises(reducelower.ConversionError, match="periodic refers to 'given' of the function"):
        reducelower.convert_version(model, 3)


@pytest.mark.parametrize(
    ("opset", "target", "signature", "node"),
    [
        (23, 16, "(int64[2] x) => (float8e4m3fn[4,3] y)", "ConstantOfShape<value = float8e4m3fn[1] {64}>(x)"),
        (20, 16, "(float[2] x) => (float8e5m2[2] y)", "Cast<to = 19>(x)"),
    ],
)
def test_an_element_type_that_came_later_is_refused(opset: int, target: int, signature: str, node: str) -> None:
    model = _calling(opset, signature, f"(x) => (y) {{ y = {node} }}", ir_version=10)
    with pytest.raises(reducelower.ConversionError, match="float8"):
        reducelower.convert_version(model, target)


@pytest.mark.parametrize("rules", ["spec", "stable", "core"])
def test_casts_below_opset_6_which_state_no_type_do_not_make_a_function_invalid(rules: str) -> None:
    model = _calling(3, "(uint32[2,3,1] x) => (uint32[1,1,1] y)", "(x) => (y) { y = ReduceLogSumExp<keepdims = 1>(x) }")
    with pytest.raises(reducelower.ConversionError, match="inference does not read the Cast of opset 5"):
        reducelower.expand(model, rules=rules)


def test_types_that_are_unknown_where_a_rule_writes_a_subgraph_are_looked_up_in_the_end() -> None:
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 16]>
        main (bfloat16[a,4,b] x, bfloat16[2,c] updates, int64[d,e,f] indices) => (bfloat16[a,4,b] y)
            <int64[2] shape = {2, 3}>
        {
            shaped = Reshape(updates, shape)
            y = ScatterND<reduction = "mul">(x, indices, shaped)
        }
    """)
    with pytest.raises(reducelower.ConversionError, match="bfloat16"):
        reducelower.convert_version(model, 13)


def test_a_constant_of_strings_that_a_rule_writes_has_no_older_form() -> None:
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        main (string[a,3,2] x, int64 k) => (string[a,3,2] y) { y = Trilu(x, k) }
    """)
    with pytest.raises(reducelower.ConversionError, match="opset 7 does not have Where"):
        reducelower.convert_version(model, 7)
