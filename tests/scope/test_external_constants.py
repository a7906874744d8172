"""The value of a Constant node may lie in another file, as that of an initializer may."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, parser

from reducelower.batch import convert_file
from reducelower.options import Settings, Target
from reducelower.pipeline.task import Task


def with_axes_in(location: str) -> ModelProto:
    """A model that reduces over axes in a file."""
    made = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float x) => (float y) { y = ReduceL2 <keepdims = 0> (x, axes) }'
    )
    for value in (*made.graph.input, *made.graph.output):
        value.type.tensor_type.ClearField("shape")  # without a rank, axes have to be known below opset 18
    axes = TensorProto(data_type=TensorProto.INT64, dims=[1], data_location=TensorProto.EXTERNAL)
    axes.external_data.add(key="location", value=location)
    made.graph.node.insert(0, helper.make_node("Constant", [], ["axes"], value=axes))
    return made


@pytest.mark.parametrize("opset", [9, 13])
def test_it_is_read_from_the_folder_of_each_model(tmp_path: Path, opset: int) -> None:
    for axis in (0, 1):
        folder = tmp_path / str(axis)
        folder.mkdir()
        (folder / "axes.bin").write_bytes(np.array([axis], np.int64).tobytes())
        source, result = folder / "m.onnx", folder / "out.onnx"
        source.write_bytes(with_axes_in("axes.bin").SerializeToString())
        outcome = convert_file(Task(str(source), str(result)), Settings(Target(opset), verify=False))
        assert (outcome.verdict, outcome.problems) == ("converted", ())
        (node,) = onnx.load(result).graph.node
        assert {each.name: helper.get_attribute_value(each) for each in node.attribute} == {
            "axes": [axis],
            "keepdims": 0,
        }
