"""The file of a baseline, and what it says of images that have grown."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from mlfbuild.core.errors import InputFileError
from mlfbuild.report.budgets.baseline import baseline_text, check_known, differences, growths, read_baseline
from mlfbuild.report.sizes import ARENA, CODE, WEIGHTS, Owner, Piece, Sizes

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
NOT_JSON = "the text is not valid JSON: "
AGAIN = "restore it from git and run `mlfbuild report --update-baseline`, or let budget-file name another file"


def sizes(kws: int, ram: int = 100, vww: int = 0, firmware: int = 2000) -> Sizes:
    def pieces(name: str, code: int, weights: int, arena: int) -> tuple[Piece, ...]:
        return (
            Piece(f"{name}_run", CODE, code, flash=True, ram=False),
            Piece(f"{name}_filter", WEIGHTS, weights, flash=True, ram=False),
            Piece(f"{name}_workspace", ARENA, arena, flash=False, ram=True),
        )

    models = (Owner("kws", pieces("kws", 100, kws - 100, ram)), Owner("vww", pieces("vww", 0, vww, 0)))
    return Sizes(models, (Owner("firmware", pieces("main", firmware, 0, 100)),))


def grown(now: Sizes, per_cent: str = "2", title: str = "app for m4") -> list[str]:
    return list(growths(now, IMAGES[title], Decimal(per_cent), WHERE))


def test_the_file_has_a_line_an_image_and_reads_back(tmp_path: Path) -> None:
    assert baseline_text(IMAGES) == LINES
    path = tmp_path / "sizes.json"
    path.write_text(LINES)
    assert read_baseline(path) == IMAGES
    assert baseline_text(read_baseline(path)) == LINES


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (LINES.replace('sizes": 1', 'sizes": 2'), "is a baseline of format 2, this mlfbuild reads format 1; use the"),
        ("[]", f"must be an object; {AGAIN}"),
        ("{}", f"is no baseline of sizes, which `mlfbuild report --update-baseline` writes; {AGAIN}"),
        (LINES.replace("100}", "-1}"), f"images.app for m4.kws.ram: must be a whole number of at least 0; {AGAIN}"),
        (LINES.replace("100}", "1.5}"), f"images.app for m4.kws.ram: must be a whole number of at least 0; {AGAIN}"),
        (LINES.replace("100}", "true}"), f"images.app for m4.kws.ram: must be a whole number of at least 0; {AGAIN}"),
        (LINES.replace('"ram": 9', '"rom": 9'), f"images.app for m7..ram: is missing; {AGAIN}"),
        (LINES.replace('"": {"flash": 8, "ram": 9}', ""), "app for m7: the sizes of the whole image are missing; "),
        (LINES.replace("m7", "m4"), f"{NOT_JSON}an object has the same key twice; {AGAIN}"),
        ("<<<<<<< HEAD\n" + LINES, f"{NOT_JSON}Expecting value: line 1 column 1 (char 0); {AGAIN}"),
        (LINES[:60], NOT_JSON),
        ('{"mlfbuild_sizes": 1, "images": ' + "[" * 100_000, f"{NOT_JSON}it is nested too deeply; {AGAIN}"),
        ('{"mlfbuild_sizes": 1, "images": {"\\u001b[2J": 4}}', f"images.'\\x1b[2J': must be an object; {AGAIN}"),
        ("", f"{NOT_JSON}Expecting value: line 1 column 1 (char 0); {AGAIN}"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_baseline(content: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "sizes.json"
    path.write_text(content)
    with pytest.raises(InputFileError) as caught:
        read_baseline(path)
    assert str(caught.value).startswith(f"{path}: {reason}")
    assert str(caught.value).isprintable()
    assert caught.value.exit_code == 5


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    for path, reason in (
        (tmp_path / "none", "no such baseline; check the path$"),
        (tmp_path, "is a folder, not a baseline; name the file itself$"),
    ):
        with pytest.raises(InputFileError, match=reason):
            read_baseline(path)


def test_what_the_project_no_longer_has() -> None:
    check_known(WHERE, IMAGES, {"app for m4": ["vww", "kws"], "app for m7": [], "other for m4": []})
    for known, words in (
        ({"app for m4": ["kws"]}, "image app for m7"),
        ({"app for m4": ["vww"], "app for m7": []}, "model kws of app for m4"),
        ({"app for m4": []}, "image app for m7, model kws of app for m4"),
    ):
        with pytest.raises(InputFileError) as caught:
            check_known(WHERE, IMAGES, known)
        assert str(caught.value) == (
            f"ci/sizes.json: has {words}, which the project no longer has; `mlfbuild report --update-baseline` "
            "leaves that out"
        )


def test_growth_up_to_the_limit_is_silent() -> None:
    assert grown(sizes(1000)) == []
    assert grown(sizes(1020)) == []
    assert grown(sizes(900, ram=1)) == []
    assert grown(sizes(1000), "0") == []


def test_a_model_that_grew() -> None:
    (line,) = grown(sizes(1021))
    assert line == (
        "model kws takes 1,021 bytes of flash, 21 bytes more than the 1,000 in sizes.json (+2.1 %); 2 % more is "
        "allowed; most of it: kws_filter 921 (weights), kws_run 100 (code); accept it with `mlfbuild report "
        "--update-baseline`"
    )
    model, image = grown(sizes(1000, ram=105))
    assert "model kws takes 105 bytes of RAM, 5 bytes more than the 100 in sizes.json (+5.0 %); 2 % more" in model
    assert "the image takes 205 bytes of RAM, 5 bytes more than the 200 in sizes.json (+2.5 %): kws +5; 2 %" in image


def test_an_image_that_grew_tells_of_whom() -> None:
    (line,) = grown(sizes(990, vww=300, firmware=1960))
    assert line == (
        "the image takes 3,250 bytes (3.2 KiB) of flash, 250 bytes more than the 3,000 in sizes.json (+8.3 %): vww "
        "+300, all else -40, kws -10; 2 % more is allowed; most of it: firmware 1,960, kws 990, vww 300; accept it "
        "with `mlfbuild report --update-baseline`"
    )


def test_a_percentage_is_never_rounded_to_what_is_allowed() -> None:
    before = {"": {"flash": 100_000_000, "ram": 0}}
    (line, ram) = growths(sizes(1000, firmware=101_000_001 - 1000), before, Decimal(1), WHERE)
    assert "(+1.000001 %)" in line
    assert (
        "the image takes 200 bytes of RAM, 200 bytes more than the 0 in sizes.json: kws +100, all else +100; 1 %" in ram
    )


def test_differences_for_a_report() -> None:
    assert list(differences(sizes(1000), None, ["kws"], WHERE)) == ["not in sizes.json yet"]
    assert list(differences(sizes(900, vww=300), IMAGES["app for m4"], ["kws", "vww"], WHERE)) == [
        "since sizes.json",
        "  model kws: -100 bytes of flash (-10.0 %)",
        "  model vww: not there yet",
        "  the image: +200 bytes of flash (+6.7 %)",
    ]
    lines = list(differences(sizes(1000, ram=110), IMAGES["app for m4"], ["kws"], WHERE))
    assert lines[1:] == ["  model kws: +10 bytes of RAM (+10.0 %)", "  the image: +10 bytes of RAM (+5.0 %)"]
    assert list(differences(sizes(1000), IMAGES["app for m4"], ["kws"], WHERE))[1:] == [
        "  model kws: the same",
        "  the image: the same",
    ]
    assert json.loads(baseline_text({}))["images"] == {}
