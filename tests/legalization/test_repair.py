"""What runtimes run and the checker refuses is mended without touching what is computed, and is said to be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, checker, parser, shape_inference

import reducelower
from reducelower import ConversionError
from tests.legalization.running import run

X = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)


def model(text: str, *, ir_version: int = 8, imports: str = '"" : 17') -> ModelProto:
    return parser.parse_model(f"<ir_version: {ir_version}, opset_import: [{imports}]> {text}")


OUT_OF_ORDER = "g (float[2,3] x) => (float[2,1] y) { y = ReduceMax<axes = [-1]>(b) b = Neg(a) a = Relu(x) }"
IN_A_BRANCH = """g (bool c, float[2,3] x) => (float[2,3] y) {
    y = If (c) <then_branch = t () => (float[2,3] p) { p = Neg(q) q = Add(x, z) },
                else_branch = e () => (float[2,3] r) { r = Identity(z) }>
    z = Relu(x)
}"""
BRANCHES = """g (bool c, float[2,3] x) => (float[2,3] y) {
    y = If (c) <then_branch = t () => (float[2,3] p) { p = Neg(x) },
                else_branch = e () => (float[2,3] r) { r = Abs(x) }>
}"""
STALE = """g (float[2,3] x) => (float[2,1] y) <float[7] a, double[2,3] b, float[2,3] c> {
    a = Relu(x) b = Neg(a) c = Abs(b) d = Sqrt(c) y = ReduceMax<axes = [-1]>(d) }"""


def test_nodes_are_put_behind_those_they_read_from() -> None:
    source = model(OUT_OF_ORDER)
    mended = reducelower.repair(source)
    assert [node.op_type for node in mended.model.graph.node] == ["Relu", "Neg", "ReduceMax"]
    assert "2 nodes of graph 'g' in order" in " ".join(mended.done)
    checker.check_model(mended.model, full_check=True)
    np.testing.assert_array_equal(run(mended.model, {"x": X})[0], np.maximum(-np.maximum(X, 0), -99).max(-1)[:, None])
    assert source.graph.node[0].op_type == "ReduceMax", "the caller's model stays as it is"


def test_a_branch_is_behind_what_it_reads_from_outside() -> None:
    mended = reducelower.repair(model(IN_A_BRANCH)).model
    checker.check_model(mended, full_check=True)
    np.testing.assert_array_equal(run(mended, {"c": np.array(True), "x": X})[0], -(X + np.maximum(X, 0)))


def test_order_that_is_right_is_left_alone() -> None:
    source = model("g (float[2,3] x) => (float[2,3] y) { b = Neg(x) a = Relu(x) y = Add(a, b) }")
    mended = reducelower.repair(source)
    assert mended.done == ()
    assert mended.model == source


def test_nodes_in_a_circle_stay_as_they_are() -> None:
    source = model("g (float[3] x) => (float[3] y) { y = Add(x, z) z = Neg(y) }")
    assert reducelower.repair(source).model == source


def test_graphs_without_a_name_get_one() -> None:
    source = model(BRANCHES)
    branches = [attribute.g for attribute in source.graph.node[0].attribute]
    source.graph.name = branches[0].name = ""
    mended = reducelower.repair(source)
    assert mended.done == ("named the graphs that had no name",)
    checker.check_model(mended.model, full_check=True)


def test_nodes_of_one_name_are_told_apart() -> None:
    nodes = "[n] a = Relu(x) [n_2] b = Neg(a) [n] c = Abs(b) [n] y = Neg(c)"
    source = model(f"g (float[2,3] x) => (float[2,3] y) {{ {nodes} }}")
    mended = reducelower.repair(source)
    assert [node.name for node in mended.model.graph.node] == ["n", "n_2", "n_3", "n_4"]
    np.testing.assert_array_equal(run(mended.model, {"x": X})[0], -np.maximum(X, 0))


def test_what_a_branch_yields_is_stated_right() -> None:
    source = model(BRANCHES)
    branch = source.graph.node[0].attribute[0].g
    branch.output[0].type.tensor_type.shape.dim[1].dim_value = 4
    with pytest.raises(shape_inference.InferenceError, match="differ in dimension 1"):
        checker.check_model(source, full_check=True)
    mended = reducelower.repair(source)
    assert "corrected the types it states of its outputs 'p'" in " ".join(mended.done)
    checker.check_model(mended.model, full_check=True)


# From opset 14 on, inference tells the type of `e`, and so looks at what is gathered: no scalar, as stated.
SCALAR_IN_A_LOOP = """g (float[2,3] x, float[3] v) => (float[a,b] y) <int64 n = {2}, bool c = {1}> {
    s = Shape (v) w = Cast <to = 1> (s) q = Floor (w) k = Cast <to = 7> (q) d = Div (k, k) e = Reshape (n, d)
    z = Sub (e, e)
    y = Loop (n, c, x) <body = b (int64 i, bool on, float carried) => (bool off, float next) {
        off = Identity (on) t = Gather <axis = 0> (carried, z) next = Add (carried, t) }>
}"""


def test_scalars_stated_in_a_loop_are_mended() -> None:
    source = model(SCALAR_IN_A_LOOP, imports='"" : 16')
    with pytest.raises(shape_inference.InferenceError):
        checker.check_model(source, full_check=True)
    mended = reducelower.repair(source)
    assert mended.done == ("dropped the shapes it states inside of loops, which are not what their nodes yield",)
    checker.check_model(mended.model, full_check=True)
    np.testing.assert_array_equal(run(mended.model, {"x": X, "v": X[0]})[0], X + 3 * X[:1])


def test_only_stated_types_that_contradict_are_dropped() -> None:
    mended = reducelower.repair(model(STALE))
    assert [value.name for value in mended.model.graph.value_info] == ["c"]
    assert "'a', 'b'" in " ".join(mended.done)
    checker.check_model(mended.model, full_check=True)


def test_an_output_stated_wrongly_is_corrected() -> None:
    mended = reducelower.repair(model("g (float[2,3] x) => (float[7] y) { y = Relu(x) }"))
    assert [dim.dim_value for dim in mended.model.graph.output[0].type.tensor_type.shape.dim] == [2, 3]
    assert "outputs 'y'" in " ".join(mended.done)


@pytest.mark.parametrize(
    ("text", "imports", "ir_version", "domain", "version"),
    [
        ("g (float[2,3] x) => (float[2,3] y) { y = com.microsoft.Gelu(x) }", '"" : 17', 8, "com.microsoft", 1),
        ("g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }", '"com.microsoft" : 1', 8, "", 18),
    ],
)
def test_missing_imports_are_added(text: str, imports: str, ir_version: int, domain: str, version: int) -> None:
    mended = reducelower.repair(model(text, imports=imports, ir_version=ir_version)).model
    assert (domain, version) in {(entry.domain, entry.version) for entry in mended.opset_import}
    checker.check_model(mended, full_check=True)


@pytest.mark.parametrize(("stated", "fitting"), [(3, 4), (99, None)])
def test_the_ir_version_is_made_to_fit(stated: int, fitting: int | None) -> None:
    source = model("g (float[3] x) => (float[3] y) <float[3] k = {1, 2, 3}> { y = Add(x, k) }", ir_version=8)
    source.ir_version = stated
    mended = reducelower.repair(source).model
    checker.check_model(mended, full_check=True)
    assert fitting is None or mended.ir_version == fitting


# What the library does where a conversion meets such a model


def test_a_domain_that_is_not_imported_is_named_with_the_node() -> None:
    text = """g (float[2,3] x, float[3,3] w) => (float[2,3] y) {
        a = com.microsoft.FusedMatMul(x, w) y = Softmax<axis = 0>(a) }"""
    reason = r"its FusedMatMul without a name is of the domain 'com\.microsoft', .* \(repair it first"
    with pytest.raises(ConversionError, match=reason):
        reducelower.convert_version(model(text), 9)
    checker.check_model(reducelower.convert_version(reducelower.repair(model(text)).model, 9))


@pytest.mark.parametrize("target", [9, 13, 17, 21])
def test_what_needs_no_opset_version_comes_to_any(target: int) -> None:
    text = "g (float[2,3] x) => (float[2,3] y) { y = ai.onnx.ml.Scaler<offset = [1.0], scale = [2.0]>(x) }"
    source = model(text, imports='"ai.onnx.ml" : 3')
    converted = reducelower.convert_version(source, target)
    checker.check_model(converted, full_check=True)
    assert {entry.domain: entry.version for entry in converted.opset_import} == {"ai.onnx.ml": 3, "": target}
    np.testing.assert_array_equal(run(converted, {"x": X})[0], (X - 1) * 2)


def test_outputs_without_a_type_get_theirs() -> None:
    left_out = model("g (float[2,3] x) => (float[2,3] y) { y = Neg (x) }", imports='"" : 17')
    left_out.graph.output[0].ClearField("type")
    mended = reducelower.repair(left_out)
    assert mended.done == ("stated the types of its outputs 'y', which it left out",)
    checker.check_model(mended.model, full_check=True)
    assert [dim.dim_value for dim in mended.model.graph.output[0].type.tensor_type.shape.dim] == [2, 3]


def test_a_graph_that_defines_a_value_twice_keeps_its_order() -> None:
    source = model("g (float[2,3] x) => (float[2,3] z) { a = Relu(x) z = Abs(a) b = Neg(c) c = Neg(x) a = Neg(b) }")
    assert [node.op_type for node in reducelower.repair(source).model.graph.node] == [
        node.op_type for node in source.graph.node
    ]


def test_nodes_of_the_default_domain_by_its_other_name_are_valid_afterwards() -> None:
    source = model("g (float[2,3] x) => (float[2,3] y) { y = Neg(x) }")
    source.graph.node[0].domain = "ai.onnx"
    mended = reducelower.repair(source)
    assert len(mended.done) == 1
    checker.check_model(mended.model, full_check=True)


def test_a_wrong_type_of_an_initializer_is_dropped() -> None:
    source = model("g (float[3] x) => (float[3] y) <float[3] a = {1, 2, 3}> { y = Add(x, a) }")
    del source.graph.value_info[:]
    source.graph.value_info.add(name="a").type.tensor_type.elem_type = 7
    mended = reducelower.repair(source)
    assert "initializers 'a'" in " ".join(mended.done)
    checker.check_model(mended.model, full_check=True)


_ELSEWHERE = {
    "axes of ReduceSum": (13, 12, "float[2,3] x", "float[2,1] y", "", "ReduceSum<axes=[1]>(x)"),
    "axes of Squeeze": (13, 12, "float[2,1] x", "float[2] y", "", "Squeeze<axes=[1]>(x)"),
    "axes of Unsqueeze": (15, 12, "float[2,3] x", "float[2,1,3] y", "", "Unsqueeze<axes=[1]>(x)"),
    "axes of ReduceMean": (18, 17, "float[2,3] x", "float[2,1] y", "", "ReduceMean<axes=[1]>(x)"),
    "axes of ReduceMean too early": (16, 18, "float[2,3] x", "float[2,1] y", "int64[1] a={1}", "ReduceMean(x,a)"),
    "axes of ReduceSum too early": (11, 13, "float[2,3] x", "float[2,1] y", "int64[1] a={1}", "ReduceSum(x,a)"),
    "parts of Split": (13, 12, "float[4] x", "float[1] y, float[3] z", "", "Split<split=[1,3]>(x)"),
    "parts of Split too early": (11, 13, "float[4] x", "float[1] y, float[3] z", "int64[2] s={1,3}", "Split(x,s)"),
    "bounds of Clip": (11, 10, "float[2,3] x", "float[2,3] y", "", "Clip<min=-1.0,max=2.0>(x)"),
    "bounds of Clip too early": (9, 11, "float[2,3] x", "float[2,3] y", "float a={-1}, float b={2}", "Clip(x,a,b)"),
    "pads": (11, 10, "float[2,3] x", "float[2,5] y", "", "Pad<pads=[0,1,0,1]>(x)"),
    "ratio of Dropout": (13, 11, "float[2,3] x", "float[2,3] y", "", "Dropout<ratio=0.5>(x)"),
    "scales of Upsample": (
        9, 8, "float[1,1,1,3] x", "float[1,1,1,6] y", "", 'Upsample<mode="nearest",scales=[1.0,1.0,1.0,2.0]>(x)',
    ),
    "Upsample that was withdrawn": (
        13, 9, "float[1,1,1,3] x", "float[1,1,1,6] y", "float[4] s={1,1,1,2}", 'Upsample<mode="nearest">(x,s)',
    ),
    "a slice": (10, 9, "float[2,3] x", "float[2,2] y", "", "Slice<axes=[1],starts=[1],ends=[3]>(x)"),
    "broadcasting": (7, 6, "float[2,3] x", "float[2,3] y", "float[2] b={1,2}", "Add<axis=0,broadcast=1>(x,b)"),
    "a cast": (9, 5, "float[2,3] x", "int32[2,3] y", "", 'Cast<to="INT32">(x)'),
}  # fmt: skip


def _elsewhere(case: str) -> tuple[ModelProto, int]:
    opset, written, taken, given, held, node = _ELSEWHERE[case]
    names = ", ".join(value.split()[-1] for value in given.split(", "))
    graph = f"g ({taken}) => ({given}) <{held}> {{ {names} = {node} }}"
    return model(graph, imports=f'"": {opset}'), written


@pytest.mark.parametrize("case", _ELSEWHERE)
def test_a_node_in_the_form_of_another_opset_is_moved(case: str) -> None:
    source, written = _elsewhere(case)
    mended = reducelower.repair(source)
    (said,) = mended.done
    assert f"{source.graph.node[0].op_type} of opset {written}" in said
    checker.check_model(mended.model, full_check=True)
    meant = ModelProto()
    meant.CopyFrom(source)
    meant.opset_import[0].version = written
    shape = [dim.dim_value for dim in source.graph.input[0].type.tensor_type.shape.dim]
    x = np.linspace(-2, 3, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    by_hand = {"broadcasting": lambda: x + np.array([[1], [2]], np.float32), "a cast": lambda: x.astype(np.int32)}
    expected = [by_hand[case]()] if case in by_hand else run(meant, {"x": x})
    for found, wanted in zip(run(mended.model, {"x": x}), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert reducelower.repair(mended.model).done == ()


@pytest.mark.parametrize("case", _ELSEWHERE)
def test_a_conversion_passes_no_such_node_on_and_names_repair(case: str) -> None:
    source, written = _elsewhere(case)
    opset = source.opset_import[0].version
    for target in (opset - 1, opset, opset + 5):
        with pytest.raises(ConversionError) as refused:
            reducelower.convert_version(source, target)
        (reason,) = refused.value.refusals
        assert f"it is written for opset {written}, and the model imports opset {opset}" in reason.reason
        assert "repair" in reason.hint
        if target >= opset:
            reducelower.convert_version(reducelower.repair(source).model, target)


@pytest.mark.parametrize("case", ["axes of ReduceSum", "axes of ReduceMean too early", "Upsample that was withdrawn"])
def test_the_command_line_says_what_it_is_written_for_and_repairs_it(
    case: str, cli: Callable[..., Any], tmp_path: Path
) -> None:
    source, written = _elsewhere(case)
    path, output = tmp_path / "model.onnx", tmp_path / "out.onnx"
    path.write_bytes(source.SerializeToString())
    refused = cli("convert", path, "-o", output, "--opset", 18)
    assert refused.status == 1
    assert f"{source.graph.node[0].op_type} is written for opset {written}" in refused.err
    assert "--repair" in refused.err
    assert cli("convert", path, "-o", output, "--opset", 18, "--repair").status == 0
