"""onnx's inference, kept from the nodes that would end the process; a fault here ends the test process."""

import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import onnx
import pytest
from onnx import ModelProto, helper
from onnx.backend.test.loader import load_model_tests
from onnx.shape_inference import InferenceError

from reducelower import convert_version
from reducelower.model.protected import infer_shapes
from tests.models import model

# Nodes that inference does not survive if it knows nothing of what they read, with the version of ai.onnx.ml.
NODES = {
    "y = EyeLike <dtype = 11> (read)": 4,
    'y = RegexFullMatch <pattern = "a+"> (read)': 4,
    'y = ai.onnx.ml.LabelEncoder <keys_strings = ["a"], values_int64s = [1]> (read)': 4,
    """y = ai.onnx.ml.LabelEncoder <keys_strings = ["a"], values_tensor = int16[1] values {7},
        default_tensor = int16[1] default {0}> (read)""": 4,
    'y = ai.onnx.ml.LabelEncoder <classes_strings = ["a"]> (read)': 1,
    "y = ai.onnx.ml.TreeEnsemble <n_targets = 1, nodes_splits = float[1] splits {0.5}> (read)": 5,
    "y = GatherND <batch_dims = -100> (x, at)": 4,
}


def behind_unknown(nodes: str, functions: str = "", ml: int = 4) -> ModelProto:
    """Nodes behind one whose domain nobody knows, so that nothing is known of what it yields."""
    imports = f'"custom": 1, "ai.onnx.ml": {ml}, "local": 1'
    text = f"(float[2,2] x, int64[1,1] at) => (y) {{ read = custom.Opaque (x)  {nodes} }}"
    return model(text, 20, 10, functions, imports=imports)


@pytest.mark.parametrize("node", NODES)
@pytest.mark.parametrize("data_prop", [False, True])
def test_a_node_that_reads_what_has_no_type_leaves_the_model_as_it_is(node: str, data_prop: bool) -> None:
    given = behind_unknown(node, ml=NODES[node])
    found = infer_shapes(given, check_type=True, strict_mode="GatherND" not in node, data_prop=data_prop)
    assert found.opset_import == given.opset_import
    assert found.graph.node == given.graph.node


CHOICE = """c = Constant <value = bool {{1}}> ()
    z = If (c) <then_branch = t () => (y) {{ {0} }}, else_branch = e () => (y) {{ {0} }}>"""


@pytest.mark.parametrize("node", NODES)
def test_branches_and_functions(node: str) -> None:
    given = behind_unknown(CHOICE.format(node), ml=NODES[node])
    inside = [[attribute.g.node for attribute in each.graph.node[2].attribute] for each in (infer_shapes(given), given)]
    assert inside[0] == inside[1]
    taken = "x, at" if "GatherND" in node else "read"
    function = f'<domain: "local", opset_import: ["": 20, "ai.onnx.ml": {NODES[node]}]> F ({taken}) => (y) {{ {node} }}'
    given = behind_unknown(f"y = local.F ({taken})", function, NODES[node])
    assert infer_shapes(given).functions == given.functions


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
    given = model(f"(float[2, 3, 4] x) => (z, y) {{ z = Neg (x) {body} }}", 23, 10)
    with suppress(InferenceError):
        assert infer_shapes(given, strict_mode=strict).graph.node == given.graph.node


def test_what_is_typed_is_inferred_by_onnx() -> None:
    given = model("(float[2,2] x) => (y) { y = EyeLike <dtype = 11> (x) }", 20)
    assert infer_shapes(given) == onnx.shape_inference.infer_shapes(given)
    given.graph.input[0].type.tensor_type.shape.dim.add(dim_value=3)
    with pytest.raises(InferenceError):
        infer_shapes(given, strict_mode=True)  # EyeLike takes matrices alone


def test_a_conversion_goes_through() -> None:
    eye, _, label, *_ = NODES
    loop = "body = b (i, go_on) => (go, part) { go = Identity (go_on)  part = ReduceSum (x, at1) }"
    nodes = f"{CHOICE.format(eye)}  at1 = Constant <value_ints = [0]> ()  parts = Loop (, c) <{loop}>  {label}"
    assert convert_version(behind_unknown(nodes), 11).opset_import[0].version == 11


def _untyped() -> Iterator[ModelProto]:
    """The node tests of onnx with no type of their inputs, behind an unknown operator."""
    for case in load_model_tests(kind="node"):
        if case.model is None or case.name.endswith("_expanded"):
            continue
        given = ModelProto.FromString(case.model.SerializeToString())
        for value in given.graph.output:
            value.ClearField("type")
        given.opset_import.add(domain="custom", version=1)
        names = [value.name for value in given.graph.input]
        given.graph.node.insert(0, helper.make_node("Opaque", [], names, domain="custom"))
        del given.graph.input[:]
        yield given


INFER_ALL = """
import pickle, sys
from contextlib import suppress
from onnx import ModelProto
from onnx.shape_inference import InferenceError
from reducelower.model.protected import infer_shapes
with open(sys.argv[1], "rb") as file:
    models = pickle.load(file)
for model in map(ModelProto.FromString, models):
    for strict in (False, True):
        with suppress(InferenceError):
            infer_shapes(model, check_type=True, strict_mode=strict, data_prop=True)
"""


@pytest.mark.xdist_group("onnx's cases")
def test_no_operator_of_onnx_ends_the_process(tmp_path: Path) -> None:
    models = [given.SerializeToString() for given in _untyped()]
    assert len(models) > 1000
    (tmp_path / "models").write_bytes(pickle.dumps(models))
    assert subprocess.run([sys.executable, "-c", INFER_ALL, tmp_path / "models"], check=False).returncode == 0
