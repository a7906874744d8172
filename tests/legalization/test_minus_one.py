"""A stated size of -1 is one that is not known, whatever a conversion learns of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, checker, parser

import reducelower
from reducelower.model.graph import all_nodes, subgraphs
from tests.models import yields
from tests.table import rows

_X = np.arange(12, dtype=np.float32).reshape(3, 4)
_CASES = rows(Path(__file__).with_name("minus_one.toml"), fields={"graph", "opset", "gives"})


def _model(case: str) -> ModelProto:
    head = f'<ir_version: 8, opset_import: ["": {_CASES[case]["opset"]}]>'
    model = parser.parse_model(f"{head} {_CASES[case]['graph']}")
    graphs: list[GraphProto] = [model.graph, *(graph for node in all_nodes(model) for _, _, graph in subgraphs(node))]
    for value in (value for graph in graphs for value in (*graph.output, *graph.value_info)):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param == "UNKNOWN":
                dim.dim_value = -1
    checker.check_model(model, full_check=True)
    return model


@pytest.mark.parametrize("opset", [9, 10, 11, 12])
@pytest.mark.parametrize("case", _CASES)
def test_a_size_that_is_learned_takes_the_place_of_minus_one(case: str, opset: int) -> None:
    made = reducelower.convert_version(_model(case), opset)
    checker.check_model(made, full_check=True)
    feeds = {"x": _X} if case == "computed axes" else {"x": _X, "c": np.array(True)}
    np.testing.assert_array_equal(yields(made, feeds)[0], eval(_CASES[case]["gives"], {"x": _X}))
    assert reducelower.convert_version(made, opset) == made


@pytest.mark.parametrize("case", _CASES)
def test_minus_one_stays_where_nothing_contradicts_it(case: str) -> None:
    model = _model(case)
    opset = model.opset_import[0].version
    assert reducelower.convert_version(model, opset) == model
