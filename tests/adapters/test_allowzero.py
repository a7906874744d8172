"""What a Reshape with allowzero becomes below opset 14, where sizes have names; also where sizes are zero."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
import onnx
import pytest
from onnx import ModelProto, parser

import reducelower
from tests.adapters.models import run


class Case(NamedTuple):
    """A model around a Reshape, and the operators that are left of it below opset 14."""

    inputs: str
    nodes: str
    expected: str
    output: str = "float[o0,o1,o2]"
    constants: str = ""
    value_info: str = ""


SIZES = "n = Shape<start = 0, end = 1>(x) m = Shape<start = 1, end = 2>(x)"

CASES = {
    "sizes of the data in their places are copied": Case(
        "float[n,m,8] x", f"{SIZES} t = Concat<axis = 0>(n, m, two, four)", "Reshape", "float[o0,o1,o2,o3]"
    ),
    "the last size is the product of what is left": Case(
        "float[n,m,8] x", f"{SIZES} t = Concat<axis = 0>(n, m, two, minus)", "Reshape", "float[o0,o1,o2,o3]"
    ),
    "a product of sizes that no other may make zero is worked out": Case(
        "float[n,m,8] x", f"{SIZES} p = Mul(n, m) t = Concat<axis = 0>(p, eight)", "Reshape", "float[o0,o1]"
    ),
    "a product beside a copy, which may be zero, stays computed": Case(
        "float[n,m,8] x",
        f"{SIZES} p = Mul(m, eight) t = Concat<axis = 0>(n, p)",
        "Shape Slice Slice Mul Concat Reshape",
        "float[o0,o1]",
    ),
    "a -1 of its own says that no size is zero": Case(
        "float[n,m,8] x, float[k] w",
        "k = Shape(w) t = Concat<axis = 0>(minus, k)",
        "Shape Concat Reshape",
        "float[o0,o1]",
    ),
    "sizes on both sides of a -1 of its own are aligned by an axis of the data": Case(
        "float[n,2,m] x",
        "n = Shape<start = 0, end = 1>(x) m = Shape<start = 2, end = 3>(x) t = Concat<axis = 0>(one, n, minus, m)",
        "Unsqueeze Reshape",
        "float[o0,o1,o2,o3]",
    ),
    "sizes behind one that leads are aligned by a leading axis of the data": Case(
        "float[n,m] x",
        f"{SIZES} t = Concat<axis = 0>(one, n, m)",
        "Unsqueeze Reshape",
    ),
    "sizes behind one that is inserted are aligned by an axis of the data": Case(
        "float[n,m,8] x",
        f"{SIZES} t = Concat<axis = 0>(n, two, m, four)",
        "Unsqueeze Reshape",
        "float[o0,o1,o2,o3]",
    ),
    "a one that the data has first is squeezed out of the result": Case(
        "float[1,n,m] x",
        "n = Shape<start = 1, end = 2>(x) m = Shape<start = 2, end = 3>(x) t = Concat<axis = 0>(n, m)",
        "Reshape Squeeze",
        "float[o0,o1]",
    ),
    "a size that a Gather of an element shows not to be zero is worked out": Case(
        "float[n,m,8] x",
        f"{SIZES} p = Mul(n, m) r = Concat<axis = 0>(p, eight) f = Reshape<allowzero = 1>(x, r) "
        "t = Concat<axis = 0>(n, m, eight) g = Gather<axis = 1>(x, zero) w = Unsqueeze(g, axes)",
        "Shape Slice Slice Reshape Concat Gather Unsqueeze Reshape Add",
    ),
    "a product may be zero for each of its sizes": Case(
        "float[n,m,8] x",
        f"{SIZES} p = Mul(n, m) r = Concat<axis = 0>(p, eight) f = Reshape<allowzero = 1>(x, r) "
        "t = Concat<axis = 0>(n, m, eight)",
        "Shape Slice Slice Reshape Concat ReduceProd Equal If",
    ),
    "sizes that nothing says take another branch": Case(
        "float[n,m] x, int64[2] s", "t = Identity(s)", "Identity ReduceProd Equal If", "float[o0,o1]"
    ),
    "names that the model states count where nodes leave it open": Case(
        "float[n,m,8] x, int64[3] s", "t = Identity(s)", "Reshape", "float[n,m,8]"
    ),
    "quotients of sizes are exact": Case(
        "float[n,m,8] x",
        f"{SIZES} e = Mul(m, eight) q = Div(e, eight) t = Concat<axis = 0>(n, q, eight)",
        "Reshape",
    ),
    "both branches of an If agree": Case(
        "float[n,m,8] x, bool c",
        "z = If (c) <then_branch = g () => (u) { u = Relu(x) }, else_branch = h () => (v) { v = Neg(x) }> "
        "n = Shape<start = 0, end = 1>(z) t = Concat<axis = 0>(n, minus, eight)",
        "Reshape",
    ),
}


CONSTANTS = (
    "int64[1] one = {1}, int64[1] two = {2}, int64[1] four = {4}, int64[1] eight = {8}, int64[1] minus = {-1}, "
    "int64 zero = {0}, int64[1] axes = {1}"
)


def made(case: Case) -> ModelProto:
    """The model of a case."""
    nodes, data = case.nodes, "f" if " f = " in case.nodes else "x"
    last = f"{nodes} y = Reshape<allowzero = 1>({data}, t)"
    if " w = " in nodes:
        last = f"{nodes} h = Reshape<allowzero = 1>({data}, t) y = Add(h, w)"
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 18]> g ({case.inputs}) => ({case.output} y) <{CONSTANTS}> {{ {last} }}'
    )
    onnx.checker.check_model(model, full_check=True)
    return model


@pytest.mark.parametrize("name", CASES)
def test_what_a_reshape_becomes(name: str) -> None:
    lowered = reducelower.convert_version(made(CASES[name]), 13)
    onnx.checker.check_model(lowered, full_check=True)
    assert [node.op_type for node in lowered.graph.node] == CASES[name].expected.split()


@pytest.mark.parametrize("name", CASES)
def test_what_ran_with_sizes_of_zero_runs_the_same(name: str) -> None:
    source = made(CASES[name])
    lowered = reducelower.convert_version(source, 13)
    for sizes in product((0, 1, 2, 3), repeat=2):
        feeds = fed(source, dict(zip("nm", sizes, strict=True)))
        try:
            (expected,) = run(source, feeds)
        except Exception:  # it has no result
            continue
        (found,) = run(lowered, feeds)
        # The page gives no meaning to a zero beside -1; onnxruntime runs it.
        if 0 not in sizes or "minus" not in CASES[name].nodes:
            np.testing.assert_array_equal(found, expected)


def fed(model: ModelProto, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Inputs of these sizes; a shape is that of the data, and a weight has four elements."""
    feeds: dict[str, np.ndarray] = {}
    for value in model.graph.input:
        shape = [sizes.get(dim.dim_param, dim.dim_value or 4) for dim in value.type.tensor_type.shape.dim]
        if value.name == "s":
            feeds["s"] = np.array(feeds["x"].shape, np.int64)
        elif value.name == "c":
            feeds["c"] = np.array(True)
        else:
            feeds[value.name] = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return feeds


def test_a_stale_type_that_the_model_states_is_not_taken() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]> g (float[n,8] x) => (float[a,b] y) <float[n,9] r> {
        r = Relu(x) s = Shape(r) y = Reshape<allowzero = 1>(x, s) }"""
    lowered = reducelower.convert_version(parser.parse_model(text), 13)
    onnx.checker.check_model(lowered, full_check=True)
    x = np.ones((3, 8), np.float32)
    np.testing.assert_array_equal(run(lowered, {"x": x})[0], x)
