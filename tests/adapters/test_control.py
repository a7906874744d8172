"""If, Loop and Scan themselves."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import GraphProto, TensorProto, helper, numpy_helper, parser

from tests.adapters.models import assert_same, converted, floats, model, run

FLOAT = TensorProto.FLOAT


def _constant_graph(name: str, value: np.ndarray) -> GraphProto:
    tensor = helper.make_tensor("value", FLOAT, value.shape, value.ravel())
    node = helper.make_node("Constant", [], [name], value=tensor)
    return helper.make_graph([node], name, [], [helper.make_tensor_value_info(name, FLOAT, value.shape)])


def _if(then: np.ndarray, other: np.ndarray, opset: int) -> tuple[object, dict[str, np.ndarray]]:
    node = helper.make_node(
        "If", ["c"], ["y"], then_branch=_constant_graph("t", then), else_branch=_constant_graph("e", other)
    )
    feeds = {"c": np.array(True)}
    return model([node], feeds, opset), feeds


def test_branches_of_one_shape_are_carried_over() -> None:
    made, feeds = _if(floats(2, 3), floats(2, 3, seed=1), 13)
    assert_same(made, feeds, 9, floats(2, 3))  # type: ignore[arg-type]


@pytest.mark.parametrize("target", [10, 9, 7])
@pytest.mark.parametrize("stated", [True, False])
@pytest.mark.parametrize("other", [(3, 2), (3,), ()])
def test_branches_of_different_shapes_are_run_in_loops(other: tuple[int, ...], stated: bool, target: int) -> None:
    node = helper.make_node(
        "If",
        ["c"],
        ["w"],
        then_branch=_constant_graph("t", floats(2, 3)),
        else_branch=_constant_graph("e", floats(*other)),
    )
    for attribute in node.attribute if not stated else ():
        attribute.g.output[0].type.tensor_type.ClearField("shape")
    flat = helper.make_node("Reshape", ["w", "row"], ["y"])
    made = model([node, flat], {"c": np.array(True)}, 13, constants={"row": np.array([-1])})
    older = converted(made, target)
    assert "If" not in {each.op_type for each in older.graph.node}
    for condition, expected in ((True, floats(2, 3)), (False, floats(*other))):
        np.testing.assert_array_equal(run(older, {"c": np.array(condition)})[0], expected.ravel())


@pytest.mark.parametrize("target", [10, 9])
def test_unlike_branches_inside_of_others_are_run_in_loops(target: int) -> None:
    made = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 15]> g (float[2,3] x, bool o, bool c) => (float y, float z) {
            u, v = If (o) <
                then_branch = t () => (float[p,q] a, float[r] b) {
                    a = If (c) <then_branch = t2 () => (float[3,2] e) { e = Transpose (x) },
                                else_branch = e2 () => (float[2,3] f) { f = Neg (x) }>
                    k = Constant <value = int64[1] {-1}> () b = Reshape (x, k)
                },
                else_branch = e () => (float[2,3] g, float[2,3] h) { g = Abs (x) h = Identity (g) }
            >
            y = ReduceMax <keepdims = 0> (u) s = Shape (v) w = Cast <to = 1> (s) z = ReduceSum <keepdims = 0> (w)
        }"""
    )
    x = floats(2, 3)
    for outer, inner in ((True, True), (True, False), (False, True)):
        y, z = run(converted(made, target), {"x": x, "o": np.array(outer), "c": np.array(inner)})
        assert y == (np.abs(x) if not outer else x if inner else -x).max()
        assert z == (6 if outer else 5)


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
    session = onnxruntime.InferenceSession(converted(made, target).SerializeToString())
    for condition, size in ((True, 0), (False, 1)):
        (found,) = session.run(None, {"x": np.zeros(1, np.float32), "c": np.array(condition)})
        assert found.tolist() == [size]


@pytest.mark.parametrize("target", [10, 7])
def test_branches_that_state_no_types_get_the_element_types_of_what_they_yield(target: int) -> None:
    made = parser.parse_model(
        """<ir_version: 7, opset_import: ["" : 12]> g (float[3] x, float[m] z, bool c) => (float[k] y) {
            y = If (c) <
                then_branch = t () => (float a) { a = Relu (x) }, else_branch = e () => (float b) { b = Neg (z) }
            >
        }"""
    )
    for branch in made.graph.node[0].attribute:
        branch.g.output[0].ClearField("type")
    x, z = floats(3), floats(2)
    for condition, expected in ((True, np.maximum(x, 0)), (False, -z)):
        assert_same(made, {"x": x, "z": z, "c": np.array(condition)}, target, expected)


_BY_OUTER_AXES = """If (c) <
    then_branch = t () => (float[p,q] a) { a = ReduceMean (x, first) },
    else_branch = e () => (float[r,s] b) { b = ReduceMean (x, last) }
>"""
_AXES = "first = Constant <value_ints = [0]> () last = Constant <value_ints = [1]> ()"
_UNLIKE = {
    "in the main graph": f"""g (bool c, float[2,3] x) => (float[k,l] y) {{ {_AXES} y = {_BY_OUTER_AXES} }}""",
    "as initializers": f"""g (bool c, float[2,3] x) => (float[k,l] y) <int64[1] first = {{0}}, int64[1] last = {{1}}> {{
        y = {_BY_OUTER_AXES} }}""",
    "in a function": f"""g (bool c, float[2,3] x) => (float[k,l] y) {{ y = local.F (c, x) }}
        <domain: "local", opset_import: ["": 18]> F (c, x) => (y) {{ {_AXES} y = {_BY_OUTER_AXES} }}""",
}


@pytest.mark.parametrize("target", [10, 9])
@pytest.mark.parametrize("place", _UNLIKE)
def test_branches_may_reduce_along_different_constants_of_outside(place: str, target: int) -> None:
    made = parser.parse_model(f'<ir_version: 8, opset_import: ["": 18, "local": 1]> {_UNLIKE[place]}')
    x = floats(2, 3)
    for condition in (True, False):
        assert_same(made, {"c": np.array(condition), "x": x}, target, x.mean(0 if condition else 1, keepdims=True))


@pytest.mark.parametrize("condition", [True, False])
def test_only_the_branch_that_is_taken_has_a_shape(condition: bool) -> None:
    made, _ = _if(floats(2, 3), floats(3, 2), 13)
    del made.graph.input[:]  # type: ignore[attr-defined]
    made.graph.node.insert(0, helper.make_node("Not", ["n"], ["c"]))  # type: ignore[attr-defined]
    made.graph.initializer.append(numpy_helper.from_array(np.array(not condition), "n"))  # type: ignore[attr-defined]
    assert_same(made, {}, 9, floats(2, 3) if condition else floats(3, 2))  # type: ignore[arg-type]


@pytest.mark.parametrize("target", [9, 10])
@pytest.mark.parametrize("condition", ["0", "1"])
@pytest.mark.parametrize("inside", [False, True])
def test_the_branch_that_is_taken_is_made_legal_before_it_stands_for_the_other(
    condition: str, inside: bool, target: int
) -> None:
    """The branches have operators that did not exist below 11, at different places."""
    inner = """r = If (c) <
        then_branch = t () => (int64[] u) { k = Identity (x) l = Identity (k) u = BitwiseOr (l, x) },
        else_branch = e () => (int64[] v) { n = Transpose (x) v = BitwiseNot (n) }
    >"""
    # A condition that is known, inside of one that is not.
    outer = f"""z = If (o) <
        then_branch = f () => (int64[] r) {{ {inner} }},
        else_branch = h () => (int64[] w) {{ w = BitwiseNot (x) }}
    >"""
    made = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 18]>
            g (int64[2, 3] x, bool o) => (int64[y0, y1] {"z" if inside else "r"}, bool read) <bool c = {{{condition}}}>
            {{ {outer if inside else inner} read = Not (o) }}"""
    )
    x = np.array([[1, -2, 9], [6, 3, 0]])
    options = onnxruntime.SessionOptions()
    # It loses the result of an If inside of another whose condition it knows.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(converted(made, target).SerializeToString(), options)
    found, _ = session.run(None, {"x": x, "o": np.array(True)})
    np.testing.assert_array_equal(found, x if condition == "1" else ~x.T)


def test_a_loop_that_carries_nothing_gets_something_to_carry() -> None:
    body = helper.make_graph(
        [helper.make_node("Cast", ["i"], ["f"], to=FLOAT), helper.make_node("Identity", ["c"], ["d"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("d", TensorProto.BOOL, []), helper.make_tensor_value_info("f", FLOAT, [])],
    )
    node = helper.make_node("Loop", ["n", ""], ["y"], body=body)
    feeds = {"n": np.array(4, np.int64)}
    made = model([node], feeds, 11)
    assert_same(made, feeds, 9, np.arange(4, dtype=np.float32))


def _sum_graph() -> GraphProto:
    values = [helper.make_tensor_value_info(name, FLOAT, [2]) for name in ("s", "x", "t", "u")]
    nodes = [helper.make_node("Add", ["s", "x"], ["t"]), helper.make_node("Identity", ["t"], ["u"])]
    return helper.make_graph(nodes, "sum", values[:2], values[2:])


def test_negative_axes_of_scan_are_counted_from_the_front() -> None:
    feeds = {"start": np.zeros(2, np.float32), "data": floats(2, 5)}
    node = helper.make_node(
        "Scan", ["start", "data"], ["last", "y"], body=_sum_graph(), num_scan_inputs=1, scan_input_axes=[-1],
        scan_output_axes=[-1],
    )  # fmt: skip
    made = model([node], feeds, 11, outputs=["last", "y"])
    summed = np.cumsum(feeds["data"], 1)
    assert_same(made, feeds, 9, summed[:, -1], summed)


@pytest.mark.parametrize("target", [9, 11, 21])
@pytest.mark.parametrize("direction", [0, 1])
def test_batches_of_scan_8_become_a_scan_of_scans(direction: int, target: int) -> None:
    feeds = {"start": floats(3, 2, seed=1), "data": floats(3, 5, 2)}
    node = helper.make_node(
        "Scan", ["", "start", "data"], ["last", "y"], body=_sum_graph(), num_scan_inputs=1, directions=[direction]
    )
    made = model([node], feeds, 8, outputs=["last", "y"])
    data = feeds["data"][:, ::-1] if direction else feeds["data"]
    summed = np.cumsum(data, 1) + feeds["start"][:, None]
    result = converted(made, target)
    for want, got in zip((summed[:, -1], summed), run(result, feeds), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("target", [9, 11, 19])
@pytest.mark.parametrize("in_function", [False, True])
def test_what_the_body_of_a_scan_8_holds_is_made_legal_once(in_function: bool, target: int) -> None:
    """Nodes that are replaced, and constants that nodes in functions bring in, are of the body that is handed on."""
    scan = """
        zero = Constant <value = float[2] {0, 0}> ()
        last, y = Scan <num_scan_inputs = 1, body = step (float a, float b) => (float c, float d)
        {
            c = Add (a, b)
            bounded = Clip <max = 2.0> (c)
            square = Unsqueeze <axes = [0, 1]> (bounded)
            repeated = Upsample <scales = [2.0, 3.0]> (square)
            d = ReduceSum <keepdims = 0> (repeated)
        }> ("", zero, x)
    """
    graph = "g (float[2, 3] x) => (float[2, 3] y)"
    if in_function:
        text = f"""<ir_version: 8, opset_import: ["": 8, "local": 1]> {graph} {{ y = local.F (x) }}
            <domain: "local", opset_import: ["": 8]> F (x) => (y) {{ {scan} }}"""
    else:
        text = f"""<ir_version: 8, opset_import: ["": 8]> {graph} {{ {scan} }}"""
    data = floats(2, 3)
    expected = 6 * np.minimum(np.cumsum(data, 1), 2)
    np.testing.assert_allclose(run(converted(parser.parse_model(text), target), {"x": data})[0], expected, rtol=1e-5)


@pytest.mark.parametrize("target", [15, 11])
def test_what_a_scan_hands_to_its_body_need_not_be_stated_there(target: int) -> None:
    made = parser.parse_model(
        """
        <ir_version: 8, opset_import: ["": 17]>
        g (float16[2, 3] s, float16[4, 2, 3] x) => (float16[2, 3] last, float16[4, 2, 3] y)
        {
            last, y = Scan <num_scan_inputs = 1, body = step (a, b) => (c, d)
            {
                c = Add (a, b)
                w = Cast <to = 11> (c)
                d = CastLike (w, b)
            }> (s, x)
        }
        """
    )
    feeds = {"s": np.ones((2, 3), np.float16), "x": np.arange(24, dtype=np.float16).reshape(4, 2, 3)}
    sums = 1 + np.cumsum(feeds["x"], 0)
    last, result = run(converted(made, target), feeds)
    np.testing.assert_array_equal(result, sums)
    np.testing.assert_array_equal(last, sums[-1])
