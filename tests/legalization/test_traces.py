"""No model leaves a trace in the process: each gets what it would get in a process of its own, whatever came before."""

from __future__ import annotations

import multiprocessing
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, parser

import reducelower
from reducelower import Target
from reducelower.batch import convert_files

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="processes are forked from a fresh one"),
    pytest.mark.xdist_group("traces"),
]

TEXTS: dict[str, str] = tomllib.loads(Path(__file__).with_name("traces.toml").read_text("utf-8"))


def _axes(model: ModelProto) -> TensorProto:
    """The constant a."""
    (found, *_) = model.graph.initializer or [model.graph.node[0].attribute[0].t]
    return found


def _shortened(tensor: TensorProto) -> None:
    tensor.raw_data = bytes(8 * tensor.dims[0] - 5)
    tensor.ClearField("int64_data")


def _misplaced(tensor: TensorProto) -> None:
    tensor.int32_data.extend(tensor.int64_data)
    tensor.ClearField("int64_data")


def _elsewhere(tensor: TensorProto) -> None:
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="not there")
    tensor.ClearField("int64_data")


DAMAGES: Mapping[str, Callable[[TensorProto], None]] = {
    "sound": lambda tensor: None,
    "shortened": _shortened,
    "misplaced": _misplaced,
    "in segments": lambda tensor: tensor.segment.SetInParent(),
    "elsewhere": _elsewhere,
}

MODELS: dict[str, bytes] = {}
for _text, _of_text in TEXTS.items():
    for _damage, _broken in list(DAMAGES.items())[: 5 if _text in ("squeeze", "constant", "function") else 2]:
        _made = parser.parse_model(_of_text)
        _broken(_axes(_made))
        MODELS[f"{_text}, {_damage}"] = _made.SerializeToString()

USES: Mapping[str, Callable[[ModelProto], ModelProto]] = {
    "to 11": lambda model: reducelower.convert_version(model, 11, base_dir="not there"),
    "to 10": lambda model: reducelower.convert_version(model, 10, base_dir="not there"),
    "to 18": lambda model: reducelower.convert_version(model, 18),
    "expanded": lambda model: reducelower.expand(model, base_dir="not there"),
    "raised": lambda model: reducelower.raise_reductions(model, base_dir="not there"),
    "for a runtime": lambda model: (
        reducelower.legalize(model, Target(13, runtime=reducelower.load_runtime("opencv")), base_dir="not there").model
    ),
}

Case = tuple[str, str]


def _given(case: Case) -> bytes | str:
    """What a model gives: bytes, or the refusal."""
    name, use = case
    try:
        return USES[use](ModelProto.FromString(MODELS[name])).SerializeToString(deterministic=True)
    except reducelower.ConversionError as refused:
        return str(refused)


def _converted(path: Path, folder: Path) -> bytes | tuple[str, ...]:
    """What a file gives in a batch of its own."""
    (outcome,) = convert_files([path], 11, output_dir=folder / path.stem, verify=False)
    return Path(outcome.output or "").read_bytes() if not outcome.status else outcome.problems


def _tell(results: Connection, work: Callable[[Any], Any], item: Any) -> None:
    results.send(work(item))


def _each_alone(work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """The results, each made by a process forked from this one."""
    context, results = multiprocessing.get_context("fork"), []
    for item in items:
        reader, writer = context.Pipe(duplex=False)
        process = context.Process(target=_tell, args=(writer, work, item))
        process.start()
        results.append(reader.recv())
        process.join()
    return results


def _in_fresh_processes(work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """The results, each made by a process in which no model was seen."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        return executor.submit(_each_alone, work, items).result()


@pytest.fixture(scope="module")
def alone() -> Mapping[Case, bytes | str]:
    """What each model gives in a process of its own."""
    cases = [(name, use) for number, name in enumerate(MODELS) for use in list(USES)[number % 3 :: 3]]
    return dict(zip(cases, _in_fresh_processes(_given, cases), strict=True))


def _drawn(alone: Mapping[Case, bytes | str], seed: int) -> list[Case]:
    cases = list(alone)
    return [cases[number] for number in np.random.default_rng(seed).integers(0, len(cases), 3 * len(cases))]


def test_any_sequence_of_models_gives_each_what_it_gets_alone(alone: Mapping[Case, bytes | str]) -> None:
    assert {type(found) for found in alone.values()} == {bytes, str}
    for case in _drawn(alone, 1):
        assert _given(case) == alone[case], case


def test_models_in_threads_get_what_they_get_alone(alone: Mapping[Case, bytes | str]) -> None:
    cases = _drawn(alone, 2)
    with ThreadPoolExecutor(4) as executor:
        for case, found in zip(cases, executor.map(_given, cases), strict=True):
            assert found == alone[case], case


def test_models_in_a_batch_get_what_they_get_alone(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number:02}.onnx" for number in range(len(MODELS))]
    for path, data in zip(paths, MODELS.values(), strict=True):
        path.write_bytes(data)
    expected = _in_fresh_processes(partial(_converted, folder=tmp_path / "alone"), paths)
    for jobs in (1, 2):
        outcomes = convert_files(paths, 11, output_dir=tmp_path / f"by {jobs}", jobs=jobs, verify=False)
        found = [Path(each.output or "").read_bytes() if not each.status else each.problems for each in outcomes]
        for name, given, wanted in zip(MODELS, found, expected, strict=True):
            assert given == wanted, name


def test_a_file_that_is_mended_is_converted(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    for name, status in (("squeeze, elsewhere", 2), ("squeeze, sound", 0), ("squeeze, shortened", 1)):
        path.write_bytes(MODELS[name])
        (outcome,) = convert_files([path], 11, output_dir=tmp_path / name, verify=False)
        assert bool(outcome.status) == bool(status)
