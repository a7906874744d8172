from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper

from reducelower.errors import UnreadableModelError
from reducelower.verification import load_test_data, load_value, verify
from tests.models import model

ADD = "g (float[2] a, float[2] b) => (float[2] y) { y = Sub (a, b) }"


def write(path: Path, array: np.ndarray) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(numpy_helper.from_array(array).SerializeToString())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for at in (0, 1, 10):
        base = tmp_path / f"test_data_set_{at}"
        a, b = np.array([1, 2], np.float32) * (at + 1), np.array([0.5, 3], np.float32)
        write(base / "input_0.pb", a)
        write(base / "input_1.pb", b)
        write(base / "output_0.pb", a - b)
    return tmp_path


def test_data_sets_are_read_in_numeric_order_and_hold(folder: Path) -> None:
    sets = load_test_data(folder, model(ADD))
    assert [item.name for item in sets] == ["test_data_set_0", "test_data_set_1", "test_data_set_10"]
    for item in sets:
        assert verify(model(ADD), model(ADD), inputs=item.inputs, expected=item.outputs).equivalent
    swapped = model(ADD.replace("Sub (a, b)", "Sub (b, a)"))
    assert not verify(swapped, swapped, inputs=sets[0].inputs, expected=sets[0].outputs).equivalent


def test_one_data_set_can_be_named_directly(folder: Path) -> None:
    (only,) = load_test_data(folder / "test_data_set_1", model(ADD))
    assert only.inputs["a"].tolist() == [2, 4]


def test_inputs_with_a_default_have_no_file(folder: Path) -> None:
    from_default = model(ADD)
    from_default.graph.initializer.append(numpy_helper.from_array(np.zeros(2, np.float32), "a"))
    for base in folder.iterdir():
        (base / "input_1.pb").unlink()
    assert set(load_test_data(folder, from_default)[0].inputs) == {"b"}


def test_sequences_and_optionals_are_read(tmp_path: Path) -> None:
    items = [np.ones(2, np.float32), np.zeros(1, np.float32)]
    (tmp_path / "input_0.pb").write_bytes(numpy_helper.from_list(items, "s").SerializeToString())
    concat = model("g (seq(float[N]) s) => (float[M] y) { y = ConcatFromSequence <axis = 0> (s) }")
    (only,) = load_test_data(tmp_path, concat)
    assert [item.tolist() for item in only.inputs["s"]] == [[1, 1], [0]]


def test_more_files_than_inputs_is_an_error(folder: Path) -> None:
    write(folder / "test_data_set_0" / "input_2.pb", np.ones(2, np.float32))
    with pytest.raises(UnreadableModelError, match="those of the model's 2 inputs"):
        load_test_data(folder, model(ADD))


TWO = "g (float[2] x) => (float[2] p, float[2] q) { p = Relu (x)  q = Neg (x) }"


def test_the_last_expected_outputs_may_be_missing(tmp_path: Path) -> None:
    x = np.array([1, -2], np.float32)
    write(tmp_path / "input_0.pb", x)
    write(tmp_path / "output_0.pb", np.maximum(x, 0))
    (only,) = load_test_data(tmp_path, model(TWO))
    assert verify(model(TWO), model(TWO), inputs=only.inputs, expected=only.outputs).equivalent


@pytest.mark.parametrize("numbers", [(1,), (0, 7)], ids=["the first is missing", "one that the model does not have"])
def test_expected_outputs_are_not_taken_for_others(tmp_path: Path, numbers: tuple[int, ...]) -> None:
    write(tmp_path / "input_0.pb", np.ones(2, np.float32))
    for number in numbers:
        write(tmp_path / f"output_{number}.pb", -np.ones(2, np.float32))
    with pytest.raises(UnreadableModelError, match=rf"output_{numbers[-1]}\.pb; those of the model's 2 outputs"):
        load_test_data(tmp_path, model(TWO))


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnreadableModelError, match="test_data_set_0"):
        load_test_data(tmp_path, model(ADD))


def test_arrays_are_read_from_npy_and_tensor_files(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.int64).reshape(2, 3)
    np.save(tmp_path / "a.npy", array)
    write(tmp_path / "a.pb", array)
    assert (load_value(tmp_path / "a.npy") == array).all()
    assert (load_value(tmp_path / "a.pb") == array).all()


def test_files_that_hold_no_array_are_one_kind_of_error(tmp_path: Path) -> None:
    (tmp_path / "bad.npy").write_bytes(b"text")
    (tmp_path / "bad.pb").write_bytes(b"\xff\xff")
    np.save(tmp_path / "pickle.npy", np.array([{}], dtype=object), allow_pickle=True)
    for name in ("bad.npy", "bad.pb", "pickle.npy", "missing.npy"):
        with pytest.raises(UnreadableModelError, match=name):
            load_value(tmp_path / name)
