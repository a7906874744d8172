"""The page in a real browser: filter, expand, links, both colour schemes, a phone's width, the keyboard alone.

Needs Chromium with its driver (Debian: chromium, chromium-driver) and the extra ``browser``. With
REDUCELOWER_SCREENSHOTS set to a folder, screenshots are left there to be looked at.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reducelower.report import Report, write_report

from .made import convert, everything

selenium = pytest.importorskip("selenium")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="there is no Chromium with its driver")

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}", "--window-size=1280,1600"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, models: Path) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("pages")
    shutil.copy(models / "skl_gmm_20.onnx", folder / "one.onnx")
    reports = {
        "one": Report("convert", (convert(folder / "one.onnx", rules="stable"),)),
        "many": everything(folder, models),
    }
    for name, report in reports.items():
        write_report(report, folder / f"{name}.html")
    return {name: (folder / f"{name}.html").as_uri() for name in reports}


def opened(browser: Any, page: str, *, width: int = 1280, dark: bool = False) -> Any:
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    size = {"width": width, "height": 1600, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get(page)
    return browser


def all_of(browser: Any, selector: str) -> list[Any]:
    return list(browser.find_elements("css selector", selector))


def visible(browser: Any, selector: str) -> list[Any]:
    return [element for element in all_of(browser, selector) if element.is_displayed()]


def soon(browser: Any, happens: Callable[[], object]) -> object:
    """What comes of following a link, which takes the browser a moment."""
    from selenium.webdriver.support.wait import WebDriverWait

    return WebDriverWait(browser, 5).until(lambda _: happens())


def test_the_filter_finds_models_by_every_word(browser: Any, pages: dict[str, str]) -> None:
    opened(browser, pages["many"])
    (search,) = visible(browser, ".filter input[type=search]")
    assert len(visible(browser, "#models-table tbody tr")) == 6
    search.send_keys("skl_gmm CONVERTED")
    assert len(visible(browser, "#models-table tbody tr")) == 1
    assert all_of(browser, ".filter output")[0].text == "1 of 6 shown"
    search.clear()
    search.send_keys(" ")
    all_of(browser, ".filter input[value=converted]")[0].click()
    assert len(visible(browser, "#models-table tbody tr")) == 2


def test_rewrites_collapse_and_expand(browser: Any, pages: dict[str, str]) -> None:
    opened(browser, pages["one"])
    assert len(visible(browser, "ol.nodes")) == 4
    collapse, expand = all_of(browser, "[data-close]")[0], all_of(browser, "[data-open]")[0]
    collapse.click()
    assert not visible(browser, "ol.nodes")
    all_of(browser, "details.rewrite summary")[0].click()
    assert len(visible(browser, "ol.nodes")) == 2
    expand.click()
    assert len(visible(browser, "ol.nodes")) == 4


def test_a_link_from_the_summary_opens_the_model(browser: Any, pages: dict[str, str]) -> None:
    opened(browser, pages["many"])
    closed = [item for item in all_of(browser, "details.model") if not item.get_attribute("open")]
    assert closed
    name = closed[-1].get_attribute("id")
    all_of(browser, f"a[href='#{name}']")[0].click()
    assert soon(browser, lambda: closed[-1].get_attribute("open"))


def test_the_keyboard_is_enough(browser: Any, pages: dict[str, str]) -> None:
    from selenium.webdriver.common.keys import Keys

    opened(browser, pages["one"])
    reached = set()
    for _ in range(40):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        element = browser.switch_to.active_element
        reached.add((element.tag_name, element.get_attribute("class") or ""))
        if element.tag_name == "summary":
            before = len(visible(browser, "ol.nodes"))
            element.send_keys(Keys.ENTER)
            assert len(visible(browser, "ol.nodes")) != before
            element.send_keys(Keys.ENTER)
    tags = {tag for tag, _ in reached}
    assert {"summary", "button", "div"} <= tags


@pytest.mark.parametrize("page", ["one", "many"])
@pytest.mark.parametrize(
    ("name", "width", "dark"), [("light", 1280, False), ("dark", 1280, True), ("phone", 390, False)]
)
def test_it_fits_and_reads_in_every_scheme(
    browser: Any, pages: dict[str, str], page: str, name: str, width: int, dark: bool
) -> None:
    opened(browser, pages[page], width=width, dark=dark)
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    assert contrast(browser, "body") >= 7
    assert contrast(browser, "header h1") >= 4.5
    assert all(contrast(browser, selector) >= 4.5 for selector in (".chip", ".quiet", "td", "figcaption"))
    assert not browser.get_log("browser")  # neither errors nor what the page's policy turned away
    if folder := os.environ.get("REDUCELOWER_SCREENSHOTS"):
        browser.save_screenshot(str(Path(folder) / f"{page}-{name}.png"))


def contrast(browser: Any, selector: str) -> float:
    """The contrast ratio of text to what is behind it, as WCAG 2 defines it."""
    colours = browser.execute_script(
        """
        const element = document.querySelector(arguments[0]);
        const style = (item) => getComputedStyle(item);
        let behind = element;
        const clear = (item) => style(item).backgroundColor === "rgba(0, 0, 0, 0)";
        while (behind.parentElement && clear(behind)) behind = behind.parentElement;
        return [style(element).color, style(behind).backgroundColor].map((text) => text.match(/[\\d.]+/g).map(Number));
        """,
        selector,
    )

    def luminance(colour: list[float]) -> float:
        parts = [value / 255 for value in colour[:3]]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted(map(luminance, colours), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_without_scripts_everything_is_still_there(browser: Any, pages: dict[str, str]) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        opened(browser, pages["one"])
        assert len(visible(browser, "ol.nodes")) == 4
        assert not visible(browser, ".filter")
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
