"""Where the specification's bodies overflow or lose digits, `stable` gives the answer in the data's own type."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import mpmath
import numpy as np
import pytest
from onnx import AttributeProto, TensorProto

from reducelower.rulebook import load_book

from .running import run

Times = Counter[mpmath.mpf]
"""How often each value comes."""


def total(times: Times, of: Callable[[mpmath.mpf], mpmath.mpf] = mpmath.mpf) -> mpmath.mpf:
    return mpmath.fsum(count * of(x) for x, count in times.items())


def log_sum_exp(times: Times) -> mpmath.mpf:
    top = max(times)
    return mpmath.log(total(times, lambda x: mpmath.exp(x - top))) + top


EXACT: dict[str, Callable[[Times], mpmath.mpf]] = {
    "ReduceL1": lambda times: total(times, abs),
    "ReduceL2": lambda times: mpmath.sqrt(total(times, lambda x: x * x)),
    "ReduceLogSum": lambda times: mpmath.log(total(times)),
    "ReduceLogSumExp": log_sum_exp,
    "ReduceSumSquare": lambda times: total(times, lambda x: x * x),
    "ReduceMean": lambda times: total(times) / times.total(),
}
LIMIT = {"float16": 2, "float32": 4, "float64": 4}

TABLE = tomllib.loads(Path(__file__).with_name("extremes.toml").read_text("utf-8"))
EXTREMES = [(op_type, kind, values * times) for op_type, kind, values, times in TABLE["extremes"]]


@pytest.mark.parametrize("runtime", ["onnxruntime", "onnx.reference"])
@pytest.mark.parametrize(("op_type", "kind", "values"), EXTREMES)
def test_a_finite_answer_comes_out_finite_and_close(op_type: str, kind: str, values: list[float], runtime: str) -> None:
    data = np.array(values, kind)
    result = run("core" if op_type == "ReduceMean" else "stable", op_type, data, [0], 0, runtime=runtime)
    with mpmath.workprec(200):
        times = Counter(data.astype(np.float64).tolist())
        exact = EXACT[op_type](Counter({mpmath.mpf(value): count for value, count in times.items()}))
        base = max(abs(float(exact)), float(abs(data).max()))
        below = np.nextafter(data.dtype.type(base), data.dtype.type(0))  # has a spacing where the largest has none
        error = abs(mpmath.mpf(float(result)) - exact) / mpmath.mpf(float(np.spacing(below)))
    assert result.dtype == data.dtype
    assert error <= LIMIT[kind], f"{float(result)}, off by {float(error)} ULP"


@pytest.mark.parametrize("runtime", ["onnxruntime", "onnx.reference"])
@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
@pytest.mark.parametrize(("op_type", "values", "expected"), TABLE["non_finite"])
def test_infinities_nan_and_zeros(op_type: str, values: list[float], expected: float, kind: str, runtime: str) -> None:
    result = run("stable", op_type, np.array([values], kind), [1], 0, runtime=runtime)
    np.testing.assert_array_equal(result, np.array([expected], kind))


@pytest.mark.parametrize("runtime", ["onnxruntime", "onnx.reference"])
@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
@pytest.mark.parametrize(("op_type", "expected"), TABLE["empty"].items())
def test_a_reduction_of_nothing(op_type: str, expected: float, kind: str, runtime: str) -> None:
    nothing = np.zeros((2, 0, 3), kind)
    result = run("core", op_type, nothing, [1], 1, runtime=runtime)
    np.testing.assert_array_equal(result, np.full((2, 1, 3), expected, kind))
    no_result = run("core", op_type, nothing, [0], 0, runtime=runtime)
    assert no_result.shape == (0, 3)


@pytest.mark.parametrize("op_type", ["ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceSumSquare"])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_ordinary_data_gives_the_very_bits_of_the_plain_formula(op_type: str, kind: str) -> None:
    data = np.random.default_rng(3).uniform(0.01, 100, (50, 7)).astype(kind)
    expected = run("spec", op_type.replace("ReduceL2", "ReduceSumSquare"), data, [1])
    expected = np.sqrt(expected) if op_type == "ReduceL2" else expected
    np.testing.assert_array_equal(run("stable", op_type, data, [1]), expected)


@pytest.mark.parametrize("op_type", load_book("core").reductions)
@pytest.mark.parametrize("element_type", [TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.FLOAT])
def test_data_narrower_than_double_never_becomes_double(op_type: str, element_type: int) -> None:
    rule = load_book("core").find(op_type, element_type)
    assert rule is not None
    nodes = [node for each in rule.functions for node in each.function.node]
    cast_to = [a.i for node in nodes if node.op_type == "Cast" for a in node.attribute]
    constants = [a.t.data_type for node in nodes for a in node.attribute if a.type == AttributeProto.TENSOR]
    assert TensorProto.DOUBLE not in [*cast_to, *constants]


def test_integers_do_not_wrap_inside() -> None:
    assert run("stable", "ReduceL2", np.array([50000, 50000], np.int32)).tolist() == [70710]
    assert run("stable", "ReduceLogSumExp", np.array([1000, 999], np.int64)).tolist() == [1000]
    assert run("stable", "ReduceLogSum", np.array([2**31 - 1] * 2, np.int32)).tolist() == [22]
    assert run("core", "ReduceMean", np.array([2**31 - 1] * 3, np.int32)).tolist() == [2**31 - 1]


@pytest.mark.parametrize("kind", ["int8", "int32", "int64", "uint8", "uint32", "uint64"])
def test_the_minimum_is_exact_up_to_the_ends_of_every_integer_type(kind: str) -> None:
    ends = np.iinfo(kind)
    data = np.array([[ends.min, ends.max], [ends.max, ends.max - 1], [ends.min, ends.min + 1]], kind)
    runtime = "onnx.reference" if kind in ("uint32", "uint64") else "onnxruntime"  # which has no such ReduceMax
    result = run("core", "ReduceMin", data, [1], 0, runtime=runtime)
    assert result.tolist() == [ends.min, ends.max - 1, ends.min]
    nothing = run("core", "ReduceMin", np.zeros((1, 0), kind), [1], 0, runtime=runtime)
    assert nothing.tolist() == [ends.max]


def test_the_minimum_of_booleans() -> None:
    data = np.array([[True, True], [True, False], [False, False]])
    assert run("core", "ReduceMin", data, [1], 0).tolist() == [True, False, False]


def test_core_uses_no_reduction_but_sum_and_maximum() -> None:
    book = load_book("core")
    used = {name for op_type in book.reductions for rule in book.rules(op_type) for name in rule.operators}
    assert {op_type for op_type in used if op_type.startswith("Reduce")} == {"ReduceSum", "ReduceMax"}
    assert set(book.reductions) == {
        *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceMin", "ReduceSumSquare")
    }
