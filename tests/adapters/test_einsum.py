"""Einsum below opset 12."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper, parser

from tests.adapters.models import converted, floats, one, refusal, run


def test_a_sum_over_an_ellipsis_is_refused() -> None:
    feeds = {"x": floats(2, 3)}
    made = one("Einsum", feeds, 13, equation="...i->...i")
    made.graph.node[0].attribute[0].s = b"...i->i"
    assert "sums over an ellipsis" in refusal(made, 11)


@pytest.mark.parametrize("sizes", ["2,2,5", "a,b,c", "2,2,1"])
def test_a_size_of_1_that_is_summed_over_goes_with_any_other_as_in_numpy(sizes: str) -> None:
    held = np.array([[[2.5], [-1.5]], [[1.75], [-1.0]]], np.float32)
    source = parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 15]>
        g (float[{sizes}] x) => (float[d,e,f] y) {{ y = Einsum <equation = "bij,bkj->bik"> (x, held) }}
    """)
    source.graph.initializer.append(numpy_helper.from_array(held, "held"))
    x = floats(2, 2, 1 if sizes.endswith("1") else 5)
    found = run(converted(source, 11), {"x": x})[0]
    np.testing.assert_allclose(found, np.einsum("bij,bkj->bik", x, held), rtol=1e-5)
