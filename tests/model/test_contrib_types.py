"""What is known of onnxruntime's own operators is what their schemas say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx import parser

import reducelower
from reducelower.model.schemas import element_type_name
from reducelower.types.contrib import CONTRIB, UNLISTED, Output
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


def held(schema: Any, number: int, output: Output) -> bool:
    """Whether an output has the type that is said of it, and none else; of statistics, where stash_type is float."""
    given = schema.outputs[number].typeStr
    said = {f"tensor({element_type_name(output.element_type)})"} if output.element_type else set()
    if output.like >= 0:
        like = schema.inputs[min(output.like, len(schema.inputs) - 1)].typeStr
        return given == like or types(schema, given) == types(schema, like) | said
    return (
        not said or said == types(schema, given) or ("stash_type" in schema.attributes and said <= types(schema, given))
    )


@pytest.mark.parametrize(("domain", "table"), [("com.microsoft", CONTRIB), ("", UNLISTED)], ids=["contrib", "unlisted"])
def test_every_output_has_the_type_that_its_schema_says(domain: str, table: Mapping[str, tuple[Output, ...]]) -> None:
    known = schemas(domain)
    assert len(set(table) & set(known)) > len(table) * 0.8
    wrong = [
        f"{name} output {number}: {known[name].outputs[number].typeStr}"
        for name, outputs in table.items()
        if name in known
        for number, output in enumerate(outputs)
        if number >= len(known[name].outputs) or not held(known[name], number, output)
    ]
    assert not wrong


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
