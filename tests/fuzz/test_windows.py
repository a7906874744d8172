"""What the reference evaluator is given for operators that slide a window agrees with onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

from tools.fuzz.comparing import difference
from tools.fuzz.runtimes import run


@pytest.mark.parametrize("op_type", ["Conv", "LpPool", "MaxPool", "AveragePool", "QLinearConv"])
@pytest.mark.parametrize("where", [
    "strides = [2, 1]", "pads = [1, 0, 2, 1], strides = [2, 3]", 'auto_pad = "SAME_UPPER", strides = [2, 2]',
    'auto_pad = "SAME_LOWER"', 'auto_pad = "VALID"', "dilations = [2, 1], pads = [1, 1, 1, 1]",
])  # fmt: skip
def test_it_agrees_with_onnxruntime(op_type: str, where: str) -> None:
    rng = np.random.default_rng(8)
    kind = "uint8" if op_type == "QLinearConv" else "float"
    x, w = rng.integers(0, 9, (2, 4, 6, 7)), rng.integers(0, 5, (6, 2, 3, 2))
    b = rng.integers(-9, 9, 6)
    node = {
        "Conv": f"Conv <group = 2, {where}> (x, w, b)",
        "LpPool": f"LpPool <kernel_shape = [3, 2], p = 3, {where}> (x)",
        "MaxPool": f"MaxPool <kernel_shape = [3, 2], {where}> (x)",
        "AveragePool": f"AveragePool <kernel_shape = [3, 2], count_include_pad = {len(where) % 2}, {where}> (x)",
        "QLinearConv": f"QLinearConv <group = 2, {where}> (x, xs, xz, w, ws, wz, ys, yz, b)",
    }[op_type]
    given = f"{kind}[2, 4, 6, 7] x, {kind}[6, 2, 3, 2] w, {'int32' if kind == 'uint8' else kind}[6] b"
    scales = (
        "<float xs = {0.5}, uint8 xz = {3}, float[6] ws = {1, 2, 0.5, 0.25, 1, 1}, uint8[6] wz = {1, 1, 1, 1, 1, 1}"
    )
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 19]> g ({given}) => ({kind}[a, b, c, d] y) '
        f"{scales}, float ys = {{4}}, uint8 yz = {{7}}> {{y = {node}}}"
    )
    dtype = np.dtype("uint8" if kind == "uint8" else "float32")
    feeds = {"x": x.astype(dtype), "w": w.astype(dtype), "b": b.astype("int32" if kind == "uint8" else dtype)}
    wanted, found = (run(runtime, model, feeds) for runtime in ("onnxruntime", "reference"))
    assert wanted.values is not None, wanted.error
    assert found.values is not None, found.error
    assert not difference(wanted.values[0], found.values[0])
