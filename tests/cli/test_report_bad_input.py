"""Invalid inputs of a report: exit status 5, one line with the reason, and no numbers.

A project's image is built once; each test damages one file afterwards.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mlfbuild.cli.invocation import run
from support.command import Ended
from support.firmware_repo import tiny_network

PROJECT = """\
mlfbuild: 1
targets: {m4: {cpu: cortex-m4, board: mps2-an386}}
models:
  alpha: {source: alpha.tflite, budget: {flash: 16 KiB}}
firmware:
  app: {sources: [main.c]}
"""
MAIN = """\
#include "tvmgen_alpha.h"
int main(void)
{
    int8_t x[8] = {0}, y[4];
    struct tvmgen_alpha_inputs inputs = {x};
    struct tvmgen_alpha_outputs outputs = {y};
    return tvmgen_alpha_run(&inputs, &outputs);
}
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
def built(tmp_path_factory: pytest.TempPathFactory, tool: Callable[[str], str]) -> Path:
    """Return a project whose image is built, with its report in good.json."""
    for name in ("cmake", "ninja", "arm-none-eabi-gcc"):
        tool(name)
    root = tmp_path_factory.mktemp("built")
    for name, content in (("mlfbuild.yml", PROJECT), ("main.c", MAIN)):
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
def refused(repo: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Return a function that runs a verb, which must fail, and returns its one-line error."""

    def ended(*arguments: str) -> Ended:
        capsys.readouterr()
        status = run([*arguments, "-q", "-j", "1"] if "--elf" not in arguments else [*arguments, "-q"])
        return Ended(status, *capsys.readouterr())

    def check(*arguments: str) -> str:
        found = ended(*arguments)
        assert (found.status, found.out) == (5, ""), found
        assert re.fullmatch(r"mlfbuild: [^\n]+\n", found.err), found.err
        assert not (repo / "new.json").exists() and not (repo / "new.html").exists()
        return found.err.removeprefix("mlfbuild: ").removesuffix("\n")

    return check


OUTPUTS = ("-o", "new.json", "-o", "new.html")
Refused = Callable[..., str]


def everywhere(refused: Refused) -> str:
    """Return the error for a report, which must be the same for a budget check and for ``--elf``."""
    reason = refused("report", *OUTPUTS)
    assert refused("build") == reason, "a budget that nobody can check does not hold"
    assert refused("report", "--elf", ELF, *OUTPUTS) == reason
    return reason


def test_undamaged_project_is_reported(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", "-q", "-j", "1", "--compare", "good.json", *OUTPUTS]) == 0
    assert json.loads((repo / "new.json").read_text())["compared"]["images"][0]["same"]
    assert capsys.readouterr() == ("", "")


def test_a_stripped_image(repo: Path, refused: Refused) -> None:
    subprocess.run(["arm-none-eabi-strip", repo / ELF], check=True)
    assert (
        everywhere(refused)
        == f"{ELF}: the image has no symbol table (it is stripped); name the ELF file that the linker wrote"
    )


def test_an_image_of_other_firmware(repo: Path, linked: Path, refused: Refused) -> None:
    shutil.copyfile(linked / "app.elf", repo / ELF)
    assert re.fullmatch(
        rf"{MAP}: section \S+ has [\d,]+ bytes in the map, but [\d,]+ in the image; link the image again",
        everywhere(refused),
    )


def test_a_map_of_other_firmware(repo: Path, linked: Path, refused: Refused) -> None:
    shutil.copyfile(linked / "app.elf.map", repo / MAP)
    assert everywhere(refused).startswith(f"{MAP}: section ")


def test_truncated_map_is_refused(repo: Path, refused: Refused) -> None:
    text = (repo / MAP).read_text()
    (repo / MAP).write_text(text[: text.index("Linker script and memory map")])
    assert everywhere(refused).startswith(
        f"{MAP}: the file is not a map of GNU ld; link the image with GNU ld and -Wl,-Map=FILE"
    )
    begin = text.index("Linker script and memory map")
    (repo / MAP).write_text(text[: text.index("libmlf_alpha.a(", begin)])
    assert everywhere(refused).startswith(f"{MAP}: section ")


@pytest.mark.parametrize("linker", OTHER_MAPS)
def test_a_map_of_another_linker(linker: str, repo: Path, refused: Refused) -> None:
    (repo / MAP).write_text(OTHER_MAPS[linker])
    assert everywhere(refused) == (
        f"{MAP}: the file is a map of {linker}, not of GNU ld; link the image with GNU ld and -Wl,-Map=FILE"
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is not an ELF image"),
        (b"\x7fELF", "the ELF image is damaged ("),
        (b":020000040000FA\n:00000001FF\n", "the file is not an ELF image"),
    ],
)
def test_other_files_are_not_read_as_images(content: bytes, reason: str, repo: Path, refused: Refused) -> None:
    (repo / ELF).write_bytes(content)
    assert everywhere(refused).startswith(f"{ELF}: {reason}")


@pytest.mark.parametrize("version", [1, 3])
def test_a_report_of_another_version(version: int, repo: Path, refused: Refused) -> None:
    text = (repo / "good.json").read_text()
    (repo / "good.json").write_text(text.replace('"mlfbuild_report": 2', f'"mlfbuild_report": {version}'))
    reason = (
        f"good.json: the report has format {version}, and this version of mlfbuild reads format 2; create the report "
        "with this version of mlfbuild"
    )
    assert refused("report", "--compare", "good.json", *OUTPUTS) == reason
    assert refused("report", "--from", "good.json", *OUTPUTS) == reason


def test_a_report_with_edited_sizes(repo: Path, refused: Refused) -> None:
    facts = json.loads((repo / "good.json").read_text())
    facts["images"][0]["models"][0]["pieces"][0]["size"] -= 2
    (repo / "good.json").write_text(json.dumps(facts))
    assert re.fullmatch(
        r"good\.json: images\[0\]\.models\[0\]\.\w+: it is [\d,]+, but its pieces have [\d,]+; "
        r"create the report with `mlfbuild report -o FILE\.json`",
        refused("report", "--compare", "good.json", *OUTPUTS),
    )


def test_a_report_of_other_firmware(repo: Path, refused: Refused) -> None:
    text = (repo / "good.json").read_text()
    (repo / "good.json").write_text(text.replace('"target": "m4"', '"target": "m7"'))
    assert refused("report", "--compare", "good.json", *OUTPUTS) == (
        "good.json: the report is about app for m7, and this one about app for m4; name a report of the same firmware "
        "and target"
    )


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
    assert refused("report", *OUTPUTS) == (
        f"sizes.json: the project no longer has {gone}; run `mlfbuild report --update-baseline` to remove the entries"
    )
