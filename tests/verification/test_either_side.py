"""Pairs that differ at one place only: a size that has to be one, an offset, a key, a magnitude, a threshold."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

from reducelower.verification import verify

from .models import model

NORMALIZED = (
    "g (float[N, C, L] x) => (float[A, B, D] y) "
    "<float[1] s = {{2}}, float[1] b = {{1}}, int64[1] k = {{1}}, int64[1] a = {{2}}> {{ {} }}"
)
RECURRING = (
    "g (float[T, N, I] x) => (float[A, B, D, H] y) "
    "<float[1, 3, 1] w = {{0.5, -0.3, 0.7}}, float[1, 3, 1] r = {{0.2, 0.4, -0.6}}> {{ y = GRU <{}> (x, w, r) }}"
)
PLAIN = "g (float[A, B] x) => (float[A, B] y) <int64 k = {{-8}}, int64[1] a = {{1}}> {{ {} }}"
INFINITE = "g (float[N] x) => (bool[N] y) <float c = {{3e38}}> {{ {} }}"
PRODUCT = "g (float[N] x, float[N] z) => (float[N] y) {{ {} }}"
SUPPRESSED = (
    "g (float[1, N, 4] b, float[1, 1, N] s) => (int64[M, 3] y) <int64 k = {{100}}, float i = {{{}}}> "
    "{{ y = NonMaxSuppression (b, s, k, i) }}"
)
RESIZED = (
    "g (float[1, 1, 5] x) => (float[1, 1, 1] y) <int64[3] z = {{1, 1, 1}}> "
    '{{ y = Resize <mode = "linear", coordinate_transformation_mode = "{}"> (x, , , z) }}'
)

PAIRS = {
    "channels that have to be one": (
        NORMALIZED.format("y = InstanceNormalization (x, s, b)"),
        NORMALIZED.format("m = ReduceMean (x, a) d = Sub (x, m) y = Add (d, b)"),
    ),
    "features that have to be one": (
        RECURRING.format("hidden_size = 1"),
        RECURRING.format('hidden_size = 1, direction = "reverse"'),
    ),
    "a diagonal below": (PLAIN.format("y = Trilu <upper = 1> (x, k)"), PLAIN.format("y = Identity (x)")),
    "a diagonal above": (
        PLAIN.format("e = EyeLike <k = 9> (x) y = Add (x, e)"),
        PLAIN.format("y = Identity (x)"),
    ),
    "numbers close to infinity": (
        INFINITE.format("y = IsInf (x)"),
        INFINITE.format("a = Abs (x) y = Greater (a, c)"),
    ),
    "a large number beside a small one": (
        PRODUCT.format("a = Mul (x, z) y = Mul (a, a)"),
        PRODUCT.format("a = Mul (x, x) b = Mul (z, z) y = Mul (a, b)"),
    ),
    "a norm of zero, of which only one side divides": (
        PLAIN.format("r = ReduceL2 (x, a) y = Div (x, r)"),
        PLAIN.format("y = LpNormalization <p = 2, axis = 1> (x)"),
    ),
    "logarithms of what only one side loses": (
        PLAIN.format("r = Softmax (x) y = Log (r)"),
        PLAIN.format("y = LogSoftmax (x)"),
    ),
    "boxes that overlap by as much": (SUPPRESSED.format("0.5"), SUPPRESSED.format("0.6")),
    "the center of one element": (RESIZED.format("pytorch_half_pixel"), RESIZED.format("half_pixel")),
}


@pytest.mark.parametrize(("before", "after"), PAIRS.values(), ids=PAIRS)
def test_what_differs_at_one_place_is_different(before: str, after: str) -> None:
    assert verify(model(before), model(after)).verdict == "different"
    assert verify(model(before), model(before)).equivalent


def labelled(values: list[float]) -> ModelProto:
    keys = ", ".join(str(key) for key in range(11, 20))
    text = f"y = ai.onnx.ml.LabelEncoder <keys_int64s = [{keys}], values_floats = [{', '.join(map(str, values))}]> (x)"
    imports = '<ir_version: 8, opset_import: ["": 18, "ai.onnx.ml": 3]>'
    return parser.parse_model(f"{imports} g (int64[N] x) => (float[N] y) {{ {text} }}")


def test_every_key_of_a_map_is_met() -> None:
    values = [at + 0.5 for at in range(9)]
    assert verify(labelled(values), labelled([*values[:-1], 77.5])).verdict == "different"


def looked_up(body: str, table: np.ndarray) -> ModelProto:
    given = model(f"g (int64[N] i) => (float[N, M] y) <int64 d = {{20}}, float[2] v = {{0, 1}}> {{ {body} }}")
    given.graph.initializer.append(numpy_helper.from_array(table, "t"))
    return given


def test_every_row_that_a_one_hot_vector_takes_is_met() -> None:
    table = np.random.default_rng(0).standard_normal((20, 4)).astype(np.float32)
    other = table.copy()
    other[17, 2] += 1
    products = "o = OneHot (i, d, v) y = MatMul (o, t)"
    assert verify(looked_up(products, table), looked_up("y = Gather (t, i)", other)).verdict == "different"
    assert verify(looked_up(products, table), looked_up("y = Gather (t, i)", table)).equivalent


COUNT = 40


def chained(thresholds: np.ndarray) -> ModelProto:
    """A tree that compares one feature with one threshold after the other."""
    leaves = COUNT + 1
    nothing = [0] * leaves
    node = helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1,
        nodes_treeids=[0] * (COUNT + leaves), nodes_nodeids=list(range(COUNT + leaves)),
        nodes_featureids=[0] * (COUNT + leaves), nodes_values=[*map(float, thresholds), *map(float, nothing)],
        nodes_modes=["BRANCH_LEQ"] * COUNT + ["LEAF"] * leaves,
        nodes_truenodeids=[*range(COUNT, 2 * COUNT), *nothing],
        nodes_falsenodeids=[*range(1, COUNT), 2 * COUNT, *nothing],
        target_treeids=nothing, target_nodeids=list(range(COUNT, COUNT + leaves)), target_ids=nothing,
        target_weights=[at + 0.5 for at in range(leaves)],
    )  # fmt: skip
    given, result = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 1]) for name in ("x", "y"))
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(helper.make_graph([node], "g", [given], [result]), opset_imports=imports, ir_version=8)


@pytest.mark.parametrize("at", range(0, COUNT, 6))
def test_every_threshold_of_a_tree_is_met_from_both_sides(at: int) -> None:
    thresholds = np.sort(np.random.default_rng(3).standard_normal(COUNT) * 3)
    other = thresholds.copy()
    other[at] += 0.001
    assert verify(chained(thresholds), chained(other)).verdict == "different"


def test_a_value_that_is_nan_in_every_element_is_met() -> None:
    """onnxruntime's ReduceMax keeps a NaN among other values or loses it, by its place."""
    text = "g (float[B, 5, 8] x) => (float[5] y) <int64[2] a = {0, 2}, float z = {0}> { %s }"
    largest = "ReduceMax <keepdims = 0> (x, a)"
    cleared = f"m = {largest} n = IsNaN (m) y = Where (n, z, m)"
    assert verify(model(text % f"y = {largest}"), model(text % cleared)).verdict == "different"
