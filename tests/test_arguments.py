"""What the public functions say to a caller who passes the wrong thing."""

from __future__ import annotations

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

# Calls, what they raise, and what that says.
WRONG: list[tuple[str, type[Exception], str]] = [
    ('convert_version(MODEL, 13, rules="stabel")', ValueError,
     r"^rules must be a rule book .*'stabel' is neither; did you mean 'stable'\?$"),
    ('convert_version(MODEL, 13, without="ReduceLogSumExp")', TypeError,
     r"^without must be a collection of names such as \['ReduceLogSumExp'\]"),
    ('expand(MODEL, without_types="double")', TypeError, r"^without_types must be a collection"),
    ('convert_version(MODEL, 13, without=None)', TypeError,
     r"^without must be a collection of names such as \['ReduceL2'\], not None; leave it out for none$"),
    ('expand(MODEL, ops="ReduceL2")', TypeError, r"^ops must be"),
    ('Target(13, without=[1])', TypeError, r"^without must hold strings"),
    ('convert_version(5, 13)', TypeError,
     r"^model must be an onnx.ModelProto, its bytes, a path, .* or an onnx_ir.Model, not int 5$"),
    ('convert_version("m.onnx", 13, in_place=True)', TypeError,
     r"^in_place changes an onnx.ModelProto, and model is str 'm.onnx'$"),
    ('convert_bytes(MODEL, 13)', TypeError, r"^serialized must be the bytes"),
    ('convert_version(MODEL, "13")', TypeError, r"^target_version must be an int such as 13, not str '13'$"),
    ('Target("13")', TypeError, r"^opset must be an int"),
    ('check(MODEL, 999)', ValueError, r"^target_version must be from 1 to \d+, .*there is no opset 999$"),
    ('legalize(MODEL, 13)', TypeError, r"^target must be a reducelower.Target such as Target\(13\), not int 13$"),
    ('convert_version(MODEL, 13, ir_version="newest")', ValueError, r"^ir_version must be 'auto', 'keep' or an int"),
    ('convert_version(MODEL, 13, ir_version=0)', ValueError, r"^ir_version must be from 1 to"),
    ('convert_version(MODEL, 13, element_types={"y": "flaot"})', ValueError, r"^element_types\['y'\]: "),
    ('convert_version(MODEL, 13, ranks=["y"])', TypeError, r"^ranks must map names of values"),
    ('convert_version(MODEL, 13, ranks={"y": -1})', ValueError, r"^ranks\['y'\] must not be negative"),
    ('raise_reductions(MODEL, rules="core")', TypeError, r"^rules must be a collection of rule books"),
    ('convert_version(MODEL, 13, base_dir=3)', TypeError, r"^base_dir must be the path of a folder"),
    ('convert_version(MODEL, None)', TypeError, r"^target_version must be an int such as 13, not None$"),
    ('expand(MODEL, ops=[None])', TypeError, r"^ops must hold strings"),
    ('convert_bytes(bytearray(MODEL.SerializeToString()), 13)', TypeError, r"pass bytes\(\.\.\.\) of it$"),
    ('repair(None)', TypeError, r"^model must be an onnx.ModelProto, .*, not None$"),
    ('verify(None, MODEL)', TypeError, r"^before must be an onnx.ModelProto, .*, not None$"),
    ('verify(MODEL, MODEL, expected=5)', TypeError, r"^expected must be the outputs in graph order"),
    ('verify(MODEL, MODEL, seed="x")', TypeError, r"^seed must be an int such as 0, not str 'x'$"),
    ('verify(MODEL, MODEL, seed=-1)', ValueError, r"^seed must not be negative"),
    ('verify(MODEL, MODEL, provider=5)', TypeError, r"^provider must be the name of an execution provider"),
    ('verify(MODEL, MODEL, budget=float("nan"))', ValueError,
     r"^budget must be a number of seconds from 0 on, or None for no limit, not nan$"),
    ('verify(MODEL, MODEL, memory="1 GB")', TypeError, r"^memory must be a number of GB, not str '1 GB'$"),
    ('verify(MODEL, MODEL, memory=0)', ValueError,
     r"^memory must be a number of GB above 0, or None for no limit, not 0$"),
    ('verify(MODEL, MODEL, budget=-1)', ValueError, r"^budget must be a number of seconds from 0 on"),
    ('verify(MODEL, MODEL, plan=3)', TypeError, r"^plan must be a reducelower.Plan"),
    ('verify(MODEL, MODEL, budget="x")', TypeError, r"^budget must be a number of seconds"),
    ('verify(MODEL, MODEL, inputs=[1])', TypeError, r"^inputs must map names of values"),
    ('verify(MODEL, MODEL, tolerances={"float": 1})', TypeError,
     r"^tolerances\['float'\] must be a reducelower.verification.Tolerance"),
    ('verify(MODEL, MODEL, runtimes="onnxruntime")', TypeError,
     r"^runtimes must be a collection of names such as \['onnxruntime'\]"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "message"), WRONG, ids=[call for call, _, _ in WRONG])
def test_a_wrong_argument_is_named(call: str, kind: type[Exception], message: str) -> None:
    names = {name: getattr(reducelower, name) for name in reducelower.__all__}
    with pytest.raises(kind, match=message):
        eval(call, {**names, "MODEL": MODEL})


@pytest.mark.parametrize("version", [13, np.int64(13)])
def test_integers_of_any_kind_are_opset_versions(version: int) -> None:
    assert reducelower.convert_version(MODEL, version).opset_import[0].version == 13


@pytest.mark.parametrize("names", [["ReduceL2"], ("ReduceL2",), {"ReduceL2"}, iter(["ReduceL2"]), {"ReduceL2": 1}])
def test_any_collection_of_names_will_do(names: Any) -> None:
    found = {node.op_type for node in reducelower.convert_version(MODEL, 13, without=names).graph.node}
    assert "ReduceL2" not in found


def test_a_target_takes_any_collection_of_names() -> None:
    assert Target(13, without=["ReduceL2"]) == Target(13, frozenset({"ReduceL2"}))  # type: ignore[arg-type]
