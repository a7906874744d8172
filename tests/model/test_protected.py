"""onnx's inference, kept from the nodes that would end the process; a fault here ends the test process."""

import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import onnx
import pytest
from onnx import FunctionProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, parser
from onnx.backend.test.loader import load_model_tests
from onnx.shape_inference import InferenceError

from reducelower import convert_version
from reducelower.model.inference.protected import infer_shapes

_ML = "ai.onnx.ml"
_OPAQUE = helper.make_node("Opaque", ["x"], ["read"], domain="custom")
_EYE = helper.make_node("EyeLike", ["read"], ["y"], dtype=TensorProto.DOUBLE)
_REGEX = helper.make_node("RegexFullMatch", ["read"], ["y"], pattern="a+")
_LABEL = helper.make_node("LabelEncoder", ["read"], ["y"], domain=_ML, keys_strings=["a"], values_int64s=[1])
_LABEL_OF_TENSOR = helper.make_node(
    "LabelEncoder",
    ["read"],
    ["y"],
    domain=_ML,
    keys_strings=["a"],
    values_tensor=helper.make_tensor("values", TensorProto.INT16, [1], [7]),
    default_tensor=helper.make_tensor("default", TensorProto.INT16, [1], [0]),
)
_FIRST_LABEL = helper.make_node("LabelEncoder", ["read"], ["y"], domain=_ML, classes_strings=["a"])
_TREE = helper.make_node(
    "TreeEnsemble",
    ["read"],
    ["y"],
    domain=_ML,
    n_targets=1,
    nodes_splits=helper.make_tensor("splits", TensorProto.FLOAT, [1], [0.5]),
)
_GATHER = helper.make_node("GatherND", ["x", "at"], ["y"], batch_dims=-100)
_ALL = [_EYE, _REGEX, _LABEL, _LABEL_OF_TENSOR, _FIRST_LABEL, _TREE, _GATHER]


def _model(nodes: Sequence[NodeProto], functions: Sequence[FunctionProto] = (), *, ml: int = 4) -> ModelProto:
    graph = helper.make_graph(
        nodes,
        "graph",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 2]),
            helper.make_tensor_value_info("at", TensorProto.INT64, [1, 1]),
        ],
        [ValueInfoProto(name="y")],
    )
    imports = {"": 20, "custom": 1, _ML: ml, "local": 1}
    return helper.make_model(
        graph, opset_imports=[*map(helper.make_opsetid, imports, imports.values())], functions=functions
    )


def _version(node: NodeProto) -> int:
    return 1 if node is _FIRST_LABEL else 5 if node is _TREE else 4


@pytest.mark.parametrize("node", _ALL, ids=lambda node: node.op_type)
@pytest.mark.parametrize("data_prop", [False, True])
def test_a_node_that_reads_what_has_no_type_leaves_the_model_as_it_is(node: NodeProto, data_prop: bool) -> None:
    model = _model([_OPAQUE, node], ml=_version(node))
    found = infer_shapes(model, check_type=True, strict_mode=node is not _GATHER, data_prop=data_prop)
    assert found.opset_import == model.opset_import
    assert found.graph.node == model.graph.node


@pytest.mark.parametrize("node", _ALL, ids=lambda node: node.op_type)
def test_branches_and_functions(node: NodeProto) -> None:
    given = [name for name in node.input if name != "read"]
    branch = helper.make_graph([node], "branch", [], [ValueInfoProto(name="y")])
    condition = helper.make_node("Constant", [], ["c"], value=helper.make_tensor("c", TensorProto.BOOL, [], [True]))
    choice = helper.make_node("If", ["c"], ["z"], then_branch=branch, else_branch=branch)
    ml = _version(node)
    found = infer_shapes(_model([_OPAQUE, condition, choice], ml=ml))
    assert [inner.g.node[0] for inner in found.graph.node[2].attribute] == [node, node]

    imports = [helper.make_opsetid("", 20), helper.make_opsetid(_ML, ml)]
    function = helper.make_function("local", "F", ["read", *given], ["y"], [node], imports)
    call = helper.make_node("F", ["read", *given], ["y"], domain="local")
    model = _model([_OPAQUE, call], [function], ml=ml)
    assert infer_shapes(model).functions == model.functions


@pytest.mark.opset(23)
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    "body",
    [
        "y = Attention <q_num_heads = 2, kv_num_heads = 0> (x, x, x)",
        "y = Scan (x)",
        "y = Scan <body = b (float[4] a) => (float[4] c) { c = Neg (a) }> (x)",
    ],
)
def test_what_older_inference_counts_on_may_be_unsaid(body: str, strict: bool) -> None:
    text = f'<ir_version: 10, opset_import: ["": 23]> g (float[2, 3, 4] x) => (z, y) {{ z = Neg (x) {body} }}'
    model = onnx.parser.parse_model(text)
    with suppress(InferenceError):
        assert infer_shapes(model, strict_mode=strict).graph.node == model.graph.node


def test_what_is_typed_is_inferred_by_onnx() -> None:
    model = _model([helper.make_node("EyeLike", ["x"], ["y"], dtype=TensorProto.DOUBLE)])
    assert infer_shapes(model) == onnx.shape_inference.infer_shapes(model)
    model.graph.input[0].type.tensor_type.shape.dim.add(dim_value=3)
    with pytest.raises(InferenceError):
        infer_shapes(model, strict_mode=True)  # EyeLike takes matrices alone


def test_a_conversion_goes_through() -> None:
    branch = helper.make_graph([_EYE], "branch", [], [ValueInfoProto(name="y")])
    start = helper.make_node("Constant", [], ["c"], value=helper.make_tensor("c", TensorProto.BOOL, [], [True]))
    loop = helper.make_graph(
        [helper.make_node("Identity", ["go_on"], ["go"]), helper.make_node("ReduceSum", ["x", "at1"], ["part"])],
        "loop",
        [ValueInfoProto(name="i"), ValueInfoProto(name="go_on")],
        [ValueInfoProto(name="go"), ValueInfoProto(name="part")],
    )
    nodes = [
        _OPAQUE,
        start,
        helper.make_node("Constant", [], ["at1"], value_ints=[0]),
        helper.make_node("If", ["c"], ["z"], then_branch=branch, else_branch=branch),
        helper.make_node("Loop", ["", "c"], ["parts"], body=loop),
        _LABEL,
    ]
    assert convert_version(_model(nodes), 11).opset_import[0].version == 11


def _untyped() -> Iterator[ModelProto]:
    """The node tests of onnx with no type of their inputs, behind an unknown operator."""
    for case in load_model_tests(kind="node"):
        if case.model is None or case.name.endswith("_expanded"):
            continue
        model = ModelProto()
        model.CopyFrom(case.model)
        for value in model.graph.output:
            value.ClearField("type")
        model.opset_import.add(domain="custom", version=1)
        model.graph.node.insert(
            0, helper.make_node("Opaque", [], [value.name for value in model.graph.input], domain="custom")
        )
        del model.graph.input[:]
        yield model


INFER_ALL = """
import pickle, sys
from contextlib import suppress
from onnx import ModelProto
from onnx.shape_inference import InferenceError
from reducelower.model.inference.protected import infer_shapes
with open(sys.argv[1], "rb") as file:
    models = pickle.load(file)
for model in map(ModelProto.FromString, models):
    for strict in (False, True):
        with suppress(InferenceError):
            infer_shapes(model, check_type=True, strict_mode=strict, data_prop=True)
"""


@pytest.mark.xdist_group("onnx's cases")
def test_no_operator_of_onnx_ends_the_process(tmp_path: Path) -> None:
    models = [model.SerializeToString() for model in _untyped()]
    assert len(models) > 1000
    (tmp_path / "models").write_bytes(pickle.dumps(models))
    assert subprocess.run([sys.executable, "-c", INFER_ALL, tmp_path / "models"], check=False).returncode == 0


def test_half_of_the_frequencies_are_inferred_where_stft_states_nothing() -> None:
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[2,8,1] x) => (float[a,b,c,d] y) <int64 step = {1}, int64 length = {5}> { y = STFT(x, step, , length) }
    """)
    found = infer_shapes(model, data_prop=True)
    assert [size.dim_value for size in found.graph.output[0].type.tensor_type.shape.dim] == [2, 4, 3, 2]
    assert found.graph.node[0] == model.graph.node[0]
