"""LayerNormalization, RMSNormalization and GroupNormalization below the opsets that brought them."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, parser

from reducelower import ConversionError
from tests.adapters.models import assert_same
from tests.adapters.single import converted, model_of, operators_of, yields

RANDOM = np.random.default_rng(7)
DATA = RANDOM.normal(size=(2, 4, 3, 5)).astype(np.float32)
FLOAT = TensorProto.FLOAT


def normalized(data: np.ndarray, axes: tuple[int, ...], epsilon: float = 1e-5) -> np.ndarray:
    data = data.astype(np.float64)
    mean = data.mean(axis=axes, keepdims=True)
    return (data - mean) / np.sqrt(data.var(axis=axes, keepdims=True) + epsilon)


@pytest.mark.parametrize("target", [16, 13, 9])
@pytest.mark.parametrize(("op_type", "opset"), [("LayerNormalization", 17), ("RMSNormalization", 23)])
def test_the_epsilon_of_doubles_holds_with_the_optimizations_of_a_runtime(
    op_type: str, opset: int, target: int
) -> None:
    """onnxruntime fuses what exporters wrote for these, and takes 1e-5 for an epsilon that is no float."""
    data = DATA.astype(np.float64)
    model = model_of(
        op_type, {"x": data, "scale": np.ones(5)}, opset=opset, ir_version=10, epsilon=0.25,
        outputs={"y": (TensorProto.DOUBLE, None)},
    )  # fmt: skip
    less_mean = data - data.mean(axis=-1, keepdims=True) if op_type == "LayerNormalization" else data
    expected = less_mean / np.sqrt(np.mean(less_mean**2, axis=-1, keepdims=True) + 0.25)
    session = onnxruntime.InferenceSession(converted(model, target).SerializeToString())
    np.testing.assert_allclose(session.run(None, {"x": data, "scale": np.ones(5)})[0], expected, rtol=1e-6, atol=1e-6)


def grouped(scale: np.ndarray, bias: np.ndarray, groups: int) -> np.ndarray:
    whole = normalized(DATA.reshape(2, groups, -1), (2,)).reshape(DATA.shape)
    return whole * scale.reshape(4, 1, 1) + bias.reshape(4, 1, 1)


CHANNELS = np.array([1.0, 2.0, -1.0, 0.5], np.float32)


@pytest.mark.parametrize("target", [23, 21, 20, 18, 13, 9])
def test_group_normalization_of_18_scales_each_group(target: int) -> None:
    # The checker rejects the version of 18, so that the model is put together without it.
    inputs = {"x": DATA, "scale": np.array([1.0, 3.0], np.float32), "bias": np.array([0.5, -2.0], np.float32)}
    node = helper.make_node("GroupNormalization", list(inputs), ["y"], num_groups=2)
    values = [helper.make_tensor_value_info(name, FLOAT, value.shape) for name, value in inputs.items()]
    graph = helper.make_graph([node], "single", values, [helper.make_tensor_value_info("y", FLOAT, DATA.shape)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    expected = grouped(np.repeat(inputs["scale"], 2), np.repeat(inputs["bias"], 2), 2)
    result = converted(model, target)
    assert ("GroupNormalization" in operators_of(result)) == (target >= 21)
    np.testing.assert_allclose(yields(result, inputs)[0], expected, rtol=1e-4, atol=1e-5)


def test_types_are_known_behind_operators_that_inference_does_not_know() -> None:
    model = parser.parse_model(
        """
        <ir_version: 10, opset_import: ["": 21]>
        single (float[2, 4, 3, 5] x, float[4] scale, float[4] bias) => (float[2, 4, 3, 5] y)
        {
          groups = GroupNormalization <num_groups = 2> (x, scale, bias)
          whole = MeanVarianceNormalization <axes = [0, 2, 3]> (groups)
          y = Gelu (whole)
        }
        """
    )
    inputs = {"x": DATA, "scale": CHANNELS, "bias": CHANNELS}
    result = converted(model, 9)
    np.testing.assert_allclose(yields(result, inputs)[0], yields(model, inputs)[0], rtol=1e-4, atol=1e-5)


def test_each_mean_variance_normalization_is_held_to_the_rank_of_its_own_data() -> None:
    # Inference looks at its axes, of which 0, 2 and 3 are the default, from opset 13 on.
    model = parser.parse_model(
        """<ir_version: 7, opset_import: ["" : 12]>
        g (float[2,3,4,5] x, float[2,3,4] short) => (float[2,3,4,5] y, float[2,3,4] z)
        { y = MeanVarianceNormalization(x) z = MeanVarianceNormalization(short) }"""
    )
    with pytest.raises(ConversionError) as refused:
        converted(model, 13)
    assert [refusal.node for refusal in refused.value.refusals] == ["MeanVarianceNormalization#1"]
    model.graph.node[1].attribute.append(helper.make_attribute("axes", [0, -1]))
    data = {"x": DATA[:, :3, :, :].repeat(2, 2)[:, :, :4], "short": DATA[:, :3, :, :4].reshape(2, 3, 12)[:, :, ::3]}
    found = yields(converted(model, 13), data)
    np.testing.assert_allclose(found[0], normalized(data["x"], (0, 2, 3), 0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[1], normalized(data["short"], (0, 2), 0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", [8, 7])
@pytest.mark.parametrize("axes", [None, (1, 2), (-1,)])
@pytest.mark.parametrize("opset", [9, 13])
def test_a_large_mean_costs_no_digits_of_the_deviations(opset: int, axes: tuple[int, ...] | None, target: int) -> None:
    """E[x^2] - E[x]^2 was 0.38 off here."""
    x = (1000 + np.random.default_rng(0).normal(size=(2, 3, 4, 5))).astype(np.float32)
    attribute = "" if axes is None else f"<axes = {list(axes)}>"
    made = parser.parse_model(
        f"""<ir_version: 4, opset_import: ["": {opset}]> g (float[2,3,4,5] x) => (float[2,3,4,5] y)
        {{ y = MeanVarianceNormalization {attribute} (x) }}"""
    )
    along = axes or (0, 2, 3)
    exact = x.astype(np.float64) - x.mean(along, keepdims=True, dtype=np.float64)
    exact /= np.sqrt(np.square(exact).mean(along, keepdims=True)) + 1e-9
    assert_same(made, {"x": x}, target, exact.astype(np.float32))
