"""Broken models, the same ones every time: converted or refused, and nothing else."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

import pytest
from onnx import GraphProto, ModelProto, NodeProto, checker, parser

import reducelower
from reducelower.errors import UnreadableModelError
from tools.bytes_run import run_numbers
from tools.mutation import mutated, seeds

FOUND = (
    27, 1005, 1063, 1123, 1247, 1519, 2599, 3205, 4161, 5007, 10383, 12368, 14526, 14887, 17997, 23677, 26963,
    34125, 39847, 64405, 92666, 102589, 137487, 154123,
)  # fmt: skip
"""Numbers of models that were once taken for a fault of ours, one for each cause."""


@pytest.mark.skipif(sys.platform == "win32", reason="limits on time and memory are POSIX's")
def test_broken_models_are_converted_or_refused() -> None:
    statuses, findings = run_numbers([*FOUND, *range(2_000_000, 2_000_150)])
    assert findings == []
    assert set(statuses) == {0, 1, 2}


@pytest.mark.skipif(sys.platform == "win32", reason="limits on time and memory are POSIX's")
def test_broken_models_are_verified_or_refused() -> None:
    statuses, findings = run_numbers([7_006_625, *range(3_000_000, 3_000_016)], verify=True)
    assert findings == []
    assert set(statuses) == {0, 1, 2}


RAISED_OTHERS = (
    10000015, 10000219, 10000222, 10000261, 10000496, 10000562, 10000597, 10000724, 10000955, 10001106,
    20004711, 20006293, 20013873,
)  # fmt: skip
"""Numbers of models for which the library once raised another error than its own."""


def _uses(data: bytes) -> Iterator[Callable[[], object]]:
    yield lambda: reducelower.convert_version(data, 13)
    yield lambda: reducelower.expand(data, rules="core")
    with contextlib.suppress(Exception):
        model = ModelProto.FromString(data)
        yield lambda: reducelower.check(model, 13)
        yield lambda: reducelower.raise_reductions(model)
        yield lambda: reducelower.repair(model)


def test_the_library_raises_its_own_errors_for_broken_models() -> None:
    models = seeds()
    for number in (*RAISED_OTHERS, *range(11_000_000, 11_000_050)):
        for use in _uses(mutated(models, number)):
            with contextlib.suppress(reducelower.ConversionError, UnreadableModelError):
                use()


def test_a_field_of_another_kind_is_passed_over_as_protobuf_does() -> None:
    text = '<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (float[1] y) { y = ReduceL2 (x) }'
    model = parser.parse_model(text)
    node = NodeProto.FromString(b"\x08\x05" + model.graph.node[0].SerializeToString())  # an input that is a number
    del model.graph.node[:]
    model.graph.MergeFrom(GraphProto(node=[node]))
    made = ModelProto.FromString(reducelower.expand(model.SerializeToString()))
    checker.check_model(made, full_check=True)
    assert [node.op_type for node in made.graph.node] == ["Mul", "ReduceSum", "Sqrt", "Cast"]
