"""A rule written as an onnxscript function."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnxscript
from onnxscript import opset18 as op

import reducelower
from reducelower.rulebook import RuleBook

MODELS = Path(__file__).parent / "models"


# A rule is named after the operator that it replaces, and has the operator's inputs and attributes. It is written once,
# for one opset version; the engine converts it to the model's.
@onnxscript.script(onnxscript.values.Opset("softplus", 1), default_opset=op)
def ReduceLogSumExp(data, axes, keepdims: int, noop_with_empty_axes: int):  # noqa: N802 (the operator's name)
    """ReduceLogSumExp(x) = Log(ReduceSum(Exp(x - shift))) + shift, shift = maximum of x, kept finite"""
    maximum = op.ReduceMax(data, axes, keepdims=1, noop_with_empty_axes=noop_with_empty_axes)
    # Infinity minus infinity would be NaN.
    largest = op.Constant(value_float=3.4028234663852886e38)
    shift = op.Max(op.Min(maximum, largest), op.Neg(largest))
    difference = op.Sub(data, shift)
    exponential = op.Exp(difference)
    total = op.ReduceSum(exponential, axes, keepdims=keepdims, noop_with_empty_axes=noop_with_empty_axes)
    log = op.Log(total)
    kept = op.ReduceMax(shift, axes, keepdims=keepdims, noop_with_empty_axes=noop_with_empty_axes)
    return op.Add(log, kept)


def main() -> None:
    model = onnx.load(MODELS / "gaussian_mixture_20.onnx")
    # The largest number is that of float32, so the overload limits the rule to float32.
    rule = ReduceLogSumExp.to_function_proto()
    rule.overload = "float"
    book = RuleBook.from_functions([rule])

    expanded = reducelower.expand(model, rules=book)
    print("expanded:", *(node.op_type for node in expanded.graph.node))
    print(reducelower.verify(model, expanded))


if __name__ == "__main__":
    main()
