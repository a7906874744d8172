"""What exporters write side by side is carried over for the runtimes on which it was measured."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from reducelower import ConversionError, Target, check, legalize, load_runtime
from reducelower.conformance.judging import Verdict, judge
from reducelower.conformance.process import Answer
from reducelower.pipeline.model_cases import exporter_cases
from reducelower.verification.running.runtimes import runtime_named
from reducelower.verification.running.source import Source

MEASURED = ("mnn", "onnxruntime@1.16", "onnxruntime@1.20", "opencv", "opencv@4.14", "openvino", "tract")

REFUSED = {
    "opencv@4.14": ("GRU", "Loop", "Where"),  # which wants a first state, has no Loop and takes no constant bools
    "tract": ("Loop",),
}


@pytest.mark.parametrize("target", MEASURED)
def test_they_give_the_same_and_nothing_known_speaks_against_them(target: str) -> None:
    runtime = Target(runtime=load_runtime(target))
    for case in exporter_cases():
        source = onnx.load_model_from_string(case.model)
        if any(node.op_type in REFUSED.get(target, ()) for node in source.graph.node):
            with pytest.raises(ConversionError, match=f"on {runtime.runtime}"):
                legalize(source, runtime)
            continue
        made = legalize(source, runtime).model
        assert check(made, target=runtime).changes_nothing, case.name
        given = runtime_named("onnxruntime").load(Source.of(made)).run(case.inputs)
        assert judge(case, Answer("outputs", tuple(map(np.asarray, given)))) == Verdict("right"), case.name
