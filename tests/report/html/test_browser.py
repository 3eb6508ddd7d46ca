"""The page in Chromium: it fits the window, logs no errors, and works with mouse and keyboard."""

from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from support import report_sketch as sketch
from support.browser import Browser
from support.examples import first_on_push

LONG = "model/a_block_with_a_very_long_name/" * 6


def digits(length: int = 6, **about: object) -> sketch.Json:
    stack = {"worst_case": 512, "reason": "", "path": ["tvmgen_net_run", "conv2d"], "measured": 480}
    budget = {"flash": 4096, "ram": 8192}
    return sketch.image([sketch.model("digits", [sketch.chain(length)], budget=budget, stack=stack)], **about)


def everything() -> sketch.Json:
    """Return a report with two images, three models and long names."""
    models = [
        sketch.model("digits", [sketch.chain(6, name=LONG)], budget={"flash": 4096, "ram": 8192}),
        sketch.model("branches", [sketch.residual()]),
        sketch.model("keyword", [sketch.stateful(), sketch.chain(3)]),
        sketch.model("timed", [sketch.modelled(sketch.chain(9))], budget={"cycles": 9, "latency": 10**9}),
    ]
    return sketch.report(sketch.image(models), digits(target="m55"))


@pytest.mark.parametrize(
    ("width", "dark"),
    first_on_push([(390, False), (768, True), (1280, False), (390, True), (768, False), (1280, True)], 3),
)
def test_nothing_is_wider_than_the_window(browser: Browser, width: int, dark: bool) -> None:
    browser.open(everything(), sketch.report(digits()), width=width, dark=dark)
    for model in range(3):
        browser.run(
            f"location.hash = 'image-0-model-{model}'; document.querySelectorAll('details').forEach(d => d.open = true)"
        )
        browser.settle()
        assert browser.run("return document.documentElement.scrollWidth") <= width
        assert browser.one(f"#image-0-model-{model} .plot").is_displayed()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_has_contrast(browser: Browser, dark: bool) -> None:
    browser.open(everything(), sketch.report(digits()), dark=dark)
    script = (Path(__file__).parent / "contrast.js").read_text()
    assert browser.run(script)["low"] == []
    browser.click(".treemap .group:nth-of-type(2) button:last-child")
    browser.click(".node[data-operator='1']")
    found = browser.run(script)
    assert found["low"] == []
    assert found["seen"] > 300


def test_tables_sort_by_each_column(browser: Browser) -> None:
    browser.open(sketch.report(digits()))
    heads = browser.texts(".operators .sortable:first-of-type thead button")[:10]
    assert heads == [
        "#", "operator", "output", "MACs", "code", "weights", "tables", "instructions", "instr. / MAC", "lower bound",
    ]  # fmt: skip
    macs, order = ".operators th:nth-child(4) button", ".operators tbody tr[data-operator] > :first-child"
    browser.click(macs)
    assert browser.one(".operators th:nth-child(4)").get_attribute("aria-sort") == "descending"
    assert browser.texts(order) == ["2", "1", "4", "0", "3", "5"]
    browser.click(macs)
    assert browser.one(".operators th:nth-child(4)").get_attribute("aria-sort") == "ascending"
    assert browser.texts(order) == ["5", "0", "3", "1", "4", "2"]
    browser.click(".operators th:nth-child(2) button")
    assert browser.texts(order)[-1] == "5", "SOFTMAX comes after CONV_2D"
    assert browser.one(".operators th:nth-child(4)").get_attribute("aria-sort") == "none"
    assert browser.texts(".operators table:first-of-type tfoot th")[:2] == ["no operator", "total"]


def test_tensor_shows_its_facts(browser: Browser) -> None:
    browser.open(sketch.report(digits()))
    browser.hover(".arena [data-tensor='2']")
    assert browser.tip().split("\n") == [
        "conv_1_1:0", "1x16x16x5 int8".replace("x", "\N{MULTIPLICATION SIGN}"), "1,280 bytes (1.2 KiB)",
        "in the arena at 1,280 to 2,560", "operators 1 to 2",
    ]  # fmt: skip
    browser.hover("h1")
    assert browser.tip() == ""
    assert browser.run("return document.querySelectorAll('.arena .mark[tabindex=\"0\"]').length") == 1
    browser.run("document.querySelector('.arena .mark').focus()")
    browser.press(Keys.ARROW_RIGHT)
    assert browser.tip().startswith("conv_1_1:0")
    assert browser.one(".arena .mark").get_attribute("role") == "button"
    assert browser.run("return document.activeElement.getAttribute('aria-label')").startswith("conv_1_1:0, 1")
    browser.press(Keys.END)
    assert browser.tip().startswith("Scratch of CONV_2D")
    browser.press(Keys.ESCAPE)
    assert browser.tip() == ""


def test_selected_operator_is_marked_in_all_drawings(browser: Browser) -> None:
    browser.open(sketch.report(sketch.image([sketch.model("net", [sketch.residual()])])))
    browser.click(".node[data-operator='3']")
    assert browser.texts(".operators tr.selected > :first-child") == ["3", "1", "3", "4"], "its row and its tensors'"
    marked = browser.run(
        "return [...document.querySelectorAll('.arena .selected[data-tensor]')].map(e => e.dataset.tensor)"
    )
    assert marked == ["1", "3", "4"], "what it adds, and their sum"
    assert browser.run("return document.querySelectorAll('.line.selected').length") == 7
    assert browser.texts("#chosen:not([hidden]) b") == ["3 ADD"]
    browser.click("#chosen button[value='.operators']")
    top = browser.run("return document.querySelector('tr.selected').getBoundingClientRect().top")
    assert 0 < top < 800
    browser.click(".node[data-operator='3']")
    assert browser.texts(".selected") == []
    browser.run("document.querySelector('.node[data-operator=\"15\"]').focus()")
    browser.press(Keys.ENTER)
    assert browser.texts("#chosen:not([hidden]) b") == ["15 FULLY_CONNECTED"]
    browser.press(Keys.ESCAPE)
    assert browser.texts(".selected, #chosen:not([hidden]) b") == []


def test_the_map_has_every_byte_and_zooms(browser: Browser) -> None:
    image = digits()
    browser.open(sketch.report(image))
    owners = ["firmware  9,480", "C library  6,600", f"digits  {image['models'][0]['flash']:,}"]
    assert browser.texts(".tiles > .frame > button") == owners
    area = browser.run(
        "const t = document.querySelector('.tiles'); return [...t.children].reduce((sum, e) => "
        "sum + (e.offsetWidth + 1) * (e.offsetHeight + 1), 0) / t.clientWidth / t.clientHeight"
    )
    assert area == pytest.approx(1, abs=0.02)
    browser.hover(".tile")
    assert browser.tip().split("\n")[1] in {"firmware", "C library", "digits"}
    browser.click(".frame > button")
    assert len(browser.texts(".tiles > .frame")) == 1
    browser.click(".crumb")
    browser.click(".treemap .group button:last-child")
    assert browser.texts(".tiles > .frame > button") == ["stack  16,640", f"digits  {image['models'][0]['ram']:,}"]


def test_differences_are_shown(browser: Browser) -> None:
    browser.open(sketch.report(digits(7, more=-100)), sketch.report(digits(6), digits(target="m7")))
    assert browser.texts(".gone") == ["Only the other report has app for m7."]
    rows = browser.rows(".differences tbody tr")
    assert rows[1] == "model digits 5,086 +776 (+18.0 %) 4,096 same"
    assert any(row.startswith("firmware 9,380 \N{MINUS SIGN}100 (\N{MINUS SIGN}1.1 %)") for row in rows), rows
    assert any(row.startswith("digits 960,940 +240,000 (+33.3 %)") for row in rows), rows
    assert any(row.startswith("CONV_2D conv_5 added digits") for row in rows), rows
    assert any(row.startswith("SOFTMAX softmax_5 removed digits") for row in rows), rows
    assert browser.texts(".operators tbody tr[data-operator] td.more")[0] == "new"
    browser.click(".treemap .group:nth-of-type(2) button:last-child")
    assert browser.texts(".treemap .legend li") == ["grew", "shrank", "as before"]
    colours = browser.run(
        "return [...document.querySelectorAll('.legend .swatch')].map(e => getComputedStyle(e).background)"
    )
    assert len(set(colours)) == 3
    browser.hover(".tile.t-less")
    assert browser.tip().endswith("\N{MINUS SIGN}100 bytes since the other report")


def test_names_from_models_are_inert(browser: Browser) -> None:
    hostile = "</script></title><img src=x onerror=alert(1)><svg onload=alert(2)>'\"{{1}}"
    network = sketch.residual()
    for entry in (*network["tensors"], *network["operators"]):
        entry |= {key: hostile for key in ("name", "operator", "function", "dtype") if key in entry}
    model = sketch.model(hostile, [network])
    for piece in model["pieces"]:
        piece["name"] = hostile
    report = sketch.report(sketch.image([model], target=hostile))
    browser.open(report, report)
    browser.hover(".arena .mark")
    assert browser.tip().startswith(hostile)
    browser.hover(".tile")
    browser.click(".node[data-operator]")
    assert browser.run("return document.querySelectorAll('img, [onload], [onerror]').length") == 0
    assert browser.driver.title.startswith(f"app for {hostile}")


def test_tables_are_complete_without_a_script(browser: Browser) -> None:
    browser.open(everything(), script=False)
    shown = [
        element.is_displayed() for element in browser.driver.find_elements("css selector", ".model .operators table")
    ]
    assert len(shown) == 13 and sum(shown) == 6, "those of tensors and removed channels are folded"
    assert not browser.one(".treemap").is_displayed() and not browser.one("#theme").is_displayed()


def test_the_url_selects_image_and_model(browser: Browser) -> None:
    browser.open(everything(), at="#image-0-model-1")
    visible = "return [...document.querySelectorAll('.image, .model')].filter(e => e.offsetHeight).map(e => e.id)"
    assert browser.run(visible) == ["image-0", "image-0-model-1"]
    browser.click(".overview a[href='#image-1']")
    assert browser.run(visible) == ["image-1", "image-1-model-0"]
    assert browser.texts(".overview a[aria-current]")[0] == "app for m55"


def test_the_colour_scheme_can_be_selected_and_is_kept(browser: Browser) -> None:
    browser.open(sketch.report(digits()))
    colour = "return getComputedStyle(document.body).backgroundColor"
    before = browser.run(colour)
    browser.click("#theme")
    after = browser.run(colour)
    browser.driver.refresh()
    assert before != after == browser.run(colour)
    browser.run("localStorage.clear()")


def test_page_can_be_printed(browser: Browser) -> None:
    browser.open(sketch.report(digits()))
    browser.narrow(794, dark=True, media="print")
    assert not browser.one("#theme").is_displayed() and not browser.one(".treemap .group").is_displayed()
    assert browser.one(".treemap .legend").is_displayed() and browser.one(".tile").is_displayed()
    assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.run("return document.documentElement.scrollWidth") <= 794


def test_a_network_of_many_operators_opens(browser: Browser) -> None:
    browser.open(sketch.report(digits(1000)))
    assert browser.run("return document.querySelectorAll('.operators tr[data-operator]').length") == 1000
    size = browser.run("return document.documentElement.outerHTML.length")
    assert size < 1000 * 3500, "characters an operator"
    browser.click(".operators th:nth-child(4) button")
    assert browser.texts(".operators tbody tr:first-child > :first-child")[0] == "2"
