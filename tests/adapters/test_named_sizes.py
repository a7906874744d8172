"""What is decided by the names of sizes rather than asked when the model runs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx
import pytest
from onnx import ModelProto, parser

import reducelower
from tests.adapters.models import floats, run


class Case(NamedTuple):
    """Nodes of an opset version, and the operators that are left of them at an older one."""

    opset: int
    target: int
    inputs: str
    nodes: str
    outputs: str
    expected: str
    feeds: dict[str, np.ndarray]
    constants: str = ""


CASES = {
    "parts of an even size are equal": Case(
        18,
        13,
        "float[n,3] x",
        "d = Concat<axis = 0>(x, x) y, z = Split<axis = 0, num_outputs = 2>(d)",
        "float[n,3] y, float[n,3] z",
        "Concat Split",
        {"x": floats(3, 3)},
    ),
    "multiples of sizes are scales": Case(
        13,
        10,
        "float[1,2,n,m] x",
        'h = Shape(x) t = Mul(h, twice) y = Resize<coordinate_transformation_mode = "asymmetric", '
        'nearest_mode = "floor">(x, , , t)',
        "float[1,2,a,b] y",
        "Resize",
        {"x": floats(1, 2, 3, 4)},
        "int64[4] twice = {1, 1, 2, 3}",
    ),
    "as many axes as dimensions are all of them": Case(
        18,
        13,
        "float[n,m] x, int64[2] a",
        "y = ReduceMax<keepdims = 0>(x, a)",
        "float y",
        "ReduceMax",
        {"x": floats(2, 3), "a": np.array([-1, 0])},
    ),
    "elements that indices name in full are gathered whether there are any or not": Case(
        12,
        10,
        "float[n,m] x, int64[j,2] i",
        "y = GatherND(x, i)",
        "float[j] y",
        "",
        {"x": floats(2, 3), "i": np.array([[1, 2], [0, 0]])},
    ),
    "sizes of data known to have elements are not asked": Case(
        11,
        10,
        "float[n,m] x, int64[j,2] i, float[j] u",
        "k = Concat<axis = 0>(x, one) w = Concat<axis = 1>(k, more) y = ScatterND(w, i, u)",
        "float[a,b] y",
        "Concat Concat",
        {"x": floats(2, 2), "i": np.array([[1, 2]]), "u": np.float32([9])},
        "float[1,2] one = {5, 6}, float[3,1] more = {7, 8, 9}",
    ),
}


def model(case: Case) -> ModelProto:
    return parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {case.opset}]> g ({case.inputs}) => ({case.outputs}) '
        f"<{case.constants}> {{ {case.nodes} }}"
    )


@pytest.mark.parametrize("name", CASES)
def test_names_decide(name: str) -> None:
    case = CASES[name]
    source = model(case)
    lowered = reducelower.convert_version(source, case.target)
    onnx.checker.check_model(lowered, full_check=True)
    operators = [node.op_type for node in lowered.graph.node]
    assert operators[: len(case.expected.split())] == case.expected.split()
    assert "If" not in operators
    for found, expected in zip(run(lowered, case.feeds), run(source, case.feeds), strict=True):
        np.testing.assert_array_equal(found, expected)
