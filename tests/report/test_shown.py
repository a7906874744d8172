"""What a reader of the page looks for: the run, what matters first, limits beside distances, names that fit."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from lxml import html

from reducelower.difference import Difference
from reducelower.report import Outcome, Report, render
from reducelower.report.details import describe_difference
from reducelower.verification import SiteVerification, Verification

from .made import checked, converted, everything, model

Cli = Callable[..., Any]


@pytest.fixture(scope="module")
def expanded(tmp_path_factory: pytest.TempPathFactory, models: Path) -> Any:
    """The page about a model with one rewrite that loses range and two that do not differ."""
    folder = tmp_path_factory.mktemp("models")
    report = Report("convert", (converted(folder, onnx.load(models / "skl_gmm_20.onnx"), rules="spec"),))
    return html.fromstring(render(report, ".html"))


def test_the_page_names_the_run_and_sizes(cli: Cli, models: Path, tmp_path: Path) -> None:
    source = models / "skl_gmm_20.onnx"
    cli("expand", source, "-o", tmp_path / "out.onnx", "--report", tmp_path / "r.html", "--no-verify")
    page = html.fromstring((tmp_path / "r.html").read_text("utf-8"))
    names, texts = (page.xpath(f"//dl[contains(@class,'run')]//{tag}") for tag in ("dt", "dd"))
    run = {name.text: text.text_content() for name, text in zip(names, texts, strict=True)}
    assert list(run) == ["Date", "Command", "Versions"]
    assert run["Command"].startswith("reducelower expand ")
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d", run["Date"])
    facts = page.xpath("string(//dl[@class='facts'])")
    assert f"{source.stat().st_size:,} → {(tmp_path / 'out.onnx').stat().st_size:,} bytes" in facts


def test_what_matters_comes_first_and_is_open(expanded: Any) -> None:
    rewrites = expanded.xpath("//details[contains(@class,'rewrite')]")
    statuses = [item.xpath("string(.//span[contains(@class,'chip')])") for item in rewrites]
    assert statuses == ["smaller range", "equal"]
    assert rewrites[0].get("open") is not None


def test_a_rewrite_that_is_exact_to_the_bit_says_so(expanded: Any) -> None:
    loses, equal = expanded.xpath("//details[contains(@class,'rewrite')]")
    assert "0 ULP apart" in equal.text_content()
    assert "0 ULP apart" not in loses.text_content()


def shown(site: SiteVerification) -> Any:
    """A page with one change and what was found of it."""
    found = describe_difference(Difference(), Verification("equivalent", True, sites=(site,)))
    return html.fromstring(render(Report("verify", (Outcome("m", "equivalent", details=found),)), ".html"))


def test_a_distance_stands_beside_the_limit_that_it_is_within() -> None:
    limit = "64 ULP or 1e-05 of the value"
    text = shown(SiteVerification("Exp", "rule", (("graph", "e"),), max_ulp=6644, limit=limit)).text_content()
    assert "6,644" in text
    assert limit in text


def test_names_of_values_are_the_last_part_of_a_path(tmp_path: Path) -> None:
    given = model("g (float[2, 3] x) => (float[2, 1] y) <int64[1] a = {1}> { y = ReduceL2 (x, a) }")
    for names in (given.graph.node[0].input, given.graph.node[0].output):
        names[0] = f"/block/attention/LayerNormalization/{names[0]}mean"
    given.graph.input[0].name = given.graph.node[0].input[0]
    given.graph.output[0].name = given.graph.node[0].output[0]
    page = html.fromstring(render(Report("convert", (converted(tmp_path, given),)), ".html"))
    labels = set(page.xpath("//ol[@class='nodes']//var/text()"))
    assert {"xmean", "ymean"} <= labels
    assert not any("/" in label for label in labels)
    assert "/block/attention/LayerNormalization/xmean" in page.xpath("//ol[@class='nodes']//var/@title")


def test_a_model_that_is_to_be_converted_has_not_failed(tmp_path: Path) -> None:
    given = checked(tmp_path, model("g (float[2, 3] x) => (float[2, 1] y) <int64[1] a = {1}> { y = ReduceL2 (x, a) }"))
    page = html.fromstring(render(Report("check", (given,)), ".html"))
    (head,) = page.xpath("//header")
    assert head.get("class") == "verdict warning"
    assert head.xpath("string(.//h1)") == "To convert"
    assert page.xpath("//details[@class='model']//h2//span/text()") == ["to convert"]


def test_what_is_proved_by_structure_was_run_on_nothing(tmp_path: Path) -> None:
    found = converted(tmp_path, model("g (float[2, 3] x) => (int64[k] s) { s = Shape <start = 0> (x) }"))
    shown = html.fromstring(render(Report("convert", (found,)), ".html"))
    (rewrite,) = shown.xpath("//details[contains(@class, 'rewrite')]")
    assert "Proved: both sides are the same by structure" in rewrite.text_content()
    assert "Sets of inputs" not in rewrite.text_content()


def test_a_batch_can_be_sorted_filtered_and_grouped_by_outcome(tmp_path: Path, models: Path) -> None:
    page = html.fromstring(render(everything(tmp_path, models), ".html"))
    table = page.get_element_by_id("models-table")
    assert "sortable" in table.get("class")
    boxes = page.xpath("//form[@data-table='models-table']//input[@type='checkbox']/@value")
    assert boxes == ["converted", "refused", "unreadable"]
    assert {row.get("data-fate") for row in table.xpath(".//tbody/tr")} == set(boxes)
    verdicts = [row.get("data-fate") for row in table.xpath(".//tbody/tr")]
    assert verdicts[:2] == ["refused", "unreadable"]  # what did not pass comes first


def test_a_right_rewrite_is_no_alarm() -> None:
    site = SiteVerification("LayerNormalization", "rule", (("graph", "n"),), "overflow", "both", example_inputs="x")
    page = shown(site)
    (chip,) = page.xpath("//details[contains(@class, 'rewrite')]//span[contains(@class, 'chip')]")
    assert (chip.text, chip.get("class")) == ("as exact", "chip good")
    assert "Inputs that show it" not in page.text_content()


def test_a_number_has_the_digits_that_its_type_needs(tmp_path: Path) -> None:
    given = model("g (float[2, 3] x, float[3] s) => (float[2, 3] y) { y = LayerNormalization <epsilon = 1e-5> (x, s) }")
    page = html.fromstring(render(Report("convert", (converted(tmp_path, given),)), ".html"))
    (before, _) = page.xpath("//ol[@class='nodes']")
    assert "epsilon = 1e-05" in before.text_content()


def test_the_report_of_what_differs_shows_its_nodes_and_inputs(cli: Cli, tmp_path: Path) -> None:
    for name, operator in (("before", "ReduceMax"), ("after", "ReduceMin")):
        text = f"g (float[2, 3] x) => (float[2, 1] y) <int64[1] a = {{1}}> {{ y = {operator} (x, a) }}"
        onnx.save(model(text), tmp_path / f"{name}.onnx")
    report = tmp_path / "report.html"
    assert cli("verify", tmp_path / "before.onnx", tmp_path / "after.onnx", "--report", report).status == 1
    page = html.fromstring(report.read_text("utf-8"))
    assert page.xpath("string(//header//h1)") == "Outputs differ"
    assert page.xpath("//ol[@class='nodes']//mark/text()") == ["ReduceMax", "ReduceMin"]
    text = page.text_content()
    assert "Inputs that show it: x = " in text
    assert len(page.xpath("//table[@class='outputs']/tbody/tr")) == 1
    assert "/onnxruntime" not in text
