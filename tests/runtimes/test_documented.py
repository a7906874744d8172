"""Models that break a restriction that a vendor documents are named before anyone loads them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, helper, numpy_helper, parser

from reducelower import Target, check, load_runtime
from reducelower.plan import Plan


def model(body: str, inputs: str, outputs: str, opset: int = 18, weights: str = "") -> ModelProto:
    text = f'<ir_version: 8, opset_import: ["": {opset}]> g ({inputs}) => ({outputs}) {weights} {body}'
    return parser.parse_model(text)


SCATTER = "float[4,3] x, int64[2,1] i, float[2,3] u"
IMAGE = "float[1,3,8,8] x"
TENSORRT = {
    "ScatterND with a reduction": model('{ y = ScatterND <reduction = "add"> (x, i, u) }', SCATTER, "float[4,3] y"),
    "MaxPool with indices": model(
        "{ y, i = MaxPool <kernel_shape = [2, 2]> (x) }", IMAGE, "float[1,3,7,7] y, int64[1,3,7,7] i"
    ),
    "MaxPool with dilations": model(
        "{ y = MaxPool <kernel_shape = [2, 2], dilations = [2, 2]> (x) }", IMAGE, "float[1,3,6,6] y"
    ),
    "TopK of 4000": model(
        "{ y, i = TopK (x, k) }", "float[5000] x", "float[4000] y, int64[4000] i", weights="<int64[1] k = {4000}>"
    ),
    "a zero point that is not zero": model(
        "{ q = QuantizeLinear (x, s, z) y = DequantizeLinear (q, s, z) }",
        IMAGE,
        "float[1,3,8,8] y",
        weights="<float s = {0.5}, int8 z = {3}>",
    ),
    "LayerNormalization with three outputs": model(
        "{ y, m, d = LayerNormalization (x, s) }",
        IMAGE,
        "float[1,3,8,8] y, float[1,3,8,1] m, float[1,3,8,1] d",
        weights="<float[8] s = {1, 1, 1, 1, 1, 1, 1, 1}>",
    ),
    "CumSum with an axis that is fed": model("{ y = CumSum (x, a) }", "float[4,3] x, int64 a", "float[4,3] y"),
    "a pool of one spatial dimension": model(
        "{ y = MaxPool <kernel_shape = [2]> (x) }", "float[1,3,8] x", "float[1,3,7] y"
    ),
    "Resize with antialiasing": model(
        '{ y = Resize <mode = "linear", antialias = 1> (x, , s) }',
        IMAGE,
        "float[1,3,4,4] y",
        weights="<float[4] s = {1, 1, 0.5, 0.5}>",
    ),
    "Compress": model("{ y = Compress <axis = 0> (x, c) }", "float[4,3] x, bool[4] c", "float[n,3] y"),
}
COREML = {
    "TopK": model("{ y, i = TopK (x, k) }", "float[8] x", "float[2] y, int64[2] i", weights="<int64[1] k = {2}>"),
    "Einsum": model(
        '{ y = Einsum <equation = "bij,bjk->bik"> (x, w) }', "float[2,3,4] x, float[2,4,5] w", "float[2,3,5] y"
    ),
    "a pool of three spatial dimensions": model(
        "{ y = MaxPool <kernel_shape = [2, 2, 2]> (x) }", "float[1,3,8,8,8] x", "float[1,3,7,7,7] y"
    ),
    "GatherND of batches": model(
        "{ y = GatherND <batch_dims = 1> (x, i) }", "float[2,3] x, int64[2,1] i", "float[2] y"
    ),
}


def lstm() -> ModelProto:
    weights = [np.ones((1, 20, width), np.float32) for width in (4, 5)]
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y", "h", "c"], hidden_size=5)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", 1, [3, 2, 4])],
        [helper.make_tensor_value_info("y", 1, [3, 1, 2, 5])],
        [numpy_helper.from_array(value, name) for name, value in zip("wr", weights, strict=True)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)


COREML["LSTM"] = lstm()
TIDL = {
    "Einsum": COREML["Einsum"],
    "ArgMax of the last axis": model("{ y = ArgMax <axis = 3> (x) }", IMAGE, "int64[1,3,8,1] y"),
    "a convolution of three spatial dimensions": model(
        "{ y = Conv (x, w) }", "float[1,1,4,4,4] x", "float[1,1,4,4,4] y", weights="<float[1,1,1,1,1] w = {2}>"
    ),
    "Pad by reflection": model(
        '{ y = Pad <mode = "reflect"> (x, p) }',
        "float[1,3,4,4] x",
        "float[1,3,6,6] y",
        weights="<int64[8] p = {0, 0, 1, 1, 0, 0, 1, 1}>",
    ),
}
WEBNN = {
    "Hardmax": model("{ y = Hardmax (x) }", "float[2,3] x", "float[2,3] y"),
    "an opset version that is left out": model(
        "{ y = Resize (x, s) }", IMAGE, "float[1,3,8,8] y", opset=10, weights="<float[4] s = {1, 1, 1, 1}>"
    ),
    "a shape that is fed": model("{ y = Reshape (x, s) }", "float[4,3] x, int64[2] s", "float[n,m] y"),
    "a shape with a zero": model(
        "{ y = Reshape (x, s) }", "float[4,3] x", "float[4,3] y", weights="<int64[2] s = {0, 3}>"
    ),
    "axes that are fed": model("{ y = ReduceMax (x, a) }", "float[4,3] x, int64[1] a", "float[n,m] y"),
    "Pad that wraps": model(
        '{ y = Pad <mode = "wrap"> (x, p) }', "float[4] x", "float[6] y", opset=19, weights="<int64[2] p = {1, 1}>"
    ),
    "ScatterND with a reduction": TENSORRT["ScatterND with a reduction"],
    "MaxPool with indices": TENSORRT["MaxPool with indices"],
}
WEBGPU = {
    "Hardmax": WEBNN["Hardmax"],
    "an operator of the domain com.microsoft alone": model(
        "{ y = RotaryEmbedding (x, c, s) }",
        "float[1,2,3,4] x, float[1,3,2] c, float[1,3,2] s",
        "float[1,2,3,4] y",
        opset=23,
    ),
    "an opset version that is left out": model(
        "{ y = GridSample (x, g) }", "float[1,3,8,8] x, float[1,2,2,2] g", "float[1,3,2,2] y", opset=20
    ),
    "three spatial dimensions": model(
        "{ y = ConvTranspose (x, w) }",
        "float[1,1,4,4,4] x",
        "float[1,1,4,4,4] y",
        weights="<float[1,1,1,1,1] w = {2}>",
    ),
}
CONVOLUTION = model(
    "{ y = Conv (x, w) }", IMAGE, "float[1,2,8,8] y", opset=22, weights="<float[2,3,1,1] w = {1, 2, 3, 4, 5, 6}>"
)
DIRECTML = {
    "Compress": TENSORRT["Compress"],
    "double": model("{ y = Abs (x) }", "double[2] x", "double[2] y"),
    "64 bits as an exponent": model("{ y = Pow (x, e) }", "float[2] x, int64[2] e", "float[2] y"),
    "an operator that changed after its kernel": model("{ y = ScatterND (x, i, u) }", SCATTER, "float[4,3] y"),
    "an opset version after its kernels": CONVOLUTION,
}


def planned(source: ModelProto, target: str) -> Plan:
    return check(source, target=Target(source.opset_import[0].version, runtime=load_runtime(target)))


def said(plan: Plan) -> str:
    return " ".join([*map(str, plan.refusals), *plan.unmended, *(site.because for site in plan.sites)])


@pytest.mark.parametrize("case", TENSORRT)
def test_what_tensorrt_does_not_take_by_its_list_is_named(case: str) -> None:
    assert "(documented)" in said(planned(TENSORRT[case], "tensorrt"))


@pytest.mark.parametrize("case", ["MaxPool with indices", "CumSum with an axis that is fed", "Compress"])
@pytest.mark.parametrize("release", ["8.5", "8.6", "9.3", "10.1"])
def test_what_older_releases_of_tensorrt_do_not_take_is_named(case: str, release: str) -> None:
    source = TENSORRT[case]
    found = planned(source, f"tensorrt@{release}") if int(release.split(".")[0]) > 8 else None
    if found is None:
        found = check(source, target=Target(17, runtime=load_runtime(f"tensorrt@{release}")))
    assert "(documented)" in said(found)


@pytest.mark.parametrize(
    ("target", "case", "source"),
    [
        (target, case, source)
        for target, cases in {
            "coreml": COREML,
            "tidl": TIDL,
            "onnxruntime-webnn": WEBNN,
            "onnxruntime-webgpu": WEBGPU,
            "onnxruntime-directml": DIRECTML,
        }.items()
        for case, source in cases.items()
    ],
)
def test_what_runs_beside_the_hardware_that_is_meant_is_named_and_left(
    target: str, case: str, source: ModelProto
) -> None:
    plan = planned(source, target)
    assert not plan.refusals
    assert "(documented)" in said(plan)


def test_a_form_may_run_elsewhere_if_the_node_overflows() -> None:
    source = model(
        "{ y = ReduceLogSumExp <keepdims = 0> (x, a) }", "float[2,3] x", "float[2] y", weights="<int64[1] a = {1}>"
    )
    plan = planned(source, "onnxruntime-webgpu")
    assert [site.rule for site in plan.sites] == ["stable/ReduceLogSumExp for onnxruntime-webgpu"]
    assert any("Max: There is no WebGPU kernel" in each for each in plan.unmended)


def test_a_model_goes_to_the_opset_version_at_which_directml_has_kernels() -> None:
    plan = check(CONVOLUTION, target=Target(runtime=load_runtime("onnxruntime-directml")))
    assert plan.target.opset == 21
    assert not said(plan)


def test_layer_normalization_in_half_precision_is_computed_in_float_for_tensorrt() -> None:
    source = model("{ y = LayerNormalization (x, s) }", "float16[2,8] x, float16[8] s", "float16[2,8] y")
    plan = planned(source, "tensorrt")
    assert "computing it in float avoids that" in said(plan)


@pytest.mark.parametrize(
    "target",
    [
        "tensorrt",
        "tensorrt@8.6",
        "coreml",
        "tidl",
        "rknn@2.1",
        "onnxruntime-webnn",
        "onnxruntime-webgpu",
        "onnxruntime-directml",
    ],
)
def test_a_small_network_fits_every_documented_target(target: str) -> None:
    source = model(
        "{ a = Conv <pads = [1, 1, 1, 1]> (x, w) b = Relu (a) c = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (b)"
        " y = Add (c, c) }",
        "float[1,1,8,8] x",
        "float[1,1,4,4] y",
        opset=13,
        weights="<float[1,1,3,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}>",
    )
    plan = planned(source, target)
    assert not said(plan)
