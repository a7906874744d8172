"""What the public functions say to a caller who passes the wrong thing."""

from __future__ import annotations

from collections.abc import Callable
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

WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a rule book that does not exist": (
        lambda: reducelower.convert_version(MODEL, 13, rules="stabel"),
        ValueError,
        r"^rules must be a rule book .*'stabel' is neither; did you mean 'stable'\?$",
    ),
    "one string for names": (
        lambda: reducelower.convert_version(MODEL, 13, without="ReduceLogSumExp"),
        TypeError,
        r"^without must be a collection of names such as \['ReduceLogSumExp'\]",
    ),
    "one string for element types": (
        lambda: reducelower.expand(MODEL, without_types="double"),
        TypeError,
        r"^without_types must be a collection",
    ),
    "None for names": (
        lambda: reducelower.convert_version(MODEL, 13, without=None),  # type: ignore[arg-type]
        TypeError,
        r"^without must be a collection of names such as \['ReduceL2'\], not None; leave it out for none$",
    ),
    "one string for operators": (lambda: reducelower.expand(MODEL, ops="ReduceL2"), TypeError, r"^ops must be"),
    "names that are no strings": (lambda: Target(13, without=[1]), TypeError, r"^without must hold strings"),  # type: ignore[arg-type,list-item]
    "a number for a model": (
        lambda: reducelower.convert_version(5, 13),  # type: ignore[call-overload]
        TypeError,
        r"^model must be an onnx.ModelProto, its bytes, a path, .* or an onnx_ir.Model, not int 5$",
    ),
    "a file that is to be changed in place": (
        lambda: reducelower.convert_version("m.onnx", 13, in_place=True),
        TypeError,
        r"^in_place changes an onnx.ModelProto, and model is str 'm.onnx'$",
    ),
    "a model for bytes": (
        lambda: reducelower.convert_bytes(MODEL, 13),  # type: ignore[arg-type]
        TypeError,
        r"^serialized must be the bytes",
    ),
    "a string for an opset": (
        lambda: reducelower.convert_version(MODEL, "13"),  # type: ignore[arg-type]
        TypeError,
        r"^target_version must be an int such as 13, not str '13'$",
    ),
    "a string for the opset of a target": (lambda: Target("13"), TypeError, r"^opset must be an int"),  # type: ignore[arg-type]
    "an opset that does not exist": (
        lambda: reducelower.check(MODEL, 999),
        ValueError,
        r"^target_version must be from 1 to \d+, .*there is no opset 999$",
    ),
    "an opset where a target is expected": (
        lambda: reducelower.legalize(MODEL, 13),  # type: ignore[arg-type]
        TypeError,
        r"^target must be a reducelower.Target such as Target\(13\), not int 13$",
    ),
    "a word for an IR version": (
        lambda: reducelower.convert_version(MODEL, 13, ir_version="newest"),  # type: ignore[arg-type]
        ValueError,
        r"^ir_version must be 'auto', 'keep' or an int",
    ),
    "an IR version that does not exist": (
        lambda: reducelower.convert_version(MODEL, 13, ir_version=0),
        ValueError,
        r"^ir_version must be from 1 to",
    ),
    "an element type that does not exist": (
        lambda: reducelower.convert_version(MODEL, 13, element_types={"y": "flaot"}),
        ValueError,
        r"^element_types\['y'\]: ",
    ),
    "a list for a mapping": (
        lambda: reducelower.convert_version(MODEL, 13, ranks=["y"]),  # type: ignore[arg-type]
        TypeError,
        r"^ranks must map names of values",
    ),
    "a rank that is negative": (
        lambda: reducelower.convert_version(MODEL, 13, ranks={"y": -1}),
        ValueError,
        r"^ranks\['y'\] must not be negative",
    ),
    "one rule book where several are taken": (
        lambda: reducelower.raise_reductions(MODEL, rules="core"),
        TypeError,
        r"^rules must be a collection of rule books",
    ),
    "a number for a folder": (
        lambda: reducelower.convert_version(MODEL, 13, base_dir=3),  # type: ignore[arg-type]
        TypeError,
        r"^base_dir must be the path of a folder",
    ),
    "no opset": (
        lambda: reducelower.convert_version(MODEL, None),  # type: ignore[arg-type]
        TypeError,
        r"^target_version must be an int such as 13, not None$",
    ),
    "operators that are no strings": (
        lambda: reducelower.expand(MODEL, ops=[None]),  # type: ignore[list-item]
        TypeError,
        r"^ops must hold strings",
    ),
    "an array of bytes for bytes": (
        lambda: reducelower.convert_bytes(bytearray(MODEL.SerializeToString()), 13),  # type: ignore[arg-type]
        TypeError,
        r"pass bytes\(\.\.\.\) of it$",
    ),
    "nothing to repair": (
        lambda: reducelower.repair(None),  # type: ignore[arg-type]
        TypeError,
        r"^model must be an onnx.ModelProto, .*, not None$",
    ),
    "nothing to verify": (
        lambda: reducelower.verify(None, MODEL),  # type: ignore[arg-type]
        TypeError,
        r"^before must be an onnx.ModelProto, .*, not None$",
    ),
    "one number for the outputs": (
        lambda: reducelower.verify(MODEL, MODEL, expected=5),  # type: ignore[arg-type]
        TypeError,
        r"^expected must be the outputs in graph order",
    ),
    "a string for a seed": (
        lambda: reducelower.verify(MODEL, MODEL, seed="x"),  # type: ignore[arg-type]
        TypeError,
        r"^seed must be an int such as 0, not str 'x'$",
    ),
    "a negative seed": (lambda: reducelower.verify(MODEL, MODEL, seed=-1), ValueError, r"^seed must not be negative"),
    "a number for a provider": (
        lambda: reducelower.verify(MODEL, MODEL, provider=5),  # type: ignore[arg-type]
        TypeError,
        r"^provider must be the name of an execution provider",
    ),
    "a budget that is no number": (
        lambda: reducelower.verify(MODEL, MODEL, budget=float("nan")),
        ValueError,
        r"^budget must be a number of seconds from 0 on, or None for no limit, not nan$",
    ),
    "a memory that is no number": (
        lambda: reducelower.verify(MODEL, MODEL, memory="1 GB"),  # type: ignore[arg-type]
        TypeError,
        r"^memory must be a number of GB, not str '1 GB'$",
    ),
    "a memory of nothing": (
        lambda: reducelower.verify(MODEL, MODEL, memory=0),
        ValueError,
        r"^memory must be a number of GB above 0, or None for no limit, not 0$",
    ),
    "a budget below nothing": (
        lambda: reducelower.verify(MODEL, MODEL, budget=-1),
        ValueError,
        r"^budget must be a number of seconds from 0 on",
    ),
    "a number for a plan": (
        lambda: reducelower.verify(MODEL, MODEL, plan=3),  # type: ignore[arg-type]
        TypeError,
        r"^plan must be a reducelower.Plan",
    ),
    "text for a budget": (
        lambda: reducelower.verify(MODEL, MODEL, budget="x"),  # type: ignore[arg-type]
        TypeError,
        r"^budget must be a number of seconds",
    ),
    "a list for inputs": (
        lambda: reducelower.verify(MODEL, MODEL, inputs=[1]),  # type: ignore[arg-type]
        TypeError,
        r"^inputs must map names of values",
    ),
    "a number for a tolerance": (
        lambda: reducelower.verify(MODEL, MODEL, tolerances={"float": 1}),  # type: ignore[dict-item]
        TypeError,
        r"^tolerances\['float'\] must be a reducelower.verification.Tolerance",
    ),
    "one string for runtimes": (
        lambda: reducelower.verify(MODEL, MODEL, runtimes="onnxruntime"),
        TypeError,
        r"^runtimes must be a collection of names such as \['onnxruntime'\]",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_argument_is_named(case: str) -> None:
    call, kind, message = WRONG[case]
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.parametrize("version", [13, np.int64(13)])
def test_integers_of_any_kind_are_opset_versions(version: int) -> None:
    assert reducelower.convert_version(MODEL, version).opset_import[0].version == 13


@pytest.mark.parametrize("names", [["ReduceL2"], ("ReduceL2",), {"ReduceL2"}, iter(["ReduceL2"]), {"ReduceL2": 1}])
def test_any_collection_of_names_will_do(names: Any) -> None:
    found = {node.op_type for node in reducelower.convert_version(MODEL, 13, without=names).graph.node}
    assert "ReduceL2" not in found


def test_a_target_takes_any_collection_of_names() -> None:
    assert Target(13, without=["ReduceL2"]) == Target(13, frozenset({"ReduceL2"}))  # type: ignore[arg-type]
