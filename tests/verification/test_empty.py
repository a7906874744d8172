"""Values without elements: what differs on these alone is seen, and what no runtime takes of them is left alone."""

from __future__ import annotations

import numpy as np
import pytest

from reducelower import Target
from reducelower.api import legalize
from reducelower.verification import verify

from .models import model

HELD = (
    "<int64[2] rows = {-1, 3}, int64[4] pads = {0, 1, 0, 1}, float[3] row = {1, 2, 3}, float[4] twice = {1, 1, 2, 2}, "
    "float[1, 1, 2, 2] image = {1, 2, 3, 4}>"
)
# By operator: inputs and output, the node, what else comes of no elements, and the input that may have none.
OTHERWISE = {
    "ScatterND": ("(float[4, 3] x, int64[K, 1] i, float[K, 3] u) => (float[4, 3] y)", "(x, i, u)", "Neg (x)", "i"),
    "ScatterElements": (
        "(float[4, 3] x, int64[K, 3] i, float[K, 3] u) => (float[4, 3] y)", "(x, i, u)", "Neg (x)", "i",
    ),
    "GatherND": ("(float[4, 3] x, int64[K, 1] i) => (float[a, b] y)", "(x, i)", "Identity (x)", "i"),
    "CumSum": ("(float[N, 3] x) => (float[a, b] y)", "(x, zero)", "Transpose (x)", "x"),
    "LayerNormalization": ("(float[N, 3] x) => (float[a, b] y)", "(x, row)", "Transpose (x)", "x"),
    "Resize": ("(float[N, 1, 2, 2] x) => (float[a, 1, b, c] y)", "(x, , twice)", "Concat <axis = 0> (x, image)", "x"),
    "Pad": ("(float[N, 3] x) => (float[a, b] y)", "(x, pads)", "Transpose (x)", "x"),
    "Gemm": ("(float[N, 3] x, float[3, 2] w) => (float[a, b] y)", "(x, w)", "Transpose (x)", "x"),
    "MaxPool": ("(float[N, 1, 5] x) => (float[a, b, c] y)", "<kernel_shape = [2]> (x)", "Identity (x)", "x"),
    "Reshape": ("(float[N, 3] x) => (float[a, b] y)", "(x, rows)", "Transpose (x)", "x"),
}  # fmt: skip


@pytest.mark.parametrize("op_type", list(OTHERWISE))
def test_what_differs_on_no_elements_alone_is_seen(op_type: str) -> None:
    values, node, otherwise, chosen = OTHERWISE[op_type]
    before = f"g {values} {HELD} {{ zero = Constant <value_int = 0> ()  y = {op_type} {node} }}"
    after = (
        f"g {values} {HELD} {{ n = Size ({chosen})  zero = Constant <value_int = 0> ()  k = Equal (n, zero)  "
        f"y = If (k) <then_branch = t () => (float p) {{ p = {otherwise} }}, "
        f"else_branch = e () => (float q) {{ q = {op_type} {node} }}> }}"
    )
    assert verify(model(before), model(after)).verdict == "different"


@pytest.mark.parametrize(("shape", "verdict"), [("-1, 6", "equivalent"), ("0, -1", "different")])
def test_a_size_that_is_inferred_has_no_answer_for_no_elements(shape: str, verdict: str) -> None:
    before = model("g (float[N, 3, 2] x) => (float[a, b] y) { y = Flatten (x) }")
    after = model(f"g (float[N, 3, 2] x) => (float[a, b] y) <int64[2] s = {{{shape}}}> {{ y = Reshape (x, s) }}")
    assert verify(before, after).verdict == verdict


def test_a_shape_with_a_zero_is_fed_to_both_ways_of_reading_it() -> None:
    text = "g (float[N, M] x, int64[2] s) => (float[a, b] y) { y = Reshape %s (x, s) }"
    assert verify(model(text % ""), model(text % "<allowzero = 1>")).verdict == "different"


@pytest.mark.parametrize(
    "body",
    [
        "(float[S, 2, 3] x, float[1, 16, 3] w, float[1, 16, 4] r) => (float[a, b, c, d] y) "
        "{ n = Neg (x)  p = Neg (n)  y = LSTM <hidden_size = 4> (p, w, r) }",
        "(float[N, C, 5] x, float[M, C, 3] w) => (float[N, M, D] y) { n = Neg (x)  p = Neg (n)  y = Conv (p, w) }",
        '(float[B, S, 8] x) => (float[B, S, S] y) { n = Neg (x)  y = Einsum <equation = "bij,bkj->bik"> (n, n) }',
    ],
)
def test_what_ends_the_process_on_no_elements_is_not_fed_any(body: str) -> None:
    other = body.replace("n = Neg (x)", "n = Mul (x, m)  ").replace("=> (", "=> (", 1)
    other = other.replace("{ n", "{ m = Constant <value = float {-1}> ()  n", 1)
    assert verify(model(f"g {body}"), model(f"g {other}")).verdict == "equivalent"


def test_a_transform_that_a_runtime_rounds_coarsely_is_no_fault_of_its_replacement() -> None:
    """onnxruntime's DFT over sizes that are no power of two is further from the sums than what they are written as."""
    given = model("g (float[2, 7, 16, 2] x) => (float[2, 7, 16, 2] y) <int64 a = {2}> { y = DFT (x, , a) }", 20)
    made = legalize(given, Target(14))
    found = verify(given, made.model, plan=made.plan)
    assert found.verdict == "equivalent"
    assert found.sites[0].status in ("departs", "overflow", "equal")


def test_sizes_that_the_source_refuses_with_elements_are_not_fed_without() -> None:
    """onnxruntime's GroupNormalization compares channels with scales only where there are elements."""
    text = (
        "g (float[2, C, H, W] x) => (float[2, A, B, D] y) "
        "<float[6] s = {1, 2, 3, 4, 5, 6}, float[6] b = {1, 1, 1, 1, 1, 1}> "
    )
    source = model(text + "{ y = GroupNormalization <num_groups = 2> (x, s, b) }", 21)
    made = legalize(source, Target(16))
    found = verify(source, made.model, plan=made.plan, inputs={"x": np.ones((2, 6, 2, 2), np.float32)})
    assert found.verdict == "equivalent"
