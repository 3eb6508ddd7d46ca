"""The page of many images: inert texts, and in Chromium its width, contrast, filter, chapters and sorting."""

from pathlib import Path

import pytest

from mlfbuild.report.fleet.columns import figures_in
from mlfbuild.report.fleet.git_history import Commit
from mlfbuild.report.fleet.overview import Fleet, FleetImage, Unreadable, Version
from mlfbuild.report.fleet.table import FileProblem
from mlfbuild.report.html import fleet_page
from support.browser import Browser
from support.page_elements import HOSTILE, Elements
from support.reports import budget, image, kws, others

COMMITS = tuple(Commit(f"{number:040x}", 1_750_000_000 + 86_400 * number, f"Change {number}") for number in range(4))


def one(name: str, *sizes: int, removed: bool = False) -> FleetImage:
    versions = []
    for commit, size in zip(COMMITS, sizes, strict=False):
        verify = [{"module": "", "state": "failed" if size > 9000 else "passed", "board": "mps2-an386", "cases": 3}]
        stack = {"worst_case": size // 10, "reason": "", "path": [], "frames": [], "measured": None}
        model = kws(size, budget=budget(flash=9500), verify=verify, stack=stack)
        versions.append(Version(commit, figures_in(image(f"{name} for m4", [model], others()))))
    return FleetImage(f"reports/{name}.json", tuple(versions), COMMITS[3] if removed else None)


def fleet(number: int) -> Fleet:
    """Return an overview of ``number`` images, of which one is removed, and a report that cannot be read."""
    images = [one(f"app{index:02}", 8000, 8000 + 100 * index, 8800 + index) for index in range(number - 1)]
    problem = Unreadable(FileProblem("bad.json", "it is damaged", ""), COMMITS[2], current=True)
    return Fleet((*images, one("old", 500, 600, removed=True)), COMMITS, (problem,))


def test_an_overview_makes_one_page() -> None:
    assert fleet_page(fleet(3)) == fleet_page(fleet(3))
    for tag, attributes in Elements(fleet_page(fleet(3))).found:
        assert "src" not in attributes and "style" not in attributes, tag
        assert tag != "a" or str(attributes["href"]).startswith("#")


def test_names_are_only_text() -> None:
    commit = Commit("1" * 40, 1, HOSTILE)
    hostile = FleetImage(
        HOSTILE, (Version(COMMITS[0], one("x", 1).now.figures), Version(commit, one(HOSTILE, 9).now.figures))
    )
    page = fleet_page(Fleet((hostile, one("x", 1)), (COMMITS[0], commit), ()))
    plain = fleet_page(Fleet((one("x", 1, 9), one("x", 1)), COMMITS[:2], ()))
    tags = [tag for tag, _ in Elements(page).found]
    assert tags == [tag for tag, _ in Elements(plain).found]
    assert " ".join(HOSTILE.split()) in Elements(page).words


def test_folders_have_no_plots() -> None:
    found = Elements(fleet_page(Fleet((FleetImage("a.json", (Version(None, one("x", 1).now.figures),)),))))
    assert "path" not in {tag for tag, _ in found.found}
    assert "commit" not in found.words


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_fits_and_is_readable(browser: Browser, dark: bool) -> None:
    for width in (390, 1280):
        browser.open_page(fleet_page(fleet(30)), width=width, dark=dark)
        assert browser.run("return document.documentElement.scrollWidth") <= width
    script = (Path(__file__).parent / "contrast.js").read_text()
    found = browser.run(script)
    assert found["low"] == []
    assert found["seen"] > 300
    browser.open_page(fleet_page(fleet(1)), dark=dark)
    assert "Removed by" in browser.one("article").text


def test_the_table_leads_to_chapters_and_is_filtered_and_sorted(browser: Browser) -> None:
    browser.open_page(fleet_page(fleet(30)))
    shown = (
        "return [...document.querySelectorAll('#images table')][0].querySelectorAll('tbody tr:not([hidden])').length"
    )
    assert browser.run(shown) == 29
    browser.one("#filter").send_keys("M4 app1")
    assert browser.run(shown) == 10
    browser.click("a[href='#image-12']")
    browser.settle()
    assert browser.one("article:not([hidden]) h1").text == "app12 for m4"
    assert browser.run("return document.querySelectorAll('article:not([hidden])').length") == 1
    heads = browser.texts("#images table:first-of-type thead th")
    assert heads[:5] == ["image", "flash", "flash ±", "RAM", "stack"]
    browser.click("#images thead th:nth-of-type(2) button")
    assert browser.texts("#images tbody tr:not([hidden]) th a")[0] == "app19 for m4"


def test_the_plot_of_a_figure_has_steps_at_commits() -> None:
    found = Elements(fleet_page(Fleet((one("x", 8000, 8000, 8100, 8050),), COMMITS)))
    lines = [str(attributes["d"]) for tag, attributes in found.found if tag == "path"]
    assert lines[:3] == ["M0 100H667V0H1000V50H1000"] * 2 + ["M667 0h0M1000 50h0"]
