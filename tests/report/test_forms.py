"""JSON conforms to the published schema, JUnit XML to the common one, Markdown shows names literally."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import onnx
import pytest
from lxml import etree

from reducelower.batch import Settings, check_file
from reducelower.options import Target
from reducelower.report import Outcome, Report, render, write_report
from reducelower.report.markdown import LONGEST
from reducelower.report.plain import SCHEMA_VERSION
from reducelower.verification import OutputComparison, Verification
from tests.report.made import json_schema

from .made import HOSTILE, checked, converted, everything, model

XSD = etree.XMLSchema(etree.parse(Path(__file__).parent.parent / "data" / "junit.xsd"))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, models: Path) -> Report:
    return everything(tmp_path_factory.mktemp("models"), models)


def plain(report: Report) -> Any:
    read = json.loads(render(report, ".json"))
    jsonschema.validate(read, json_schema())
    return read


def junit(report: Report) -> Any:
    tree = etree.fromstring(render(report, ".xml").encode())
    XSD.assertValid(tree)
    return tree


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())
    assert json_schema()["properties"]["schema"]["const"] == SCHEMA_VERSION


def test_json_holds_every_verdict_and_conforms(report: Report) -> None:
    verdicts = {Path(item["path"]).stem: item["verdict"] for item in plain(report)["models"]}
    assert verdicts == {
        "hostile": "converted",
        "refused": "refused",
        "custom": "converted",
        "unreadable": "unreadable",
        "skl_gmm_20": "converted",
        "torch_cond_dyn_21": "converted",
    }
    assert plain(report)["passed"] is False


def test_json_keeps_names_as_they_are(report: Report) -> None:
    hostile_model = plain(report)["models"][0]
    assert hostile_model["sites"][0]["node"] == HOSTILE
    assert hostile_model["verification"]["outputs"][0]["name"] == HOSTILE


def test_json_says_infinity_in_words(report: Report) -> None:
    output = OutputComparison("y", "onnxruntime", "float", (1,), (1,), "different", "is infinite", 0, 0.0, 0.0)
    found = Verification("different", True, "onnxruntime", (replace(output, max_absolute=float("inf")),))
    read = plain(Report("verify", (replace(report.models[0], verdict="different", verification=found),)))
    assert read["models"][0]["verification"]["outputs"][0]["max_absolute"] == "inf"


def test_json_tells_where_models_with_nothing_to_report_stand(tmp_path: Path) -> None:
    given = checked(tmp_path, model("g (float[2] x) => (float[2] y) { y = Relu (x) }", 13))
    assert plain(Report("check", (given,)))["models"][0]["verdict"] == "fits"


def test_junit_has_a_case_per_model(report: Report) -> None:
    (suite,) = junit(report)
    assert [case.get("name") for case in suite] == [model.source for model in report.models]


def test_junit_counts_what_it_holds(report: Report) -> None:
    root = junit(report)
    for kind, tag in (("tests", ""), ("failures", "failure"), ("errors", "error")):
        counted = [len(suite.findall(f"testcase/{tag}" if tag else "testcase")) for suite in root]
        assert [int(suite.get(kind)) for suite in root] == counted
        assert int(root.get(kind)) == sum(counted)
    assert [int(suite.get("skipped")) for suite in root] == [len(suite.findall("testcase/skipped")) for suite in root]


def test_junit_fails_what_was_refused(report: Report) -> None:
    (suite,) = junit(report)
    (failure,) = suite.findall("testcase/failure")
    assert "cannot be converted: 1 node refused" in failure.get("message")
    assert failure.text.startswith("graph: RegexFullMatch ")
    assert [error.get("type") for error in suite.findall("testcase/error")] == ["unreadable"]


def test_markdown_shows_names_literally(report: Report) -> None:
    text = render(report, ".md")
    assert "<script" not in text
    assert "<img" not in text
    assert "@someone" not in text
    assert not re.search(r"(?<!&)#1", text)
    assert "\x01" not in text
    assert "\u202e" not in text


def test_markdown_tables_have_as_many_cells_as_headings(report: Report) -> None:
    for table in re.findall(r"(?:^\|.*\n)+", render(report, ".md"), re.MULTILINE):
        assert len({line.count("|") for line in table.splitlines()}) == 1


def test_markdown_leads_with_the_verdict_and_what_went_wrong(report: Report) -> None:
    text = render(report, ".md")
    assert text.splitlines()[0].startswith("## ❌")
    assert text.index("refused.onnx") < text.index("skl_gmm_20.onnx")


@pytest.mark.parametrize(("count", "listed"), [(1, 0), (2, 2), (40, 40), (41, 40)])
def test_markdown_lists_several_models_as_far_as_they_fit(count: int, listed: int) -> None:
    text = render(Report("convert", tuple(Outcome(f"m{at}.onnx", "fits") for at in range(count))), ".md")
    assert text.count("| <code>m") == listed
    assert ("| … 1 more |" in text) == (count > listed > 0)
    assert text.startswith("## ✅ <code>m0.onnx</code>: " if count == 1 else f"## ✅ reducelower convert: {count} of")


def test_markdown_fits_a_comment(report: Report) -> None:
    many = Report("convert", tuple(replace(report.models[4], source=f"model {at}.onnx") for at in range(2000)))
    text = render(many, ".md")
    assert len(text) < LONGEST + 200
    assert "do not fit" in text


@pytest.mark.parametrize("extension", [".json", ".xml", ".md", ".html"])
def test_a_report_is_the_same_every_time(report: Report, extension: str) -> None:
    assert render(report, extension) == render(report, extension)


def test_a_report_replaces_the_last_one_and_leaves_nothing_else(report: Report, tmp_path: Path) -> None:
    for _ in range(2):
        write_report(report, tmp_path / "report.json")
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_an_unknown_extension_is_refused(report: Report, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"one of \.json"):
        write_report(report, tmp_path / "report.pdf")


def test_names_that_are_no_text_stop_no_report(tmp_path: Path) -> None:
    given = model("g (float[N, 3] x) => (float[N, 1] y) <int64[1] a = {1}> { y = ReduceL2 (x, a) }")
    given.graph.node[0].name = "\x00\ufffe\U0010ffff"
    found = Report("convert", (converted(tmp_path, given),))
    plain(found)
    junit(found)
    assert onnx.load(tmp_path / "model.onnx").graph.node[0].name == given.graph.node[0].name


MANY = "g (string[2] x) => (bool[2] y, bool[2] z, bool[2] w) {{ y = {0} (x) z = {0} (x) w = {0} (x) }}"


@pytest.mark.parametrize("form", [".md", ".xml", ".html"])
def test_refusals_that_are_the_same_are_one_entry(tmp_path: Path, form: str) -> None:
    given = converted(tmp_path, model(MANY.format('RegexFullMatch <pattern = "a+">'), 20))
    text = render(Report("convert", (given,)), form)
    assert len(given.refusals) == 3
    assert text.count("does not have RegexFullMatch") <= 2  # in an XML case as its message and its text
    if form == ".md":
        assert "- 3 nodes, RegexFullMatch 'RegexFullMatch&#35;&#8203;0', RegexFullMatch " in text


def test_a_check_for_a_runtime_says_why_in_every_report(tmp_path: Path) -> None:
    onnx.save(
        model("g (float[2, 3] x) => (float[2, 1] y) <int64[1] a = {1}> { y = ReduceL2 (x, a) }"), tmp_path / "m.onnx"
    )
    found = check_file(str(tmp_path / "m.onnx"), Settings(Target(runtime="mnn"), details=True))
    assert found.plan is not None
    (reason,) = found.plan.reasons
    for form in (".md", ".html"):
        assert " ".join(reason.split()[:5]) in render(Report("check", (found,)), form)
    assert "not verified" not in render(Report("check", (found,)), ".html")


def test_the_page_of_a_batch_names_what_failed_first(report: Report) -> None:
    head = render(report, ".html").partition("</header>")[0]
    listed = re.findall("<li>(.*?)</li>", head)
    assert "refused.onnx" in listed[0]
    assert "unreadable.onnx" in listed[1]


def test_rewrites_that_are_the_same_by_construction_are_proved(tmp_path: Path) -> None:
    text = "g (float[2, 3] x) => (int64[k] s) { s = Shape <start = 0> (x) }"
    found = converted(tmp_path, model(text))
    assert found.plan is not None and found.verification is not None
    assert (len(found.plan.sites), found.verification.proved, found.verification.tested) == (1, 1, 0)
    page = render(Report("convert", (found,)), ".html")
    assert "not verified" not in page
