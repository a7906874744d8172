"""onnx's own node test cases, converted to other opset versions, yield what the operators' pages say or are refused."""

from __future__ import annotations

import pytest

import reducelower
from tools.node_cases import cases, convert, runs_as_expected

CHUNKS = 24
TARGETS = (21, 18, 17, 15, 13, 11, 9)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_converted_cases_yield_what_is_expected_or_are_refused(chunk: int, target: int) -> None:
    found = [
        convert(case, target) for case in cases()[chunk::CHUNKS] if case.opset != target and runs_as_expected(case)
    ]
    bad = [result for result in found if result.state in ("wrong", "invalid", "crash")]
    assert not bad, "\n".join(f"{one.state}: {one.case.name} {one.case.opset} -> {target}: {one.reason}" for one in bad)


@pytest.mark.opset(23)
def test_what_onnxruntime_breaks_itself_is_not_held_against_a_conversion() -> None:
    # onnxruntime 1.30 puts casts into what float16 attention is expressed by, and finds fault with their types.
    case = next(case for case in cases() if case.name == "test_attention_4d_fp16")
    found = reducelower.verify(case.model, reducelower.convert_version(case.model, 21))
    assert found.ran
    assert found.equivalent, found
