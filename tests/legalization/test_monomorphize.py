"""Functions that are copied for each way they are called."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import checker, parser
from onnx.reference import ReferenceEvaluator

import reducelower


@pytest.mark.parametrize("opset", [7, 8, 9, 13])
def test_integers_that_a_call_hands_over_are_cast_where_constant_takes_none(opset: int) -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 6, "local" : 1]>
        g () => (int64[2] y) <int64[2] x0 = {4, 1}, int64 x1 = {9}> { y = local.F (x0, x1) }
        <domain: "local", opset_import: ["" : 6]>
        F <the_axis> (x0, x1) => (y) { y = Add <broadcast: int = 1, axis: int = @the_axis> (x0, x1) }"""
    )
    newer = reducelower.convert_version(model, opset)
    checker.check_model(newer, full_check=True)
    (found,) = ReferenceEvaluator(newer).run(None, {})
    np.testing.assert_array_equal(found, [13, 10])


def test_what_refers_to_an_attribute_is_of_the_type_of_the_attribute() -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 7, "local" : 1]>
        g (uint8[1,a,b,2] x) => (uint8[c,d,e,f] y) { y = local.F <the_scales: floats = [1.0, 1.0, 1.0, 3.0]> (x) }
        <domain: "local", opset_import: ["" : 7]>
        F <the_scales> (x) => (y) { y = Upsample <mode: string = "linear", scales: floats = @the_scales> (x) }"""
    )
    newer = reducelower.convert_version(model, 21)
    checker.check_model(newer, full_check=True)
