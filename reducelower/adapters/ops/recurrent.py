"""LSTM, GRU and RNN across their versions.

Source: https://onnx.ai/onnx/operators/onnx__LSTM.html (1, 7, 14), with the pages of GRU and RNN.
"""

from __future__ import annotations

from onnx import NodeProto

from reducelower.adapters.builder import Writer
from reducelower.adapters.registry import Outcome, lowers, raises
from reducelower.model.attributes import drop_attribute, set_attribute, value_of
from reducelower.scope.scope import Scope

_BATCH_AND_NEXT = [1, 0, 2]
_INPUTS = (0, 5, 6)  # X, initial_h and initial_c; the other inputs have no batch.


def _lower_layout(node: NodeProto, scope: Scope) -> Outcome:
    """layout=1 puts the batch first in data, states and results."""
    if not value_of(node, "layout", 0):
        return None
    body = Writer(node, scope)
    inputs = list(node.input)
    for index in _INPUTS:
        if body.input(index):
            inputs[index] = body.add("Transpose", inputs[index], tail="sequence_first", perm=_BATCH_AND_NEXT)
    tails = [tail if body.wants(index) else "" for index, tail in enumerate(("y", "y_h", "y_c")[: len(node.output)])]
    drop_attribute(node, "layout")
    results = body.add_many(node.op_type, inputs, tails, copied=node.attribute)
    for index, result in enumerate(results):
        if result:
            # Y is (sequence, directions, batch, hidden); the states are (directions, batch, hidden).
            body.yields("Transpose", result, output=index, perm=[2, 0, 1, 3] if index == 0 else _BATCH_AND_NEXT)
    return body.nodes


def _lower_output_sequence(node: NodeProto, scope: Scope) -> Outcome:
    """Before 7 an attribute asked for the sequence of results."""
    if node.output and node.output[0]:
        set_attribute(node, "output_sequence", 1)
    return None


def _raise_output_sequence(node: NodeProto, scope: Scope) -> Outcome:
    drop_attribute(node, "output_sequence")
    return None


for _op_type in ("LSTM", "GRU", "RNN"):
    lowers(_op_type, 14)(_lower_layout)
    lowers(_op_type, 7)(_lower_output_sequence)
    raises(_op_type, 7)(_raise_output_sequence)


@lowers("GRU", 3)
@raises("GRU", 3)
def _name_direction(node: NodeProto, scope: Scope) -> Outcome:
    """The schema of the first version misspells its default, forward."""
    if value_of(node, "direction", "foward") == "foward":
        set_attribute(node, "direction", "forward")
    return None
