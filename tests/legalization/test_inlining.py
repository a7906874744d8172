"""Functions in place of their calls."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import checker, parser
from onnx.reference import ReferenceEvaluator

from reducelower.legalization.functions import inline
from tests.models import model


def test_defaults_of_functions_are_kept() -> None:
    given_model = parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 18, "local" : 1]>
        g (float[2] x) => (float[2] a, float[2] b) { a = local.outer (x)  b = local.outer <low = 1.0> (x) }
        <opset_import: ["" : 18, "local" : 1], domain: "local">
        outer <low: float = -1.0> (v) => (w) { w = local.inner <low: float = @low> (v) }
        <opset_import: ["" : 18], domain: "local">
        inner <low: float = 0.0, alpha: float = 0.5> (v) => (w) {
            c = Constant <value_float: float = @low> ()
            m = Max (v, c)
            w = LeakyRelu <alpha: float = @alpha> (m)
        }"""
    )
    inline(given_model)
    assert not given_model.functions
    given = np.array([-4.0, 3.0], np.float32)
    found = ReferenceEvaluator(given_model).run(None, {"x": given})
    assert [each.tolist() for each in found] == [[-0.5, 3.0], [1.0, 3.0]]


HEAD = '<domain: "local", opset_import: ["": 18'


@pytest.mark.parametrize("name", ["alpha", "other"])
def test_an_attribute_that_a_caller_leaves_out_has_the_default_of_the_inner_function(name: str) -> None:
    made = model(
        "g (float[3] x) => (float[3] y) { y = local.outer (x) }",
        functions=f"""{HEAD}, "local": 1]> outer <{name}> (v) => (w) {{ w = local.inner <alpha: float = @{name}> (v) }}
        {HEAD}]> inner <alpha: float = 2.5> (v) => (w) {{ w = Elu <alpha: float = @alpha> (v) }}""",
    )
    inline(made)
    given = np.array([-1, 0, 2], np.float32)
    (found,) = ReferenceEvaluator(made).run(None, {"x": given})
    np.testing.assert_allclose(found, np.where(given < 0, 2.5 * np.expm1(given), given), rtol=1e-6)


def test_what_only_a_function_imports_is_imported() -> None:
    made = model(
        "g (float[1,2] x) => (float[1,2] y) { y = local.f (x) }",
        functions=f"""{HEAD}, "ai.onnx.ml": 3]> f (v) => (w) {{ w = ai.onnx.ml.Normalizer <norm = "L2"> (v) }}""",
    )
    inline(made)
    assert {entry.domain: entry.version for entry in made.opset_import} == {"": 18, "local": 1, "ai.onnx.ml": 3}
    checker.check_model(made, full_check=True)


def test_an_output_may_be_an_input() -> None:
    made = model(
        "g (float[2] x) => (float[2] y, float[2] z) { y, z = local.f (x) }",
        functions=f"{HEAD}]> f (v) => (v, w) {{ w = Neg (v) }}",
    )
    inline(made)
    checker.check_model(made, full_check=True)
    given = np.array([1, -2], np.float32)
    assert [each.tolist() for each in ReferenceEvaluator(made).run(None, {"x": given})] == [[1, -2], [-1, 2]]


def test_inputs_that_a_call_leaves_out_are_left_out() -> None:
    made = model(
        "g (float[2] x) => (float[2] y) { y = local.f (x) }",
        functions=f"{HEAD}]> f (v, low, high) => (w) {{ w = Clip (v, low, high) }}",
    )
    inline(made)
    assert list(made.graph.node[0].input) == ["x"]
