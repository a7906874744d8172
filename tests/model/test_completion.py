"""Element types and ranks are found where shape inference stops, and what is found is what a run shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, parser

from reducelower.types import Inference

HEADER = '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1, "ai.onnx.ml" : 3]>\n'


def inferred(model: ModelProto) -> dict[str, tuple[int, int | None]]:
    """Element type and rank by name, as far as they are found in the main graph."""
    found = {}
    for name, value in Inference(lambda: model).types(()).items():
        tensor = value.tensor_type
        found[name] = tensor.elem_type, len(tensor.shape.dim) if tensor.HasField("shape") else None
    return found


def shown(model: ModelProto, feeds: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Element type and rank of everything the nodes of the main graph yield, in a run of onnxruntime."""
    open_model = ModelProto()
    open_model.CopyFrom(model)
    names = [name for node in model.graph.node for name in node.output if name]
    del open_model.graph.output[:]
    open_model.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(open_model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    values = dict(zip(names, session.run(None, feeds), strict=True))
    return {name: (helper.np_dtype_to_tensor_dtype(value.dtype), value.ndim) for name, value in values.items()}


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


# What is computed at run time is only how large the result is, so the rank of every value is known.
KNOWN: dict[str, tuple[str, dict[str, Any]]] = {
    "a shape computed by arithmetic, three sizes long": (
        """g (float[a,b] x, int64 n) => (float[c] y) <int64[1] zero = {0}, int64[1] four = {4}, int64[1] m1 = {-1}> {
            s = Shape(x) k = Gather(s, zero) f = Cast<to = 1>(k) r = Sqrt(f) h = Cast<to = 7>(r)
            w = Concat<axis = 0>(h, four, m1) v = Reshape(x, w) p = Softmax<axis = -1>(v)
            q = ReduceMax<axes = [1], keepdims = 0>(p) t = Transpose<perm = [1, 0]>(q)
            y = ReduceSum<keepdims = 0>(t, zero)
        }""",
        {"x": floats(4, 8), "n": np.array(2)},
    ),
    "indices of what is not zero, as long as a rank that inference did not find": (
        """g (float[a,b] x, float[b] w) => (float[c] y) {
            v = com.microsoft.BiasGelu(x, w) z = NonZero(v) t = Transpose<perm = [1, 0]>(z) g = GatherND(v, t)
            y = Relu(g)
        }""",
        {"x": floats(2, 3), "w": floats(3)},
    ),
    "what a regression yields": (
        """g (float[n,2] x) => (float[n,1] y) {
            s = ai.onnx.ml.SVMRegressor<coefficients = [1.0, -1.0], support_vectors = [0.0, 1.0, 2.0, 3.0],
                n_supports = 2, rho = [0.5], kernel_type = "LINEAR",
                kernel_params = [0.0, 0.0, 0.0]>(x)
            l = ai.onnx.ml.LinearRegressor<coefficients = [1.0, 2.0], intercepts = [0.5], targets = 1>(x)
            b = Add(s, l) t = Transpose<perm = [1, 0]>(b) y = Transpose(t)
        }""",
        {"x": floats(3, 2)},
    ),
    "a shape as long as a rank that inference did not find": (
        """g (float[a,b,4] x, float[4,4] w) => (float[c,d,e] y)
            <int64[1] zero = {0}, int64[1] two = {2}, int64[1] m1 = {-1}> {
            v = com.microsoft.FusedMatMul(x, w) s = Shape(v) l = Slice(s, zero, two) t = Concat<axis = 0>(l, m1)
            z = Reshape(v, t) y = Softmax<axis = 2>(z)
        }""",
        {"x": floats(2, 3, 4), "w": floats(4, 4)},
    ),
    "expanded, gathered, tiled and padded": (
        """g (float[a,b] x, int64[3] s, int64[4] p, int64[2,2] i, int64[2] r) => (float[c,d] y) <float one = {1}> {
            e = Expand(x, s) g = Gather<axis = 1>(e, i) z = Pad(x, p, one) t = Tile(z, r) y = Concat<axis = 0>(t, x)
        }""",
        {
            "x": floats(2, 3), "s": np.array([4, 2, 3]), "p": np.array([0, 0, 1, 0]),
            "i": np.array([[0, 1], [1, 0]]), "r": np.array([2, 1]),
        },
    ),
    "squeezed and unsqueezed by axes computed at run time": (
        """g (float[a,b] x, int64[1] n) => (float[c,d] y) {
            u = Unsqueeze(x, n) r = Relu(u) s = Squeeze(r, n) m = MatMul(r, s)
            y = ReduceMean<axes = [0], keepdims = 0>(m)
        }""",
        {"x": floats(3, 3), "n": np.array([0])},
    ),
    "in the branches of an If and the body of a Loop": (
        """g (bool c, float[a,b] x, int64[2] s, int64 n) => (float[d,e,f] y) {
            v = If (c) <then_branch = t () => (float[] p) { p = Reshape(x, s) },
                        else_branch = e () => (float[] q) { r = Neg(x) q = Reshape(r, s) }>
            w, y = Loop (n, c, v) <body = b (int64 i, bool on, float[] k) => (bool off, float[] m, float[] o) {
                off = Identity(on) m = Identity(k) o = Reshape(k, s) }>
        }""",
        {"c": np.array(True), "x": floats(2, 6), "s": np.array([3, 4]), "n": np.array(2)},
    ),
    "behind operators of onnxruntime": (
        """g (float[a,b,4] x, float[4,4] w, float[4] v, float[a,b,4] z, int64[4] s) => (float[c,d,e,f] y) {
            m = com.microsoft.FusedMatMul<alpha = 0.5>(x, w) g = com.microsoft.BiasGelu(m, v)
            l, mean, inv, sum = com.microsoft.SkipLayerNormalization(g, z, v, v)
            wq, ws, wz = DynamicQuantizeLinear(w)
            f = com.microsoft.FastGelu(l, v) n = Add(f, sum) d = com.microsoft.DynamicQuantizeMatMul(n, wq, ws, wz)
            k = com.microsoft.QuickGelu(d) y = Reshape(k, s)
        }""",
        {"x": floats(2, 3, 4), "w": floats(4, 4), "v": floats(4), "z": floats(2, 3, 4), "s": np.array([2, 3, 2, 2])},
    ),
    "quantized by operators of onnxruntime": (
        """g (float[a,b] x, float[1,b] w) => (float[c,d] y) <float s = {0.1}, uint8 z = {128}> {
            p = com.microsoft.QuantizeLinear(x, s, z) q = com.microsoft.QuantizeLinear(w, s, z)
            r = com.microsoft.QLinearAdd(p, s, z, q, s, z, s, z) t = com.microsoft.QLinearSigmoid(r, s, z, s, z)
            y = com.microsoft.DequantizeLinear(t, s, z)
        }""",
        {"x": floats(2, 3), "w": floats(1, 3)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_all_types_and_ranks_are_found_and_are_those_of_a_run(name: str) -> None:
    text, feeds = KNOWN[name]
    model = parser.parse_model(HEADER + text)
    seen = shown(model, {value.name: feeds[value.name] for value in model.graph.input})
    found = inferred(model)
    # What a Loop carries may change its shape, so only its element type is sure.
    carried = {node.output[0] for node in model.graph.node if node.op_type == "Loop"}
    unused = {name for name, (_, rank) in found.items() if rank is None} & {"mean", "inv"}
    for value, (element_type, rank) in seen.items():
        if value not in unused:
            assert found[value] == (element_type, None if value in carried else rank), value


FLOAT, DOUBLE = TensorProto.FLOAT, TensorProto.DOUBLE

# A graph at opset 17, and what is found of some of its values: element type and rank, or nothing.
TOLD: dict[str, tuple[str, dict[str, tuple[int, int | None] | None]]] = {
    "the type behind a foreign operator is that of its neighbours": (
        "(double[3] x) => (double[3] y) { a = my.Op (x)  b = Neg (a)  c = Add (b, x)  y = Relu (c) }",
        {"a": (DOUBLE, None)},
    ),
    "nothing is claimed where nothing is sure": (
        """(float[3] x, int64[k] s) => (float[] y) {
            a = my.Op (x)  y = Reshape (x, s)  b = Squeeze (y)  c = MatMul (y, x) }""",
        {"a": None, "y": (FLOAT, None), "b": (FLOAT, None), "c": (FLOAT, None)},
    ),
    "one stated type that contradicts does not hide the others": (
        "(float[2,3] x, int64[1] s) => (float[k] y) <float[7] a> { a = Neg (x)  b = Reshape (a, s)  y = Relu (b) }",
        {"b": (FLOAT, 1)},
    ),
    "the branch that is taken tells the rank whatever is stated, as tracing writes scatter_reduce": (
        """(float[a,b] x) => (float[c,d] y) <int64 none = {0}, int64[1] all = {-1}> {
            s = Shape (x)  n = Size (s)  p = Equal (n, none)
            u = If (p) <then_branch = t () => (float[e] r) { r = Reshape (x, all) },
                        else_branch = e () => (float[e] v) { v = Identity (x) }>
            y = Softmax <axis = 0> (u) }""",
        {"u": (FLOAT, 2), "y": (FLOAT, 2)},
    ),
    # As tracing writes unflatten, the shape ends where a remainder says.
    **{
        f"a length may be computed of constants by {op_type}": (
            f"""(float[a,b,c] x) => (float[] y)
            <int64[1] seven = {{7}}, int64[1] three = {{3}}, int64[1] zero = {{0}}, int64[1] axis = {{-1}}> {{
                end = {op_type} (seven, three)  flat = Reshape (end, axis)  s = Shape (x)
                head = Slice (s, zero, flat)  t = Concat <axis = 0> (head, axis)  y = Reshape (x, t) }}""",
            {"y": (FLOAT, rank)},
        )
        for op_type, rank in (("Div", 3), ("Mod", 2), ("Sub", 4))
    },
}  # fmt: skip


@pytest.mark.parametrize("claim", TOLD)
def test_types_and_ranks_that_are_told(claim: str) -> None:
    text, expected = TOLD[claim]
    found = inferred(parser.parse_model(f'<ir_version: 8, opset_import: ["": 17, "my": 1]> g {text}'))
    assert {name: found.get(name) for name in expected} == expected


@pytest.mark.parametrize("scanned", [7, -7, 2.5, "one", [1]])
def test_a_scan_of_so_many_inputs_as_it_does_not_have_is_passed_over(scanned: object) -> None:
    model = parser.parse_model(f"""{HEADER} g (float[2, 3] x) => (float[P, Q] y) {{
        u = com.microsoft.Foo (x)
        y = Scan <num_scan_inputs = 1, body = b (float r) => (float s) {{ s = Abs (r) }}> (u)
    }}""")
    model.graph.node[1].attribute[0].CopyFrom(helper.make_attribute("num_scan_inputs", scanned))
    assert inferred(model)["y"] == (TensorProto.FLOAT, 2)


@pytest.mark.parametrize(("axes", "rank"), [(1, None), ([1], 1)])
def test_axes_that_are_no_list_tell_no_rank(axes: object, rank: int | None) -> None:
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[2,3] x) => (y) { y = ReduceMax<keepdims = 0>(x) }""")
    model.graph.node[0].attribute.append(helper.make_attribute("axes", axes))
    assert inferred(model)["y"] == (TensorProto.FLOAT, rank)


@pytest.mark.parametrize("count", [2**62, -5])
def test_no_number_of_axes_is_believed_that_no_tensor_has(count: int) -> None:
    model = parser.parse_model(f"{HEADER} g (float[2] x, int64[2] a) => (float[Q] y) {{ y = Unsqueeze (x, a) }}")
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_value = count
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert inferred(model)["y"] == (TensorProto.FLOAT, None)


@pytest.mark.parametrize("op_type", ["Constant", "ReduceSum", "Shape", "Scan"])
def test_a_node_that_yields_nothing_is_passed_over(op_type: str) -> None:
    model = parser.parse_model(
        f"""{HEADER} g (float[2, 3] x) => (float[Q] y) {{ u = com.microsoft.Foo (x) y = Abs (u) }}"""
    )
    node = model.graph.node.add(op_type=op_type)
    node.attribute.append(helper.make_attribute("value_ints", [1]))
    assert inferred(model)["y"] == (TensorProto.FLOAT, 1)
