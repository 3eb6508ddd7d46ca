"""Invalid inputs of a report: exit status 5, one line with the reason, and no numbers.

A project's image is built once; each test damages one file afterwards.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mlfbuild.cli.output.invocation import run
from support.command import CALLS_ALPHA, Ended
from support.firmware_repo import tiny_network

PROJECT = """\
mlfbuild: 1
targets: {m4: {cpu: cortex-m4, board: mps2-an386}}
models:
  alpha: {source: alpha.tflite, budget: {flash: 16 KiB}}
firmware:
  app: {sources: [main.c]}
"""
ELF, MAP = "build/m4/app/app.elf", "build/m4/app/app.elf.map"
RECORD = "build/m4/app/.mlfbuild-sizes.json"
"""The record of checked budgets; without it, a build checks them again."""
OTHER_MAPS = {
    "lld": """\
     VMA      LMA     Size Align Out     In      Symbol
   200d4    200d4       28     4 .text
   200d4    200d4       28     4         a.o:(.text)
   200d4    200d4        0     1                 $t
   200d5    200d5       28     1                 _start
""",
    "armlink": """\
Component: ARM Compiler 5.06 update 6 (build 750) Tool: armlink [4d35ed]

==============================================================================

Memory Map of the image

  Image Entry point : 0x08000131
""",
    "IAR's linker": """\
###############################################################################
#
# IAR ELF Linker V8.32.2.178/W32 for ARM
#
###############################################################################
*******************************************************************************
*** PLACEMENT SUMMARY
""",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]) -> Path:
    """Return a project whose image is built, with its report in good.json."""
    tool("cmake", "ninja", "arm-none-eabi-gcc")
    root = tmp_path_factory.mktemp("built")
    for name, content in (("mlfbuild.yml", PROJECT), ("main.c", CALLS_ALPHA)):
        (root / name).write_text(content)
    (root / "alpha.tflite").write_bytes(tiny_network(1))
    folder = Path.cwd()
    try:
        assert run(["report", "-q", "-j", "1", "-C", str(root), "-o", "good.json"]) == 0
    finally:
        os.chdir(folder)
    return root


@pytest.fixture
def repo(built: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield that project, and restore it afterwards."""
    before = {name: (built / name).read_bytes() for name in (ELF, MAP, "mlfbuild.yml", "good.json")}
    (built / RECORD).unlink(missing_ok=True)
    monkeypatch.chdir(built)
    yield built
    for name, content in before.items():
        (built / name).write_bytes(content)
    for name in ("sizes.json", "new.json", "new.html"):
        (built / name).unlink(missing_ok=True)


@pytest.fixture
def refused(repo: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Return a function that runs a verb, which must fail, and returns the event of its one-line error."""

    def ended(*arguments: str) -> Ended:
        capsys.readouterr()
        status = run([*arguments, "-q", "--format", "json", *(["-j", "1"] if "--elf" not in arguments else [])])
        return Ended(status, *capsys.readouterr())

    def check(*arguments: str) -> Any:
        found = ended(*arguments)
        assert (found.status, found.out) == (5, ""), found
        assert "\n" not in found.error["message"]
        assert not (repo / "new.json").exists() and not (repo / "new.html").exists()
        return found.error

    return check


OUTPUTS = ("-o", "new.json", "-o", "new.html")
Refused = Callable[..., Any]


def everywhere(refused: Refused) -> tuple[str, str]:
    """Return code and place of the error for a report, which is the same for a budget check and for ``--elf``."""
    error = refused("report", *OUTPUTS)
    assert refused("build") == error, "a budget that cannot be checked does not hold"
    assert refused("report", "--elf", ELF, *OUTPUTS) == error
    return error["code"], error["place"]


def test_undamaged_project_is_reported(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", "-q", "-j", "1", "--compare", "good.json", *OUTPUTS]) == 0
    assert json.loads((repo / "new.json").read_text())["compared"]["images"][0]["same"]
    assert capsys.readouterr() == ("", "")


def test_a_stripped_image(repo: Path, refused: Refused) -> None:
    subprocess.run(["arm-none-eabi-strip", repo / ELF], check=True)
    assert everywhere(refused) == ("image-stripped", ELF)


def test_an_image_of_other_firmware(repo: Path, linked: Path, refused: Refused) -> None:
    shutil.copyfile(linked / "app.elf", repo / ELF)
    assert everywhere(refused) == ("map-of-another-image", MAP)


def test_a_map_of_other_firmware(repo: Path, linked: Path, refused: Refused) -> None:
    shutil.copyfile(linked / "app.elf.map", repo / MAP)
    assert everywhere(refused) == ("map-of-another-image", MAP)


def test_truncated_map_is_refused(repo: Path, refused: Refused) -> None:
    text = (repo / MAP).read_text()
    (repo / MAP).write_text(text[: text.index("Linker script and memory map")])
    assert everywhere(refused) == ("not-a-gnu-ld-map", MAP)
    begin = text.index("Linker script and memory map")
    (repo / MAP).write_text(text[: text.index("libmlf_alpha.a(", begin)])
    assert everywhere(refused) == ("map-of-another-image", MAP)


@pytest.mark.parametrize("linker", OTHER_MAPS)
def test_a_map_of_another_linker(linker: str, repo: Path, refused: Refused) -> None:
    (repo / MAP).write_text(OTHER_MAPS[linker])
    assert everywhere(refused) == ("not-a-gnu-ld-map", MAP)
    assert linker in refused("report", *OUTPUTS)["reason"]


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"", "not-an-elf-image"), (b"\x7fELF", "image-damaged"), (b":020000040000FA\n:00000001FF\n", "not-an-elf-image")],
)
def test_other_files_are_not_read_as_images(content: bytes, code: str, repo: Path, refused: Refused) -> None:
    (repo / ELF).write_bytes(content)
    assert everywhere(refused) == (code, ELF)


@pytest.mark.parametrize("version", [1, 3])
def test_a_report_of_another_version(version: int, repo: Path, refused: Refused) -> None:
    text = (repo / "good.json").read_text()
    (repo / "good.json").write_text(text.replace('"mlfbuild_report": 2', f'"mlfbuild_report": {version}'))
    for option in ("--compare", "--from"):
        error = refused("report", option, "good.json", *OUTPUTS)
        assert (error["code"], error["place"]) == ("report-version", "good.json")


def test_a_report_with_edited_sizes(repo: Path, refused: Refused) -> None:
    facts = json.loads((repo / "good.json").read_text())
    facts["images"][0]["models"][0]["pieces"][0]["size"] -= 2
    (repo / "good.json").write_text(json.dumps(facts))
    error = refused("report", "--compare", "good.json", *OUTPUTS)
    assert error["code"] == "report-damaged"
    assert re.fullmatch(r"good\.json: images\[0\]\.models\[0\]\.\w+", error["place"])


def test_a_report_of_other_firmware(repo: Path, refused: Refused) -> None:
    text = (repo / "good.json").read_text()
    (repo / "good.json").write_text(text.replace('"target": "m4"', '"target": "m7"'))
    error = refused("report", "--compare", "good.json", *OUTPUTS)
    assert (error["code"], error["place"]) == ("report-of-other-firmware", "good.json")


@pytest.mark.parametrize(
    ("images", "gone"),
    [
        ({"app for m4": {"": {"flash": 1, "ram": 1}, "beta": {"flash": 1, "ram": 1}}}, "model beta of app for m4"),
        ({"boot for m4": {"": {"flash": 1, "ram": 1}}}, "image boot for m4"),
    ],
)
def test_obsolete_baseline_is_refused(images: object, gone: str, repo: Path, refused: Refused) -> None:
    (repo / "mlfbuild.yml").write_text(f"{PROJECT}budget-file: sizes.json\n")
    (repo / "sizes.json").write_text(json.dumps({"mlfbuild_sizes": 1, "images": images}))
    error = refused("report", *OUTPUTS)
    assert (error["code"], error["place"]) == ("baseline-outdated", "sizes.json") and gone in error["reason"]
