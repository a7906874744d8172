"""LSTM, GRU and RNN across their versions.

Source: the page of LSTM (1, 7, 14), with the pages of GRU and RNN.
"""

from __future__ import annotations

from reducelower.adapters.builder import Writer
from reducelower.adapters.registry import Outcome, lowers, raises

_BATCH_AND_NEXT = [1, 0, 2]
_INPUTS = (0, 5, 6)  # X, initial_h and initial_c; the other inputs have no batch.


def _lower_layout(op: Writer) -> Outcome:
    """layout=1 puts the batch first in data, states and results."""
    if not op.attribute("layout", 0):
        return None
    inputs = list(op.node.input)
    for index in _INPUTS:
        if op.input(index):
            inputs[index] = op.add("Transpose", inputs[index], tail="sequence_first", perm=_BATCH_AND_NEXT)
    tails = [tail if op.wants(index) else "" for index, tail in enumerate(("y", "y_h", "y_c")[: len(op.node.output)])]
    op.drop("layout")
    results = op.add_many(op.node.op_type, inputs, tails, copied=op.node.attribute)
    for index, result in enumerate(results):
        if result:
            # Y is (sequence, directions, batch, hidden); the states are (directions, batch, hidden).
            op.yields("Transpose", result, output=index, perm=[2, 0, 1, 3] if index == 0 else _BATCH_AND_NEXT)
    return op.nodes


def _lower_output_sequence(op: Writer) -> None:
    """Before 7 an attribute asked for the sequence of results."""
    if op.node.output and op.node.output[0]:
        op.set("output_sequence", 1)


def _raise_output_sequence(op: Writer) -> None:
    op.drop("output_sequence")


for _op_type in ("LSTM", "GRU", "RNN"):
    lowers(_op_type, 14)(_lower_layout)
    lowers(_op_type, 7)(_lower_output_sequence)
    raises(_op_type, 7)(_raise_output_sequence)


@lowers("GRU", 3)
@raises("GRU", 3)
def _name_direction(op: Writer) -> None:
    """The schema of the first version misspells its default, forward."""
    if op.attribute("direction", "foward") == "foward":
        op.set("direction", "forward")
