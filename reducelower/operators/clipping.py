"""Clip where its bounds are attributes (before opset 11) and where it takes floats only (before opset 12).

Source: https://onnx.ai/onnx/operators/onnx__Clip.html (6, 11, 12, 13).
"""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from reducelower.crossings import Outcome, lowers
from reducelower.scope import Scope
from reducelower.writing import Writer

__all__: list[str] = []


def _holds(value: np.ndarray) -> bool:
    """Whether an attribute of type float holds the bound exactly."""
    number = value.reshape(-1)[0].item()
    return bool(float(np.float32(number)) == number or number != number)


@lowers("Clip", 11)
def _lower_bounds(node: NodeProto, scope: Scope) -> Outcome:
    """Bounds that an attribute of type float cannot say become the larger of two and the smaller of two.

    So do constant ones where min lies above max, which versions before 11 refuse and later ones answer with max.
    """
    body = Writer(node, scope)
    names = [body.input(1), body.input(2)]
    values = [scope.constant(name) if name else None for name in names]
    known = all(value is not None for name, value in zip(names, values, strict=True) if name)
    if known and all(_holds(value) for value in values if value is not None):
        low, high = values
        if low is None or high is None or low.reshape(-1)[0] <= high.reshape(-1)[0]:
            return False
    steps = [(op_type, name) for op_type, name in zip(("Max", "Min"), names, strict=True) if name]
    data = node.input[0]
    for op_type, name in steps[:-1]:
        data = body.add(op_type, data, name)
    return body.yields(steps[-1][0], data, steps[-1][1])
