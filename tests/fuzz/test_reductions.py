"""Random models: whatever they hold, a conversion is refused, or valid and equal to its source."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from onnx import ModelProto

import reducelower
from reducelower import ConversionError
from tools.fuzz.reductions.claims import check_equal, is_valid, results
from tools.fuzz.reductions.strategy import OPSETS, Sample, samples

EXAMPLES = int(os.environ.get("REDUCELOWER_FUZZ", "0"))
"""How many examples to try at random; 0 tries the same few every time."""

fuzzed = settings(
    max_examples=EXAMPLES or 30,
    derandomize=not EXAMPLES,
    deadline=None,
    database=None,
    report_multiple_bugs=True,
    print_blob=False,
    suppress_health_check=list(HealthCheck),
)


def expected(sample: Sample) -> list:
    assume(is_valid(sample.model))
    try:
        found = results(sample.model, sample.feeds)
    except Exception:  # what the source cannot do either
        found = None
    assume(found is not None)
    return found


def converted(model: ModelProto, target: int) -> ModelProto | None:
    before = model.SerializeToString(deterministic=True)
    try:
        made = reducelower.convert_version(model, target)
    except ConversionError as refused:
        assert refused.refusals
        assert all(refusal.reason for refusal in refused.refusals)
        return None
    finally:
        assert model.SerializeToString(deterministic=True) == before
    return made


def check(sample: Sample, made: ModelProto, wanted: list) -> None:
    import onnx.checker

    onnx.checker.check_model(made, full_check=True)
    assert [value.name for value in made.graph.input] == [value.name for value in sample.model.graph.input]
    found = results(made, sample.feeds)
    if found is None:
        event("no runtime runs the result")
    else:
        check_equal(found, wanted)


@fuzzed
@given(samples(), st.sampled_from(OPSETS))
def test_a_conversion_is_refused_or_equal(sample: Sample, target: int) -> None:
    wanted = expected(sample)
    made = converted(sample.model, target)
    event("refused" if made is None else "converted")
    if made is not None:
        check(sample, made, wanted)
        assert converted(sample.model, target).SerializeToString() == made.SerializeToString()
        assert converted(made, target).SerializeToString() == made.SerializeToString()
        own = ModelProto.FromString(sample.model.SerializeToString())
        reducelower.convert_version(own, target, in_place=True)
        check(sample, own, wanted)


@fuzzed
@given(samples(), st.sampled_from(OPSETS))
def test_there_and_back_again_is_equal(sample: Sample, target: int) -> None:
    wanted = expected(sample)
    source = next(entry.version for entry in sample.model.opset_import if entry.domain in ("", "ai.onnx"))
    there = converted(sample.model, target)
    back = None if there is None else converted(there, source)
    event("refused" if back is None else "converted")
    if back is not None:
        check(sample, back, wanted)


@fuzzed
@given(samples(), st.sampled_from(("spec", "stable", "core")))
def test_an_expansion_is_refused_or_equal(sample: Sample, rules: str) -> None:
    wanted = expected(sample)
    try:
        made = reducelower.expand(sample.model, rules=rules)
    except ConversionError:
        event("refused")
        return
    event("expanded")
    check(sample, made, wanted)
