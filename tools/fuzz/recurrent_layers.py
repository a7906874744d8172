"""RNN, GRU and LSTM in numpy, from the equations on their pages.

The reference evaluator ignores the lengths in sequence_lens, and has no older versions.
Sources: https://onnx.ai/onnx/operators/onnx__RNN.html, onnx__GRU.html and onnx__LSTM.html.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

__all__ = ["gru", "lstm", "rnn"]

_Activation: TypeAlias = Callable[[np.ndarray], np.ndarray]
_States: TypeAlias = tuple[np.ndarray, ...]

_ACTIVATIONS: dict[str, _Activation] = {
    "Tanh": np.tanh,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Relu": lambda x: np.maximum(x, 0),
    "Softsign": lambda x: x / (1 + np.abs(x)),
}


def rnn(x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, initial: Any = None, **how: Any) -> _States:
    """Y and Y_h of RNN."""

    def step(direction: int, now: np.ndarray, states: _States, f: Sequence[_Activation]) -> _States:
        from_data, from_state = _products(direction, now, states[0], w, r, b, 1)
        return (f[0](from_data + from_state),)

    return _layer(step, x, r, lengths, (initial,), ["Tanh"], how)


def gru(x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, initial: Any = None, **how: Any) -> _States:
    """Y and Y_h of GRU; its gates have the order update, reset, hidden."""

    def step(direction: int, now: np.ndarray, states: _States, f: Sequence[_Activation]) -> _States:
        before = states[0]
        hidden = before.shape[-1]
        from_data, from_state = _products(direction, now, before, w, r, b, 3)
        update, reset = np.split(f[0]((from_data + from_state)[:, : 2 * hidden]), 2, axis=-1)
        if how.get("linear_before_reset"):
            recurrent = reset * from_state[:, 2 * hidden :]
        else:
            bias = 0 if b is None else b[direction][5 * hidden :]
            recurrent = (reset * before) @ r[direction][2 * hidden :].T + bias
        return ((1 - update) * f[1](from_data[:, 2 * hidden :] + recurrent) + update * before,)

    return _layer(step, x, r, lengths, (initial,), ["Sigmoid", "Tanh"], how)


def lstm(
    x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, initial: Any = None, cell: Any = None,
    peepholes: Any = None, **how: Any,
) -> _States:  # fmt: skip
    """Y, Y_h and Y_c of LSTM; its gates have the order input, output, forget, cell."""

    def step(direction: int, now: np.ndarray, states: _States, f: Sequence[_Activation]) -> _States:
        before, cell_before = states
        from_data, from_state = _products(direction, now, before, w, r, b, 4)
        into, out, kept, new = np.split(from_data + from_state, 4, axis=-1)
        looks = (0, 0, 0) if peepholes is None else np.split(peepholes[direction], 3)
        input_gate = f[0](into + looks[0] * cell_before)
        left = 1 - input_gate if how.get("input_forget") else f[0](kept + looks[2] * cell_before)
        cell_now = left * cell_before + input_gate * f[1](new)
        return f[0](out + looks[1] * cell_now) * f[2](cell_now), cell_now

    return _layer(step, x, r, lengths, (initial, cell), ["Sigmoid", "Tanh", "Tanh"], how)


def _products(
    direction: int, now: np.ndarray, before: np.ndarray, w: Any, r: Any, b: Any, gates: int
) -> tuple[np.ndarray, np.ndarray]:
    """The inputs of every gate: from the step's data, the state before it, and the biases."""
    of_data, of_state = (0, 0) if b is None else np.split(b[direction], 2)
    assert w.shape[1] == gates * before.shape[-1]
    return now @ w[direction].T + of_data, before @ r[direction].T + of_state


def _layer(
    step: Callable[[int, np.ndarray, _States, Sequence[_Activation]], _States],
    x: Any,
    r: Any,
    lengths: Any,
    initial: Sequence[Any],
    defaults: list[str],
    how: dict[str, Any],
) -> _States:
    """The sequence of results and the last states; after the end of a shorter sequence there are zeros."""
    layout = how.get("layout") or 0
    data = x.astype(np.float64)
    data = data.swapaxes(0, 1) if layout else data
    length, batch = data.shape[:2]
    directions, hidden = r.shape[0], r.shape[-1]
    ends = np.full(batch, length) if lengths is None else lengths
    names = [name if isinstance(name, str) else name.decode() for name in how.get("activations") or []]
    clip = how.get("clip") or np.inf
    chosen = [_clipped(_ACTIVATIONS[name], clip) for name in names or defaults * directions]
    sequence = np.zeros((length, directions, batch, hidden))
    lasts = [np.zeros((directions, batch, hidden)) for _ in initial]
    for direction in range(directions):
        f = chosen[direction * len(defaults) :][: len(defaults)]
        backward = direction == 1 or how.get("direction") == "reverse"
        for one in range(batch):
            states = tuple(
                np.zeros((1, hidden)) if given is None
                else (given.swapaxes(0, 1) if layout else given)[direction, one : one + 1].astype(np.float64)
                for given in initial
            )  # fmt: skip
            places = range(int(ends[one]))
            for place in reversed(places) if backward else places:
                states = step(direction, data[place, one : one + 1], states, f)
                sequence[place, direction, one] = states[0]
            for last, state in zip(lasts, states, strict=True):
                last[direction, one] = state
    if layout:
        sequence, lasts = sequence.transpose(2, 0, 1, 3), [last.swapaxes(0, 1) for last in lasts]
    return tuple(one.astype(x.dtype) for one in (sequence, *lasts))


def _clipped(activation: _Activation, clip: float) -> _Activation:
    return lambda x: activation(np.clip(x, -clip, clip))
