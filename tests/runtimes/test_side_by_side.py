"""What exporters write side by side is carried over for the runtimes on which it was measured.

Runtimes fuse neighbours, so that operators that are right one by one may be wrong together.
"""

from __future__ import annotations

import math
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from reducelower import ConversionError, Target, check, legalize, load_runtime
from tests.models import floats, model, run

MEASURED = ("mnn", "onnxruntime@1.16", "onnxruntime@1.20", "opencv", "opencv@4.14", "openvino", "tract")

REFUSED = {
    "opencv@4.14": ("GRU", "Loop", "Where"),  # which wants a first state, has no Loop and takes no constant bools
    "tract": ("Loop",),
}


def _filled(weights: str) -> str:
    """Weights with values in place of their numbers."""

    def values(match: re.Match[str]) -> str:
        return f"{match[1]}{{{', '.join(f'{math.sin(1 + 7 * at) / 2:.3f}' for at in range(int(match[2])))}}}"

    return re.sub(r"(float\[[\d,]+\] \w+ = ){(\d+)}", values, weights)


def _model(row: dict[str, Any], opset: int) -> ModelProto:
    graph = f"g ({row['inputs']}) => ({row['outputs']}) <{_filled(row['weights'])}> {{{row['nodes']}}}"
    return model(graph, opset)


ROWS = tomllib.loads(Path(__file__).with_name("side_by_side.toml").read_text("utf-8"))


@pytest.mark.parametrize("target", MEASURED)
def test_they_give_the_same_and_nothing_known_speaks_against_them(target: str) -> None:
    runtime = Target(runtime=load_runtime(target))
    for name, row in ROWS.items():
        for opset in (13, 17):
            source = _model(row, opset)
            if any(node.op_type in REFUSED.get(target, ()) for node in source.graph.node):
                with pytest.raises(ConversionError, match=f"on {runtime.runtime}"):
                    legalize(source, runtime)
                continue
            made = legalize(source, runtime).model
            assert check(made, target=runtime).changes_nothing, name
            feeds = {
                value.name: floats(*(dim.dim_value for dim in value.type.tensor_type.shape.dim))
                for value in source.graph.input
            }
            for wanted, given in zip(run(source, feeds), run(made, feeds), strict=True):
                np.testing.assert_allclose(given, wanted, rtol=1e-3, atol=1e-5, err_msg=name)
