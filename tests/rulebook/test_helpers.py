"""Helper functions of rule files, values taken by name, and overloads of several element types.

Each row of `helpers.toml` is a book of the texts below: those in the ``file`` of the rule and in that of the
``folder``, with other words ``instead`` in some. It says what the ``body`` for an element type is made of, or why the
book is ``refused`` and which text stands in the line that is ``blamed``; what ``holds`` is true of the ``book`` and of
the rule that is ``found`` for floats.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

import reducelower
from reducelower.rulebook import RuleBook, RuleError, load_book
from tests.models import model, run
from tests.table import rows

RULE = """<
  domain: "mine", overload: "float, double", opset_import: ["" : 18], doc_string: "ReduceL2(x) = Sqrt(Sum(x * x))"
>
ReduceL2 <keepdims, noop_with_empty_axes> (data, axes) => (reduced)
{
  square = Squared (data)
  sum = Summed (square, axes)
  reduced = Sqrt (sum)
}
"""
HEADER = '<domain: "mine", opset_import: ["" : 18]>\n'
SQUARED = HEADER + "Squared (x) => (y)\n{\n  y = Mul (x, x)\n}\n"
SUMMED = (
    HEADER + "Summed <keepdims> (x, axes) => (sum)\n{\n  part = ReduceSum <keepdims = @keepdims> (x, axes)\n"
    "  sum = Identity (part)\n}\n"
)
TEXTS = {"rule": RULE, "narrow": RULE, "squared": SQUARED, "doubled": SQUARED, "other": SQUARED, "summed": SUMMED}
ROWS = rows(
    Path(__file__).with_name("helpers.toml"),
    fields={"file", "folder", "instead", "body", "holds", "refused", "blamed"},
)


def written(folder: Path, row: Mapping[str, Any]) -> RuleBook:
    for name, texts in (("ReduceL2", row.get("file", ["rule", "squared", "summed"])), ("helpers", row.get("folder"))):
        parts = []
        for each in texts or ():
            parts.append(TEXTS[each])
            for found, instead in row.get("instead", {}).get(each, ()):
                assert found in parts[-1]
                parts[-1] = parts[-1].replace(found, instead)
        if parts:
            (folder / f"{name}.onnxtxt").write_text("\n".join(parts))
    return load_book(folder)


@pytest.mark.parametrize("claim", ROWS)
def test_what_a_book_with_helpers_holds(claim: str, tmp_path: Path) -> None:
    row = ROWS[claim]
    book = written(tmp_path, row)
    if "refused" in row:
        with pytest.raises(RuleError) as caught:
            book.check()
        assert row["refused"] in str(caught.value)
        if "blamed" in row:
            lines = (tmp_path / "ReduceL2.onnxtxt").read_text().splitlines()
            assert caught.value.line is not None and row["blamed"] in lines[caught.value.line - 1]
        return
    assert book.operators == ("ReduceL2",)
    for kind, operators in row.get("body", {}).items():
        source = model(f"({kind.lower()}[2] x) => ({kind.lower()}[1] y) {{ y = ReduceL2 (x) }}")
        assert [node.op_type for node in reducelower.expand(source, rules=book).graph.node] == operators
    types = {name: TensorProto.DataType.Value(name) for name in ("FLOAT", "DOUBLE", "FLOAT16")}
    names = {**types, "book": book, "found": book.find("ReduceL2", TensorProto.FLOAT)}
    assert [text for text in row.get("holds", ()) if not eval(text, names)] == []


def test_values_of_a_helper_that_is_used_twice_keep_apart(tmp_path: Path) -> None:
    instead = ["reduced = Sqrt (sum)", "again = Summed (square, axes)\n  reduced = Add (sum, again)"]
    book = written(tmp_path, {"instead": {"rule": [instead]}})
    expanded = reducelower.expand(model("(float[2] x) => (float[1] y) { y = ReduceL2 (x) }"), rules=book)
    assert run(expanded, {"x": np.array([1, 2], np.float32)})[0].tolist() == [10]
