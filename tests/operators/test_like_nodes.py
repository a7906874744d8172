"""Nodes that look alike and differ in what is known about them are each rewritten by their own lights."""

from __future__ import annotations

import numpy as np
from onnx import helper

from tests.operators.models import assert_same, floats, int64s, model


def test_slices_of_other_bounds_and_sizes() -> None:
    feeds = {"a": floats(4, 5), "b": floats(6, 5)}
    constants = {
        "s": int64s(-1), "t": int64s(-2), "end": int64s(-(2**63)), "axis": int64s(0), "back": int64s(-1)
    }  # fmt: skip
    nodes = [
        helper.make_node("Slice", ["a", "s", "end", "axis", "back"], ["c"]),
        helper.make_node("Slice", ["a", "t", "end", "axis", "back"], ["d"]),
        helper.make_node("Slice", ["b", "s", "end", "axis", "back"], ["e"]),
    ]
    made = model(nodes, feeds, 13, outputs=["c", "d", "e"], constants=constants)
    a, b = feeds.values()
    assert_same(made, feeds, 9, a[::-1], a[-2::-1], b[::-1])


def test_softmax_of_other_ranks() -> None:
    feeds = {"a": floats(2, 3), "b": floats(2, 3, 4), "c": floats(2, 3, 4, 5)}
    nodes = [helper.make_node("Softmax", [name], [f"{name}_y"], axis=1) for name in feeds]
    made = model(nodes, feeds, 13, outputs=[f"{name}_y" for name in feeds])
    assert_same(made, feeds, 9)


def test_clips_of_other_bounds_and_types() -> None:
    feeds = {"a": floats(9) * 9, "b": (floats(9) * 9).astype(np.int32)}
    constants = {"one": np.float32(1), "two": np.float32(2), "int_one": np.int32(1), "int_two": np.int32(2)}
    pairs = [("a", "one"), ("a", "two"), ("b", "int_one"), ("b", "int_two")]
    nodes = [helper.make_node("Clip", [data, bound], [f"{data}_{bound}"]) for data, bound in pairs]
    made = model(nodes, feeds, 13, outputs=[node.output[0] for node in nodes], constants=constants)
    assert_same(made, feeds, 9, *(np.maximum(feeds[data], constants[bound]) for data, bound in pairs))


def test_gathers_of_other_sizes() -> None:
    feeds = {"a": floats(4, 5), "b": floats(6, 7)}
    nodes = [helper.make_node("Gather", [name, "last"], [f"{name}_y"], axis=1) for name in feeds]
    made = model(nodes, feeds, 13, outputs=["a_y", "b_y"], constants={"last": int64s(-1)})
    assert_same(made, feeds, 9, *(value[:, -1:] for value in feeds.values()))
    made = model(nodes, feeds, 13, outputs=["a_y", "b_y"], constants={"last": int64s(-1)}, ranked=feeds)
    assert_same(made, feeds, 9, *(value[:, -1:] for value in feeds.values()))


def test_powers_of_other_types() -> None:
    feeds = {"a": floats(4), "b": np.arange(4, dtype=np.int32), "c": np.arange(4.0)}
    nodes = [helper.make_node("Pow", [name, "two"], [f"{name}_y"]) for name in feeds]
    made = model(nodes, feeds, 13, outputs=[node.output[0] for node in nodes], constants={"two": np.int64(2)})
    assert_same(made, feeds, 9, *(value**2 for value in feeds.values()))


def test_splits_of_other_sizes() -> None:
    feeds = {"a": floats(4), "b": floats(5)}
    nodes = [
        helper.make_node("Split", [name], [f"{name}_{part}" for part in range(2)], num_outputs=2) for name in feeds
    ]
    made = model(nodes, feeds, 18, outputs=[output for node in nodes for output in node.output])
    a, b = feeds.values()
    assert_same(made, feeds, 11, a[:2], a[2:], b[:3], b[3:])
