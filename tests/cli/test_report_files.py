"""Reports in files: `mlfbuild report -o`, `--from` and `--compare`, with a linked image."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.command import Folder
from support.schemas import validator

OF_IMAGE = ("report", "--elf", "app.elf")


@pytest.fixture(scope="module")
def grown(linked: Path, tmp_path_factory: pytest.TempPathFactory, tool: Callable[[str], str]) -> Path:
    """Return a folder with an image whose model has more weights and equal RAM."""
    folder = tmp_path_factory.mktemp("grown")
    for name in ("main.o", "libhelper.a", "alpha.c"):
        shutil.copy(linked / name, folder)
    source = (folder / "alpha.c").read_text()
    assert "tvmgen_alpha_filter[1000]" in source
    (folder / "alpha.c").write_text(source.replace("filter[1000]", "filter[1500]"))
    gcc = [tool("arm-none-eabi-gcc"), "-mcpu=cortex-m4", "-mthumb", "-Os"]
    subprocess.run([*gcc, "-c", "alpha.c"], cwd=folder, check=True)
    subprocess.run([tool("arm-none-eabi-ar"), "rcs", "libmlf_alpha.a", "alpha.o"], cwd=folder, check=True)
    libraries = ["main.o", "libmlf_alpha.a", "libhelper.a"]
    subprocess.run([*gcc, "-nostdlib", "-Wl,-Map=%.map", *libraries, "-o", "app.elf"], cwd=folder, check=True)
    return folder


@pytest.fixture
def reported(bare: Folder, grown: Path) -> Folder:
    """Return a folder with the report ``old.json``, and the image of a larger model."""
    assert bare.run(*OF_IMAGE, "-q", "-o", "old.json").status == 0
    for name in ("app.elf", "app.elf.map"):
        shutil.copy(grown / name, bare.root)
    return bare


def test_files_equal_the_printed_report(bare: Folder) -> None:
    ended = bare.run(*OF_IMAGE, "-o", "out/report.txt", "-o", "sizes.json")
    assert (ended.status, ended.err) == (0, "out/report.txt: written\nsizes.json: written\n")
    assert (bare.root / "out/report.txt").read_text() == ended.out
    assert (bare.root / "sizes.json").read_text() == bare.run(*OF_IMAGE, "--format", "json").out
    ended = bare.run(*OF_IMAGE, "-v", "-o", "out/report.txt")
    assert "model alpha, all in flash" in ended.out
    assert "model alpha, largest in flash" in (bare.root / "out/report.txt").read_text(), "files do not depend on -v"


def test_page_is_self_contained(reported: Folder) -> None:
    for arguments in ((), ("--compare", "old.json")):
        ended = reported.run(*OF_IMAGE, *arguments, "-o", "report.html", "-o", "new.json")
        assert (ended.status, ended.err) == (0, "report.html: written\nnew.json: written\n")
        html = (reported.root / "report.html").read_text()
        assert html.startswith("<!DOCTYPE html>") and " mlfbuild report</title>" in html
        assert "tvmgen_alpha_filter" in html
        assert reported.run("report", "--from", "new.json", *arguments, "-q", "-o", "again.html").status == 0
        assert (reported.root / "again.html").read_text() == html


def test_quiet_report_prints_nothing(bare: Folder) -> None:
    ended = bare.run(*OF_IMAGE, "-q", "-o", "report.txt")
    assert (ended.status, ended.out, ended.err) == (0, "", "")
    assert (bare.root / "report.txt").is_file()


def test_a_report_is_written_over_one_of_its_form(reported: Folder) -> None:
    for _ in range(2):
        assert reported.run(*OF_IMAGE, "-q", "-o", "old.json", "-o", "new.txt").status == 0
        assert reported.run(*OF_IMAGE, "-q", "--compare", "old.json", "-o", "new.txt", "-o", "both.json").status == 0
        assert reported.run(*OF_IMAGE, "-q", "--compare", "both.json", "-o", "new.txt").status == 0
        (reported.root / "both.json").write_bytes(b"")


@pytest.mark.parametrize(
    ("name", "status", "code"),
    [
        ("notes.txt", 6, "output-of-another-kind"), ("data.json", 6, "output-of-another-kind"),
        ("page.html", 6, "output-of-another-kind"), ("app.elf", 2, "unknown-report-form"),
        ("old.json", 6, "output-is-input"), ("link.json", 6, "output-is-input"),
        ("folder.txt", 2, "output-is-folder"), ("notes.txt/report.txt", 8, "file-in-the-way"),
    ],
)  # fmt: skip
def test_other_files_are_not_overwritten(name: str, status: int, code: str, reported: Folder) -> None:
    reported.write("notes.txt", "app for m4: remember the milk\n")
    reported.write("page.html", "<!DOCTYPE html><title>A page</title>")
    reported.write("data.json", '{"answer": {"mlfbuild_report": 1}}')
    (reported.root / "link.json").symlink_to("old.json")
    (reported.root / "folder.txt").mkdir()
    before = {path: (reported.root / path).read_bytes() for path in reported.files()}
    refused = reported.refused(*OF_IMAGE, "--compare", "old.json", "-q", "-o", name)
    assert refused == (status, code, name.removesuffix("/report.txt"))
    assert {path: (reported.root / path).read_bytes() for path in reported.files()} == before


def test_report_from_a_file_equals_that_of_its_image(reported: Folder) -> None:
    assert reported.run(*OF_IMAGE, "-q", "-o", "new.json").status == 0
    (reported.root / "app.elf").rename(reported.root / "image")
    ended = reported.run("report", "--from", "new.json")
    (reported.root / "image").rename(reported.root / "app.elf")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out == reported.run(*OF_IMAGE).out.replace("(app.elf)", "(new.json)")
    facts = reported.run("report", "--from", "new.json", "--format", "json").json
    assert facts == json.loads((reported.root / "new.json").read_text())


def test_comparison_with_an_old_report(reported: Folder) -> None:
    ended = reported.run(*OF_IMAGE, "--compare", "old.json", "-o", "changes.txt", "-o", "new.json")
    assert ended.status == 0
    assert (reported.root / "changes.txt").read_text() == ended.out
    assert ended.out.startswith("app.elf, compared with old.json\n\n")
    assert re.search(r"^  weights +1,000 +1,500 +\+500 +\+50\.0 %$", ended.out, re.MULTILINE), ended.out
    assert "\nunchanged: firmware, helper, alignment\n" in ended.out
    assert ended.out.endswith(
        "\nlargest changes in flash\nchange  before    now\n  +500   1,000  1,500  weights  tvmgen_alpha_filter\n"
    )
    assert reported.run("report", "--from", "new.json", "--compare", "old.json").out == ended.out
    facts = json.loads((reported.root / "new.json").read_text())
    validator(reported.run("schema", "--report").json).validate(facts)
    (changed,) = facts["compared"]["images"]
    assert changed["flash"]["now"] - changed["flash"]["before"] == 500
    assert changed["ram"]["now"] == changed["ram"]["before"] >= 2048
    (model,) = (owner for owner in changed["owners"] if owner["model"])
    assert [(piece["name"], piece["bytes"]) for piece in model["pieces"]] == [
        ("tvmgen_alpha_filter", {"before": 1000, "now": 1500})
    ]
    backwards = reported.run("report", "--from", "old.json", "--compare", "new.json").out
    assert "  -500   1,500  1,000  weights  tvmgen_alpha_filter\n" in backwards


def test_a_report_of_other_firmware(reported: Folder) -> None:
    text = (reported.root / "old.json").read_text()
    reported.write("other.json", text.replace('"app.elf"', '"bootloader.elf"'))
    arguments = (*OF_IMAGE, "--compare", "other.json", "-o", "new.json")
    assert reported.refused(*arguments) == (5, "report-of-other-firmware", "other.json")
    assert not (reported.root / "new.json").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "place"),
    [
        ("--from old.json --elf app.elf", "options-exclude-each-other", "--from and --elf"),
        ("--from old.json --map app.elf.map", "option-needs-another", "--map"),
        ("--from old.json --update-baseline", "option-not-applicable", "--update-baseline"),
        ("--from old.json --target m4", "option-not-applicable", "--target"),
        ("--from old.json -f other.yml", "option-not-applicable", "--file"),
        ("--from old.json --compare old.json --operators", "option-not-applicable", "--operators"),
        ("--from old.json -o report.md", "unknown-report-form", "report.md"),
        ("--from old.json -o report", "unknown-report-form", "report"),
    ],
)
def test_usage_mistakes(arguments: str, code: str, place: str, reported: Folder) -> None:
    assert reported.refused("report", *arguments.split()) == (2, code, place)
