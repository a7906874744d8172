"""What is stated of values that nodes which look alike yield; what they compute is in `cases/alike.toml`."""

from __future__ import annotations

from onnx import TensorProto, checker, helper, parser

import reducelower
from tests.adapters.models import floats, model


def test_casts_whose_types_nothing_else_tells() -> None:
    """Before opset 6, shape inference does not read what Cast casts to."""
    feeds = {"x": floats(3, 4)}
    nodes = [
        *(helper.make_node("Cast", ["x"], [f"cast{number}"], to=TensorProto.DOUBLE) for number in (1, 2)),
        *(helper.make_node("ReduceMean", [f"cast{number}"], [f"y{number}"]) for number in (1, 2)),
    ]
    made = model(nodes, feeds, 8, outputs=["y1", "y2"])
    for opset in (5, 1):
        lowered = reducelower.convert_version(made, opset)
        checker.check_model(lowered, full_check=True)
        stated = {value.name: value.type.tensor_type.elem_type for value in lowered.graph.value_info}
        assert stated == {"cast1": TensorProto.DOUBLE, "cast2": TensorProto.DOUBLE}


def test_a_cast_that_an_expansion_ends_with_has_its_type_stated() -> None:
    feeds = {"x": floats(3, 4)}
    nodes = [helper.make_node("ReduceLogSumExp", ["x"], ["l"]), helper.make_node("ReduceMean", ["l"], ["y"])]
    made = model(nodes, feeds, 13)
    lowered = reducelower.convert_version(made, 5, without=["ReduceLogSumExp"], rules="spec")
    checker.check_model(lowered, full_check=True)


def test_a_type_that_is_stated_already_is_not_stated_again() -> None:
    feeds = {"x": floats(3, 4)}
    nodes = [
        helper.make_node("Cast", ["x"], ["c"], to=TensorProto.DOUBLE),
        helper.make_node("ReduceMean", ["c"], ["y"]),
    ]
    made = model(nodes, feeds, 8)
    made.graph.value_info.append(helper.make_tensor_value_info("c", TensorProto.DOUBLE, [3, 4]))
    lowered = reducelower.convert_version(made, 5)
    checker.check_model(lowered, full_check=True)
    assert list(lowered.graph.value_info) == list(made.graph.value_info)


def test_functions_state_no_types() -> None:
    made = parser.parse_model(
        """
        <ir_version: 8, opset_import: ["": 8, "my": 1]>
        g (float[3, 4] x) => (float[3, 4] y) { y = my.wide (x) }
        <domain: "my", opset_import: ["": 8]>
        wide (a) => (b) { c = Cast <to = 1> (a)  b = Identity (c) }
        """
    )
    (lowered,) = reducelower.convert_version(made, 5).functions
    assert [field.name for field, _ in lowered.ListFields()] == [
        field.name for field, _ in made.functions[0].ListFields()
    ]
