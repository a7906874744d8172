"""Compare onnxruntime's kernels with the bodies of the rule book at the ends of the number range.

It prints the table of the page on numerics. The exact values come from 60-digit decimals.
"""

from __future__ import annotations

from decimal import Decimal, getcontext

import numpy as np
import onnxruntime
from onnx import ModelProto, helper

import reducelower

getcontext().prec = 60

CASES = (
    ("ReduceLogSumExp", np.float32, (1000.0, 999.0)),
    ("ReduceLogSumExp", np.float32, (-1000.0, -1001.0)),
    ("ReduceLogSumExp", np.float64, (1000.0, 999.0)),
    ("ReduceLogSumExp", np.float16, (60000.0, 60000.0)),
    ("ReduceL2", np.float32, (1e30, 1e30)),
    ("ReduceL2", np.float32, (1e-30, 1e-30)),
    ("ReduceL2", np.float32, (1e-44, 1e-44)),
    ("ReduceL2", np.float64, (1.1, 2.2)),
    ("ReduceL2", np.float16, (40000.0, 40000.0)),
    ("ReduceLogSum", np.float32, (3e38, 3e38)),
    ("ReduceLogSum", np.float16, (60000.0, 60000.0)),
)


def exact(op_type: str, values: np.ndarray) -> Decimal:
    """The result in exact arithmetic."""
    numbers = [Decimal(float(value)) for value in values]
    if op_type == "ReduceL2":
        return sum(number * number for number in numbers).sqrt()
    if op_type == "ReduceLogSum":
        return sum(numbers).ln()
    peak = max(numbers)
    return peak + sum((number - peak).exp() for number in numbers).ln()


def model_of(op_type: str, dtype: type) -> ModelProto:
    element_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        [helper.make_node(op_type, ["x"], ["y"], keepdims=0)],
        "g",
        [helper.make_tensor_value_info("x", element_type, [2])],
        [helper.make_tensor_value_info("y", element_type, [])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def run(model: ModelProto, values: np.ndarray) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": values})[0])


def shown(result: np.ndarray, answer: Decimal, values: np.ndarray) -> str:
    """The result, and its error in ULP of the larger of the exact result and the largest input."""
    if not np.isfinite(result):
        return f"**{float(result)}**"
    dtype = result.dtype
    scale = max(abs(float(answer)), float(np.abs(values).max()))
    ulp = Decimal(float(np.spacing(dtype.type(min(scale, float(np.finfo(dtype).max))))))
    error = abs(Decimal(float(result)) - answer) / ulp
    text = f"{float(result):.9g}"
    return f"{text} ({float(error):.1f} ULP)" if error < 1000 else f"**{text}**"


def main() -> None:
    print("| reduction | exact | onnxruntime's kernel | `spec` | `stable` |")
    print("|---|---|---|---|---|")
    for op_type, dtype, numbers in CASES:
        values = np.array(numbers, dtype)
        answer = exact(op_type, values)
        model = model_of(op_type, dtype)
        results = [
            run(model, values),
            run(reducelower.expand(model, rules="spec"), values),
            run(reducelower.expand(model, rules="stable"), values),
        ]
        name = f"{op_type.removeprefix('Reduce')} {np.dtype(dtype).name} [{', '.join(f'{n:g}' for n in numbers)}]"
        print(f"| {name} | {float(answer):.9g} | " + " | ".join(shown(r, answer, values) for r in results) + " |")


if __name__ == "__main__":
    main()
