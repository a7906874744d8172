"""What is the same node for two versions of its operator: no region where the page says the same, else one for all."""

from __future__ import annotations

import pytest
from onnx import ModelProto

from reducelower import Target
from reducelower.plan import Plan, Site
from reducelower.verification import verify, verify_regions
from reducelower.verification.operators import column
from reducelower.verification.regions.meanings import meaning

from .models import model


@pytest.mark.parametrize(
    ("op_type", "older", "newer"),
    [("Conv", 11, 22), ("Reshape", 14, 21), ("Gemm", 11, 13), ("Loop", 13, 16), ("Constant", 12, 21), ("Max", 8, 13)],
)
def test_versions_that_differ_in_types_and_layout_mean_the_same(op_type: str, older: int, newer: int) -> None:
    assert meaning(op_type, newer) == meaning(op_type, older)


@pytest.mark.parametrize(
    ("op_type", "older", "newer"),
    [
        ("Softmax", 12, 13),
        ("BatchNormalization", 13, 14),
        ("Cast", 12, 13),
        ("Flatten", 10, 11),
        ("Resize", 10, 11),
        ("AveragePool", 21, 22),
        ("Upsample", 8, 9),
        ("Cast", 23, 24),
        ("GroupNormalization", 18, 21),
    ],
)
def test_versions_of_which_the_page_says_something_else_do_not(op_type: str, older: int, newer: int) -> None:
    assert meaning(op_type, newer) != meaning(op_type, older)


def test_an_attribute_that_came_with_a_version_makes_it_another() -> None:
    assert meaning("Reshape", 14) == meaning("Reshape", 13)
    assert meaning("Reshape", 14, "", ("allowzero",)) != meaning("Reshape", 13)
    assert meaning("ScatterND", 18, "", ("reduction",)) != meaning("ScatterND", 16, "", ("reduction",))


WORDED_OTHERWISE = {
    ("ArgMax", 12): "(float[N, 3] x) => (int64[M, K] y) { y = ArgMax <axis = 1> (x) }",
    ("ArgMin", 12): "(float[N, 3] x) => (int64[M, K] y) { y = ArgMin <axis = 0, keepdims = 1> (x) }",
    ("GatherND", 12): "(float[4, 3] x, int64[N, 1] i) => (float[N, 3] y) { y = GatherND (x, i) }",
    ("Abs", 13): "(float[N] x) => (float[N] y) { y = Abs (x) }",
    ("ArgMax", 13): "(float[N, 3] x) => (int64[M, K] y) { y = ArgMax <axis = 1, select_last_index = 1> (x) }",
    ("ArgMin", 13): "(float[N, 3] x) => (int64[M, K] y) { y = ArgMin <axis = 1> (x) }",
    ("Ceil", 13): "(float[N] x) => (float[N] y) { y = Ceil (x) }",
    ("Floor", 13): "(float[N] x) => (float[N] y) { y = Floor (x) }",
    ("Gather", 13): "(float[5, N] x, int64[K] i) => (float[K, N] y) { y = Gather <axis = 0> (x, i) }",
    ("GatherElements", 13): "(float[3, 2] x, int64[3, 2] i) => (float[3, 2] y) { y = GatherElements (x, i) }",
    **{
        (kind, 14): f"({of}[N, 3] x, {of}[3] z) => ({of}[N, 3] y) {{ y = {kind} (x, z) }}"
        for kind, of in (("Add", "float"), ("Div", "float"), ("Mul", "int32"), ("Sub", "int64"))
    },
    **{
        (kind, 14): f"(float[S, 2, 3] x, float[1, {4 * n}, 3] w, float[1, {4 * n}, 4] r) => (float[S, 1, 2, 4] y) "
        f"{{ y = {kind} <hidden_size = 4> (x, w, r) }}"
        for kind, n in (("GRU", 3), ("LSTM", 4), ("RNN", 1))
    },
    ("Reshape", 14): "(float[2, 3, N] x) => (float[2, K] y) <int64[2] s = {0, -1}> { y = Reshape (x, s) }",
    ("Shape", 15): "(float[N, 3] x) => (int64[2] y) { y = Shape (x) }",
    **{
        ("ScatterElements", opset): "(float[3, N] x, int64[1, N] i, float[1, N] u) => (float[3, N] y) "
        "{ y = ScatterElements <axis = 0> (x, i, u) }"
        for opset in (16, 18)
    },
    **{
        ("ScatterND", opset): "(float[4, N] x, int64[1, 1] i, float[1, N] u) => (float[4, N] y) "
        "{ y = ScatterND (x, i, u) }"
        for opset in (16, 18)
    },
    ("Cast", 19): "(float[N] x) => (int32[N] y) { y = Cast <to = 6> (x) }",
    ("CastLike", 19): "(float[N] x, float16[1] z) => (float16[N] y) { y = CastLike (x, z) }",
    **{
        ("QuantizeLinear", opset): "(float[N, 3] x) => (uint8[N, 3] y) <float s = {0.1}, uint8 z = {9}> "
        "{ y = QuantizeLinear (x, s, z) }"
        for opset in (19, 21, 23, 24, 25)
    },
    **{
        ("DequantizeLinear", opset): "(int8[N, 3] x) => (float[N, 3] y) <float[3] s = {0.1, 2, 3}> "
        "{ y = DequantizeLinear <axis = 1> (x, s) }"
        for opset in (19, 21, 23)
    },
    ("ReduceMax", 20): "(float[N, 3] x) => (float[K, L] y) <int64[1] a = {1}> { y = ReduceMax (x, a) }",
    ("ReduceMin", 20): "(float[N, 3] x) => (float[K, L] y) <int64[1] a = {1}> { y = ReduceMin (x, a) }",
    ("Transpose", 21): "(float[N, 3] x) => (float[3, N] y) { y = Transpose (x) }",
    ("Transpose", 25): "(float[N, 3, 1] x) => (float[N, 1, 3] y) { y = Transpose <perm = [0, 2, 1]> (x) }",
    ("LSTM", 22): "(float[S, 2, 3] x, float[1, 16, 3] w, float[1, 16, 4] r) => (float[S, 1, 2, 4] y) "
    "{ y = LSTM <hidden_size = 4> (x, w, r) }",
    ("Squeeze", 23): "(float[N, 1] x) => (float[N] y) <int64[1] a = {1}> { y = Squeeze (x, a) }",
    ("Unsqueeze", 23): "(float[N] x) => (float[1, N] y) <int64[1] a = {0}> { y = Unsqueeze (x, a) }",
}


@pytest.mark.parametrize("key", list(WORDED_OTHERWISE), ids=str)
def test_versions_that_are_worded_otherwise_compute_the_same(key: tuple[str, int]) -> None:
    """By running both, as where nobody had read their pages; what no runtime takes cannot be said."""
    op_type, version = key
    before, after = (model(f"g {WORDED_OTHERWISE[key]}", opset) for opset in (version - 1, version))
    plan = Plan(version - 1, Target(opset=version), (Site("graph", f"{op_type}#0", op_type, "by hand", 0, 0, 1),))
    (found,) = verify_regions(before, after, plan).findings
    assert found.op_type == op_type
    assert found.status != "different"
    assert found.status != "not run" or version > 22


def test_every_version_that_is_taken_for_the_same_was_run() -> None:
    inner = {("Loop", 13), ("SpaceToDepth", 28)}  # whose bodies are compared; which no runtime knows yet
    same = {(op_type, version) for op_type, versions in column("same").items() for version in versions}
    assert same == set(WORDED_OTHERWISE) | inner


def test_an_operator_without_a_schema_means_something_else_at_every_version() -> None:
    assert meaning("Solve", 1, "com.example") != meaning("Solve", 2, "com.example")


@pytest.mark.parametrize(("shape", "verdict"), [("3, 2", "equivalent"), ("3, -1", "equivalent"), ("0, 2", "not shown")])
def test_allowzero_is_about_zeros(shape: str, verdict: str) -> None:
    def reshaped(said: str, opset: int) -> ModelProto:
        shaped = f"<int64[2] s = {{{shape}}}> {{ y = Reshape {said} (x, s) }}"
        return model(f"g (float[N, M] x) => (float[A, B] y) {shaped}", opset)

    found = verify(reshaped("<allowzero = 1>", 20), reshaped("", 13))
    assert found.verdict == verdict
    assert bool(found.sites) == (verdict == "not shown")
