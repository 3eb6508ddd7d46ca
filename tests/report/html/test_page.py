"""The page of a report: its content without a script, and inert untrusted texts."""

import json
import re

import pytest
from hypothesis import given, settings, strategies as st

from mlfbuild.report.document.read import report_schema
from mlfbuild.report.html import page
from mlfbuild.report.operators.cycles import CYCLE_KINDS
from support import report_sketch as sketch
from support.page_elements import HOSTILE, Elements
from support.schemas import validator


def digits(**about: object) -> sketch.Json:
    return sketch.report(sketch.image([sketch.model("digits", [sketch.chain()], **about)]))


def test_the_same_reports_make_the_same_page() -> None:
    assert page(digits(), digits()) == page(digits(), digits())


def test_page_loads_nothing_and_allows_only_its_script() -> None:
    text = page(digits())
    elements = Elements(text)
    for tag, attributes in elements.found:
        assert "src" not in attributes and "srcset" not in attributes and "style" not in attributes, tag
        assert not any(name.startswith("on") for name in attributes), tag
        if tag in {"a", "link"}:
            assert str(attributes["href"]).startswith(("#", "data:,")), attributes
    assert "url(" not in text and "@import" not in text
    policy = next(attributes["content"] for tag, attributes in elements.found if "http-equiv" in attributes)
    assert policy is not None
    assert re.fullmatch(
        r"default-src 'none'; img-src data:; style-src 'sha256-[\w+/]{43}='; script-src 'sha256-[\w+/]{43}='; "
        r"base-uri 'none'; form-action 'none'",
        policy,
    )


def test_names_from_models_are_only_text() -> None:
    network = sketch.chain()
    network["module"] = HOSTILE
    for entry in (*network["tensors"], *network["operators"]):
        entry |= {key: HOSTILE for key in ("name", "operator", "function", "dtype") if key in entry}
    network["profile"] |= {"board": HOSTILE, "inputs": HOSTILE}
    stack = {"worst_case": None, "reason": HOSTILE, "path": [HOSTILE], "measured": 8}
    report = sketch.report(sketch.image([sketch.model(HOSTILE, [network, network], stack=stack)], target=HOSTILE))
    for owner in (*report["images"][0]["models"], *report["images"][0]["others"]):
        for piece in owner["pieces"]:
            piece["name"] = HOSTILE
    tame = json.loads(json.dumps(report).replace(json.dumps(HOSTILE)[1:-1], "tame"))
    hostile, harmless = Elements(page(report, report)), Elements(page(tame, tame))
    assert [tag for tag, _ in hostile.found] == [tag for tag, _ in harmless.found]
    assert {name for _, attributes in hostile.found for name in attributes} == {
        name for _, attributes in harmless.found for name in attributes
    }
    scripts = [text for tag, text in hostile.texts if tag == "script"]
    assert len(scripts) == 2
    (leaf,) = json.loads(scripts[0])["image-0"]["ram"]["children"][0]["children"]
    assert leaf["name"] == HOSTILE
    assert "<" not in scripts[0]


def test_reports_fit_the_schema() -> None:
    networks = [sketch.chain(), sketch.chain(counted=False), sketch.residual(), sketch.stateful()]
    stack = {"worst_case": 8, "reason": "", "path": ["a"], "frames": [8], "measured": 8}
    budget = {"flash": 1, "ram": 2, "stack": None, "instructions": 3}
    report = sketch.report(sketch.image([sketch.model("all", networks, budget=budget, stack=stack)], budget=budget))
    validator(report_schema()).validate(report)


def test_modelled_cycles_are_split_and_say_that_they_are_modelled() -> None:
    networks = [sketch.modelled(sketch.chain(), waiting=waiting) for waiting in (5, 10)]
    budget = {"cycles": 1, "latency": 10**12}
    now, before = (
        sketch.report(sketch.image([sketch.model("digits", [network], budget=budget)]), sketch.image([], target="m7"))
        for network in networks
    )
    validator(report_schema()).validate(now)
    elements = Elements(page(now, before))
    modelled = networks[0]["profile"]["modelled"]
    words = elements.words
    assert words.count("modelled, +-12 %") >= 4 and "stm32l4r5 at 120 MHz" in words
    for kind, name in CYCLE_KINDS.items():
        assert f"{name} {modelled['by_kind'][kind]:,}" in words
        bars = [each for tag, each in elements.found if tag == "rect" and each.get("class") == f"k-{kind}"]
        assert len(bars) >= 2 * len(networks[0]["operators"]), "in the chart and in the table"
    assert f"{modelled['cycles']:,} of 1 cycles" in words and "of 1,000,000.000 ms" in words
    assert "Removed: dead channels with 1,800 bytes of weights, 6,000 MACs" in words
    assert "4 of 12" in words
    instructions_only = Elements(page(digits())).words
    assert "modelled" not in instructions_only and "Removed" not in instructions_only


def test_flash_and_ram_of_core_and_npu_are_apart() -> None:
    report = digits()
    assert "Flash of core" not in Elements(page(report)).words
    sizes = {"core": (4096, 0), "ethos-u": (2304, 64), "both": (0, 512)}
    report["images"][0]["models"][0]["devices"] = [
        {"device": device, "flash": flash, "ram": ram} for device, (flash, ram) in sizes.items()
    ]
    validator(report_schema()).validate(report)
    words = Elements(page(report)).words
    assert "Flash of core 4,096 bytes (4.0 KiB) RAM 0 bytes" in words
    assert "Flash of ethos-u 2,304 bytes (2.2 KiB) RAM 64 bytes" in words
    assert "RAM of both, in turns 512 bytes" in words


def test_tables_need_no_script() -> None:
    words = Elements(page(digits(budget={"flash": 4096, "ram": None}))).words
    assert "app for m4" in words
    for expected in ("CONV_2D conv_0 1*16*16*4 40,000 400 300 16 80,000 2.00 26,666", "of 4,096 bytes"):
        assert expected.replace("*", "\N{MULTIPLICATION SIGN}") in words, expected
    assert "over budget" in words


def test_each_part_of_a_report_may_be_missing() -> None:
    bare = digits()
    del bare["images"][0]["target"], bare["images"][0]["cpu"], bare["images"][0]["models"][0]["networks"]
    words = Elements(page(bare)).words
    assert "digits" in words and "Memory over time" not in words
    empty = sketch.report(sketch.image([sketch.model("digits", [sketch.Sketch().json()])]))
    assert "This network needs no arena." in Elements(page(empty)).words


def test_models_that_are_not_linked_are_omitted() -> None:
    models = [sketch.model("digits", [sketch.chain()]), sketch.model("unused", [])]
    words = Elements(page(sketch.report(sketch.image(models)))).words
    assert "digits" in words and "unused" not in words


@pytest.mark.parametrize("network", [sketch.chain(1), sketch.residual(), sketch.stateful()], ids=["1", "res", "state"])
def test_every_operator_and_tensor_is_drawn(network: sketch.Json) -> None:
    found = Elements(page(sketch.report(sketch.image([sketch.model("net", [network])])))).found
    nodes = [attributes for tag, attributes in found if tag == "g" and "node" in (attributes.get("class") or "")]
    assert sum("data-operator" in attributes for attributes in nodes) == len(network["operators"])
    drawn = {attributes.get("data-tensor") for tag, attributes in found if tag == "svg"} - {None}
    assert drawn == {str(index) for index in range(len(network["tensors"]))}


INDEX = st.integers(0, 6)
SIZE = st.sampled_from([0, 1, 300, 70_000])
TENSOR = st.fixed_dictionaries({
    "name": st.text(max_size=3),
    "dtype": st.just("int8"),
    "shape": st.lists(st.integers(0, 9), max_size=4),
    "size": SIZE,
    "memory": st.sampled_from(["arena", "state", "input", "output", "constant"]),
    "offset": st.none() | SIZE,
    "first": INDEX,
    "last": INDEX,
})  # fmt: skip
OPERATOR = st.fixed_dictionaries({
    "name": st.text(max_size=3),
    "operator": st.text(max_size=3),
    "function": st.text(max_size=3),
    "inputs": st.lists(INDEX, max_size=3),
    "outputs": st.lists(INDEX, max_size=2),
    "scratch": st.none() | st.fixed_dictionaries({"offset": SIZE, "size": SIZE}),
    "pieces": st.lists(st.text(max_size=3), max_size=2),
    **dict.fromkeys(("macs", "instructions", "bound"), st.none() | SIZE),
    **dict.fromkeys(("code", "weights", "tables"), SIZE),
})  # fmt: skip


@pytest.mark.sweep
@settings(max_examples=40, deadline=None)
@given(SIZE, st.lists(TENSOR, max_size=5), st.lists(OPERATOR, max_size=6))
def test_invalid_networks_are_drawn_anyway(
    arena: int, tensors: list[sketch.Json], operators: list[sketch.Json]
) -> None:
    rest = {"code": 0, "weights": 0, "tables": 0}
    network = {"module": "net", "executor": "aot", "arena": arena, "rest": rest}
    report = digits()
    report["images"][0]["models"][0]["networks"] = [{**network, "tensors": tensors, "operators": operators}]
    validator(report_schema()).validate(report)
    Elements(page(report, digits()))
