"""What runtimes run is not refused: unknown sizes written as -1, operators of the first years, branches never taken."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import ModelProto, checker, helper

import reducelower
from reducelower.verification import verify
from tests.models import model


def _with_unknown_sizes(text: str, opset: int) -> ModelProto:
    """A model whose inputs and outputs state -1 for their first size."""
    made = model(text, opset)
    for value in (*made.graph.input, *made.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = -1
    return made


_UNKNOWN = {
    "a mean": ("(float[n,3] x) => (float[n,1] y) <int64[1] a={1}> { y = ReduceMean(x, a) }", 18, 13),
    "a resized image": (
        '(float[n,1,4,4] x) => (float[n,1,8,8] y) <float[4] s={1,1,2,2}> { y = Resize<mode="linear">(x,,s) }', 19, 10,
    ),
    "a normalization": ("(float[n,2] x) => (float[n,2] y) <float[2] s={1,2}> { y = LayerNormalization(x,s) }", 17, 13),
    "at its own opset": ("(float[n,3] x) => (float[n,3] y) { y = Relu(x) }", 18, 18),
}  # fmt: skip


@pytest.mark.parametrize("case", _UNKNOWN)
def test_a_size_of_minus_one_is_unknown_and_stays_as_it_is_written(case: str) -> None:
    text, opset, target = _UNKNOWN[case]
    made = _with_unknown_sizes(text, opset)
    result = reducelower.convert_version(made, target)
    checker.check_model(result, full_check=True)
    assert result.graph.input == made.graph.input
    assert result.graph.output == made.graph.output
    verified = verify(made, result)
    assert verified.verdict == "equivalent"
    assert "states the shape" not in str(verified)


def test_expanding_other_operators_leaves_them_alone() -> None:
    text = "(float[1,3] x) => (float[1,1] y) { z = Affine<alpha=0.5, beta=2.0>(x) y = ReduceL2<axes=[1]>(z) }"
    made = reducelower.expand(model(text, 8, ir_version=3))
    assert {node.op_type for node in made.graph.node} >= {"Affine", "Sqrt"}


@pytest.mark.parametrize("command", ["convert --opset 9", "inspect --for mnn", "expand"])
def test_nothing_but_json_stands_on_the_standard_output(command: str, cli: Callable[..., Any], tmp_path: Path) -> None:
    """The checker writes a warning there, below Python."""
    text = "(float[1,3] x) => (float[1,1] y) { z = Affine<alpha=0.5, beta=2.0>(x) y = ReduceL2<axes=[1]>(z) }"
    done = run_on(model(text, 8, ir_version=3), f"{command} --json", cli, tmp_path)
    assert done.status == 0, done.err
    json.loads(done.out)


COMMANDS = (
    "raise",
    "repair",
    "expand",
    "convert --opset 13",
    "convert --opset 21",
    "check --opset 13",
    "inspect --for mnn",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_group_normalization_of_18_is_no_fault_to_any_command(
    command: str, cli: Callable[..., Any], tmp_path: Path
) -> None:
    text = "(float[1,4,3] x, float[2] s) => (float[1,4,3] y) { y = GroupNormalization<num_groups=2>(x,s,s) }"
    done = run_on(model(text, 18), command, cli, tmp_path)
    assert done.status == command.startswith("check"), done.err  # it has to be rewritten
    assert "deprecated" not in done.out + done.err


def run_on(given: ModelProto, command: str, cli: Callable[..., Any], folder: Path) -> Any:
    onnx.save(given, folder / "model.onnx")
    name, *options = command.split()
    output = [] if name in ("check", "inspect") else ["-o", folder / "out.onnx"]
    return cli(name, folder / "model.onnx", *options, *output)


_ML = {
    "TreeEnsembleRegressor": (
        3, "float[n,2] x", "float[n,1] y",
        {
            "n_targets": 1, "nodes_falsenodeids": [2, 0, 0], "nodes_featureids": [0, 0, 0], "nodes_hitrates": [1.0] * 3,
            "nodes_missing_value_tracks_true": [0, 0, 0], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
            "nodes_nodeids": [0, 1, 2], "nodes_treeids": [0, 0, 0], "nodes_truenodeids": [1, 0, 0],
            "nodes_values": [0.5, 0.0, 0.0], "post_transform": "NONE", "target_ids": [0, 0],
            "target_nodeids": [1, 2], "target_treeids": [0, 0], "target_weights": [1.0, 2.0],
        },
        {"base_values_as_tensor": helper.make_tensor("b", 1, [1], [1.0])},
    ),
    "LabelEncoder": (
        4, "int64[n] x", "float[n] y", {"keys_int64s": [1, 2], "values_floats": [0.5, 0.25], "default_float": -1.0},
        {"default_tensor": helper.make_tensor("d", 1, [1], [1.0])},
    ),
}  # fmt: skip


@pytest.mark.parametrize("operator", _ML)
@pytest.mark.parametrize("runtime", ["onnxruntime@1.6", "onnxruntime@1.9", "onnxruntime@1.16"])
@pytest.mark.parametrize("uses_new", [False, True])
def test_operators_of_machine_learning_come_down_with_what_older_versions_have(
    operator: str, runtime: str, uses_new: bool
) -> None:
    version, taken, given, attributes, newer = _ML[operator]
    text = f"({taken}) => ({given}) {{ y = ai.onnx.ml.{operator}(x) }}"
    made = model(text, 9, ir_version=4, imports=f'"ai.onnx.ml": {version}')
    for name, value in ({**attributes, **newer} if uses_new else attributes).items():
        made.graph.node[0].attribute.append(helper.make_attribute(name, value))
    target = reducelower.Target(runtime=reducelower.load_runtime(runtime))
    newest = target.runtime.ml if target.runtime is not None else 0
    if uses_new and newest is not None and newest < version:
        with pytest.raises(reducelower.ConversionError, match=r"reads ai\.onnx\.ml up to version"):
            reducelower.legalize(made, target)
        return
    result = reducelower.legalize(made, target).model
    checker.check_model(result, full_check=True)
    imported = next(entry.version for entry in result.opset_import if entry.domain == "ai.onnx.ml")
    assert imported <= (newest or version)
