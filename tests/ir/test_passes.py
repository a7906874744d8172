"""The passes do what the functions do, and hand on the tensors they were given."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, parser

import reducelower

ir = pytest.importorskip("onnx_ir")
if not hasattr(ir.Model, "clone"):
    pytest.skip("this onnx_ir cannot clone a model", allow_module_level=True)

from reducelower.ir import ConvertVersionPass, ExpandPass, RaisePass  # noqa: E402 (needs onnx_ir)

ROOT = Path(__file__).parents[2]
MODELS = [*sorted((ROOT / "tests/data/models").glob("*.onnx")), *sorted((ROOT / "examples/models").glob("*.onnx"))]

PAIRS: dict[str, tuple[object, Callable[[ModelProto], ModelProto]]] = {
    "to opset 13": (ConvertVersionPass(13), lambda model: reducelower.convert_version(model, 13)),
    "to opset 21": (ConvertVersionPass(21), lambda model: reducelower.convert_version(model, 21)),
    "without an operator": (
        ConvertVersionPass(17, without=["ReduceLogSumExp"], rules="stable", ir_version="keep"),
        lambda model: reducelower.convert_version(
            model, 17, without=["ReduceLogSumExp"], rules="stable", ir_version="keep"
        ),
    ),
    "expanded": (ExpandPass(rules="core"), lambda model: reducelower.expand(model, rules="core")),
    "raised": (RaisePass(), reducelower.raise_reductions),
}


def normal(model: ModelProto) -> bytes:
    """A model as onnx_ir writes it."""
    return ir.serde.serialize_model(ir.serde.deserialize_model(model)).SerializeToString(deterministic=True)


@pytest.mark.parametrize(
    ("path", "name"), list(zip(MODELS, cycle(PAIRS), strict=False)), ids=lambda each: getattr(each, "stem", each)
)
def test_a_pass_gives_what_the_function_gives(path: Path, name: str) -> None:
    conversion, function = PAIRS[name]
    proto = onnx.load(path)
    expected = function(proto)
    model = ir.serde.deserialize_model(proto)
    before = ir.serde.serialize_model(model).SerializeToString()
    result = conversion(model)  # type: ignore[operator]
    assert ir.serde.serialize_model(result.model).SerializeToString(deterministic=True) == normal(expected)
    assert result.modified == (normal(expected) != normal(proto))
    assert ir.serde.serialize_model(model).SerializeToString() == before


def _never() -> object:
    raise AssertionError("the weight was read")


def weighty(weight: object) -> ir.Model:
    """A model with a large weight, a small one, and axes."""
    model = ir.serde.deserialize_model(
        parser.parse_model(
            '<ir_version: 8, opset_import: ["": 18]> g (float[300, 300] x) => (float[r0, r1] y) '
            "<int64[1] axes = {1}, float[1] small = {2.0}> "
            "{ a = Add(x, small) b = ReduceLogSumExp(a, axes) y = Add(b, x) }"
        )
    )
    value = ir.Value(
        name="weight", shape=ir.Shape([300, 300]), type=ir.TensorType(ir.DataType.FLOAT), const_value=weight
    )
    model.graph.register_initializer(value)
    model.graph[2].replace_input_with(1, value)
    return model


def lazy() -> ir.LazyTensor:
    return ir.LazyTensor(_never, dtype=ir.DataType.FLOAT, shape=ir.Shape([300, 300]), name="weight")


def in_a_file() -> ir.ExternalTensor:
    return ir.ExternalTensor(
        "no_such_file.bin", 0, 360_000, ir.DataType.FLOAT, shape=ir.Shape([300, 300]), name="weight"
    )


@pytest.mark.parametrize("weight", [lazy, in_a_file], ids=["lazy", "in a file"])
@pytest.mark.parametrize("conversion", [ConvertVersionPass(13), ExpandPass(rules="stable")], ids=["convert", "expand"])
def test_a_weight_is_not_read_and_stays_the_same_object(weight: Callable[[], object], conversion: object) -> None:
    tensor = weight()
    model = weighty(tensor)
    result = conversion(model).model  # type: ignore[operator]
    assert result is not model
    assert result.graph.initializers["weight"].const_value is tensor
    assert model.graph.initializers["weight"].const_value is tensor


def test_a_weight_in_a_constant_node_is_not_read_either() -> None:
    model = weighty(in_a_file())
    tensor = lazy()
    node = ir.Node("", "Constant", [], [ir.AttrTensor("value", tensor)], name="held")
    node.outputs[0].name = "held"
    model.graph.insert_before(model.graph[0], node)
    model.graph[1].replace_input_with(0, node.outputs[0])
    result = ConvertVersionPass(13)(model).model
    (found,) = [node for node in result.graph if node.op_type == "Constant"]
    assert found.attributes["value"].as_tensor() is tensor


def test_small_axes_in_a_file_are_read(tmp_path: Path) -> None:
    (tmp_path / "axes.bin").write_bytes(np.array([1], np.int64).tobytes())
    model = weighty(in_a_file())
    axes = ir.ExternalTensor(
        "axes.bin", 0, 8, ir.DataType.INT64, shape=ir.Shape([1]), name="axes", base_dir=str(tmp_path)
    )
    model.graph.initializers["axes"].const_value = axes
    result = ConvertVersionPass(13)(model).model
    (node,) = [node for node in result.graph if node.op_type == "ReduceLogSumExp"]
    assert list(node.attributes["axes"].as_ints()) == [1]
    unchanged = ConvertVersionPass(19)(model).model
    np.testing.assert_array_equal(unchanged.graph.initializers["axes"].const_value.numpy(), [1])


def test_metadata_is_carried_over() -> None:
    model = weighty(in_a_file())
    model.meta["run"] = 1
    model.graph[1].metadata_props["layer"] = "second"
    model.metadata_props["author"] = "me"
    model.producer_name = "test"
    result = ConvertVersionPass(13)(model).model
    assert result.meta["run"] == 1
    assert result.graph[1].metadata_props["layer"] == "second"
    assert (result.metadata_props["author"], result.producer_name) == ("me", "test")


def test_passes_compose() -> None:
    sequence = ir.passes.Sequential(ConvertVersionPass(13), ExpandPass(ops=["ReduceLogSumExp"], rules="stable"))
    result = sequence(weighty(in_a_file()))
    assert result.modified
    assert result.model.graph.opset_imports[""] == 13
    assert "ReduceLogSumExp" not in [node.op_type for node in result.model.graph]
    back = ir.passes.Sequential(RaisePass(), ConvertVersionPass(18))(result.model).model
    assert [node.op_type for node in back.graph] == ["Add", "ReduceLogSumExp", "Add"]


def test_a_pass_runs_as_often_as_one_likes() -> None:
    expand = ExpandPass(ops=iter(["ReduceLogSumExp"]), rules="stable")
    for _ in range(2):
        assert "ReduceLogSumExp" not in [node.op_type for node in expand(weighty(in_a_file())).model.graph]


def test_options_that_the_function_lacks_are_refused_at_once() -> None:
    with pytest.raises(TypeError, match="target_opset"):
        ConvertVersionPass(13, target_opset=13)


def test_nothing_to_do_is_no_modification() -> None:
    model = weighty(in_a_file())
    result = ConvertVersionPass(18)(model)
    assert not result.modified
    assert result.model is not model


def test_refusals_come_as_they_are() -> None:
    text = '<ir_version: 10, opset_import: ["": 18]> g (bfloat16[2, 3] x) => (bfloat16[2, 3] y) { y = Relu(x) }'
    proto = parser.parse_model(text)
    with pytest.raises(reducelower.ConversionError) as expected:
        reducelower.convert_version(proto, 11)
    with pytest.raises(reducelower.ConversionError) as found:
        ConvertVersionPass(11)(ir.serde.deserialize_model(proto))
    assert found.value.refusals == expected.value.refusals
    with pytest.raises(ir.passes.PassError) as wrapped:
        ir.passes.Sequential(ConvertVersionPass(11))(ir.serde.deserialize_model(proto))
    assert isinstance(wrapped.value.__cause__, reducelower.ConversionError)


def test_onnx_ir_and_onnxscript_are_imported_only_when_asked_for() -> None:
    code = (
        "import sys, reducelower; reducelower.convert_version, reducelower.expand, reducelower.raise_reductions; "
        "assert 'onnx_ir' not in sys.modules; reducelower.ir.ExpandPass; "
        "assert 'onnx_ir' in sys.modules and 'onnxscript' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
