"""A refused downgrade names the oldest opset version at which the whole model fits."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest
from onnx import ModelProto, TensorProto, helper

import reducelower
from reducelower import ConversionError
from reducelower.legalization.refusals import oldest_fitting


def model_of(*nodes: tuple[str, dict[str, object]], opset: int) -> ModelProto:
    """A chain of operators that each take one image."""
    names = ["x", *(f"v{index}" for index in range(len(nodes)))]
    made = [
        helper.make_node(op_type, [names[index]], [names[index + 1]], name=f"n{index}", **attributes)
        for index, (op_type, attributes) in enumerate(nodes)
    ]
    data = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4, "h", "w"])
    result = helper.make_tensor_value_info(names[-1], TensorProto.FLOAT, None)
    result.type.tensor_type.ClearField("shape")
    graph = helper.make_graph(made, "chain", [data], [result])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


DILATED = {"kernel_shape": [2, 2], "dilations": [2, 2]}


def test_every_refusal_names_the_opset_that_suits_all_nodes() -> None:
    model = model_of(("MaxPool", DILATED), ("LpPool", {**DILATED, "auto_pad": "SAME_UPPER"}), opset=18)
    with pytest.raises(ConversionError) as raised:
        reducelower.convert_version(model, 9)
    assert len(raised.value.refusals) == 2
    assert all(
        "opset 18" in refusal.hint and "the whole model fits" in refusal.hint for refusal in raised.value.refusals
    )


def test_check_names_it_too() -> None:
    plan = reducelower.check(model_of(("MaxPool", DILATED), opset=18), 9)
    assert "opset 10 is the oldest that has it; the whole model fits there" in plan.refusals[0].hint


def test_in_place_conversion_names_it_and_leaves_the_model_alone() -> None:
    model = model_of(("MaxPool", DILATED), opset=18)
    before = model.SerializeToString()
    with pytest.raises(ConversionError, match="opset 10 is the oldest that has it; the whole model fits there"):
        reducelower.convert_version(model, 9, in_place=True)
    assert model.SerializeToString() == before


def test_what_fits_need_not_fit_everywhere_above() -> None:
    assert oldest_fitting(20, 9, lambda opset: opset in (11, 20)) == 11


def test_none_fits_where_an_operator_has_to_go_that_no_rule_replaces() -> None:
    model = model_of(("MaxPool", DILATED), ("Relu", {}), opset=18)
    with pytest.raises(ConversionError) as raised:
        reducelower.convert_version(model, 9, without=["Relu"])
    assert not any("whole model" in refusal.hint for refusal in raised.value.refusals)


def ranked_otherwise(opset: int) -> ModelProto:
    """A model that states another rank of an inner value than it has; Mish came with opset 18, NonZero with 9."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : {opset}]>
        g (float[2,3,4] x, int64[k] axes) => (int64[3,n] indices, float[a,b,c] z)
        {{ y = Neg(x)  m = Mish(y)  indices = NonZero(m)  z = ReduceMax<keepdims = 1>(m, axes) }}"""
    )
    model.graph.value_info.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3, 4, 5]))
    return model


def test_stated_types_that_are_wrong_do_not_hide_where_the_model_fits() -> None:
    with pytest.raises(ConversionError, match="opset 9 is the oldest at which the whole model fits"):
        reducelower.convert_version(ranked_otherwise(18), 8)
