"""Sequences that Loops and Ifs hand on, where the target has none that do: they are held as tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import checker, parser

import reducelower
from reducelower.errors import ConversionError
from tests.adapters.models import run

X = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
TARGETS = (12, 11, 10, 9)


def _yields(text: str, feeds: dict[str, Any], target: int, source: int = 13) -> list[Any]:
    model = parser.parse_model(f'<ir_version: 7, opset_import: ["" : {source}]> {text}')
    checker.check_model(model, full_check=True)
    converted = reducelower.convert_version(model, target)
    checker.check_model(converted, full_check=True)
    return run(converted, feeds)


def _loop(carried: str, body: str) -> str:
    """A Loop of n iterations over a sequence, with the number of each as `i` and as a vector of one."""
    return f"""t = Constant <value = bool {{1}}> () one = Constant <value = int64[1] {{1}}> ()
        zero = Constant <value = int64[1] {{0}}> ()
        q = Loop (n, t, {carried}) <body = b (int64 i, bool c, seq(float) s) => (bool d, seq(float) z) {{
            place = Reshape (i, one) {body} d = Identity (c)
        }}>"""


@pytest.mark.parametrize("target", TARGETS)
def test_what_a_loop_appends_is_stacked_joined_chosen_and_counted(target: int) -> None:
    text = f"""g (float[a,3] x, int64 n, int64 k) => (float[p,w,3] st, float[r,u] y, float[e,f] at, int64 len) {{
        s0 = SequenceEmpty ()
        {_loop("s0", "f = Cast <to = 1> (i) v = Mul (x, f) z = SequenceInsert (s, v)")}
        st = ConcatFromSequence <axis = 1, new_axis = 1> (q) y = ConcatFromSequence <axis = -1> (q)
        at = SequenceAt (q, k) len = SequenceLength (q)
    }}"""
    parts = [X * i for i in range(4)]
    for place in (-1, 2):
        stacked, joined, at, length = _yields(text, {"x": X, "n": np.array(4), "k": np.array(place)}, target)
        np.testing.assert_array_equal(stacked, np.stack(parts, 1))
        np.testing.assert_array_equal(joined, np.concatenate(parts, 1))
        np.testing.assert_array_equal(at, parts[place])
        assert length == 4


@pytest.mark.parametrize("target", TARGETS)
def test_elements_may_differ_in_size(target: int) -> None:
    text = f"""g (float[2,3] x, int64 n, int64 k) => (float[p,r] y, float[e,f] at) {{
        s0 = SequenceConstruct (x)
        {_loop("s0", "v = Slice (x, zero, place, one) z = SequenceInsert (s, v)")}
        y = ConcatFromSequence <axis = 1> (q) at = SequenceAt (q, k)
    }}"""
    parts = [X, *(X[:, :i] for i in range(3))]
    for place in (0, 2, -1):
        y, at = _yields(text, {"x": X, "n": np.array(3), "k": np.array(place)}, target)
        np.testing.assert_array_equal(y, np.concatenate(parts, 1))
        np.testing.assert_array_equal(at, parts[place])


@pytest.mark.parametrize("target", TARGETS)
def test_elements_are_put_in_and_taken_out_anywhere(target: int) -> None:
    text = f"""g (float[a,3] x, int64 n, int64 k) => (float[p,r] y) {{
        f0 = SequenceConstruct (x, x) s0 = SequenceErase (f0, k)
        {_loop("s0", "f = Cast <to = 1> (i) v = Add (x, f) w = SequenceInsert (s, v, k) z = SequenceInsert (w, v)")}
        e = SequenceErase (q) h = SequenceErase (e, k) y = ConcatFromSequence <axis = 0> (h)
    }}"""
    for place in (0, -1):
        parts = [X, X]
        del parts[place]
        for i in range(3):
            parts.insert(len(parts) + place if place < 0 else place, X + i)
            parts.append(X + i)
        del parts[-1], parts[place]
        (y,) = _yields(text, {"x": X, "n": np.array(3), "k": np.array(place)}, target)
        np.testing.assert_array_equal(y, np.concatenate(parts))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("sizes", [2, [2, 1], [1, 0, 2]])
def test_a_loop_goes_over_what_is_split(sizes: int | list[int], target: int) -> None:
    kind = "int64" if isinstance(sizes, int) else f"int64[{len(sizes)}]"
    text = f"""g (float[a,3] x, int64 n, {kind} sizes, int64 first) => (float[p,r] y, int64 len) {{
        part = SplitToSequence <axis = 1> (x, sizes) s0 = SequenceEmpty () len = SequenceLength (part)
        {_loop("s0", "v = SequenceAt (part, i) m = Neg (v) z = SequenceInsert (s, m, first)")}
        y = ConcatFromSequence <axis = 1> (q)
    }}"""
    parts = np.split(X, [2] if isinstance(sizes, int) else np.cumsum(sizes)[:-1], 1)
    feeds = {"x": X, "n": np.array(len(parts)), "sizes": np.array(sizes), "first": np.array(0)}
    y, length = _yields(text, feeds, target)
    np.testing.assert_array_equal(y, np.concatenate([-part for part in parts[::-1]], 1))
    assert length == len(parts)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("keeps", [0, 1])
def test_numbers_and_rows_are_elements_too(keeps: int, target: int) -> None:
    text = f"""g (float[3] x, int64 n) => (float[p] y, float[r] joined) {{
        s0 = SequenceEmpty () row = SplitToSequence <axis = 0, keepdims = {keeps}> (x)
        {_loop("s0", "v = SequenceAt (row, i) m = ReduceSum <keepdims = 0> (v) z = SequenceInsert (s, m)")}
        y = ConcatFromSequence <axis = 0, new_axis = 1> (q)
        joined = ConcatFromSequence <axis = 0, new_axis = {1 - keeps}> (row)
    }}"""
    y, joined = _yields(text, {"x": X[0], "n": np.array(2)}, target)
    np.testing.assert_array_equal(y, X[0, :2])
    np.testing.assert_array_equal(joined, X[0])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("condition", [True, False])
def test_an_if_yields_a_sequence(condition: bool, target: int) -> None:
    text = """g (float[2,3] x, bool p) => (float[a,3] y, int64 len) {
        s0 = SequenceConstruct (x, x)
        s1 = If (p) <
            then_branch = t () => (seq(float[a,b]) r) { n = Neg (x) r = SequenceInsert (s0, n) },
            else_branch = e () => (seq(float[a,b]) u) { u = SequenceConstruct (x) }>
        y = ConcatFromSequence <axis = 0> (s1) len = SequenceLength (s1)
    }"""
    y, length = _yields(text, {"x": X, "p": np.array(condition)}, target)
    np.testing.assert_array_equal(y, np.concatenate([X, X, -X] if condition else [X]))
    assert length == (3 if condition else 1)


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_may_be_appended(target: int) -> None:
    text = f"""g (float[a,3] x, int64 n) => (int64 len) {{
        s0 = SequenceEmpty () {_loop("s0", "z = SequenceInsert (s, x)")} len = SequenceLength (q)
    }}"""
    for count in (0, 2):
        assert _yields(text, {"x": X, "n": np.array(count)}, target) == [count]


@pytest.mark.parametrize("target", [12, 9])
def test_a_sequence_that_the_model_yields_is_refused(target: int) -> None:
    text = f"""g (float[a,3] x, int64 n) => (seq(float[a,3]) q) {{
        s0 = SequenceEmpty () {_loop("s0", "z = SequenceInsert (s, x)")}
    }}"""
    with pytest.raises(ConversionError, match=r"Loop does not take seq|does not have SequenceEmpty"):
        _yields(text, {"x": X, "n": np.array(2)}, target)
