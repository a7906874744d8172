"""What is stated of values that nodes which look alike yield; what they compute is in `cases/alike.toml`."""

from __future__ import annotations

from onnx import checker, helper

import reducelower
from tests.adapters.models import floats, model


def test_a_cast_that_an_expansion_ends_with_has_its_type_stated() -> None:
    feeds = {"x": floats(3, 4)}
    nodes = [helper.make_node("ReduceLogSumExp", ["x"], ["l"]), helper.make_node("ReduceMean", ["l"], ["y"])]
    made = model(nodes, feeds, 13)
    lowered = reducelower.convert_version(made, 5, without=["ReduceLogSumExp"], rules="spec")
    checker.check_model(lowered, full_check=True)
