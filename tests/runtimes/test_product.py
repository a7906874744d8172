"""ReduceProd written out as multiplications, for runtimes without a kernel of it."""

from __future__ import annotations

from itertools import product

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, checker, parser

from reducelower import ConversionError, Target, legalize
from tests.runtimes.toaster import runtime

ABSENT = "operators = ['ReduceProd']\nis = 'absent'"
NO_SPLIT = "operators = ['Split']\nis = 'absent'"


def model(body: str, opset: int, element: str = "float", shape: str = "2,3,4", rank_out: int = 3) -> ModelProto:
    result = f"[{', '.join('abc'[:rank_out])}]" if rank_out else ""
    return parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : {opset}]> g ({element}[{shape}] x) => ({element}{result} y) {{ {body} }}
    """)


def fit(source: ModelProto, opset: int, *facts: str) -> ModelProto:
    fitted = legalize(source, Target(opset, runtime=runtime(ABSENT, *facts))).model
    checker.check_model(fitted, full_check=True)
    return fitted


def operators(fitted: ModelProto) -> set[str]:
    return {node.op_type for node in fitted.graph.node}


def run(fitted: ModelProto, x: np.ndarray) -> np.ndarray:
    return onnxruntime.InferenceSession(fitted.SerializeToString()).run(None, {"x": x})[0]


@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize(("axes", "keepdims"), list(product([(1,), (-1, 0), (0, 1, 2)], [0, 1])))
def test_the_product_is_the_same(axes: tuple[int, ...], keepdims: int, opset: int) -> None:
    given = f"axes = {list(axes)}, " if opset < 18 else ""
    body = f"y = ReduceProd <{given}keepdims = {keepdims}> (x)"
    if opset == 18:
        body = f"axes = Constant <value_ints = {list(axes)}> () y = ReduceProd <keepdims = {keepdims}> (x, axes)"
    x = np.random.default_rng(0).uniform(-2, 2, (2, 3, 4)).astype(np.float32)
    fitted = fit(model(body, opset, rank_out=3 if keepdims else 3 - len(axes)), opset)
    assert "ReduceProd" not in operators(fitted)
    np.testing.assert_allclose(run(fitted, x), x.prod(axis=axes, keepdims=bool(keepdims)), rtol=1e-5)


def test_integers_are_multiplied_exactly() -> None:
    x = np.array([[[2**31 + 1, 3, -5]]], np.int64)
    fitted = fit(model("y = ReduceProd <axes = [2], keepdims = 0> (x)", 13, "int64", "1,1,3", 2), 13)
    assert run(fitted, x).tolist() == [[-15 * (2**31 + 1)]]


def test_slices_stand_in_where_split_is_absent() -> None:
    fitted = fit(model("y = ReduceProd <axes = [1]> (x)", 13), 13, NO_SPLIT)
    assert operators(fitted) == {"Slice", "Mul"}


def test_float16_is_multiplied_in_float() -> None:
    """The exact product of 30 factors near one, rounded once; rounding each time is off by more."""
    x = np.random.default_rng(1).uniform(0.9, 1.1, (1, 1, 30)).astype(np.float16)
    fitted = fit(model("y = ReduceProd <axes = [2], keepdims = 0> (x)", 13, "float16", "1,1,30", 2), 13)
    exact = np.float16(x.astype(np.float64).prod())
    np.testing.assert_allclose(run(fitted, x), [[exact]], rtol=5e-4)


@pytest.mark.parametrize(
    ("shape", "reason"),
    [("2,n,4", "size is known at run time only"), ("2,65,4", "65 values along axis 1")],
)
def test_what_cannot_be_written_out_is_refused(shape: str, reason: str) -> None:
    with pytest.raises(ConversionError, match=reason):
        fit(model("y = ReduceProd <axes = [1]> (x)", 13, shape=shape), 13)


def test_unsigned_integers_of_32_bits_are_computed_where_they_are_held() -> None:
    source = model("y = ReduceMax <axes = [1], keepdims = 0> (x)", 13, "uint32", rank_out=2)
    absent = runtime("operators = ['ReduceMax']\nis = 'absent'\nwhen = { element_types = ['uint32'] }")
    fitted = legalize(source, Target(13, runtime=absent)).model
    x = np.random.default_rng(2).integers(0, 2**32, (2, 3, 4), np.uint32)
    np.testing.assert_array_equal(run(fitted, x), x.max(axis=1))
