"""What onnx's reference evaluator gets wrong, and the witness gets right.

Each row of `evaluated.toml` is a model as in other tables (see `tables`), with what is ``given`` and what the witness
``gives``, as closely as ``rtol`` says; or a part of why it ``fails``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from reducelower.verification.running.evaluator import Evaluator
from reducelower.verification.running.reference import wrong_in_reference
from reducelower.verification.running.runtimes import runtime_named
from reducelower.verification.running.source import CannotRunError, Source
from tests.models import model
from tests.table import combinations, rows

from .tables import FIELDS, evaluated, given, written

ROWS = rows(Path(__file__).with_name("evaluated.toml"), fields={*FIELDS, "gives", "rtol", "fails"})


@pytest.mark.parametrize("claim", ROWS)
def test_what_the_witness_gives(claim: str) -> None:
    row = {key: value for key, value in ROWS[claim].items() if key != "graph"}
    for chosen in combinations(row.get("each", {})):
        made = written({**row, **{key: chosen[key] for key in FIELDS & set(chosen)}}, ROWS[claim]["graph"], chosen)
        feeds = given(row, chosen)
        if "fails" in row:
            with pytest.raises(NotImplementedError, match=row["fails"]):
                Evaluator(made).run(None, feeds)
            continue
        found = dict(zip([value.name for value in made.graph.output], Evaluator(made).run(None, feeds), strict=True))
        for value in made.graph.output:
            assert found[value.name].dtype == helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        for name, wanted in evaluated(row["gives"], {**chosen, **feeds}).items():
            np.testing.assert_allclose(found[name], wanted, rtol=row.get("rtol", 0), err_msg=str(chosen))


def test_a_loop_of_no_turn_is_no_evidence() -> None:
    """The evaluator does not know the shape of what a turn would give, which onnxruntime takes from the graph."""
    side = model(
        "g (int64 n) => (float[M, 2] y) <bool go = {1}> { y = Loop (n, go) <body = b (int64 i, bool c) => "
        "(bool d, float[2] r) <float[2] k = {1, 2}> { d = Identity (c)  r = Identity (k) }> }"
    )
    session = runtime_named("reference").load(Source(side))
    assert session.run({"n": np.array(2)})[0].shape == (2, 2)
    with pytest.raises(CannotRunError) as caught:
        session.run({"n": np.array(0)})
    assert caught.value.unsupported


CONV = "g (float[1, 2, 5, 5] x, float[2, 2, 2, 2] w) => (float[A, B, C, D] y) {{ y = Conv <{}> (x, w) }}"
POOL = "g (float[1, 2, 5, 5] x) => (float[A, B, C, D] y) {{ y = AveragePool <kernel_shape = [2, 2]{}> (x) }}"
NORM = "g ({0}[2, 3] x, {0}[3] w) => ({0}[2, 3] y) {{ y = LayerNormalization (x, w) }}"
RNN = "g (float[2, 1, 3] x, float[{}, 4, 3] w, float[{}, 4, 4] r{}) => (float[a, b, c, d] y) {{ y = {} }}"
BOTH = 'RNN <direction = "bidirectional", hidden_size = 4> (x, w, r)'


@pytest.mark.parametrize(
    ("text", "opset", "wrong"),
    [
        (CONV.format("strides = [2, 2]"), 17, []),
        (CONV.format("dilations = [1, 1]"), 17, []),
        (CONV.format("dilations = [2, 1]"), 17, ["Conv"]),
        (POOL.format(", pads = [1, 0, 0, 1]"), 19, []),
        (POOL.format(", ceil_mode = 1"), 19, ["AveragePool"]),
        (POOL.format(', auto_pad = "VALID"'), 19, ["AveragePool"]),
        (NORM.format("float"), 17, []),
        (NORM.format("float16"), 17, ["LayerNormalization"]),
        (RNN.format(2, 2, "", BOTH), 14, []),
        (RNN.format(1, 1, "", "RNN <hidden_size = 4, clip = 1.0> (x, w, r)"), 14, ["RNN"]),
        (RNN.format(1, 1, ", int32[1] n", 'RNN <hidden_size = 4> (x, w, r, "", n)'), 14, ["RNN"]),
        ("g (float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax <axis = 1> (x) }", 12, ["Softmax"]),
        ("g (float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax <axis = 1> (x) }", 13, []),
        ("g (float[3] x) => (float[3] y) { y = Shrink (x) z = Abs (x) }", 13, ["Shrink"]),
        ("g (float[3] x) => (int4[3] y) { y = Cast <to = 22> (x) }", 21, ["Cast"]),
        ("g (float[3] x) => (int8[3] y) { y = Cast <to = 3> (x) }", 21, []),
    ],
)
def test_what_it_gets_wrong_as_it_stands_is_no_evidence(text: str, opset: int, wrong: list[str]) -> None:
    assert wrong_in_reference(model(text, opset)) == wrong
