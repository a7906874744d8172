"""Of a large model, the first of each kind of node tells what holds of all."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from reducelower.model.document import Document
from reducelower.pipeline.excerpt import Excerpt, excerpt_of
from reducelower.pipeline.inspection import inspect_file
from reducelower.pipeline.where import Fault, where

LAYERS, UNLIKE = 1100, 300
SPLIT = "s$, t$ = Split <axis = 1, num_outputs = 2> (~)"
BRANCHES = "a$ = Relu (~) b$ = Elu (~) c$ = Neg (a$) d$ = Neg (b$)"
WEIGHT = "float[8] w$ = {1, 2, 3, 4, 5, 6, 7, $}"
NORMALIZED = "m$ = ReduceMean <keepdims = 1> (~, a$) y$ = Sub (~, m$)"


def model(
    layer: str, other: str = "", *, weights: str = "", of_other: str = "", layers: int = LAYERS
) -> onnx.ModelProto:
    """Layers one behind the other, of which one may be another; $ stands for a layer's number, ~ for what it reads."""
    nodes, initializers = [], []
    for number in range(layers):
        is_other = number == UNLIKE
        read = f"y{number - 1}" if number else "x"
        nodes.append((other if is_other and other else layer).replace("$", str(number)).replace("~", read))
        initializers.append((of_other if is_other and of_other else weights).replace("$", str(number)))
    return onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 18]> g (float[N,8] x, bool b) => (float[N,8] y{layers - 1}) '
        f"<{', '.join(filter(None, initializers))}> {{ {' '.join(nodes)} }}"
    )


def taken(source: onnx.ModelProto) -> Excerpt:
    return excerpt_of(Document.of_message(source))


def computed(found: Excerpt) -> set[str]:
    return {name for node in found.document.message.graph.node for name in node.output}


@pytest.mark.parametrize(
    ("layer", "weights"),
    [
        ("y$ = Relu (~)", ""),
        (NORMALIZED, "int64[1] a$ = {-1}"),
        (f"{SPLIT} y$ = Concat <axis = 1> (t$, s$)", ""),
        ("c$ = Clip (~, , h$) y$ = Add (c$, ~)", "float h$ = {6}"),
        ("y$ = Mul (~, w$)", WEIGHT),
        ("q$ = QuantizeLinear (~, s$, z$) y$ = DequantizeLinear (q$, s$, z$)", "float s$ = {$.5}, uint8 z$ = {3}"),
        ("e$ = Elu <alpha = $.5> (~) y$ = Add (e$, ~)", ""),
        ("k$ = Constant <value = float {$.5}> () y$ = Add (k$, ~)", ""),
    ],
)
def test_alike_layers_are_taken_once(layer: str, weights: str) -> None:
    source = model(layer, weights=weights)
    found = taken(source)
    made = found.document.message
    onnx.checker.check_model(made, full_check=True)
    assert len(made.graph.node) < 100
    assert sum(found.counts.values()) == len(source.graph.node)
    assert [value.name for value in made.graph.output] == [value.name for value in source.graph.output]


@pytest.mark.parametrize(
    ("layer", "other", "weights", "of_other", "value"),
    [
        ("y$ = Relu (~)", "y$ = Elu (~)", "", "", "y300"),
        ("y$ = Elu (~)", "y$ = Elu <alpha = 2.0> (~)", "", "", "y300"),
        (NORMALIZED, "", "int64[1] a$ = {-1}", "int64[1] a$ = {1}", "m300"),
        ("y$ = Sub (~, x)", "y$ = Sub (x, ~)", "", "", "y300"),
        ("y$ = Sub (~, x)", "y$ = Sub (~, ~)", "", "", "y300"),
        ("y$ = Max (~, x, x)", "y$ = Max (~, x, ~)", "", "", "y300"),
        (f"{SPLIT} y$ = Concat <axis = 1> (s$, t$)", f"{SPLIT} y$ = Concat <axis = 1> (t$, s$)", "", "", "y300"),
        (f"{BRANCHES} y$ = Sub (c$, d$)", f"{BRANCHES} y$ = Sub (d$, c$)", "", "", "y300"),
        ("y$ = Relu (~)", "c$ = Cast <to = 10> (~) r$ = Relu (c$) y$ = Cast <to = 1> (r$)", "", "", "r300"),
        ("y$ = Relu (~)", "s$ = Softmax (~) y$ = Relu (s$)", "", "", "y300"),
        ("y$ = Relu (~)", "s$ = Softmax (~) y$ = Relu (s$)", "", "", "y304"),
    ],
)
def test_a_layer_unlike_the_others_is_taken_too(
    layer: str, other: str, weights: str, of_other: str, value: str
) -> None:
    found = taken(model(layer, other, weights=weights, of_other=of_other))
    assert value in computed(found)
    assert len(found.document.message.graph.node) < 100


def test_types_tell_layers_apart_that_are_far_from_where_they_change() -> None:
    source = model("y$ = Relu (~)", "y$ = Cast <to = 10> (~)")
    source.graph.node[700].CopyFrom(onnx.helper.make_node("Cast", ["y699"], ["y700"], to=1))
    found = taken(source)
    often = [node.output[0] for node in found.document.message.graph.node if found.counts[node.name] > 300]
    assert often == ["y13", "y314"]  # of float, before and behind those of float16


def test_an_excerpt_has_no_weights_and_all_outputs_that_no_node_computes() -> None:
    source = model("y$ = Relu (~)")
    source.graph.node.append(onnx.helper.make_node("Mul", ["y1099", "w"], ["z"]))
    source.graph.initializer.append(onnx.helper.make_tensor("w", 1, [500, 8], [0.5] * 4000))
    source.graph.output.append(source.graph.input[1])
    made = taken(source).document.message
    (weight,) = made.graph.initializer
    assert (weight.dims, len(weight.float_data), len(weight.raw_data)) == ([500, 8], 0, 0)
    assert [value.name for value in made.graph.output] == ["y1099", "b"]


def test_a_node_with_graphs_is_taken_and_what_they_read() -> None:
    found = taken(
        model(
            "y$ = Relu (~)",
            "r$ = Relu (~) y$ = If (b) <then_branch = t () => (float[N,8] u) { u = Elu (r$) }, "
            "else_branch = e () => (float[N,8] v) { v = Identity (y299) }>",
        )
    )
    onnx.checker.check_model(found.document.message, full_check=True)
    assert {"y299", "r300", "y300"} <= computed(found)


def test_a_model_of_few_nodes_is_taken_whole() -> None:
    source = onnx.parser.parse_model('<ir_version: 8, opset_import: ["": 18]> g (float[2] x) => (y) { y = Relu (x) }')
    found = taken(source)
    assert found.is_whole
    assert found.document.message == source


@pytest.mark.parametrize(
    ("layer", "weights", "runtime"),
    [
        ("y$ = ReduceMax <keepdims = 0> (~)", "", "mnn"),
        ("l$ = ReduceL2 <keepdims = 1> (~, a$) y$ = Div (~, l$)", "int64[1] a$ = {1}", "onnxruntime"),
        ("z$ = Shape (~) r$ = Reshape (~, z$) t$ = Transpose (r$) y$ = Transpose (t$)", "", "tidl"),
        ("m$ = Mish (~) y$ = Shrink (m$)", "", "opencv@4.12"),
    ],
)
def test_the_same_is_known_of_it_as_of_the_whole(layer: str, weights: str, runtime: str) -> None:
    source = model(layer, weights=weights, layers=300)  # of more nodes than are looked at whole
    for place, node in enumerate(source.graph.node):
        node.name = f"{node.op_type}#{place}"
    document = Document.of_message(source)
    (whole,) = where(Excerpt(document.for_trials()), [runtime])
    (found,) = where(excerpt_of(document), [runtime])
    assert found.words == whole.words
    assert (found.newest.word, found.newest.faults) == (whole.newest.word, whole.newest.faults)


def faults(source: onnx.ModelProto, path: Path) -> tuple[Fault, ...]:
    onnx.save(source, path)
    return inspect_file(str(path), runtimes=["mnn"]).runtimes[0].newest.faults


def test_the_nodes_of_the_whole_model_are_counted(tmp_path: Path) -> None:
    (fault,) = faults(model("p$ = Shrink (~) y$ = Div (~, p$)"), tmp_path / "m.onnx")
    assert (fault.nodes, fault.first, fault.operators) == (LAYERS, "Shrink#0", ("Shrink",))


def test_what_is_said_of_the_tensors_of_a_model_is_not_how_many_an_excerpt_has(tmp_path: Path) -> None:
    source = model("y$ = Where (c$, ~, x)", weights="bool[1] c$ = {1}")
    assert [fault.feature for fault in faults(source, tmp_path / "m.onnx")] == ["tensors"]
