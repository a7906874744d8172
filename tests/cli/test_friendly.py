"""Models that state little, and what `inspect` says of a model."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from reducelower.cli.inspection import full_text
from reducelower.pipeline.inspection import Inspected

Cli = Callable[..., Any]

NOTHING = Inspected("m.onnx", {"ai.onnx": 17}, 8, "", 1, {}, {}, {}, (), ())

TEXT = """<ir_version: 10, opset_import: ["": 21]> g (float[2, 3] x) => (float[2, 1] y)
    <int64[1] a = {1}> { y = ReduceL2 (x, a) }"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    onnx.save(onnx.parser.parse_model(TEXT), tmp_path / "model.onnx")
    return tmp_path


@pytest.mark.parametrize("drop", ["the shape of the output", "the type of the output", "every shape"])
def test_a_model_that_states_no_shapes_converts(cli: Cli, folder: Path, drop: str) -> None:
    model = onnx.load("model.onnx")
    outputs = model.graph.output
    if drop == "the type of the output":
        outputs = [onnx.ValueInfoProto.FromString(outputs[0].SerializeToString())]  # it is stated again
        model.graph.output[0].ClearField("type")
    else:
        model.graph.output[0].type.tensor_type.ClearField("shape")
    if drop == "every shape":
        model.graph.input[0].type.tensor_type.ClearField("shape")
    onnx.save(model, "model.onnx")
    ran = cli("convert", "model.onnx", "-o", "out.onnx", "--opset", 13)
    assert (ran.status, ran.err) == (0, "")
    assert onnx.load("out.onnx").graph.output == outputs


def test_an_output_of_no_shape_that_nothing_computes_is_still_found(cli: Cli, folder: Path) -> None:
    model = onnx.load("model.onnx")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    model.graph.output[0].name = "nowhere"
    onnx.save(model, "model.onnx")
    ran = cli("convert", "model.onnx", "-o", "out.onnx", "--opset", 13)
    assert ran.status == 1
    assert "'nowhere', which nothing defines" in ran.err


@pytest.mark.parametrize(
    ("size", "said"), [(1023, "1023 bytes"), (1536, "1.5 KiB"), (3 << 20, "3.0 MiB"), (5000 << 30, "5000.0 GiB")]
)
def test_inspect_says_sizes_as_people_read_them(size: int, said: str) -> None:
    assert f"weights.bin ({said})" in full_text(replace(NOTHING, external={"weights.bin": size}))


def test_inspect_counts_operators_in_subgraphs_and_names_external_data(cli: Cli, folder: Path) -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]> g (bool c, float[2] x) => (float[2] y) {
        y = If (c) <then_branch = t () => (float[2] a) { a = Add (x, w) }, else_branch = e () => (float[2] b)
            { b = Neg (x) }> }""")
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(2, np.float32), "w"))
    onnx.save(model, "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    found = json.loads(cli("inspect", "model.onnx", "--json", "--for", "mnn").out)
    assert found["operators"] == {"Add": 1, "If": 1, "Neg": 1}
    assert found["external"] == {"weights.bin": Path("weights.bin").stat().st_size}
    assert found["weights"] == {"float": 2}


@pytest.mark.parametrize("target", [9, 13])
def test_a_declared_rank_is_the_rank_that_is_tried(cli: Cli, folder: Path, target: int) -> None:
    # Of other ranks, what is written for this one gives something else.
    text = "g (float[] x, int64[k] a) => (float[] y) { y = ReduceMax (x, a) }"
    unranked = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}')
    unranked.graph.input[0].type.tensor_type.ClearField("shape")
    unranked.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(unranked, "in.onnx")
    refused = cli("convert", "in.onnx", "-o", "out.onnx", "--opset", target)
    assert refused.status == 1
    assert "--rank x=" in refused.err
    ran = cli("convert", "in.onnx", "-o", "out.onnx", "--opset", target, "--rank", "x=2")
    assert ran.status == 0, ran.err
    assert "verified" in ran.out
