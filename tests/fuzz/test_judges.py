"""What the judges get wrong, beside numbers that follow from the operators' pages by hand or by numpy.

Each case is one gap of `known_gaps.toml`: the judge gets it wrong, and is not asked about it, or not for all digits.
Once a newer runtime gets it right, its gap can go.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest

from tests.fuzz.comparing import difference
from tests.fuzz.gaps import facts_of, gap_of, is_single
from tests.fuzz.runtimes import run

INF = math.inf
F = np.float32


@dataclass(frozen=True)
class Wrong:
    """A model that a judge gets wrong.

    Attributes:
        judge: which one.
        model: inputs, outputs, constants and nodes as ONNX text.
        opset: its opset version.
        feeds: values of its inputs.
        right: values of its outputs.
        single: whether all that is wrong is that doubles have the digits of floats.
    """

    judge: str
    model: str
    opset: int
    feeds: Mapping[str, Any]
    right: Sequence[Any]
    single: bool = False


X = np.array([1.5, -1.25, 0.3])
SIGNAL = np.array([-3.0, -1.5, 0.25])
BATCH = np.arange(12, dtype=F).reshape(2, 2, 3)
STATISTIC = np.array([1, 2], F)
MEAN, VARIANCE = (BATCH.mean(axis=(0, 2)) + STATISTIC) / 2, (BATCH.var(axis=(0, 2)) + STATISTIC) / 2
KEYS = np.array([[1, 0], [0, 1], [1, 1], [2, 2]], F).reshape(1, 1, 4, 2)
QUERY = np.array([[1, 2]], F).reshape(1, 1, 1, 2)


def attended(keys: np.ndarray) -> np.ndarray:
    """What the query gets of keys that are values, too."""
    weights = np.exp(QUERY[0, 0] @ keys.T / math.sqrt(2))
    return (weights / weights.sum() @ keys).reshape(1, 1, 1, 2)


TRAINED = "y, m, v = BatchNormalization <training_mode = 1, momentum = 0.5> (x, s, s, s, s) a = Abs (m) b = Abs (v)"

WRONG = {
    "Gelu of doubles": Wrong(
        "onnxruntime", "(double[3] x) => (double[3] y) {y = Gelu <approximate = \"tanh\"> (x)}", 20, {"x": X},
        [X / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (X + 0.044715 * X**3)))], single=True,
    ),
    "Gelu of doubles by its own arithmetic": Wrong(
        "reference", "(double[3] x) => (double[3] y) {y = Gelu (x)}", 20, {"x": X},
        [X / 2 * (1 + np.vectorize(math.erf)(X / math.sqrt(2)))], single=True,
    ),
    "inverse DFT of doubles": Wrong(
        "onnxruntime", "(double[1, 3, 1] x) => (double[1, 3, 2] y) {y = DFT <inverse = 1> (x)}", 18,
        {"x": SIGNAL.reshape(1, 3, 1)}, [np.fft.ifft(SIGNAL).view(np.float64).reshape(1, 3, 2)], single=True,
    ),
    "window in doubles": Wrong(
        "onnxruntime", "(int64 n) => (double[7] y) {y = BlackmanWindow <output_datatype = 11> (n)}", 17,
        {"n": np.array(7)},
        [0.42 - 0.5 * np.cos(2 * math.pi * np.arange(7) / 7) + 0.08 * np.cos(4 * math.pi * np.arange(7) / 7)],
        single=True,
    ),
    "statistics written over what is read again": Wrong(
        "onnxruntime", f"(float[2, 2, 3] x) => (float[2] a, float[2] b) <float[2] s = {{1, 2}}> {{{TRAINED}}}", 15,
        {"x": BATCH}, [np.abs(MEAN), np.abs(VARIANCE)],
    ),
    "nothing split by number": Wrong(
        "onnxruntime", "(float[0] x) => (float[0] y) {y = Split <num_outputs = 1> (x)}", 18, {"x": np.zeros(0, F)},
        [np.zeros(0, F)],
    ),
    "new keys that are no query's past": Wrong(
        "onnxruntime", "(float[1, 1, 1, 2] q, float[1, 1, 2, 2] k, float[1, 1, 2, 2] p) => (float[1, 1, 1, 2] y) "
        "{y, pk, pv = Attention <is_causal = 1> (q, k, k, , p, p)}", 24,
        {"q": QUERY, "p": KEYS[:, :, :2], "k": KEYS[:, :, 2:]}, [attended(KEYS[0, 0, :3])],  # j <= i + 2
    ),
    "the lowest number for infinity": Wrong(
        "onnxruntime", "(float[1, 1, 2, 1] q) => (float[1, 1, 2, 2] m) "
        "{y, , , m = Attention <is_causal = 1, qk_matmul_output_mode = 2> (q, q, q)}", 23,
        {"q": np.array([[[[1], [2]]]], F)}, [np.array([[[[1, -INF], [2, 4]]]], F)],
    ),
    "the product before softcap": Wrong(
        "reference", "(float[1, 1, 2, 1] q) => (float[1, 1, 2, 2] m) {y, , , m = Attention <softcap = 2.0> (q, q, q)}",
        23, {"q": np.array([[[[1], [2]]]], F)}, [np.array([[[[1, 2], [2, 4]]]], F)],
    ),
}  # fmt: skip


def model_of(case: Wrong) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {case.opset}]> g {case.model}')


@pytest.mark.skipif(
    (onnx.__version__, onnxruntime.__version__) != ("1.23.2", "1.31.1"), reason="the gaps are those of two versions"
)
@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_a_judge_is_wrong_where_a_gap_says_so(case: Wrong) -> None:
    model = model_of(case)
    onnx.checker.check_model(model, full_check=True)
    facts = facts_of(model, case.feeds.values())
    found = run(case.judge, model, case.feeds).values
    assert found is None or any(difference(one, other) for one, other in zip(case.right, found, strict=True)), found
    assert is_single(case.judge, facts) == case.single
    assert (gap_of(case.judge, facts) is None) == case.single
    if case.single:
        assert found is not None
        assert not any(difference(one, other, single=True) for one, other in zip(case.right, found, strict=True))


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_the_other_judge_is_right_or_does_not_run_it(case: Wrong) -> None:
    model = model_of(case)
    other = "reference" if case.judge == "onnxruntime" else "onnxruntime"
    found = run(other, model, case.feeds)
    if found.values is None:
        assert found.lacks
    elif not is_single(other, facts_of(model, case.feeds.values())):
        assert not any(difference(one, two) for one, two in zip(case.right, found.values, strict=True))
