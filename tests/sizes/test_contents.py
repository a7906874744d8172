"""What operators compute of constants is what numpy and the operators' pages say, or it is left to the runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from reducelower.types.contents import evaluated

INT64, FLOAT = np.int64, np.float32


def computed(op_type: str, *inputs: Any, **attributes: Any) -> Any:
    names = [f"i{at}" for at in range(len(inputs))]
    return evaluated(helper.make_node(op_type, names, ["y"], **attributes), [*inputs])


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "expected"),
    [
        # Integers are divided towards zero.
        ("Div", ([7, -7, 7, -7], [2, 2, -2, -2]), {}, [3, -3, -3, 3]),
        ("Mod", ([7, -7, 7, -7], [3, 3, -3, -3]), {}, [1, 2, -2, -1]),
        ("Mod", ([7, -7, 7, -7], [3, 3, -3, -3]), {"fmod": 1}, [1, -1, 1, -1]),
        # https://onnx.ai/onnx/operators/onnx__Slice.html: a start before the first element is clamped.
        ("Slice", ([1, 2, 3], [-1], [-9], [0], [-1]), {}, [3, 2, 1]),
        ("Slice", ([1, 2, 3],), {"starts": [1], "ends": [9]}, [2, 3]),
        ("Squeeze", ([[1]], [0]), {}, [1]),
        ("Unsqueeze", ([1],), {"axes": [-1, 0]}, [[[1]]]),
        ("Reshape", ([[1, 2], [3, 4]], [0, 2, -1]), {}, [[[1], [2]], [[3], [4]]]),
        ("Gather", ([1, 2, 3], [[-1, 0]]), {}, [[3, 1]]),
        ("ReduceSum", ([[1, 2], [3, 4]], [0]), {"keepdims": 0}, [4, 6]),
        ("ReduceProd", ([2, 3],), {}, [6]),
        ("ReduceMax", ([[1, 2], [3, 4]],), {"noop_with_empty_axes": 1}, [[1, 2], [3, 4]]),
        ("Range", (1, 8, 3), {}, [1, 4, 7]),
        ("Expand", ([[1], [2]], [2, 1, 2]), {}, [[[1, 1], [2, 2]], [[1, 1], [2, 2]]]),
        ("ScatterElements", ([1, 2, 3], [2], [9]), {}, [1, 2, 9]),
        ("Compress", ([1, 2, 3], [0, 1, 1]), {"axis": 0}, [2, 3]),
        ("Concat", ([1], [2, 3]), {"axis": 0}, [1, 2, 3]),
    ],
)
def test_integers(op_type: str, inputs: Any, attributes: dict[str, Any], expected: Any) -> None:
    found = computed(op_type, *(np.array(each, INT64) for each in inputs), **attributes)
    np.testing.assert_array_equal(found, np.array(expected, INT64), strict=True)


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes"),
    [
        ("Div", (np.array([1]), np.array([0])), {}),
        ("Mod", (np.array([1]), np.array([0])), {}),
        ("Add", (np.array([1, 2]), np.array([1])), {"broadcast": 1}),
        ("Cast", (np.array([np.nan], FLOAT),), {"to": TensorProto.INT64}),
        ("Cast", (np.array([300.0], FLOAT),), {"to": TensorProto.UINT8}),
        ("Cast", (np.array([1.5], FLOAT),), {"to": TensorProto.STRING}),
        ("Cast", (np.array(["1"], object),), {"to": TensorProto.INT64}),
        ("Equal", (np.array(["a"], object), np.array(["a"], object)), {}),
        ("ScatterElements", (np.array([1]), np.array([0]), np.array([2])), {"reduction": "add"}),
        ("Gather", (np.array([1]), np.array([7])), {}),
        ("Mul", (np.ones((40_000, 1)), np.ones((1, 40_000))), {}),
        ("Gather", (np.ones((40, 1000)), np.zeros(40_000, INT64)), {}),
        ("ConstantOfShape", (np.array([2**40]),), {}),
        ("Exp", (np.array([1.0]),), {}),
    ],
)
def test_what_runtimes_do_differently_or_what_is_large_is_unknown(
    op_type: str, inputs: Any, attributes: dict[str, Any]
) -> None:
    assert computed(op_type, *inputs, **attributes) is None
