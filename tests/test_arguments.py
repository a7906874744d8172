"""What the public functions say to a caller who passes the wrong thing."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import reducelower
from reducelower import Target

MODEL = onnx.parser.parse_model(
    '<ir_version: 8, opset_import: ["": 18]> g (float[2, 3] x) => (float[2, 1] y) <int64[1] a = {1}> '
    "{ y = ReduceL2 (x, a) }"
)

WRONG: list[list[str]] = tomllib.loads(Path(__file__).with_name("arguments.toml").read_text("utf-8"))["wrong"]


@pytest.mark.parametrize(("call", "kind", "message"), WRONG, ids=[call for call, _, _ in WRONG])
def test_a_wrong_argument_is_named(call: str, kind: str, message: str) -> None:
    names = {name: getattr(reducelower, name) for name in reducelower.__all__}
    with pytest.raises({"TypeError": TypeError, "ValueError": ValueError}[kind], match=message):
        eval(call, {**names, "MODEL": MODEL})


@pytest.mark.parametrize("version", [13, np.int64(13)])
def test_integers_of_any_kind_are_opset_versions(version: int) -> None:
    assert reducelower.convert_version(MODEL, version).opset_import[0].version == 13


@pytest.mark.parametrize("names", [["ReduceL2"], ("ReduceL2",), {"ReduceL2"}, iter(["ReduceL2"]), {"ReduceL2": 1}])
def test_any_collection_of_names_will_do(names: Any) -> None:
    found = {node.op_type for node in reducelower.convert_version(MODEL, 13, without=names).graph.node}
    assert "ReduceL2" not in found
    assert Target(13, without=["ReduceL2"]) == Target(13, frozenset({"ReduceL2"}))  # type: ignore[arg-type]
