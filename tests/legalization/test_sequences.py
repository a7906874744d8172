"""Sequences below opset 11, which has none: what they are made of is read in their place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, checker, parser

import reducelower
from tests.adapters.models import run

X = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
N = np.array(-2)

CASES: dict[str, tuple[str, str, list[Any]]] = {
    "one part of each, of size 1": (
        "float[1,3,2] y, float[3,2] z",
        """s = SplitToSequence(x) y = SequenceAt(s, n)
           t = SplitToSequence<keepdims = 0>(x) z = SequenceAt(t, two)""",
        [X[2:3], X[2]],
    ),
    "parts of sizes that are known": (
        "float[a,3,2] y, float[b,3,2] z, int64 k",
        "s = SplitToSequence<axis = -3>(x, sizes) y = SequenceAt(s, zero) z = SequenceAt(s, m1) k = SequenceLength(s)",
        [X[:1], X[1:], np.array(2)],
    ),
    "how many there are": (
        "int64 y, int64 z",
        "s = SplitToSequence<axis = 1>(x) y = SequenceLength(s) t = SequenceConstruct(x, x) z = SequenceLength(t)",
        [np.array(3), np.array(2)],
    ),
    "put together as it was cut": (
        "float[4,3,2] y, float[4,3,2] z",
        """s = SplitToSequence<axis = 1>(x) y = ConcatFromSequence<axis = 1>(s)
           t = SplitToSequence<axis = 1, keepdims = 0>(x) z = ConcatFromSequence<axis = 1, new_axis = 1>(t)""",
        [X, X],
    ),
    "parts put in, taken out and stacked": (
        "float[4,3,2,3] y, float[8,3,2] z",
        """e = SequenceEmpty() a = Neg(x) b = Abs(x) s1 = SequenceInsert(e, x) s2 = SequenceInsert(s1, a, zero)
           s3 = SequenceInsert(s2, b, m1) s4 = SequenceErase(s3, two) s5 = SequenceErase(s4)
           s6 = SequenceInsert(s5, a) s7 = SequenceInsert(s6, b, zero)
           y = ConcatFromSequence<axis = -1, new_axis = 1>(s7) z = ConcatFromSequence<axis = 0>(s4)""",
        [np.stack([X, -X, -X], -1), np.concatenate([-X, X])],
    ),
    "made and read inside of a branch": (
        "float[3,2] y",
        """c = Less(n, zero)
           y = If(c) <
               then_branch = t () => (float[3,2] p) { s = SplitToSequence<keepdims = 0>(x) p = SequenceAt(s, n) },
               else_branch = e () => (float[3,2] q) { r = SplitToSequence<keepdims = 0>(x) q = SequenceAt(r, n) }
           >""",
        [X[2]],
    ),
    "read inside of a branch": (
        "float[3,2] y",
        """s = SplitToSequence<keepdims = 0>(x) c = Less(n, zero)
           y = If(c) <then_branch = t () => (float[3,2] p) { p = SequenceAt(s, n) },
                      else_branch = e () => (float[3,2] q) { q = SequenceAt(s, zero) }>""",
        [X[2]],
    ),
}  # fmt: skip


def made(outputs: str, text: str, opset: int) -> ModelProto:
    constants = "int64 zero = {0}, int64 two = {2}, int64 m1 = {-1}, int64[2] sizes = {1, 3}"
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : {opset}]>
        g (float[4,3,2] x, int64 n) => ({outputs}) <{constants}> {{ {text} }}"""
    )
    checker.check_model(model, full_check=True)
    return model


@pytest.mark.parametrize("target", [10, 9])
@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize("name", CASES)
def test_what_sequences_are_made_of_is_read_in_their_place(name: str, opset: int, target: int) -> None:
    outputs, text, expected = CASES[name]
    converted = reducelower.convert_version(made(outputs, text, opset), target)
    checker.check_model(converted, full_check=True)
    assert not any("Sequence" in node.op_type for node in converted.graph.node)
    for found, wanted in zip(run(converted, {"x": X, "n": N}), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_another_name_of_a_sequence_is_the_same_sequence() -> None:
    model = made("float[1,3,2] y", "s = SplitToSequence(x) t = Identity(s) y = SequenceAt(t, two)", 14)
    (found,) = run(reducelower.convert_version(model, 9), {"x": X, "n": N})
    np.testing.assert_array_equal(found, X[2:3])


def test_the_plan_tells_of_the_nodes_that_the_model_has() -> None:
    text = "s = SplitToSequence<keepdims = 0>(x) y = SequenceAt(s, two) z = Unsqueeze<axes = [-1]>(y)"
    legal = reducelower.legalize(made("float[3,2,1] z", text, 11), reducelower.Target(opset=9))
    assert [(site.op_type, site.index) for site in legal.plan.sites] == [("Unsqueeze", 2)]
    assert legal.plan.carried == 0
    assert any("taken apart" in note for note in legal.plan.notes)
    (found,) = run(legal.model, {"x": X, "n": N})
    np.testing.assert_array_equal(found, X[2][..., None])


@pytest.mark.parametrize(
    "text",
    [
        "s = SplitToSequence(x, two) y = SequenceAt(s, zero)",
        "a = Neg(x) s = SequenceConstruct(x, a) y = SequenceAt(s, n)",
    ],
)
def test_a_sequence_of_unknown_parts_is_refused(text: str) -> None:
    with pytest.raises(reducelower.ConversionError, match="opset 9 does not have SequenceAt"):
        reducelower.convert_version(made("float[a,b,c] y", text, 11), 9)


def test_a_sequence_that_a_loop_grows_is_refused_where_loops_carry_none() -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 13]> g (float[2,3] x, int64 n) => (float[a,3] y) {
            s0 = SequenceEmpty <dtype: int = 1> () c = Constant <value = bool {1}> ()
            s = Loop (n, c, s0) <body = b (int64 i, bool c0, seq(float[2,3]) s1) => (bool c1, seq(float[2,3]) s2) {
                c1 = Identity (c0) s2 = SequenceInsert (s1, x) }>
            y = ConcatFromSequence <axis: int = 0> (s)
        }"""
    )
    with pytest.raises(reducelower.ConversionError, match=r"Loop does not take seq\(tensor\(float\)\) at opset 12"):
        reducelower.convert_version(model, 12)
