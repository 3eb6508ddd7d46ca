"""The page of an exploration: it can be read, used with the keyboard, and without scripts."""

from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from mlfbuild.exploration import Exploration, ExploredPoint
from mlfbuild.report.html import exploration_page
from support.browser import Browser
from support.page_elements import HOSTILE, Elements


def exploration(count: int, text: str = "smallest") -> Exploration:
    """Return ``count`` points, of which the larger ones are the faster ones, and one without figures."""
    figures = [{"flash": 1000 * (n + 1), "ram": 64 - n, "instructions": 900 - 50 * n} for n in range(count)]
    points = [
        ExploredPoint({"options.memory": text, "optimize": f"O{n}"}, {"m4": each}, 0.5 + n % 3 / 10, ("low",) * (n % 2))
        for n, each in enumerate(figures)
    ]
    return Exploration("kws", {"m4": {}}, (*points, ExploredPoint({"optimize": "Os"}, problem=text)), "top1")


def test_names_are_only_text() -> None:
    page, plain = Elements(exploration_page(exploration(3, HOSTILE))), Elements(exploration_page(exploration(3)))
    assert [tag for tag, _ in page.found] == [tag for tag, _ in plain.found]
    assert " ".join(HOSTILE.split()) in page.words
    assert exploration_page(exploration(0)).count("<table") == 0


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_fits_and_is_readable(browser: Browser, dark: bool) -> None:
    for width in (390, 1280):
        browser.open_page(exploration_page(exploration(12)), width=width, dark=dark)
        assert browser.run("return document.documentElement.scrollWidth") <= width
    found = browser.run((Path(__file__).parent / "contrast.js").read_text())
    assert found["low"] == []
    assert found["seen"] > 100


def test_the_keyboard_leads_from_point_to_point_and_to_its_row(browser: Browser) -> None:
    browser.open_page(exploration_page(exploration(4)))
    assert browser.texts("#left, #right, #bottom, #top") == [
        "instructions 900", "instructions 750", "flash 1,000", "flash 4,000",
    ]  # fmt: skip
    browser.run("document.querySelector('.scatter a').focus()")
    names = []
    for key in (Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT):
        browser.press(key)
        names.append(browser.texts("#about")[0].partition(",")[2].partition(":")[2].split(":")[0].strip())
    assert len(set(names)) == 2
    browser.press(Keys.ENTER)
    browser.settle()
    assert browser.run("return document.querySelector('tr:target').id").startswith("p")
    before = browser.run("return document.querySelector('#best').getAttribute('d')")
    browser.run("const s = document.querySelector('#down'); s.value = 'accuracy'; s.dispatchEvent(new Event('change'))")
    assert browser.texts("#top") == ["top1 0.7"]
    assert browser.run("return document.querySelector('#best').getAttribute('d')") != before


def test_points_are_links_without_scripts(browser: Browser) -> None:
    browser.open_page(exploration_page(exploration(4)), script=False)
    assert not browser.one(".axes-of-plot").is_displayed()
    browser.one(".scatter a").send_keys(Keys.ENTER)
    assert browser.driver.current_url.endswith("#p0")
