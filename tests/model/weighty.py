"""Small models with weights that are large enough to be treated apart."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser


def with_weights(text: str, *tensors: TensorProto, functions: str = "", opset: int = 18) -> ModelProto:
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}, "local" : 1]> {text} {functions}')
    for place, tensor in enumerate(tensors):
        model.graph.initializer.insert(place, tensor)
    return model


def weight(name: str, *shape: int, dtype: type = np.float32) -> TensorProto:
    return numpy_helper.from_array(np.random.default_rng(11).normal(size=shape).astype(dtype), name)


def looked_up() -> ModelProto:
    """Axes that are looked up in a table, which is as large as a weight."""
    table = np.zeros(4000, np.int64)
    table[1500] = 1
    return with_weights(
        "g (float[2,3,4] x) => (float[2,4] y) <int64[1] i = {1500}> "
        "{ axes = Gather (table, i)  y = ReduceSum <keepdims = 0> (x, axes) }",
        numpy_helper.from_array(table, "table"),
    )


def four_bits() -> ModelProto:
    """Weights of a type that the target does not have, so that they change."""
    values = np.random.default_rng(11).integers(-8, 8, 256 * 256)
    return with_weights(
        "g (float[2,256] x) => (float[2,256] y) <float s = {0.5}> { d = DequantizeLinear (w, s)  y = MatMul (x, d) }",
        helper.make_tensor("w", TensorProto.INT4, [256, 256], values),
        opset=21,
    )


def beside() -> ModelProto:
    """A function, and all that may stand beside a graph, and weights with texts of their own."""
    tensor = weight("w", 64, 200)
    tensor.doc_string = "trained"
    tensor.metadata_props.add(key="layer", value="1")
    model = with_weights(
        "g (float[2,64] x) => (float[2,1] y) <int64[1] one = {1}> "
        "{ v = local.twice (x)  z = MatMul (v, w)  y = ReduceLogSumExp (z, one) }",
        tensor,
        functions='<opset_import: ["" : 18], domain: "local"> twice (a) => (b) { b = Add (a, a) }',
    )
    model.metadata_props.add(key="k", value="v")
    model.graph.doc_string = "of the graph"
    model.training_info.add().initialization.name = "nothing"
    annotation = model.graph.quantization_annotation.add(tensor_name="z")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="w")
    return model
