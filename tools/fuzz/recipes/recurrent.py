"""Recurrent layers."""

from __future__ import annotations

import numpy as np

from tools.fuzz.drawing import Draft
from tools.fuzz.recipes.registry import recipe

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_ACTIVATIONS = {"RNN": 1, "GRU": 2, "LSTM": 3}


@recipe("RNN", "GRU", "LSTM")
def recurrent(draft: Draft) -> None:
    """Draw every optional input and output, direction, layout and activation."""
    name = draft.schema.name
    draft.edge = False
    batch, length, size, hidden = draft.integer(1, 2), draft.integer(1, 3), draft.integer(1, 3), draft.integer(1, 3)
    direction = draft.maybe("direction", ("forward", "reverse", "bidirectional"), "forward")
    directions = 2 if direction == "bidirectional" else 1
    layout = draft.maybe("layout", (0, 1), 0) if "layout" in draft.schema.attributes else 0
    gates = _GATES[name] * hidden
    draft.tensor(0, (batch, length, size) if layout else (length, batch, size))
    draft.tensor(1, (directions, gates, size))
    draft.tensor(2, (directions, gates, hidden))
    draft.attributes["hidden_size"] = hidden
    if draft.flip():
        draft.tensor(3, (directions, 2 * gates))
    if draft.flip(0.3):
        draft.give(4, np.asarray([draft.integer(1, length) for _ in range(batch)], np.int32))
    state = (batch, directions, hidden) if layout else (directions, batch, hidden)
    if draft.flip():
        draft.tensor(5, state)
    if name == "LSTM":
        if draft.flip():
            draft.tensor(6, state)
        if draft.flip(0.3):
            draft.tensor(7, (directions, 3 * hidden))
    if draft.flip(0.3):
        kinds = [draft.pick(("Tanh", "Sigmoid", "Relu", "Softsign")) for _ in range(_ACTIVATIONS[name] * directions)]
        draft.attributes["activations"] = kinds
    if draft.flip(0.2):
        draft.attributes["clip"] = 2.0
    if name == "GRU" and "linear_before_reset" in draft.schema.attributes and draft.flip():
        draft.attributes["linear_before_reset"] = draft.integer(0, 1)
    draft.attributes.pop("output_sequence", None)
    if "output_sequence" in draft.schema.attributes:
        draft.attributes["output_sequence"] = 1
    draft.outputs = 3 if name == "LSTM" else 2
