import random
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, ModelProto, NodeProto, SparseTensorProto, TensorProto, helper, numpy_helper
from onnx.external_data_helper import load_external_data_for_model

from reducelower.batch import convert_file
from reducelower.errors import UnreadableModelError
from reducelower.files import inline, read_model, reading, write_model, writing
from reducelower.files.inline import CHILDREN
from reducelower.model.document import Document
from reducelower.model.wire import LENGTH, MalformedError, Window, varint
from reducelower.options import Settings, Target
from reducelower.pipeline import stand_ins
from reducelower.pipeline.task import Task


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inline, "_LARGE", 256)
    monkeypatch.setattr(reading, "_WORTH_LIFTING", 0)


def array(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape or (32, 8)).astype(np.float32)


def tensor(name: str, seed: int) -> TensorProto:
    return numpy_helper.from_array(array(seed), name)


def constant(output: str, seed: int) -> NodeProto:
    return helper.make_node("Constant", [], [output], value=tensor("", seed))


def packed(name: str, seed: int) -> TensorProto:
    return helper.make_tensor(name, TensorProto.FLOAT, [32, 8], array(seed).reshape(-1).tolist())


def annotated(name: str, seed: int) -> TensorProto:
    made = tensor(name, seed)
    made.data_location = TensorProto.DEFAULT
    made.doc_string = "what it is for"
    made.metadata_props.add(key="from", value="here")
    return made


def branch(name: str, seed: int) -> onnx.GraphProto:
    nodes = [constant(f"{name}_c", seed), helper.make_node("Add", [f"{name}_c", f"{name}_w"], [name])]
    output = helper.make_tensor_value_info(name, TensorProto.FLOAT, [32, 8])
    return helper.make_graph(nodes, name, [], [output], [tensor(f"{name}_w", seed + 1)])


def everywhere() -> ModelProto:
    """A model with large tensors wherever tensors may be."""
    names = ["raw", "packed", "annotated", "constant", "chosen", "called"]
    nodes = [
        constant("constant", 3),
        helper.make_node("If", ["yes"], ["chosen"], then_branch=branch("a", 10), else_branch=branch("b", 20)),
        helper.make_node("offset", ["x"], ["called"], domain="local"),
        helper.make_node("ReduceSum", ["raw", "axes"], ["summed"]),
        helper.make_node("Sum", ["x", *names, "summed"], ["y"]),
    ]
    values = numpy_helper.from_array(array(6, 100), "sparse")
    indices = numpy_helper.from_array(np.arange(100, dtype=np.int64), "")
    graph = helper.make_graph(
        nodes,
        "main",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [32, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [32, 8])],
        [
            tensor("raw", 1),
            packed("packed", 2),
            annotated("annotated", 4),
            numpy_helper.from_array(np.array(True), "yes"),
            numpy_helper.from_array(np.array([0]), "axes"),
        ],
        sparse_initializer=[SparseTensorProto(values=values, indices=indices, dims=[256])],
    )
    function = helper.make_function(
        "local",
        "offset",
        ["v"],
        ["w"],
        [constant("c", 5), helper.make_node("Add", ["v", "c"], ["w"])],
        [helper.make_opsetid("", 13)],
    )
    imports = [helper.make_opsetid("", 13), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=[function], ir_version=8)


def written(path: Path, data: bytes) -> tuple[bytes, int]:
    """What comes of a file that is read and written, and how many weights stayed in it."""
    path.write_bytes(data)
    source = read_model(path)
    output = write_model(
        Document.of_message(source.model), path.with_suffix(".out.onnx"), source=source, overwrite=True
    )
    return output.read_bytes(), len(source.inline.weights) if source.inline else 0


def test_large_tensors_stay_in_the_file_wherever_they_are(tmp_path: Path) -> None:
    data = everywhere().SerializeToString()
    (tmp_path / "m.onnx").write_bytes(data)
    source = read_model(tmp_path / "m.onnx")
    assert source.inline is not None
    assert len(source.inline.weights) == 9
    assert source.model.ByteSize() < len(data) - 9 * 400
    assert source.is_partial
    assert not source.external


def test_writing_gives_what_protobuf_writes(tmp_path: Path) -> None:
    data = everywhere().SerializeToString()
    assert written(tmp_path / "m.onnx", data) == (data, 9)


def test_the_model_without_weights_is_a_valid_model_with_external_data(tmp_path: Path) -> None:
    whole = everywhere()
    (tmp_path / "m.onnx").write_bytes(whole.SerializeToString())
    model = read_model(tmp_path / "m.onnx").model
    load_external_data_for_model(model, str(tmp_path))
    for left, right in zip(model.graph.initializer, whole.graph.initializer, strict=True):
        assert np.array_equal(numpy_helper.to_array(left), numpy_helper.to_array(right))


def shuffled(name: str, data: bytes, generator: random.Random) -> bytes:
    """The same message with its fields in another order; repeated fields keep theirs."""
    fields = []
    for field in Window(data).fields(0, len(data)):
        value = data[field.start : field.end]
        child = CHILDREN.get(name, {}).get(field.number)
        if child is not None and field.kind == LENGTH:
            inside = shuffled(child, data[field.value : field.end], generator)
            value = varint(field.number << 3 | LENGTH) + varint(len(inside)) + inside
        fields.append((field.number, value))
    order = [number for number, _ in fields]
    generator.shuffle(order)
    queues = {number: iter([value for other, value in fields if other == number]) for number in order}
    return b"".join(next(queues[number]) for number in order)


@pytest.mark.parametrize("seed", range(20))
def test_fields_may_come_in_any_order(tmp_path: Path, seed: int) -> None:
    data = everywhere().SerializeToString()
    found, count = written(tmp_path / "m.onnx", shuffled("Model", data, random.Random(seed)))
    assert (found, count) == (data, 9)


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
        (
            "a graph in parts",
            field(7, field(5, HEAD + field(9, raw(1)))) + field(7, field(5, field(9, raw(2)) + HEAD)),
            2,
        ),
        ("raw data twice", field(7, field(5, HEAD + field(9, raw(1)) + field(9, raw(2)))), 0),
        ("raw data and numbers", field(7, field(5, HEAD + field(9, raw(1)) + field(4, raw(2)))), 0),
        ("numbers in parts", field(7, field(5, HEAD + field(4, raw(1)[:512]) + field(4, raw(1)[512:]))), 0),
        ("no element type", field(7, field(5, field(8, b"t") + field(9, raw(1)))), 0),
        (
            "an attribute whose tensor is in parts",
            field(
                7,
                field(
                    1, field(4, b"Constant") + field(5, field(5, HEAD + field(9, raw(1))) + field(5, field(8, b"u")))
                ),
            ),
            0,
        ),
        ("an unknown field", field(7, field(5, HEAD + field(9, raw(1)) + field(99, b"later"))), 1),
        ("a length in more bytes than needed", field(7, padded(5, HEAD + field(9, raw(1)))), 1),
    ],
)
def test_what_protobuf_would_merge_comes_out_merged(tmp_path: Path, what: str, data: bytes, stayed: int) -> None:
    model = in_a_model(data)
    expected = ModelProto.FromString(model).SerializeToString()
    assert written(tmp_path / "m.onnx", model) == (expected, stayed), what


def test_moved_and_copied_references_are_written_and_dropped_ones_are_not(tmp_path: Path) -> None:
    whole = everywhere()
    (tmp_path / "m.onnx").write_bytes(whole.SerializeToString())
    source = read_model(tmp_path / "m.onnx")
    for model in (source.model, whole):
        first = model.graph.initializer[0]
        node = model.graph.node.add(op_type="Constant", output=["again"])
        node.attribute.add(name="value", type=AttributeProto.TENSOR, t=first)
        del model.graph.initializer[:2]
        del model.graph.node[1]
    output = write_model(source.document, tmp_path / "out.onnx", source=source)
    assert output.read_bytes() == whole.SerializeToString()


def test_a_reference_cannot_be_forged(tmp_path: Path) -> None:
    model = everywhere()
    forged = model.graph.initializer.add(name="forged", data_type=TensorProto.FLOAT, dims=[1])
    forged.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "m.onnx"), ("length", "4"), ("checksum", f"{'0' * 32}:0")):
        forged.external_data.add(key=key, value=value)
    data = model.SerializeToString()
    found, count = written(tmp_path / "m.onnx", data)
    assert found == data
    assert count == 9


def test_text_formats_hold_the_weights(tmp_path: Path) -> None:
    whole = everywhere()
    (tmp_path / "m.onnx").write_bytes(whole.SerializeToString())
    source = read_model(tmp_path / "m.onnx")
    assert onnx.load(write_model(source.document, tmp_path / "m.textproto", source=source)) == whole


def test_conversion_gives_the_same_bytes_as_with_weights_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m.onnx").write_bytes(everywhere().SerializeToString())
    settings = Settings(Target(18), verify=False)
    assert convert_file(Task(str(tmp_path / "m.onnx"), str(tmp_path / "apart.onnx")), settings).problems == ()
    monkeypatch.setattr(reading, "_WORTH_LIFTING", 1 << 40)
    assert convert_file(Task(str(tmp_path / "m.onnx"), str(tmp_path / "whole.onnx")), settings).problems == ()
    assert (tmp_path / "apart.onnx").read_bytes() == (tmp_path / "whole.onnx").read_bytes()


def test_constants_too_large_to_be_made_up_pass_the_checker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stand_ins, "_LARGEST_STAND_IN", 64)
    model = everywhere()
    held = model.graph.node.add(op_type="Holds", domain="other", output=["held"])
    held.attribute.add(name="table", type=AttributeProto.TENSOR, t=tensor("", 7))
    model.opset_import.add(domain="other", version=1)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    outcome = convert_file(
        Task(str(tmp_path / "m.onnx"), str(tmp_path / "out.onnx")), Settings(Target(18), verify=False)
    )
    assert outcome.problems == ()


def test_conversion_is_verified_and_may_replace_its_input(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(everywhere().SerializeToString())
    outcome = convert_file(Task(str(path), str(path)), Settings(Target(18), in_place=True))
    assert outcome.problems == ()
    assert outcome.verification is not None
    assert outcome.verification.equivalent
    assert onnx.load(path).opset_import[0].version == 18


def test_a_linked_model_is_read_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    data = everywhere().SerializeToString()
    (tmp_path / "store" / "blob").write_bytes(data)
    (tmp_path / "m.onnx").symlink_to(tmp_path / "store" / "blob")
    source = read_model(tmp_path / "m.onnx")
    assert source.folder == tmp_path / "store"
    assert write_model(source.document, tmp_path / "out.onnx", source=source).read_bytes() == data


def test_a_source_that_changes_meanwhile_gives_no_output(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(everywhere().SerializeToString())
    source = read_model(path)
    path.open("ab").write(b"x")
    with pytest.raises(UnreadableModelError, match="changed while"):
        write_model(source.document, tmp_path / "out.onnx", source=source)
    assert not (tmp_path / "out.onnx").exists()


def test_a_result_over_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(everywhere().SerializeToString())
    source = read_model(path)
    monkeypatch.setattr(writing, "LARGEST_MESSAGE", path.stat().st_size - 1)
    with pytest.raises(UnreadableModelError, match="2 GiB"):
        write_model(source.document, tmp_path / "out.onnx", source=source)


@pytest.mark.parametrize("cut", [1, 50, 900, 1500, 5000])
def test_damaged_files_are_refused_as_when_read_whole(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(everywhere().SerializeToString()[:-cut])
    with pytest.raises(UnreadableModelError, match=r"cut short|damaged"):
        read_model(path)


def test_graphs_inside_each_other_without_end_are_refused(tmp_path: Path) -> None:
    data = HEAD + field(9, raw(1))
    data = field(5, data)
    for _ in range(500):
        data = field(1, field(5, field(6, data)))
    (tmp_path / "m.onnx").write_bytes(in_a_model(field(7, data)))
    with pytest.raises(UnreadableModelError, match=r"deeper|damaged"):  # protobuf 4 does not say which it is
        read_model(tmp_path / "m.onnx")


@pytest.mark.parametrize("data", [b"\x0b", b"\x08", b"\x0a\x05ab", b"\xff" * 20, b"\x02\x00", b"\x0d\x00"])
def test_what_is_no_message_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedError):
        list(Window(data).fields(0, len(data)))
