"""What optimizers take from one branch of an If, and axes of Scan; all else is in `cases/control.toml`."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from tests.adapters.models import converted, run


@pytest.mark.parametrize("target", [10, 9, 7])
@pytest.mark.parametrize("result", ["int64[q] r", "int64[] r"])
def test_what_is_known_of_one_branch_is_not_taken_for_the_other(result: str, target: int) -> None:
    """Inference below 11, and onnxruntime's optimizer with it, would take the shape of nothing for both."""
    made = parser.parse_model(
        f"""<ir_version: 7, opset_import: ["" : 11]> g (float[n] x, bool c) => (int64[k] y) {{
            w = If (c) <
                then_branch = t () => (int64[0] p) {{ p = Constant <value = int64[0] {{}}> () }},
                else_branch = e () => ({result}) {{ s = Shape (x) r = Reshape (s, s) }}
            >
            y = Shape (w)
        }}"""
    )
    for condition, size in ((True, 0), (False, 1)):
        (found,) = run(converted(made, target), {"x": np.zeros(1, np.float32), "c": np.array(condition)})
        assert found.tolist() == [size]
