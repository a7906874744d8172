"""Equivalent ways to write GRU, LSTM and RNN, for runtimes that get some of their outputs wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from reducelower.adapters.builder import Writer
from reducelower.runtimes.remedy import Remedy, Written

__all__ = ["RECURRENCES"]

_LENGTHS = 4
"""The input with the length of each sequence."""


def _last_of_steps(op: Writer) -> Written | None:
    """Take the output of the last step from the outputs of all steps."""
    is_plain = op.attribute("direction", "forward") == "forward" and not op.attribute("layout", 0)
    has_lengths = any(op.node.input[_LENGTHS : _LENGTHS + 1])
    if not is_plain or has_lengths or op.node.output[0] or not any(op.node.output[1:2]):
        return None
    shape = op.shape(0)
    steps = op.add(op.node.op_type, *op.node.input, tail="steps", copied=op.node.attribute)
    op.nodes[-1].output.extend(["", *op.node.output[2:]] if len(op.node.output) > 2 else [])
    last = op.scope.add_constant(np.array(shape[0] - 1 if shape and shape[0] else -1, np.int64), "last")
    return op.yields("Gather", steps, last, output=1, axis=0), op.scope.target_opset


def _name_outputs(op: Writer) -> Written | None:
    """Give the last states names although nothing reads them."""
    tails = ("last", "cell") if op.node.op_type == "LSTM" else ("last",)
    names = [*op.node.output, *[""] * len(tails)][1 : 1 + len(tails)]
    if all(names) or not op.node.output[0]:
        return None
    op.yields(op.node.op_type, *op.node.input, copied=op.node.attribute)
    op.nodes[-1].output.extend(name or op.fresh(tail) for name, tail in zip(names, tails, strict=True))
    return op.nodes, op.scope.target_opset


RECURRENCES: Mapping[str, Sequence[Remedy]] = {
    op: (
        Remedy("the last of its steps", _last_of_steps),
        Remedy("its last states named", _name_outputs),
    )
    for op in ("GRU", "LSTM", "RNN")
}
"""By operator, in the order in which they are tried."""
