"""The baseline file, and growth of images."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from mlfbuild.core import Diagnostic, InputFileError
from mlfbuild.report.budgets.growth import baseline_text, check_known, differences, growths, read_baseline
from mlfbuild.report.sizes.owners import ARENA, CODE, WEIGHTS, Owner, SizedSymbol, Sizes
from support.errors import raises

WHERE = Path("ci/sizes.json")
IMAGES = {
    "app for m7": {"": {"ram": 9, "flash": 8}},
    "app for m4": {"": {"flash": 3000, "ram": 200}, "kws": {"flash": 1000, "ram": 100}},
}
LINES = """\
{
  "mlfbuild_sizes": 1,
  "images": {
    "app for m4": {"": {"flash": 3000, "ram": 200}, "kws": {"flash": 1000, "ram": 100}},
    "app for m7": {"": {"flash": 8, "ram": 9}}
  }
}
"""


def sizes(kws: int, ram: int = 100, vww: int = 0, firmware: int = 2000) -> Sizes:
    def pieces(name: str, code: int, weights: int, arena: int) -> tuple[SizedSymbol, ...]:
        return (
            SizedSymbol(f"{name}_run", CODE, code, flash=True, ram=False),
            SizedSymbol(f"{name}_filter", WEIGHTS, weights, flash=True, ram=False),
            SizedSymbol(f"{name}_workspace", ARENA, arena, flash=False, ram=True),
        )

    models = (Owner("kws", pieces("kws", 100, kws - 100, ram)), Owner("vww", pieces("vww", 0, vww, 0)))
    return Sizes(models, (Owner("firmware", pieces("main", firmware, 0, 100)),))


def grown(now: Sizes, per_cent: str = "2", title: str = "app for m4") -> list[Diagnostic]:
    return list(growths(now, IMAGES[title], Decimal(per_cent), WHERE))


def test_the_file_has_one_line_for_each_image_and_is_read_back(tmp_path: Path) -> None:
    assert baseline_text(IMAGES) == LINES
    path = tmp_path / "sizes.json"
    path.write_text(LINES)
    assert read_baseline(path) == IMAGES
    assert baseline_text(read_baseline(path)) == LINES


@pytest.mark.parametrize(
    ("content", "code", "place"),
    [
        (LINES.replace('sizes": 1', 'sizes": 2'), "baseline-version", ""),
        ("{}", "not-a-baseline", ""),
        (LINES.replace('"": {"flash": 8, "ram": 9}', ""), "baseline-incomplete", ": app for m7"),
    ],
)
def test_wrong_files_are_refused(content: str, code: str, place: str, tmp_path: Path) -> None:
    path = tmp_path / "sizes.json"
    path.write_text(content)
    with raises(InputFileError, code, at=f"{path}{place}") as caught:
        read_baseline(path)
    assert "--update-baseline" in caught.value.hint


@pytest.mark.parametrize(
    "content",
    [
        "[]", LINES.replace("100}", "-1}"), LINES.replace("100}", "1.5}"), LINES.replace("100}", "true}"),
        LINES.replace('"ram": 9', '"rom": 9'), LINES.replace("m7", "m4"), "<<<<<<< HEAD\n" + LINES, LINES[:60],
        '{"mlfbuild_sizes": 1, "images": ' + "[" * 100_000, '{"mlfbuild_sizes": 1, "images": {"\\u001b[2J": 4}}', "",
    ],
)  # fmt: skip
def test_damaged_files_are_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "sizes.json"
    path.write_text(content)
    with pytest.raises(InputFileError) as caught:
        read_baseline(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert str(caught.value).isprintable()


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(InputFileError) as caught:
            read_baseline(path)
        assert str(caught.value).startswith(f"{path}: ")


def test_obsolete_entries_are_refused() -> None:
    check_known(WHERE, IMAGES, {"app for m4": ["vww", "kws"], "app for m7": [], "other for m4": []})
    for known, names in (
        ({"app for m4": ["kws"]}, "image app for m7"),
        ({"app for m4": ["vww"], "app for m7": []}, "model kws of app for m4"),
        ({"app for m4": []}, "image app for m7, model kws of app for m4"),
    ):
        with raises(InputFileError, "baseline-outdated", at="ci/sizes.json") as caught:
            check_known(WHERE, IMAGES, known)
        assert caught.value.reason.endswith(names)


def test_growth_up_to_the_limit_is_accepted() -> None:
    assert grown(sizes(1000)) == []
    assert grown(sizes(1020)) == []
    assert grown(sizes(900, ram=1)) == []
    assert grown(sizes(1000), "0") == []


def test_a_model_that_grew() -> None:
    (found,) = grown(sizes(1021))
    assert (found.code, found.place) == ("size-grew", "model kws")
    for fact in ("1,021 bytes of flash", "21 bytes more", "1,000 in sizes.json (+2.1 %)", "allows 2 %"):
        assert fact in found.reason
    assert "kws_filter 921 (weights), kws_run 100 (code)" in found.hint
    model, image = grown(sizes(1000, ram=105))
    assert all(fact in model.reason for fact in ("105 bytes of RAM", "5 bytes more", "100 in sizes.json (+5.0 %)"))
    assert (image.code, image.place) == ("size-grew", "the image")
    assert all(fact in image.reason for fact in ("205 bytes of RAM", "5 bytes more", "200 in sizes.json (+2.5 %)"))
    assert image.reason.endswith("2 %: kws +5")


def test_an_image_that_grew_lists_the_changes_of_models() -> None:
    (found,) = grown(sizes(990, vww=300, firmware=1960))
    assert (found.code, found.place) == ("size-grew", "the image")
    facts = ("3,250 bytes (3.2 KiB) of flash", "250 bytes more", "3,000 in sizes.json (+8.3 %)")
    assert all(fact in found.reason for fact in facts)
    assert found.reason.endswith(": vww +300, all else -40, kws -10")
    assert "firmware 1,960, kws 990, vww 300" in found.hint


def test_a_percentage_is_never_rounded_to_the_allowed_one() -> None:
    before = {"": {"flash": 100_000_000, "ram": 0}}
    (flash, ram) = growths(sizes(1000, firmware=101_000_001 - 1000), before, Decimal(1), WHERE)
    assert "(+1.000001 %)" in flash.reason
    assert "200 bytes of RAM" in ram.reason and "0 in sizes.json, " in ram.reason
    assert ram.reason.endswith(": kws +100, all else +100")


def test_differences_for_a_report() -> None:
    assert list(differences(sizes(1000), None, ["kws"], WHERE)) == ["not in sizes.json yet"]
    assert list(differences(sizes(900, vww=300), IMAGES["app for m4"], ["kws", "vww"], WHERE)) == [
        "since sizes.json",
        "  model kws: -100 bytes of flash (-10.0 %)",
        "  model vww: not in it yet",
        "  the image: +200 bytes of flash (+6.7 %)",
    ]
    lines = list(differences(sizes(1000, ram=110), IMAGES["app for m4"], ["kws"], WHERE))
    assert lines[1:] == ["  model kws: +10 bytes of RAM (+10.0 %)", "  the image: +10 bytes of RAM (+5.0 %)"]
    assert list(differences(sizes(1000), IMAGES["app for m4"], ["kws"], WHERE))[1:] == [
        "  model kws: the same",
        "  the image: the same",
    ]
    assert json.loads(baseline_text({}))["images"] == {}
