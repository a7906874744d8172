"""The layout of recurrent operators, and names of sampling modes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models import converted, floats, model, operators, yields

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


@pytest.mark.parametrize("target", [13, 9, 7])
@pytest.mark.parametrize("op_type", GATES)
def test_batch_first_is_transposed(op_type: str, target: int) -> None:
    rows = 3 * GATES[op_type]
    inputs = {"x": floats(2, 5, 4), "w": floats(1, rows, 4, seed=1), "r": floats(1, rows, 3, seed=2)}
    inputs["h"] = floats(2, 1, 3, seed=3)
    weights = f"float[1,{rows},4] w, float[1,{rows},3] r"
    call = f'{{ y, z = {op_type} <hidden_size = 3, layout = %d> (x, w, r, "", "", h) }}'
    batch_first = model(
        f"(float[2,5,4] x, {weights}, float[2,1,3] h) => (float[2,5,1,3] y, float[2,1,3] z) {call % 1}",
        14,
    )
    # onnxruntime has no layout=1, so the same is asked with the sequence first.
    plain = model(
        f"(float[5,2,4] x, {weights}, float[1,2,3] h) => (float[5,1,2,3] y, float[1,2,3] z) {call % 0}",
        14,
    )
    turned = {**inputs, "x": inputs["x"].transpose(1, 0, 2).copy(), "h": inputs["h"].transpose(1, 0, 2).copy()}
    sequence, last = yields(plain, turned)
    ours, ours_last = yields(converted(batch_first, target), inputs)
    np.testing.assert_allclose(ours, sequence.transpose(2, 0, 1, 3), rtol=1e-6)
    np.testing.assert_allclose(ours_last, last.transpose(1, 0, 2), rtol=1e-6)


def test_regions_without_a_shift_follow() -> None:
    inputs = {"x": floats(1, 2, 5, 6), "rois": np.array([[0, 0, 3, 3]], np.float32), "batch": np.array([0])}
    plain = model(
        """(float[1,2,5,6] x, float[1,4] rois, int64[1] batch) => (float[1,2,2,2] y)
        { y = RoiAlign <output_height = 2, output_width = 2> (x, rois, batch) }""",
        10,
    )
    expected = yields(plain, inputs)[0]
    up = converted(plain, 18)
    np.testing.assert_allclose(yields(up, inputs)[0], expected, rtol=1e-6)
    np.testing.assert_allclose(yields(converted(up, 11), inputs)[0], expected, rtol=1e-6)


@pytest.mark.parametrize("target", [3, 7, 13])
def test_the_misspelled_default_direction_is_spelled_out(target: int) -> None:
    given = model(
        """(float[5,2,4] x, float[1,9,4] w, float[1,9,3] r) => (float[5,1,2,3] y, float[1,2,3] y_h)
        { y, y_h = GRU <hidden_size = 3, output_sequence = 1> (x, w, r) }""",
        1,
        3,
    )
    result = converted(given, target)
    assert [a.s for a in result.graph.node[0].attribute if a.name == "direction"] == [b"forward"]
    assert operators(result) == ["GRU"]


@pytest.mark.parametrize("op_type", sorted(GATES))
def test_the_sequence_of_results_was_asked_for_below_7(op_type: str) -> None:
    gates = GATES[op_type] * 3
    given = model(
        f"""(float[5,2,4] x, float[1,{gates},4] w, float[1,{gates},3] r) => (float[5,1,2,3] y)
        {{ y = {op_type} <direction = "forward", hidden_size = 3> (x, w, r) }}""",
        7,
        3,
    )
    down = converted(given, 6)
    assert [a.i for a in down.graph.node[0].attribute if a.name == "output_sequence"] == [1]
    assert converted(down, 7).graph == given.graph
