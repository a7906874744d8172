"""Nodes that look alike and differ in what is known about them are each rewritten by their own lights."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, checker, helper, numpy_helper, parser

import reducelower
from tests.adapters.models import assert_same, converted, floats, int64s, model, operators, run


def test_slices_of_other_bounds_and_sizes() -> None:
    feeds = {"a": floats(4, 5), "b": floats(6, 5)}
    constants = {
        "s": int64s(-1), "t": int64s(-2), "end": int64s(-(2**63)), "axis": int64s(0), "back": int64s(-1)
    }  # fmt: skip
    nodes = [
        helper.make_node("Slice", ["a", "s", "end", "axis", "back"], ["c"]),
        helper.make_node("Slice", ["a", "t", "end", "axis", "back"], ["d"]),
        helper.make_node("Slice", ["b", "s", "end", "axis", "back"], ["e"]),
    ]
    made = model(nodes, feeds, 13, outputs=["c", "d", "e"], constants=constants)
    a, b = feeds.values()
    assert_same(made, feeds, 9, a[::-1], a[-2::-1], b[::-1])


def test_softmax_of_other_ranks() -> None:
    feeds = {"a": floats(2, 3), "b": floats(2, 3, 4), "c": floats(2, 3, 4, 5)}
    nodes = [helper.make_node("Softmax", [name], [f"{name}_y"], axis=1) for name in feeds]
    made = model(nodes, feeds, 13, outputs=[f"{name}_y" for name in feeds])
    assert_same(made, feeds, 9)


def test_clips_of_other_bounds_and_types() -> None:
    feeds = {"a": floats(9) * 9, "b": (floats(9) * 9).astype(np.int32)}
    constants = {"one": np.float32(1), "two": np.float32(2), "int_one": np.int32(1), "int_two": np.int32(2)}
    pairs = [("a", "one"), ("a", "two"), ("b", "int_one"), ("b", "int_two")]
    nodes = [helper.make_node("Clip", [data, bound], [f"{data}_{bound}"]) for data, bound in pairs]
    made = model(nodes, feeds, 13, outputs=[node.output[0] for node in nodes], constants=constants)
    assert_same(made, feeds, 9, *(np.maximum(feeds[data], constants[bound]) for data, bound in pairs))


def test_gathers_of_other_sizes() -> None:
    feeds = {"a": floats(4, 5), "b": floats(6, 7)}
    nodes = [helper.make_node("Gather", [name, "last"], [f"{name}_y"], axis=1) for name in feeds]
    made = model(nodes, feeds, 13, outputs=["a_y", "b_y"], constants={"last": int64s(-1)})
    assert_same(made, feeds, 9, *(value[:, -1:] for value in feeds.values()))
    made = model(nodes, feeds, 13, outputs=["a_y", "b_y"], constants={"last": int64s(-1)}, ranked=feeds)
    assert_same(made, feeds, 9, *(value[:, -1:] for value in feeds.values()))


def test_powers_of_other_types() -> None:
    feeds = {"a": floats(4), "b": np.arange(4, dtype=np.int32), "c": np.arange(4.0)}
    nodes = [helper.make_node("Pow", [name, "two"], [f"{name}_y"]) for name in feeds]
    made = model(nodes, feeds, 13, outputs=[node.output[0] for node in nodes], constants={"two": np.int64(2)})
    assert_same(made, feeds, 9, *(value**2 for value in feeds.values()))


def test_splits_of_other_sizes() -> None:
    feeds = {"a": floats(4), "b": floats(5)}
    nodes = [
        helper.make_node("Split", [name], [f"{name}_{part}" for part in range(2)], num_outputs=2) for name in feeds
    ]
    made = model(nodes, feeds, 18, outputs=[output for node in nodes for output in node.output])
    a, b = feeds.values()
    assert_same(made, feeds, 11, a[:2], a[2:], b[:3], b[3:])


def test_dropouts_of_which_one_has_a_mask() -> None:
    feeds = {"x": floats(3, 4)}
    nodes = [helper.make_node("Dropout", ["x"], outputs) for outputs in (["y", ""], ["z", "mask"])]
    made = model(nodes, feeds, 13, outputs=["y", "z", "mask"])
    for target in (11, 7):
        assert_same(made, feeds, target, feeds["x"], feeds["x"], np.ones((3, 4), np.bool_))
    assert operators(converted(made, 6)) == ["Dropout", "Identity", "Identity"]  # onnxruntime has no such Dropout


@pytest.mark.parametrize(
    ("first", "second"),
    [(["y", "", ""], ["z", "m", "i"]), (["y", "m", ""], ["z", "", ""]), (["y", "", "i"], ["z", "m", ""])],
)
def test_normalizations_of_which_other_outputs_are_wanted(first: list[str], second: list[str]) -> None:
    feeds = {"x": floats(3, 4)}
    nodes = [helper.make_node("LayerNormalization", ["x", "scale"], outputs) for outputs in (first, second)]
    outputs = [name for name in (*first, *second) if name]
    made = model(nodes, feeds, 17, outputs=outputs, constants={"scale": np.ones(4, np.float32)})
    assert_same(made, feeds, 13)


@pytest.mark.parametrize(
    ("op_type", "inputs", "opsets"),
    [
        ("Clip", ["x", "", ""], (13, 10)),
        ("Pad", ["x", "pads", "", ""], (18, 17)),
        ("Squeeze", ["x", ""], (13, 12)),
    ],
)
def test_empty_names_go_from_the_end_of_every_node(op_type: str, inputs: list[str], opsets: tuple[int, int]) -> None:
    feeds = {"x": floats(1, 4)}
    nodes = [helper.make_node(op_type, inputs, [output]) for output in "abc"]
    made = model(nodes, feeds, opsets[0], outputs="abc", constants={"pads": int64s(0, 1, 0, 1)})
    lowered = reducelower.convert_version(made, opsets[1])
    checker.check_model(lowered, full_check=True)
    expected = {"Clip": feeds["x"], "Pad": np.pad(feeds["x"], ((0, 0), (1, 1))), "Squeeze": feeds["x"][0]}[op_type]
    for result in run(lowered, feeds):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("order", [1, -1])
def test_nodes_with_and_without_an_input(order: int) -> None:
    nodes = [helper.make_node("OptionalHasElement", inputs, [output]) for inputs, output in ((["x"], "a"), ([], "b"))]
    feeds = {"x": floats(3)}
    made = model(nodes[::order], feeds, 18, outputs=["a", "b"])
    assert_same(made, feeds, 17, np.bool_(True), np.bool_(False))


def test_normalizations_of_which_one_has_its_statistics_read() -> None:
    constants = {name: np.ones(4, np.float32) for name in "sbmv"}
    nodes = [
        helper.make_node("BatchNormalization", ["x", *constants], [f"{part}{number}" for part in ("y", *"cdef")])
        for number in (1, 2)
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 4])]
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("y1", [3, 4]), ("y2", [3, 4]), ("e2", [4]))
    ]
    held = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, held)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=8)
    with pytest.raises(reducelower.ConversionError, match="BatchNormalization#1"):
        reducelower.convert_version(made, 14)
    del made.graph.output[2]
    checker.check_model(reducelower.convert_version(made, 14), full_check=True)


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


@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16])
def test_small_integers_where_no_wider_type_is_taken(op_type: str, dtype: type) -> None:
    feeds = {"x": np.array([100, 7, 9], dtype), "z": np.array([100, 3, 1], dtype)}
    made = model([helper.make_node(op_type, ["x", "z"], ["y"])], feeds, 14, outputs=())
    made.graph.output.append(helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), [3]))
    checker.check_model(reducelower.convert_version(made, 6), full_check=True)
    with pytest.raises(reducelower.ConversionError, match=f"{op_type} does not take"):
        reducelower.convert_version(made, 5)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
def test_integers_without_bounds_are_clipped_by_none(dtype: type) -> None:
    made = model([helper.make_node("Clip", ["x"], ["y"])], {"x": np.array([1, 2, 3], dtype)}, 13, outputs=())
    made.graph.output.append(helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), [3]))
    for opset in (6, 5):
        lowered = reducelower.convert_version(made, opset)
        checker.check_model(lowered, full_check=True)
        assert "Clip" not in {node.op_type for node in lowered.graph.node}
        assert len(lowered.graph.node) <= 2


@pytest.mark.parametrize(("op_type", "opset"), [("ScatterElements", 11), ("Scatter", 9)])
def test_scattering_where_there_is_neither_name_of_it(op_type: str, opset: int) -> None:
    constants = {"i": np.int64([[0, 1], [1, 0]]), "u": np.ones((2, 2), np.float32)}
    made = model([helper.make_node(op_type, ["x", "i", "u"], ["y"])], {"x": floats(3, 3)}, opset, constants=constants)
    with pytest.raises(reducelower.ConversionError, match="opset 8 has neither Scatter"):
        reducelower.convert_version(made, 8)


def test_a_sequence_map_without_its_first_output() -> None:
    """Its function body cannot be made, and there is no other way below opset 17."""
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "pqr"]
    inner = [helper.make_node("Identity", ["p"], ["q"]), helper.make_node("Neg", ["p"], ["r"])]
    body = helper.make_graph(inner, "b", tensors[:1], tensors[1:])
    given, wanted = (helper.make_tensor_sequence_value_info(name, TensorProto.FLOAT, [2]) for name in ("s", "o"))
    node = helper.make_node("SequenceMap", ["s"], ["", "o"], body=body)
    made = helper.make_model(
        helper.make_graph([node], "g", [given], [wanted]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    with pytest.raises(reducelower.ConversionError, match="function body cannot be made"):
        reducelower.convert_version(made, 16)


@pytest.mark.parametrize("size", [6, 7])
def test_a_split_that_names_fewer_outputs_than_it_has_parts(size: int) -> None:
    """onnxruntime goes by the outputs, the specification's inference by the attribute."""
    node = helper.make_node("Split", ["x"], ["y", "z"], num_outputs=3)
    types = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None]) for name in "yz"]
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [size])], types)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    with pytest.raises(reducelower.ConversionError, match="num_outputs is 3, but it names 2 outputs"):
        reducelower.convert_version(made, 17)


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
