"""Operators other than reductions that a runtime gets wrong are written otherwise, with the same numbers."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, checker, helper, numpy_helper, parser

from reducelower import Target, check, legalize, load_runtime
from tests.runtimes.toaster import runtime

X = np.array([[1.5, -2.25, np.inf, -0.5], [2.0, np.nan, -1.0, -0.0], [0.25, -3.5, -np.inf, 1.25]], np.float32)


def fact(op_type: str, when: str = "") -> str:
    return f"operators = ['{op_type}']\nis = 'wrong'{when and f'{chr(10)}when = {{ {when} }}'}"


def model(body: str, outputs: str, inputs: str = "float[3,4] x", opset: int = 13) -> ModelProto:
    text = f'<ir_version: 8, opset_import: ["" : {opset}]> g ({inputs}) => ({outputs}) {body}'
    return parser.parse_model(text)


def fitted(source: ModelProto, *facts: str) -> ModelProto:
    found = legalize(source, Target(runtime=runtime(*facts))).model
    checker.check_model(found, full_check=True)
    return found


def run(made: ModelProto, **inputs: np.ndarray) -> np.ndarray:
    return onnxruntime.InferenceSession(made.SerializeToString()).run(None, inputs)[0]


def operators(made: ModelProto) -> list[str]:
    return [node.op_type for node in made.graph.node]


def test_a_copy_is_negated_twice() -> None:
    made = fitted(model("{ z = Identity (x) }", "float[3, 4] z"), fact("Identity"))
    assert operators(made) == ["Neg", "Neg"]
    assert run(made, x=X).tobytes() == X.tobytes()


@pytest.mark.parametrize(("shape", "is_told"), [("", True), ("[1]", False), ("[a]", False)])
def test_outputs_that_come_in_another_shape_are_told(shape: str, is_told: bool) -> None:
    told = "operators = ['*']\nis = 'misshapen'\nwhen = { rank_out = '0' }"
    plan = check(model("{ z = Abs (x) }", f"float{shape} z", f"float{shape} x"), target=Target(runtime=runtime(told)))
    assert not plan.refusals
    assert not plan.sites
    assert bool(plan.unmended) == is_told
    assert all(says.startswith("on toaster 1.0: ") for says in plan.unmended)


@pytest.mark.parametrize(("first", "expected"), [("Div", ["Div", "Identity", "Erf"]), ("Mul", ["Mul", "Erf"])])
def test_for_opencv_no_gelu_is_put_together_that_crashes(first: str, expected: list[str]) -> None:
    body = f"{{ a = {first} (x, root) b = Erf (a) c = Add (b, one) d = Mul (half, c) y = Mul (x, d) }}"
    constants = "<float root = {1.4142135}, float one = {1}, float half = {0.5}>"
    source = model(f"{constants} {body}", "float[3,4] y", "float[3,4] x", 18)
    made = legalize(source, Target(runtime=load_runtime("opencv"))).model
    assert operators(made) == [*expected, "Add", "Mul", "Mul"]
    np.testing.assert_array_equal(run(made, x=X), run(source, x=X))


@pytest.mark.parametrize(("constant", "expected"), [("float[4] w = {1, 2, 3, 4}", ["Sub"]), ("", ["Reshape", "Sub"])])
def test_for_opencv_4_a_vector_that_is_not_constant_gets_the_rank_of_the_result(
    constant: str, expected: list[str]
) -> None:
    inputs = "float[3,4] x" if constant else "float[3,4] x, float[4] w"
    source = model(f"{f'<{constant}>' if constant else ''} {{ y = Sub (w, x) }}", "float[3,4] y", inputs, 18)
    assert operators(legalize(source, Target(runtime=load_runtime("opencv@4.14"))).model) == expected


@pytest.mark.parametrize(
    ("body", "others", "expected"),
    [
        ("<int64[3,1] i = {-1, 0, -4}> { z = GatherElements <axis = 1> (x, i) }", "", X[range(3), [3, 0, 0]][:, None]),
        ("<int64[2,2] i = {-1, -2, 0, 3}> { z = GatherND (x, i) }", "", X[[2, 0], [2, 3]]),
        ("<int64[3,1] i = {-1, 0, -4}> { z = ScatterElements <axis = 1> (x, i, u) }", "float[3,1] u", None),
        ("<int64[1,1] i = {-1}> { z = ScatterND (x, i, u) }", "float[1,4] u", None),
    ],
)
def test_constant_indices_are_counted_from_the_front(body: str, others: str, expected: np.ndarray | None) -> None:
    shape = "[3,4]" if expected is None else str(list(expected.shape))
    source = model(body, f"float{shape} z", ", ".join(filter(None, ["float[3,4] x", others])))
    made = fitted(source, fact(source.graph.node[0].op_type, "negative_indices = true"))
    assert operators(made) == operators(source)
    (indices,) = [numpy_helper.to_array(each) for each in made.graph.initializer]
    assert (indices >= 0).all()
    if expected is None:
        updates = np.full((3, 1) if "Elements" in body else (1, 4), 7, np.float32)
        expected = X.copy()
        expected[([0, 1, 2], [3, 0, 0]) if "Elements" in body else 2] = 7
        np.testing.assert_array_equal(run(made, x=X, u=updates), expected)
    else:
        np.testing.assert_array_equal(run(made, x=X), expected)


def test_attributes_that_say_what_is_so_by_default_are_left_out() -> None:
    body = '<int64[1,4] i = {2, 0, 1, 1}> { z = ScatterElements <reduction = "none", axis = 0> (x, i, u) }'
    source = model(body, "float[3,4] z", "float[3,4] x, float[1,4] u", opset=16)
    made = fitted(source, fact("ScatterElements", "attributes = ['reduction']"))
    assert not made.graph.node[0].attribute


@pytest.mark.parametrize(("reads", "is_told"), [("float[3,2] v", False), ("float[3,2] v, int64[3,2] i", True)])
def test_what_only_the_second_output_suffers_is_told_where_it_is_read(reads: str, is_told: bool) -> None:
    source = model("<int64[1] k = {2}> { v, i = TopK (x, k) }", reads)
    ties = "operators = ['TopK']\nis = 'overflows'\nwhen = { second_read = true }"
    plan = check(source, target=Target(runtime=runtime(ties)))
    assert not plan.refusals
    assert bool(plan.unmended) == is_told


@pytest.mark.parametrize(
    ("shape", "depth", "is_affected"), [("[2,1]", "1", True), ("[2,2]", "1", False), ("[a,b]", "1-", False)]
)
def test_how_many_indices_name_a_place(shape: str, depth: str, is_affected: bool) -> None:
    updates = "float[2,4]" if shape == "[2,1]" else "float[2]"
    source = model("{ z = ScatterND (x, i, u) }", "float[3,4] z", f"float[3,4] x, int64{shape} i, {updates} u")
    plan = check(source, target=Target(runtime=runtime(fact("ScatterND", f"index_depth = '{depth}'"))))
    assert bool(plan.sites or plan.refusals) == is_affected


@pytest.mark.parametrize(
    ("of_data", "of_indices", "is_told"),
    [("5", "2", True), ("5", "k", False), ("n", "2", False), ("n", "k", False), ("n,4", "2,k", False)],
)
def test_indices_are_scattered_one_after_the_other_where_all_sizes_are_known(
    of_data: str, of_indices: str, is_told: bool
) -> None:
    source = model(
        '{ z = ScatterElements <reduction = "add"> (x, i, u) }',
        f"float[{of_data}] z",
        f"float[{of_data}] x, int64[{of_indices}] i, float[{of_indices}] u",
        opset=18,
    )
    target = Target(runtime=runtime(fact("ScatterElements", "attributes = ['reduction=add']")))
    assert ("Slice" in operators(legalize(source, target).model)) == is_told


def attention(outputs: str, **attributes: int) -> ModelProto:
    stated = f"<{', '.join(f'{name} = {value}' for name, value in attributes.items())}>" if attributes else ""
    return parser.parse_model(
        '<ir_version: 11, opset_import: ["": 23]> g (float[2,3,4,8] q, float[2,3,4,8] k, float[2,3,4,8] v) => '
        f"(float[2,3,4,8] y{', float[2,3,4,4] p' if 'p' in outputs else ''}) "
        f"{{ {outputs} = Attention {stated} (q, k, v) }}"
    )


@pytest.mark.parametrize(
    ("outputs", "attributes", "is_taken"),
    [
        ("y", {}, True),
        ("y", {"qk_matmul_output_mode": 0}, True),
        ("y", {"qk_matmul_output_mode": 1}, False),
        ("y, a, b, p", {}, False),
    ],
)
def test_for_tract_a_default_that_is_stated_is_no_use_of_an_attribute(
    outputs: str, attributes: dict[str, int], is_taken: bool
) -> None:
    found = check(attention(outputs, **attributes), target=Target(23, runtime=load_runtime("tract")))
    assert found.changes_nothing == is_taken


def recurrence(operator: str, outputs: str, **attributes: object) -> ModelProto:
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[operator]
    sides = 2 if attributes.get("direction") == "bidirectional" else 1
    weights = [np.ones((sides, gates * 5, width), np.float32) for width in (4, 5)]
    node = helper.make_node(operator, ["x", "w", "r"], outputs.split(" "), hidden_size=5, **attributes)
    kept = next(filter(None, outputs.split(" ")))
    shape = [3, sides, 2, 5] if kept == "y" else [sides, 2, 5]
    graph = helper.make_graph(
        [node, helper.make_node("Abs", [kept], ["z"])],
        "g",
        [helper.make_tensor_value_info("x", 1, [3, 2, 4])],
        [helper.make_tensor_value_info("z", 1, shape)],
        [numpy_helper.from_array(value, name) for name, value in zip("wr", weights, strict=True)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)


@pytest.mark.parametrize(
    ("operator", "outputs", "attributes", "is_taken"),
    [
        ("RNN", "y h", {"direction": "bidirectional"}, True),
        ("LSTM", "y h c", {"direction": "bidirectional"}, True),
        ("GRU", "y h", {"direction": "bidirectional", "linear_before_reset": 1}, True),
        ("GRU", "y h", {}, False),
        ("RNN", " h", {"direction": "bidirectional"}, False),
    ],
)
def test_for_mnn_recurrences_of_both_directions_stay_where_every_step_is_read(
    operator: str, outputs: str, attributes: dict[str, object], is_taken: bool
) -> None:
    found = check(recurrence(operator, outputs, **attributes), target=Target(14, runtime=load_runtime("mnn")))
    assert found.changes_nothing == is_taken


def test_for_mnn_the_last_states_of_an_lstm_get_names() -> None:
    source = recurrence("LSTM", "y")
    made = legalize(source, Target(14, runtime=load_runtime("mnn"))).model
    assert [len(node.output) for node in made.graph.node] == [3, 1]
    x = np.ones((3, 2, 4), np.float32)
    np.testing.assert_array_equal(run(made, x=x), run(source, x=x))


@pytest.mark.parametrize(("operator", "size"), [("Conv", 6), ("ConvTranspose", 10)])
def test_for_mnn_an_identity_yields_what_has_one_spatial_dimension(operator: str, size: int) -> None:
    weights = "<float[3,3,3] w = {" + ", ".join(["1"] * 27) + "}>"
    source = model(f"{weights} {{ y = {operator} (x, w) }}", f"float[1,3,{size}] y", "float[1,3,8] x", 14)
    made = legalize(source, Target(14, runtime=load_runtime("mnn"))).model
    assert operators(made) == [operator, "Identity"]
    x = np.arange(24, dtype=np.float32).reshape(1, 3, 8)
    np.testing.assert_array_equal(run(made, x=x), run(source, x=x))
