"""What a report holds of a model: each distinct rewrite once, and a bounded size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import onnx
import pytest
from lxml import html
from onnx import helper

from reducelower import Target
from reducelower.api import legalize
from reducelower.report import Report, render
from reducelower.report.details import describe_conversion
from reducelower.report.fragments import Fragment, Value
from reducelower.rulebook import load_book
from reducelower.verification import Verification, verify_regions

from .made import convert, converted, model


def chain(length: int) -> onnx.ModelProto:
    """Reductions and additions in turn, all of them alike."""
    given = model("g (float[N, 3] x) => (float[N, 3] y) <int64[1] a = {1}> { y = Identity (x) }")
    del given.graph.node[:]
    for at in range(length):
        last = "x" if at == 0 else f"s{at - 1}"
        given.graph.node.append(helper.make_node("ReduceMean", [last, "a"], [f"r{at}"], f"mean{at}"))
        out = "y" if at == length - 1 else f"s{at}"
        given.graph.node.append(helper.make_node("Add", [last, f"r{at}"], [out], f"add{at}"))
    return given


def test_equal_rewrites_are_shown_once(tmp_path: Path) -> None:
    found = converted(tmp_path, chain(50), verify=False).details
    assert found is not None
    assert [(item.title, item.count) for item in found.changes] == [("ReduceMean", 50)]


def test_findings_belong_to_their_rewrites(models: Path, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes((models / "skl_gmm_20.onnx").read_bytes())
    found = convert(tmp_path / "model.onnx").details
    assert found is not None
    for item in found.changes:
        assert item.finding is not None
        assert item.title.startswith(item.finding.op_type)
        assert len(item.finding.nodes) == item.count


def sides(text: str, target: Target, rules: str = "spec", opset: int = 18) -> tuple[Fragment, Fragment]:
    given = model(text, opset)
    legalized = legalize(given, target, rules=rules)
    (item,) = describe_conversion(given, legalized.model, legalized.plan, None).changes
    assert item.sides is not None
    return item.sides


def test_types_and_shapes_stand_beside_the_values() -> None:
    before, after = sides(
        "g (float16[N, 3] x) => (float16[N, 1] y) <int64[1] a = {1}> { y = ReduceL2 (x, a) }",
        Target(13, frozenset({"ReduceL2"})),
    )
    assert before.inputs == after.inputs == (Value("x", "float16[N,3]"),)
    assert before.nodes[-1].outputs == after.nodes[-1].outputs == (Value("y", "float16[N,1]"),)
    assert before.results == after.results == {"y"}
    assert (before.opset, after.opset) == (18, 13)
    assert all(value.kind for node in after.nodes for value in (*node.inputs, *node.outputs))


def test_small_constants_are_written_where_they_are_read() -> None:
    before, after = sides(
        "g (float[N, 3] x) => (float[N, 1] y) <int64[1] a = {1}> { y = ReduceMean (x, a) }", Target(11)
    )
    assert "axes: [1]" in before.nodes[0].settings
    assert "axes = [1]" in after.nodes[0].settings


@pytest.mark.parametrize("op_type", load_book("stable").reductions)
def test_every_rule_shows_all_its_nodes_in_the_order_in_which_they_compute(op_type: str) -> None:
    text = f"g (float[N, 3] x) => (float[N, 1] y) <int64[1] a = {{1}}> {{ y = {op_type} (x, a) }}"
    before, after = sides(text, Target(13, frozenset({op_type})), "stable")
    assert [node.op_type for node in before.nodes] == [op_type]
    assert not after.has(op_type)
    known = {value.name for value in after.inputs}
    for node in after.nodes:
        assert known.issuperset(value.name for value in node.inputs)
        known.update(value.name for value in node.outputs)
    assert "y" in known


def test_what_the_other_side_has_not_is_marked(tmp_path: Path) -> None:
    given = model("g (float[N, 3] x) => (float[N, 1] y) <int64[1] a = {1}> { y = ReduceMean (x, a) }")
    page = html.fromstring(render(Report("convert", (converted(tmp_path, given),)), ".html"))
    before, after = page.xpath("//ol[@class='nodes']")
    assert (before.xpath(".//em/text()"), after.xpath(".//em/text()")) == (["ReduceMean"], ["ReduceMean"])
    assert before.xpath(".//mark/text()") == ["axes: [1]"]
    assert after.xpath(".//mark/text()") == ["axes = [1]"]


def test_thousands_of_nodes_give_a_bounded_report() -> None:
    given = chain(1_500)
    legalized = legalize(given, Target(13))
    few = legalize(chain(2), Target(13))
    finding = verify_regions(chain(2), few.model, few.plan).findings[0]  # to verify so many is not what this is about
    sites = (replace(finding, nodes=tuple((site.graph, site.node) for site in legalized.plan.sites)),)
    found = describe_conversion(given, legalized.model, legalized.plan, Verification("not shown", False, sites=sites))
    assert len(found.changes) == 1
    assert found.changes[0].count == 1_500
    assert found.changes[0].finding == sites[0]
