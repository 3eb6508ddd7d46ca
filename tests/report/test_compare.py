"""Changes between two reports, as values, JSON and text."""

from collections.abc import Callable
from typing import Any

import pytest

from mlfbuild.report.document.compare import Change, compare_reports, comparison_json
from mlfbuild.report.document.read import report_schema
from mlfbuild.report.text.comparison import comparison_text
from support.report_sketch import chain, model, modelled
from support.reports import image, kws, others, owner, piece, report
from support.schemas import validator

Json = dict[str, Any]
BEFORE = report(image("app for m4", [kws()], others()))
LONG = "tvmgen_kws_a_name_that_is_much_longer_than_any_terminal_is_wide_so_that_its_middle_goes_0_filter"


def text(now: Json, before: Json = BEFORE, *, verbose: bool = False) -> str:
    """Return the text, which must fit a terminal."""
    made = comparison_text(compare_reports(now, before), "old.json", verbose=verbose)
    assert all(len(line) <= 80 and line == line.rstrip() for line in made.splitlines()), made
    return made


def changed(sha256: str = "1" * 64, **more: Any) -> Json:
    models = [kws(9024, **more), owner("vww", piece(LONG, "weights", 700), piece("tvmgen_vww_run", "code", 90))]
    firmware = [owner("firmware", piece("main", "code", 460), piece("counters", "data", 48)), others()[1]]
    return report(image("app for m4", models, firmware, sha256=sha256))


def test_numbers_of_both_reports() -> None:
    (found,) = compare_reports(changed(), BEFORE).images
    assert found.flash == Change(9196, 10978) and found.ram == Change(3040, 3048)
    assert not found.same
    assert [each.name for each in found.owners] == ["kws", "vww", "firmware", "stack"], "the largest change first"
    model, new, firmware, stack = found.owners
    assert (model.flash, model.kinds["weights"], model.kinds["code"]) == (
        Change(8656, 9680), Change(8000, 9024), Change(400, 400),
    )  # fmt: skip
    assert [(each.name, each.bytes) for each in model.pieces] == [("tvmgen_kws_conv2d_0_filter", Change(8000, 9024))]
    assert (new.flash, new.ram, new.kinds["arena"]) == (Change(None, 790), Change(None, 0), Change(None, 0))
    assert [(each.name, each.bytes.more) for each in firmware.pieces] == [("main", -40), ("counters", 8)]
    assert not firmware.model and not stack.pieces and stack.weight == 0


def test_symbols_of_the_same_name_are_added_up() -> None:
    def of(*sizes: int) -> Json:
        firmware = owner("firmware", *(piece("handler", "code", size) for size in sizes), piece("handler", "tables", 7))
        return report(image("app", [], [firmware], sha256=f"{sum(sizes):064}"))

    (found,) = compare_reports(of(10, 20), of(25, 5)).images
    assert found.owners[0].pieces == ()
    (found,) = compare_reports(of(10, 20), of(10)).images
    assert [(each.name, each.kind, each.bytes) for each in found.owners[0].pieces] == [
        ("handler", "code", Change(10, 30))
    ]


def test_text_of_a_larger_model(golden: Callable[[str, str], None]) -> None:
    golden(text(changed()) + "\n", "changes.txt")


def test_text_of_a_removed_model(golden: Callable[[str, str], None]) -> None:
    golden(text(BEFORE, changed()) + "\n", "changes.txt")


def networks(length: int, sha256: str, *, work: int = 0, counted: bool = True) -> Json:
    """Return a report of a model with a network; its second operator has ``work`` more MACs and instructions."""
    network = chain(length, counted=counted)
    second = network["operators"][1]
    second["macs"] += work
    second["instructions"] = second["instructions"] + 2 * work if counted else None
    if counted:
        network["profile"]["instructions"] += 2 * work
    return report(image("app for m4", [model("net", [network])], others(), sha256=sha256 * 64))


def test_operators_that_changed(golden: Callable[[str, str], None]) -> None:
    now, before = networks(4, "1", work=5_000), networks(6, "2")
    (found,) = compare_reports(now, before).images[0].owners[0].operators[:1]
    assert (found.module, found.name, found.operator, found.bytes) == ("net", "conv_4", "CONV_2D", Change(756, None))
    assert [each.name for each in compare_reports(now, before).images[0].owners[0].operators] == [
        "conv_4", "conv_3", "softmax_5", "softmax_3", "conv_1",
    ]  # fmt: skip
    golden(text(now, before) + "\n", "changes.txt")
    golden(text(before, now) + "\n", "back.txt")
    assert "operators that changed" not in text(now, report(image("app for m4", [kws()], others())))


def test_a_count_on_one_side_only_is_not_a_change() -> None:
    now, before = networks(4, "1"), networks(4, "2", counted=False)
    owner = compare_reports(now, before).images[0].owners[0]
    assert (owner.operators, owner.instructions, owner.changed) == ((), Change(None, None), False)
    (found,) = compare_reports(networks(4, "1", work=5_000), before).images[0].owners[0].operators
    assert (found.macs.more, found.instructions) == (5_000, Change(None, None))


def test_changes_of_instructions_in_text() -> None:
    lines = text(networks(4, "1", work=5_000), networks(4, "2")).splitlines()
    row = next(line for line in lines if line.startswith("model net, instructions "))
    assert row.split()[3:] == ["480,940", "490,940", "+10,000", "+2.1", "%"]
    assert lines[-1].endswith("  conv_1 (CONV_2D)"), "its size is the same"


def test_changes_of_modelled_cycles() -> None:
    before, now = (
        report(image("app for m4", [model("net", [modelled(chain(4), waiting=waiting)])], others(), sha256=sha * 64))
        for waiting, sha in ((10, "2"), (5, "1"))
    )
    owner = compare_reports(now, before).images[0].owners[0]
    assert owner.changed and owner.instructions.more == 0
    assert owner.cycles.more == sum(each.cycles.more for each in owner.operators) > 0
    assert owner.latency.more > 0
    lines = text(now, before).splitlines()
    rows = [line.partition(", ")[2] for line in lines if line.startswith("model net, ")]
    assert [row.partition("  ")[0] for row in rows] == ["modelled cycles", "modelled ns", "operators that changed"]
    assert "cycles" in next(line for line in lines if line.split()[:1] == ["bytes"])
    assert "cycles and ns: modelled, +-12 %" in lines
    faster = report(image("app for m4", [model("net", [modelled(chain(4), clock=10**8)])], others(), sha256="2" * 64))
    assert compare_reports(faster, before).images[0].same
    assert "model net, modelled ns" in text(faster, before), "the same image at another clock"
    without = report(image("app for m4", [model("net", [chain(4)])], others(), sha256="3" * 64))
    assert compare_reports(now, without).images[0].owners[0].cycles == Change(None, None)
    validator(report_schema()).validate({**now, "compared": comparison_json(compare_reports(now, before))})


def test_the_same_image() -> None:
    assert text(BEFORE) == "app for m4: the same image as in old.json"
    relinked = report(image("app for m4", [kws()], others(), sha256="f" * 64))
    assert text(relinked).splitlines() == [
        "app for m4, compared with old.json", "", "                  before    now  change",
        "the image, flash   9,196  9,196    same", "the image, RAM     3,040  3,040    same", "",
        "unchanged: kws, firmware, stack",
    ]  # fmt: skip


def test_images_of_only_one_report() -> None:
    now = report(image("app for m4", [kws()], others()), image("app for m7", [kws()], others()))
    before = report(image("app for m4", [kws()], others()), image("tool", [], others()))
    found = compare_reports(now, before)
    assert (found.only_now, found.only_before) == ((("app", "m7"),), (("tool", None),))
    assert text(now, before) == (
        "app for m4: the same image as in old.json\n\n"
        "app for m7: not in old.json, so it is not compared\n"
        "tool: only in old.json"
    )


def test_long_lists_are_cut_unless_verbose() -> None:
    def of(size: int) -> Json:
        pieces = [piece(f"function_{at:02}", "code", size * (at + 1)) for at in range(12)]
        return report(image("app", [], [owner("firmware", *pieces)], sha256=f"{size:064}"))

    lines = text(of(20), of(10)).splitlines()
    assert lines[-11:-8] == [
        "largest changes in flash", "change  before  now", "  +120     120  240  code  function_11",
    ]  # fmt: skip
    assert lines[-1] == "and 4 others (-v lists all)"
    verbose = text(of(20), of(10), verbose=True).splitlines()
    assert verbose[-14] == "all changes in flash" and verbose[-1].endswith("  code  function_00")


def test_untrusted_names_are_escaped() -> None:
    evil = owner("\x1b[2J", piece("a\nb", "code", 3))
    made = text(report(image("a\rb for m4", [], [evil], sha256="1" * 64)), report(image("a\rb for m4", [], others())))
    assert made.replace("\n", "").isprintable()
    assert "\\x1b[2J, flash" in made and "  a\\nb" in made


@pytest.mark.parametrize(("now", "before"), [(changed(), BEFORE), (BEFORE, changed()), (BEFORE, BEFORE)])
def test_json_fits_the_schema(now: Json, before: Json) -> None:
    facts = {**now, "compared": comparison_json(compare_reports(now, before))}
    validator(report_schema()).validate(facts)
    (found,) = facts["compared"]["images"]
    assert (found["firmware"], found["target"], found["same"]) == ("app", "m4", now is before)
    assert found["flash"] == {"before": before["images"][0]["flash"], "now": now["images"][0]["flash"]}
