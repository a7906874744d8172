"""The page needs nothing else, lets no name become markup, and stays small."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from reducelower import Target
from reducelower.api import legalize
from reducelower.report import Outcome, Report, render
from reducelower.report.details import describe_conversion

from .made import HOSTILE, everything
from .test_details import chain


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, models: Path) -> str:
    return render(everything(tmp_path_factory.mktemp("models"), models), ".html")


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def test_names_become_no_markup(page: str) -> None:
    tags = Tags(page).seen
    assert sum(tag == "script" for tag, _ in tags) == 1
    assert not [tag for tag, _ in tags if tag in ("img", "b")]
    assert not [attributes for _, attributes in tags for name in attributes if name.startswith("on")]
    assert "\x01" not in page
    assert "\u202e" not in page
    assert "alert(1)" in page  # shown, as text
    assert HOSTILE not in page


def test_the_page_loads_nothing(page: str) -> None:
    for tag, attributes in Tags(page).seen:
        assert tag not in ("link", "iframe", "object", "embed")
        assert "src" not in attributes
        if "href" in attributes:
            assert (attributes["href"] or "").startswith("#")
    assert not re.search(r"url\(|@import", page)
    policy = next(item for tag, item in Tags(page).seen if item.get("http-equiv") == "Content-Security-Policy")
    assert str(policy["content"]).startswith("default-src 'none'; style-src 'sha256-")


def test_every_link_leads_somewhere(page: str) -> None:
    tags = Tags(page).seen
    ids = [attributes["id"] for _, attributes in tags if attributes.get("id")]
    assert len(ids) == len(set(ids))
    assert {str(item["href"])[1:] for _, item in tags if item.get("href")} <= {str(name) for name in ids}
    assert {str(item["aria-labelledby"]) for _, item in tags if item.get("aria-labelledby")} <= {str(n) for n in ids}


def test_the_verdict_comes_first(page: str) -> None:
    body = page[page.index("<body>") :]
    assert body.index("Failed") < body.index("<main>")


def test_a_large_model_gives_a_small_page() -> None:
    given = chain(1_500)
    legalized = legalize(given, Target(13))
    details = describe_conversion(given, legalized.model, legalized.plan, None)
    report = Outcome("large.onnx", "converted", plan=legalized.plan, details=details)
    assert len(render(Report("convert", (report,)), ".html")) < 1_000_000
    many = render(Report("convert", (report,) * 200), ".html")
    assert len(many) < 10_000_000


def test_an_empty_report_is_a_page_too() -> None:
    assert "failed" in render(Report("check", (Outcome("m.onnx", "failed", problems=("boom",)),)), ".html")
