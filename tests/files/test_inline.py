"""Weights of large files stay there."""

import random
from collections.abc import Callable
from io import FileIO
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, ModelProto, TensorProto, helper, numpy_helper

from reducelower import ConversionError, convert_version
from reducelower.batch import convert_file
from reducelower.errors import UnreadableModelError
from reducelower.files import LoadedModel, read_model, write_model
from reducelower.files.inline import InlineWeights, lift, splice
from reducelower.files.wire import LENGTH, MalformedError, Window, varint
from reducelower.options import Settings, Target
from reducelower.pipeline.task import Task
from tests.model.weighty import beside, four_bits, looked_up, with_weights

LEAST = 256


def array(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape or (32, 8)).astype(np.float32)


def tensor(name: str, seed: int) -> TensorProto:
    return numpy_helper.from_array(array(seed), name)


def annotated(name: str, seed: int) -> TensorProto:
    made = tensor(name, seed)
    made.doc_string = "what it is for"
    made.metadata_props.add(key="from", value="here")
    return made


def several() -> ModelProto:
    """A model with two initializers that can stay, and large tensors that cannot."""
    packed = helper.make_tensor("packed", TensorProto.FLOAT, [32, 8], array(2).reshape(-1).tolist())
    nodes = [
        helper.make_node("Constant", [], ["constant"], value=tensor("", 3)),
        helper.make_node("ReduceSum", ["raw", "axes"], ["summed"]),
        helper.make_node("Sum", ["x", "raw", "packed", "annotated", "constant", "summed"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "main",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [32, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [32, 8])],
        [tensor("raw", 1), packed, annotated("annotated", 4), numpy_helper.from_array(np.array([0]), "axes")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def lifted(path: Path, data: bytes) -> tuple[ModelProto, InlineWeights]:
    """The model in a file, and the weights that stayed there."""
    path.write_bytes(data)
    weights = InlineWeights(FileIO(path), path)
    light = lift(weights, LEAST)
    return ModelProto.FromString(data if light is None else light), weights


def written(path: Path, data: bytes) -> tuple[bytes, int]:
    """What comes of a model that is lifted and spliced, and how many weights stayed in the file."""
    model, weights = lifted(path, data)
    return weights.joined(splice(model.SerializeToString(), weights)), len(weights.weights)


def test_large_initializers_stay_in_the_file(tmp_path: Path) -> None:
    data = several().SerializeToString()
    model, weights = lifted(tmp_path / "m.onnx", data)
    assert [each.name for each in model.graph.initializer if weights.weight_of(each)] == ["raw", "annotated"]
    assert model.ByteSize() < len(data) - 2 * 700


def test_writing_gives_what_protobuf_writes(tmp_path: Path) -> None:
    data = several().SerializeToString()
    assert written(tmp_path / "m.onnx", data) == (data, 2)


def test_the_model_without_weights_is_a_valid_model_with_external_data(tmp_path: Path) -> None:
    whole = several()
    model, _ = lifted(tmp_path / "m.onnx", whole.SerializeToString())
    onnx.external_data_helper.load_external_data_for_model(model, str(tmp_path))
    for left, right in zip(model.graph.initializer, whole.graph.initializer, strict=True):
        assert np.array_equal(numpy_helper.to_array(left), numpy_helper.to_array(right))


def shuffled(name: str, data: bytes, generator: random.Random) -> bytes:
    """The same message with its fields in another order; repeated fields keep theirs."""
    fields = []
    for field in Window(data).fields(0, len(data)):
        value = data[field.start : field.end]
        child = {("Model", 7): "Graph", ("Graph", 5): "Tensor"}.get((name, field.number))
        if child is not None and field.kind == LENGTH:
            inside = shuffled(child, data[field.value : field.end], generator)
            value = varint(field.number << 3 | LENGTH) + varint(len(inside)) + inside
        fields.append((field.number, value))
    order = [number for number, _ in fields]
    generator.shuffle(order)
    queues = {number: iter([value for other, value in fields if other == number]) for number in order}
    return b"".join(next(queues[number]) for number in order)


@pytest.mark.parametrize("seed", range(5))
def test_fields_may_come_in_any_order(tmp_path: Path, seed: int) -> None:
    data = several().SerializeToString()
    assert written(tmp_path / "m.onnx", shuffled("Model", data, random.Random(seed))) == (data, 2)


def field(number: int, value: bytes) -> bytes:
    return varint(number << 3 | LENGTH) + varint(len(value)) + value


def padded(number: int, value: bytes) -> bytes:
    length = varint(len(value))
    return varint(number << 3 | LENGTH) + length[:-1] + bytes([length[-1] | 128, 128, 0]) + value


def in_a_model(graph: bytes) -> bytes:
    return ModelProto(ir_version=8, opset_import=[helper.make_opsetid("", 13)]).SerializeToString() + graph


def raw(seed: int) -> bytes:
    return array(seed).tobytes()


HEAD = TensorProto(name="t", data_type=TensorProto.FLOAT, dims=[32, 8]).SerializeToString()


@pytest.mark.parametrize(
    ("what", "data", "stayed"),
    [
        ("raw data twice", field(7, field(5, HEAD + field(9, raw(1)) + field(9, raw(2)))), 0),
        ("raw data and numbers", field(7, field(5, HEAD + field(9, raw(1)) + field(4, raw(2)))), 0),
        ("numbers in parts", field(7, field(5, HEAD + field(4, raw(1)[:512]) + field(4, raw(1)[512:]))), 0),
        ("a length in more bytes than needed", field(7, padded(5, HEAD + field(9, raw(1)))), 1),
    ],
)
def test_what_protobuf_would_merge_comes_out_merged(tmp_path: Path, what: str, data: bytes, stayed: int) -> None:
    model = in_a_model(data)
    expected = ModelProto.FromString(model).SerializeToString()
    assert written(tmp_path / "m.onnx", model) == (expected, stayed), what


def test_a_graph_in_parts_is_read_whole(tmp_path: Path) -> None:
    parts = field(7, field(5, HEAD + field(9, raw(1)))) + field(7, field(5, field(9, raw(2)) + HEAD))
    model = ModelProto.FromString(in_a_model(parts))
    assert written(tmp_path / "m.onnx", in_a_model(parts)) == (model.SerializeToString(), 0)


def test_moved_and_copied_references_are_written_and_dropped_ones_are_not(tmp_path: Path) -> None:
    whole = several()
    light, weights = lifted(tmp_path / "m.onnx", whole.SerializeToString())
    for model in (light, whole):
        first = model.graph.initializer[0]
        node = model.graph.node.add(op_type="Constant", output=["again"])
        node.attribute.add(name="value", type=AttributeProto.TENSOR, t=first)
        del model.graph.initializer[1:]
    assert weights.joined(splice(light.SerializeToString(), weights)) == whole.SerializeToString()
    del light.graph.node[-1], whole.graph.node[-1]
    assert weights.joined(splice(light.SerializeToString(), weights)) == whole.SerializeToString()


def test_a_reference_cannot_be_forged(tmp_path: Path) -> None:
    model = several()
    forged = model.graph.initializer.add(name="forged", data_type=TensorProto.FLOAT, dims=[1])
    forged.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "m.onnx"), ("length", "4"), ("checksum", f"{'0' * 32}:0")):
        forged.external_data.add(key=key, value=value)
    data = model.SerializeToString()
    assert written(tmp_path / "m.onnx", data) == (data, 2)


def heavy(model: ModelProto) -> ModelProto:
    """The model with so large a weight that it is not parsed."""
    model.graph.initializer.append(numpy_helper.from_array(np.zeros(1 << 22, np.float32), "unused"))
    return model


@pytest.mark.parametrize("target", [9, 13, 22])
@pytest.mark.parametrize("make", [beside, four_bits, looked_up])
def test_bytes_are_converted_as_if_all_were_parsed(make: Callable[[], ModelProto], target: int) -> None:
    model = heavy(make())
    data = model.SerializeToString()
    assert lift(InlineWeights(data)) is not None
    try:
        expected = convert_version(model, target)
    except ConversionError as refused:
        with pytest.raises(ConversionError) as found:
            convert_version(data, target)
        assert str(found.value) == str(refused)
    else:
        assert convert_version(data, target) == expected.SerializeToString()


def test_weights_that_change_are_parsed() -> None:
    packed = TensorProto(name="w", data_type=TensorProto.INT4, dims=[1 << 13, 1 << 12], raw_data=bytes(1 << 24))
    data = with_weights(
        "g (float[1,8192] x) => (float[1,4096] y) <float s = {0.5}> { d = DequantizeLinear (w, s)  y = MatMul (x, d) }",
        packed,
        opset=21,
    ).SerializeToString()
    converted = ModelProto.FromString(convert_version(data, 19))
    assert converted.graph.initializer[0].data_type == TensorProto.INT8
    assert converted.graph.initializer[0].raw_data == bytes(1 << 25)


@pytest.mark.parametrize("cut", [1, 100, 20_000])
def test_bytes_that_end_early_are_no_model(cut: int) -> None:
    with pytest.raises(UnreadableModelError):
        convert_version(heavy(several()).SerializeToString()[:-cut], 13)


def large(path: Path) -> ModelProto:
    """A model of a file so large that its weights stay there."""
    model = heavy(several())
    path.write_bytes(model.SerializeToString())
    return model


@pytest.fixture
def source(tmp_path: Path) -> LoadedModel:
    large(tmp_path / "m.onnx")
    return read_model(tmp_path / "m.onnx")


def test_a_large_file_is_converted_and_may_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    whole = large(path)
    outcome = convert_file(Task(str(path), str(path)), Settings(Target(18), in_place=True))
    assert outcome.problems == ()
    assert outcome.verification is not None
    assert outcome.verification.equivalent
    converted = onnx.load(path)
    assert converted.opset_import[0].version == 18
    assert converted.graph.initializer[-1] == whole.graph.initializer[-1]


def test_a_linked_model_is_read_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    whole = large(tmp_path / "store" / "blob")
    (tmp_path / "m.onnx").symlink_to(tmp_path / "store" / "blob")
    source = read_model(tmp_path / "m.onnx")
    assert source.inline is not None and source.place.parent == tmp_path / "store"
    assert onnx.load(write_model(source.document, tmp_path / "out.onnx", source=source)) == whole


def test_a_source_that_changes_meanwhile_gives_no_output(tmp_path: Path, source: LoadedModel) -> None:
    source.path.open("ab").write(b"x")
    with pytest.raises(UnreadableModelError, match="changed while"):
        write_model(source.document, tmp_path / "out.onnx", source=source)
    assert not (tmp_path / "out.onnx").exists()


def test_a_result_over_the_limit_is_refused(tmp_path: Path, source: LoadedModel) -> None:
    assert source.inline is not None
    source.inline.weights[:] = [range(1 << 31)]
    with pytest.raises(UnreadableModelError, match="2 GiB"):
        write_model(source.document, tmp_path / "out.onnx", source=source)


@pytest.mark.parametrize("cut", [1, 50, 5000])
def test_damaged_files_are_refused_as_when_read_whole(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(large(path).SerializeToString()[:-cut])
    with pytest.raises(UnreadableModelError, match=r"cut short|damaged"):
        read_model(path)


@pytest.mark.parametrize("data", [b"\x0b", b"\x08", b"\x0a\x05ab", b"\xff" * 20, b"\x02\x00", b"\x0d\x00"])
def test_what_is_no_message_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedError):
        list(Window(data).fields(0, len(data)))
