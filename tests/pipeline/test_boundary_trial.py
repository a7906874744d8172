"""Rules of version boundaries of a user's own."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

import reducelower
from reducelower import ConversionError
from reducelower.cli import run
from reducelower.rulebook import RuleError, load_book
from tests.table import VOCABULARY, combinations

TABLE = tomllib.loads(Path(__file__).with_name("own_boundaries.toml").read_text("utf-8"))
TEXTS: dict[str, str] = TABLE.pop("texts")


def written(folder: Path, row: Mapping[str, Any], chosen: Mapping[str, Any]) -> Path:
    """A folder of rules with the files of a row, in which parts are changed."""
    (folder / "versions").mkdir()
    changes = [str(chosen.get(part[1:], part)) if part[:1] == "$" else part for part in row.get("change", ())]
    for name, said in row["files"].items():
        text = Template(said).substitute(TEXTS)
        for part, instead in zip(changes[::2], changes[1::2], strict=True):
            assert part in text
            text = text.replace(part, instead)
        (folder / "versions" / name).write_text(text)
    return folder


@pytest.mark.parametrize("claim", TABLE)
def test_what_comes_of_rules_for_version_boundaries(claim: str, tmp_path: Path) -> None:
    """A ``graph`` is converted: it ``becomes`` others, is ``refused``, or a file is blamed."""
    for number, chosen in enumerate(combinations(TABLE[claim].get("each", {}))):
        row = {**TABLE[claim], **chosen}
        folder = tmp_path / str(number)
        folder.mkdir()
        rules = written(folder, row, chosen)
        head = f'<ir_version: 8, opset_import: ["" : {row.get("opset", 18)}]> g'
        source, target = parser.parse_model(f"{head} {row['graph']}"), reducelower.Target(opset=row["to"])
        if "becomes" not in row:
            error, said = (RuleError, row["blamed"]) if "blamed" in row else (ConversionError, row["refused"])
            with pytest.raises(error, match=re.escape(said)) as raised:
                reducelower.legalize(source, target, rules=rules)
            if isinstance(raised.value, RuleError):
                assert raised.value.path == rules / "versions" / next(iter(row["files"]))
                assert raised.value.line and raised.value.line == row.get("line", raised.value.line)
            continue
        outcome = reducelower.legalize(source, target, rules=rules)
        assert [node.op_type for node in outcome.model.graph.node] == row["becomes"]
        if "by" in row:
            assert [site.rule for site in outcome.plan.sites] == [f"{folder.name}/{row['by']}"]
        if "gives" in row:
            feeds = {name: eval(text, VOCABULARY) for name, text in row["given"].items()}
            (result,) = ReferenceEvaluator(outcome.model).run(None, feeds)
            np.testing.assert_array_equal(result, eval(row["gives"], VOCABULARY))


def test_rows_of_a_user_are_refused(tmp_path: Path) -> None:
    (tmp_path / "versions").mkdir()
    (tmp_path / "versions" / "attributes.toml").write_text('Concat = [{ at = "from 4", set = { axis = 1 } }]')
    with pytest.raises(RuleError, match="write a rule with Self"):
        load_book(tmp_path).check()


def test_listing_a_folder_says_what_is_wrong_with_it_as_converting_does(tmp_path: Path) -> None:
    rules = written(tmp_path, {"files": {"Shape.onnxtxt": "$shape"}, "change": ["below 15", "below 16"]}, {})
    assert run(["rules", "--rules", str(rules)]) == 2


def test_a_body_that_is_not_valid_at_its_node_is_to_blame(tmp_path: Path) -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> g (float[2,3] x) => (float[1,1] y) { y = ReduceL1 (x) }'
    )
    (tmp_path / "ReduceL1.onnxtxt").write_text(
        """<domain: "mine", opset_import: ["" : 18]>
ReduceL1 <keepdims, noop_with_empty_axes> (data, axes) => (reduced)
{
  turned = Transpose <perm = [0, 0]> (data)
  reduced = ReduceSum <keepdims = @keepdims, noop_with_empty_axes = @noop_with_empty_axes> (turned, axes)
}
"""
    )
    with pytest.raises(RuleError, match="does not fit the model") as raised:
        reducelower.expand(model, rules=tmp_path)
    assert (raised.value.path, raised.value.line) == (tmp_path / "ReduceL1.onnxtxt", 1)
