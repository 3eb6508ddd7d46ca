"""The table of all images, the attributes of operators and the results of `verify` on the page."""

from typing import Any

import jsonschema
import pytest

from mlfbuild.report.document.read import report_schema
from mlfbuild.report.html import page
from mlfbuild.report.html.numbers import NONE, compact
from mlfbuild.report.html.views import overview
from support import report_sketch as sketch
from support.browser import Browser

TIMES = "\N{MULTIPLICATION SIGN}"
NODE = {
    "name": "conv_1",
    "operator": "CONV_2D",
    "attributes": {"kernel": [3, 5], "stride": [2, 1], "padding": [[1, 2], [0, 0]], "activation": "relu6", "beta": 0.5},
    "tensors": [
        {"role": "input", "name": "x", "dtype": "int8", "scale": [0.125, 0.125], "zero_point": [-128, -128]},
        {"role": "weights", "name": "w", "dtype": "int8", "scale": [0.01, 0.25], "zero_point": [0, 0], "channels": 8},
        {"role": "output", "name": "y", "dtype": "float32"},
    ],
}  # fmt: skip


def image(target: str, *, verify: str = "", more: int = 0, baseline: int = 0, **budget: int) -> sketch.Json:
    model = sketch.model("digits", [sketch.chain()], budget=budget, stack={"worst_case": 500, "measured": None})
    if verify:
        model["verify"] = [
            {"module": "", "state": verify, "board": "mps2-an386", "cases": 24, "problem": "digits: bad"}
        ]
    for stack in (model["stack"],):
        stack |= {"reason": "", "path": [], "frames": []}
    found = sketch.image([model], target=target, budget={"ram": 2**20}, more=more)
    return {**found, **({"baseline": {"": {"flash": baseline, "ram": found["ram"]}}} if baseline else {})}


def rows(*images: sketch.Json, old: sketch.Json | None = None) -> list[Any]:
    named = [{**each, "target": f"{each['target']}-{at}"} for at, each in enumerate(images)]
    before = old and sketch.report(*({**old, "target": each["target"]} for each in named))
    return list(overview(sketch.report(*named), before))


def test_a_row_has_the_sizes_and_the_most_used_budget() -> None:
    small, large = rows(image("m4", flash=100_000, stack=1000), image("m7", flash=1000, instructions=10**9, more=5000))
    flash = image("m4")["flash"]
    assert [cell.text for cell in small.cells] == [f"{flash:,}", f"{image('m4')['ram']:,}", "500", "720,940"]
    assert small.cells[0].step < large.cells[0].step == 100
    assert (small.budget.share, small.budget.of, small.budget.over) == ("50.0 %", "stack of digits", False)
    assert (large.budget.of, large.budget.over) == ("flash of digits", True)
    (kept,) = rows({**image("m4"), "ram": 0, "budget": {"ram": 0}})
    assert (kept.budget.share, kept.budget.of, kept.budget.over) == ("0.0 %", "RAM", False)
    none = sketch.image([sketch.model("digits", [sketch.chain(counted=False)])])
    assert rows(none)[0].budget is None
    assert [cell.text for cell in rows(none)[0].cells][2:] == [NONE, NONE]


def test_changes_are_since_the_other_report_or_since_the_baseline() -> None:
    since_report = rows(image("m4", baseline=10), old=image("m4", more=40))[0].changes
    assert [(name, change.more) for name, change in since_report] == [("flash", -40), ("RAM", 0)]
    flash = image("m4")["flash"]
    assert [change.more for _, change in rows(image("m4", baseline=flash - 7))[0].changes] == [7, 0]
    assert rows(image("m4"))[0].changes == ()


@pytest.mark.parametrize(
    ("states", "shown"),
    [(["passed"], "passed"), (["passed", "outdated"], "outdated"), (["never", "failed", "passed"], "FAILED"), ([], "")],
)
def test_an_image_shows_the_worst_result_of_its_models(states: list[str], shown: str) -> None:
    checked = image("m4")
    checked["models"][0]["verify"] = [{"module": "", "state": state, "board": "b", "cases": 1} for state in states]
    assert rows(checked)[0].verified == shown


def reported() -> sketch.Json:
    report = sketch.report(*(image(f"m{at}", verify="passed" if at % 2 else "failed", flash=9000) for at in range(40)))
    report["images"][0]["models"][0]["networks"][0]["operators"][1]["nodes"] = [NODE]
    jsonschema.Draft202012Validator(report_schema()).validate(report)
    return report


def test_the_page_of_many_images_begins_with_their_table(browser: Browser) -> None:
    browser.open(reported(), width=390)
    assert browser.run("return document.querySelector('main').firstElementChild.id") == "images"
    assert browser.run("return document.querySelector('.top').scrollWidth") <= 390, "no strip of 40 names"
    assert len(browser.texts(".overview tbody tr")) == 40
    browser.click(".overview a[href='#image-7']")
    visible = "return [...document.querySelectorAll('.image')].filter(e => e.offsetHeight).map(e => e.id)"
    assert browser.run(visible) == ["image-7"]
    browser.click(".all a")
    assert browser.run(visible) == ["image-7"], "going back to the table keeps the image"
    browser.click(".overview th:nth-child(2) button")
    assert browser.one(".overview th:nth-child(2)").get_attribute("aria-sort") == "descending"


def test_a_clicked_operator_shows_its_attributes_and_scales(browser: Browser) -> None:
    browser.open(reported())
    browser.click(".node[data-operator='1']")
    text = browser.one("#chosen .nodes").text.replace("\n", " ")
    for part in (
        f"kernel 3 {TIMES} 5", f"stride 2 {TIMES} 1",
        "padding top 1, bottom 2, left 0, right 0", "activation relu6", "beta 0.5",
        "input int8, scale 0.125, zero point -128", "weights int8, scale 0.01 to 0.25 (8 channels), zero point 0",
    ):  # fmt: skip
        assert part in text
    browser.click(".node[data-operator='2']")
    assert browser.texts("#chosen .nodes > *") == [], "the report knows nothing about this one"
    labels = browser.texts(".treemap .tile")
    assert labels and not [label for label in labels if label.startswith("tvmgen_")]


def test_a_page_without_these_facts_has_none_of_their_parts() -> None:
    text = page(sketch.report(sketch.image([sketch.model("digits", [sketch.chain()])])))
    for part in ('class="overview"', 'class="verified"', 'data-about="0"', ">verified<"):
        assert part not in text


def test_failed_checks_show_their_first_problem() -> None:
    text = page(sketch.report(image("m4", verify="failed")))
    assert "FAILED, 24 cases on mps2-an386" in text and "digits: bad" in text
    assert "outdated: model or vectors changed" in page(sketch.report(image("m4", verify="outdated")))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (999, "999"), (1000, "1 k"), (999_499, "999 k"), (999_500, "1 M"), (999_999, "1 M"),
        (4_711_000, "4.71 M"),
    ],
)  # fmt: skip
def test_numbers_of_axes_have_three_digits(value: int, text: str) -> None:
    assert compact(value) == text
