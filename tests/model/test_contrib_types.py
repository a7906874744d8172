"""What is known of onnxruntime's own operators is what their schemas say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx import parser

import reducelower
from reducelower.types.contrib import OWN, Own
from tests.models import run

binding = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state")


def schemas(domain: str) -> Mapping[str, Any]:
    found = {}
    for schema in sorted(binding.get_all_operator_schema(), key=lambda schema: schema.since_version):
        if schema.domain == domain:
            found[schema.name] = schema
    return found


def types(schema: Any, name: str) -> set[str]:
    """The types that a formal parameter may have, by its type or the name of its type."""
    allowed = {each.type_param_str: set(each.allowed_type_strs) for each in schema.type_constraints}
    return allowed.get(name, {name})


def held(schema: Any, row: Own) -> bool:
    """Whether the first output has the type of that input, or without such an input float."""
    given = schema.outputs[0].typeStr
    like = schema.inputs[min(row.like, len(schema.inputs) - 1)]
    said = types(schema, like.typeStr) | ({"tensor(float)"} if "Optional" in str(like.option) else set())
    return given == like.typeStr or types(schema, given) in (said, types(schema, like.typeStr))


def test_every_output_has_the_type_that_its_schema_says() -> None:
    known = {**schemas("com.microsoft"), **{name: schemas("")[name] for name in ("SimplifiedLayerNormalization",)}}
    assert len(OWN.keys() & known.keys()) > len(OWN) * 0.8
    wrong = [name for name, row in OWN.items() if name in known and not held(known[name], row)]
    assert not wrong
    of_skip = [known[name].outputs for name in OWN if name.startswith("SkipL")]
    assert all(outputs[3].typeStr == outputs[0].typeStr for outputs in of_skip)


def test_words_that_a_tokenizer_yields_come_to_an_operator_that_takes_fewer_types() -> None:
    """As the vectorizers of skl2onnx write it: Flatten of opset 21 takes more types than that of 11."""
    model = parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]> g (string[2] x) => (string[2,n] y) {
            w = com.microsoft.Tokenizer <mark: int = 0, mincharnum: int = 1, pad_value: string = "#",
                                         separators: strings = [" "]> (x)
            y = Flatten (w) }"""
    )
    older = reducelower.convert_version(model, 11)
    assert [node.op_type for node in older.graph.node] == ["Tokenizer", "Flatten"]
    (words,) = run(older, {"x": np.array(["the cat sat", "dog"], object)})
    assert words.tolist() == [["the", "cat", "sat"], ["dog", "#", "#"]]
