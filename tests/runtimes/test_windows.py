"""Convolutions, pools, products and recurrences that a runtime gets wrong are written otherwise, with the same numbers.

The numbers are those of onnxruntime's kernels for what is replaced.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from onnx import numpy_helper

from reducelower import ConversionError, Target, check
from tests.runtimes.test_forms import fact, fitted, model, operators, run
from tests.runtimes.toaster import runtime

POOL = "z = MaxPool <kernel_shape = [{}], strides = [2], ceil_mode = 1> (x)"
CONVOLUTION = "z = Conv <kernel_shape = [3,3]> (x, y)"
DILATED = "z = MaxPool <kernel_shape = [2,2]{}> (x)"
SAME = "attributes = ['auto_pad=SAME_UPPER', 'auto_pad=SAME_LOWER']"


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(("size", "kernel", "stride"), [(9, 3, 3), (10, 3, 2), (9, 4, 1), (10, 2, 2), (5, 4, 3)])
@pytest.mark.parametrize("op_type", ["Conv", "ConvTranspose", "MaxPool", "AveragePool"])
def test_auto_pad_becomes_the_pads_it_stands_for(
    op_type: str, size: int, kernel: int, stride: int, auto_pad: str
) -> None:
    written = f"kernel_shape = [{kernel}, {kernel}], strides = [{stride}, {stride}], auto_pad = '{auto_pad}'"
    is_weighted = op_type.startswith("Conv")
    inputs = f"float[1,2,{size},{size}] x" + f", float[2,2,{kernel},{kernel}] w" * is_weighted
    source = model(
        f"{{ z = {op_type} <{written}> (x{', w' * is_weighted}) }}".replace("'", '"'), "float[a,b,c,d] z", inputs
    )
    if op_type == "ConvTranspose" and stride > kernel:
        return  # The page of the operator does not say what then.
    made = fitted(source, fact(op_type, SAME))
    (node,) = made.graph.node
    assert {"pads"} <= {attribute.name for attribute in node.attribute} >= {"strides"}
    fed = {"x": numbers(1, 2, size, size), **({"w": numbers(2, 2, kernel, kernel)} if is_weighted else {})}
    np.testing.assert_allclose(run(made, **fed), run(source, **fed), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("node", "weights"),
    [
        ("Conv <kernel_shape = [3], pads = [2, 0]> (x, w)", ", float[4,4,3] w"),
        ("Conv <kernel_shape = [3], pads = [0, 1], group = 4> (x, w)", ", float[4,1,3] w"),
        ("MaxPool <kernel_shape = [3], pads = [2, 0]> (x)", ""),
        ("AveragePool <kernel_shape = [3], pads = [0, 2], count_include_pad = 1> (x)", ""),
    ],
)
@pytest.mark.parametrize("opset", [9, 13, 18])
def test_uneven_pads_are_put_round_the_data_beforehand(node: str, weights: str, opset: int) -> None:
    source = model(f"{{ z = {node} }}", "float[a,b,c] z", f"float[1,4,7] x{weights}", opset)
    made = fitted(source, fact(node.partition(" ")[0], "uneven = true"))
    assert "Pad" in operators(made)
    fed = {"x": numbers(1, 4, 7), **({"w": numbers(4, int(weights[10]), 3)} if weights else {})}
    np.testing.assert_allclose(run(made, **fed), run(source, **fed), rtol=1e-5, atol=1e-5)


def test_pads_that_do_not_count_are_not_put_round_the_data() -> None:
    source = model("{ z = AveragePool <kernel_shape = [3], pads = [0, 2]> (x) }", "float[1,4,7] z", "float[1,4,7] x")
    plan = check(source, target=Target(13, runtime=runtime(fact("AveragePool", "uneven = true"))))
    assert [refusal.operator for refusal in plan.refusals] == ["AveragePool"]


@pytest.mark.parametrize(
    ("attributes", "one", "other", "third"),
    [
        ("alpha = 1.0", "4,5", "5,3", "3"),
        ("transA = 1, alpha = 0.5", "5,4", "5,3", "4,1"),
        ("transB = 1, beta = 2.0", "4,5", "3,5", ""),
    ],
)
def test_gemm_becomes_a_product_and_a_sum(attributes: str, one: str, other: str, third: str) -> None:
    source = model(f"{{ z = Gemm <{attributes}> (a, b, c) }}", "float[4,3] z", f"float[{one}] a, float[{other}] b, "
                   f"float{third and f'[{third}]'} c")  # fmt: skip
    made = fitted(source, fact("Gemm", "last = ['fed'], broadcast = true"))
    assert {"MatMul", "Add"} <= set(operators(made))
    fed = {
        name: numbers(*map(int, filter(None, shape.split(","))))
        for name, shape in (("a", one), ("b", other), ("c", third))
    }
    np.testing.assert_allclose(run(made, **fed), run(source, **fed), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("first", "second"), [("2,2,4,3", "2,3,5"), ("2,1,4,3", "1,2,3,5"), ("4,3", "2,2,3,5")])
def test_operands_of_a_product_are_spread_beforehand(first: str, second: str) -> None:
    source = model("{ z = MatMul (x, y) }", "float[2,2,4,5] z", f"float[{first}] x, float[{second}] y")
    made = fitted(source, fact("MatMul", "broadcast = true"))
    assert ("Expand" in operators(made)) == (first != "4,3")
    fed = {name: numbers(*map(int, shape.split(","))) for name, shape in (("x", first), ("y", second))}
    np.testing.assert_allclose(run(made, **fed), run(source, **fed), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("op_type", "gates", "results"), [("LSTM", 4, "y, h, c"), ("GRU", 3, "y, h"), ("RNN", 1, "y")])
def test_a_recurrence_from_the_end_goes_over_data_that_are_turned_round(op_type: str, gates: int, results: str) -> None:
    body = f'{{ {results} = {op_type} <direction = "reverse", hidden_size = 2> (x, w, r) }}'
    inputs = f"float[5,1,3] x, float[1,{2 * gates},3] w, float[1,{2 * gates},2] r"
    fed = {"x": numbers(5, 1, 3), "w": numbers(1, 2 * gates, 3), "r": numbers(1, 2 * gates, 2)}
    for value, rank in zip(results.split(", "), (4, 3, 3), strict=False):
        source = model(body, f"float[{', '.join('abcd'[:rank])}] {value}", inputs, 14)
        made = fitted(source, fact(op_type, "attributes = ['direction=reverse']"))
        assert operators(made).count(op_type) == 1
        np.testing.assert_allclose(run(made, **fed), run(source, **fed), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("op_type", "gates", "more"), [("LSTM", 4, ", c"), ("GRU", 3, ""), ("RNN", 1, "")])
@pytest.mark.parametrize("weights", ["fed", "constant"])
def test_a_recurrence_in_both_directions_is_one_in_each(op_type: str, gates: int, more: str, weights: str) -> None:
    activations = ["Tanh"] if gates == 1 else ["HardSigmoid", *["Tanh"] * (gates // 2)]
    stated = ", ".join(f'"{each}"' for each in [*activations, "Sigmoid", *activations[1:]])
    body = f'y, h{more} = {op_type} <direction = "bidirectional", hidden_size = 2, activations = [{stated}]>'
    shapes = {"x": (5, 1, 3), "w": (2, 2 * gates, 3), "r": (2, 2 * gates, 2), "b": (2, 4 * gates), "f": (2, 1, 2)}
    fed = {name: numbers(*shape) for name, shape in shapes.items()}
    inputs = ", ".join(f"float{list(shape)} {name}" for name, shape in shapes.items())
    for value, rank in zip(f"y, h{more}".split(", "), (4, 3, 3), strict=False):
        source = model(f"{{ {body} (x, w, r, b,, f) }}", f"float[{', '.join('abcd'[:rank])}] {value}", inputs, 14)
        if weights == "constant":
            del source.graph.input[1:]
            source.graph.initializer.extend(numpy_helper.from_array(fed[name], name) for name in list(shapes)[1:])
        made = fitted(source, fact(op_type, "attributes = ['direction=bidirectional']"))
        assert operators(made).count(op_type) == 2
        assert ("Slice" in operators(made)) == (weights == "fed")
        given = {each.name: fed[each.name] for each in source.graph.input}
        np.testing.assert_allclose(run(made, **given), run(source, **given), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("steps", ["5", "n"])
def test_what_the_last_step_yields_is_taken_out_of_all(direction: str, steps: str) -> None:
    both = 1 + (direction == "bidirectional")
    body = f'{{ , h = GRU <direction = "{direction}", hidden_size = 2> (x, w, r) }}'
    inputs = f"float[{steps},1,3] x, float[{both},6,3] w, float[{both},6,2] r"
    fed = {"x": numbers(5, 1, 3), "w": numbers(both, 6, 3), "r": numbers(both, 6, 2)}
    source = model(body, "float[a,b,c] h", inputs, 14)
    if direction != "forward" and steps == "n":
        with pytest.raises(ConversionError, match="GRU"):
            fitted(source, fact("GRU", "first_read = false"))
        return
    made = fitted(source, fact("GRU", "first_read = false"))
    assert all(node.output[0] for node in made.graph.node)
    np.testing.assert_allclose(run(made, **fed), run(source, **fed), rtol=1e-5, atol=1e-5)


def test_a_size_is_the_product_of_sizes() -> None:
    made = fitted(model("{ z = Size (x) }", "int64 z", "float[n,4] x"), fact("Size"))
    assert operators(made) == ["Shape", "ReduceProd"]
    assert run(made, x=numbers(3, 4)) == 12


def test_what_depends_on_constants_alone_becomes_its_value() -> None:
    source = model("{ y = GatherElements <axis = 1> (d, i) z = Add (y, x) }", "int64[a,b] z", "int64[1,3] x")
    # onnx's evaluator gathers along 32 elements at most.
    data, indices = np.arange(80).reshape(2, 40), np.array([[39, 0, -1]])
    source.graph.initializer.extend([numpy_helper.from_array(data, "d"), numpy_helper.from_array(indices, "i")])
    made = fitted(source, fact("GatherElements"))
    assert operators(made) == ["Constant", "Add"]
    assert not made.graph.initializer
    np.testing.assert_array_equal(run(made, x=np.array([[1, 2, 3]])), [[40, 2, 42]])


def test_operands_that_depend_on_constants_alone_are_stored() -> None:
    source = model("{ y = Identity (b) z = Add (x, y) }", "float[3,4] z")
    bias = numbers(4)
    source.graph.initializer.append(numpy_helper.from_array(bias, "b"))
    made = fitted(source, fact("Add", "last = ['dynamic']"))
    assert operators(made) == ["Add"]
    assert len(made.graph.initializer) == 1
    x = numbers(3, 4)
    np.testing.assert_array_equal(run(made, x=x), x + bias)


@pytest.mark.parametrize(("size", "shape"), [("2", [3, -1]), ("n", [3, -1]), ("0", [3, 0])])
def test_allowzero_is_left_out_where_the_shape_means_the_same(size: str, shape: list[int]) -> None:
    source = model("{ z = Reshape <allowzero = 1> (x, s) }", "float[a,b] z", f"float[{size},3] x", 21)
    source.graph.initializer.append(numpy_helper.from_array(np.array(shape), "s"))
    made = fitted(source, fact("Reshape", "attributes = ['allowzero=1']"))
    assert operators(made) == ["Reshape"]
    assert made.opset_import[0].version == 21
    x = numbers(0 if size == "0" else 2, 3)
    np.testing.assert_array_equal(run(made, x=x), x.reshape(3, x.size // 3))


@pytest.mark.parametrize(
    ("op_type", "expected"),
    [("And", np.logical_and), ("Or", np.logical_or), ("Xor", np.logical_xor), ("Not", lambda x, y: np.logical_not(x))],
)
@pytest.mark.parametrize("opset", [7, 11, 18])
def test_logic_is_arithmetic_on_ones_and_zeros(op_type: str, expected: Callable[..., object], opset: int) -> None:
    read = "x" if op_type == "Not" else "x, y"
    source = model(f"{{ z = {op_type} ({read}) }}", "bool[a,b] z", "bool[2,2] x, bool[2] y", opset)
    made = fitted(source, *map(fact, ("And", "Or", "Xor", "Not")))
    assert not {"And", "Or", "Xor", "Not"} & set(operators(made))
    x, y = np.array([[False, True], [True, False]]), np.array([False, True])
    np.testing.assert_array_equal(run(made, x=x, y=y), expected(x, y))


@pytest.mark.parametrize(
    ("body", "inputs", "when", "is_true"),
    [
        (POOL.format(1), "float[1,1,2] x", "overhangs = true", True),
        (POOL.format(3), "float[1,1,6] x", "overhangs = true", False),
        ("z = PRelu (x, y)", "float[2,3,4] x, float[3,1] y", "per_channel = false", False),
        ("z = PRelu (x, y)", "float[2,3,4] x, float[4] y", "per_channel = false", True),
        ("z = Softmax (x)", "float[2,3] x", "attributes = ['!axis']", True),
        ("z = Softmax <axis = -1> (x)", "float[2,3] x", "attributes = ['!axis']", False),
        (CONVOLUTION, "float[1,4,1,5] x, float[4,1,3,3] y", "thin = true", True),
        (CONVOLUTION, "float[1,4,2,5] x, float[4,1,3,3] y", "thin = true", False),
        (CONVOLUTION, "float[1,1,1,5] x, float[4,1,3,3] y", "thin = true", False),
        (CONVOLUTION, "float[1,4,1,5] x, float[4,2,3,3] y", "thin = true", False),
        (DILATED.format(", dilations = [2,2]"), "float[1,1,5,5] x", "attributes = ['dilations!=1']", True),
        (DILATED.format(", dilations = [1,1]"), "float[1,1,5,5] x", "attributes = ['dilations!=1']", False),
        (DILATED.format(""), "float[1,1,5,5] x", "attributes = ['dilations!=1']", False),
        ("z = Clip (x,, y)", "float[2] x, float y", "inputs = '3'", True),
        ("z = Clip (x, y)", "float[2] x, float y", "inputs = '3'", False),
        ("z, i = TopK <axis = 0> (x, y)", "float[2] x, int64[1] y", "first_read = false", False),
        ("i, z = TopK <axis = 0> (x, y)", "float[2] x, int64[1] y", "first_read = false", True),
        ("z, i = Split <num_outputs = 2, axis = 0> (x)", "float[5] x", "uneven = true", True),
        ("z, i = Split <num_outputs = 2, axis = 0> (x)", "float[6] x", "uneven = true", False),
        ("z = Relu (x)", "float[2] x", "yielded = true", True),
        ("y = Relu (x) z = Abs (y)", "float[2] x", "yielded = true", False),
        ("z = Add (x, y)", "float[2] x, float[2] y", "last = ['initializer']", False),
        ("z = Pow (x, y)", "float[2] x, uint32[2] y", "second_types = ['uint32']", True),
        ("z = Pow (x, y)", "float[2] x, int32[2] y", "second_types = ['uint32']", False),
        ("z = Add (y, x)", "float[2] x, float[2] y", "last = ['fed']", True),
    ],
)  # fmt: skip
def test_what_facts_ask_for(body: str, inputs: str, when: str, is_true: bool) -> None:
    op_type = body.partition("= ")[2].partition(" ")[0]
    kind = "int64" if "i, z" in body else "float"
    source = model(f"{{ {body} }}", f"{kind}{_shape(inputs)} z", inputs, 18)
    told = "\n".join([f"operators = ['{op_type}']", "is = 'overflows'", f"when = {{ {when} }}"])
    plan = check(source, target=Target(18, runtime=runtime(told)))
    assert bool(plan.unmended or plan.sites) == is_true


def _shape(inputs: str) -> str:
    """A shape of named sizes with as many dimensions as the data."""
    count = inputs.partition("]")[0].count(",") + 1
    return f"[{', '.join('abcdefg'[:count])}]"
