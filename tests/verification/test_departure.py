from __future__ import annotations

import importlib.util
import json

import pytest

from reducelower.verification import verify
from reducelower.verification.running.source import default_opset
from tests.models import model

CHAIN = (
    "g (float[N, M] x) => (float[N, 1] y) { [scale] a = Abs (x)  [norm] b = ReduceMax <axes = [1]> (a)"
    "  [last] y = Sqrt (b) }"
)


def test_runtimes_that_agree_are_said_to() -> None:
    found = verify(model(CHAIN, 13), runtimes=["reference"])
    assert (found.equivalent, found.ran, found.runtime, found.first) == (True, True, "onnxruntime / reference", None)
    assert "equal on" in str(found)


def test_the_first_operator_that_departs_is_named(wrong: str) -> None:
    found = verify(model(CHAIN, 13), runtimes=[wrong])
    assert found.verdict == "different"
    assert found.first is not None
    assert (found.first.node, found.first.op_type, found.first.index, found.first.output) == (
        "norm",
        "ReduceMax",
        1,
        "b",
    )
    assert "first difference: " in str(found)
    assert "by ReduceMax 'norm'" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["first"]["node"] == "norm"


def test_a_conversion_is_verified_in_the_runtime_it_is_for(wrong: str) -> None:
    before = model(CHAIN, 13)
    assert verify(before, before, runtimes=("onnxruntime",)).equivalent
    found = verify(before, before, runtimes=("onnxruntime", wrong))
    assert not found.equivalent
    assert {output.runtime for output in found.outputs} == {"onnxruntime", "onnxruntime / wrong"}


def test_a_model_no_runtime_takes_is_told() -> None:
    found = verify(model(CHAIN.replace("Abs", "Unheard"), 13), runtimes=["reference"])
    assert (found.verdict, found.ran) == ("not shown", False)
    assert "Unheard" in found.reason


def test_an_unknown_runtime_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="abacus"):
        verify(model(CHAIN, 13), runtimes=["abacus"])


@pytest.mark.skipif(importlib.util.find_spec("openvino") is not None, reason="openvino is installed")
def test_openvino_that_is_not_installed_is_told() -> None:
    found = verify(model(CHAIN, 13), runtimes=["openvino"])
    assert not found.ran
    assert "cannot be used" in found.unseen[0]
    verified = verify(model(CHAIN, 13), model(CHAIN, 13), runtimes=("openvino",))
    assert (verified.ran, verified.verdict) == (False, "not shown")


@pytest.fixture
def openvino() -> str:
    pytest.importorskip("openvino")
    return "openvino"


@pytest.mark.parametrize("op_type", ["ReduceL1", "ReduceLogSum", "ReduceLogSumExp"])
def test_openvino_reduces_every_axis_at_opset_13_and_is_found(op_type: str, openvino: str) -> None:
    reducing = model(
        "g (float[N, M] x) => (float[N, 1] y) "
        f"{{ a = Abs (x)  [culprit] b = {op_type} <axes = [1]> (a)  y = Sqrt (b) }}",
        13,
    )
    found = verify(reducing, runtimes=[openvino])
    assert found.verdict == "different"
    assert found.first is not None
    assert (found.first.node, found.first.op_type) == ("culprit", op_type)


@pytest.mark.parametrize("op_type", ["ReduceL1", "ReduceLogSum", "ReduceLogSumExp"])
def test_openvino_is_right_on_the_same_at_opset_18(op_type: str, openvino: str) -> None:
    reducing = model(
        f"g (float[N, M] x) => (float[N, 1] y) <int64[1] i = {{1}}> {{ a = Abs (x)  y = {op_type} (a, i) }}", 18
    )
    assert default_opset(reducing) == 18
    found = verify(reducing, runtimes=[openvino])
    assert found.equivalent, str(found)


@pytest.mark.parametrize("kind", ["float", "double", "float16", "int32", "int64", "bool", "uint8"])
def test_openvino_keeps_element_types(kind: str, openvino: str) -> None:
    plain = model(f"g ({kind}[N, M] x) => ({kind}[N, M] y) {{ y = Identity (x) }}", 16)
    found = verify(plain, runtimes=[openvino])
    assert found.equivalent, str(found)
