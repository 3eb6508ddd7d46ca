"""`mlfbuild report --elf`: sizes of an image from another build."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from support.command import Folder
from support.schemas import validator


def test_text_for_people(bare: Folder) -> None:
    ended = bare.run("report", "--elf", "app.elf")
    assert (ended.status, ended.err) == (0, "")
    printed = subprocess.run(["arm-none-eabi-size", "app.elf"], capture_output=True, text=True, check=True).stdout
    text, data, bss = map(int, printed.splitlines()[1].split()[:3])
    assert ended.out.startswith(f"app.elf: {text + data:,} bytes of flash, {data + bss:,} of RAM (app.elf)\n")
    assert re.search(r"^alpha +1,0\d\d +\d\d +1,000 +0 +2,048$", ended.out, re.MULTILINE), ended.out
    assert re.search(r"^ +1,000  weights  tvmgen_alpha_filter$", ended.out, re.MULTILINE)
    assert re.search(r"^helper +\d+ ", ended.out, re.MULTILINE)
    assert "budget" not in ended.out


def test_json_for_programs_fits_the_schema(bare: Folder) -> None:
    (bare.root / "app.elf.map").rename(bare.root / "other.map")
    facts = bare.run("report", "--elf", "app.elf", "--map", "other.map", "--format", "json").json
    (image,) = facts["images"]
    assert image["firmware"] == "app.elf"
    assert not image.keys() & {"target", "cpu"}
    assert "networks" not in image["models"][0], "its archive is unknown"
    assert [owner["name"] for owner in image["models"]] == ["alpha"]
    owners = [*image["models"], *image["others"]]
    assert sum(owner["flash"] for owner in owners) == image["flash"] == image["size"]["text"] + image["size"]["data"]
    schema = bare.run("schema", "--report").json
    fits = validator(schema)
    fits.validate(facts)
    for mistake in ({"mlfbuild_report": 1}, {"images": []}, {"images": [{**image, "flash": -1}]}, {"more": 1}):
        assert not fits.is_valid({**facts, **mistake}), mistake
    piece = {**image["models"][0]["pieces"][0], "kind": "magic"}
    model = {**image["models"][0], "pieces": [piece]}
    assert not fits.is_valid({**facts, "images": [{**image, "models": [model]}]})


def test_an_image_without_libraries_of_models(bare: Folder) -> None:
    bare.write("app.elf.map", (bare.root / "app.elf.map").read_text().replace("libmlf_alpha.a", "libnetwork.a"))
    ended = bare.run("report", "--elf", "app.elf")
    assert (ended.status, ended.err) == (0, "")
    assert (
        ended.out.splitlines()[1] == "no models: the map lists no library libmlf_<model>.a and no object <model>_lib0.o"
    )
    assert re.search(r"^network +1,0\d\d ", ended.out, re.MULTILINE), ended.out
    assert bare.run("report", "--elf", "app.elf", "--format", "json").json["images"][0]["models"] == []


@pytest.fixture
def faulty(bare: Folder, linked: Path) -> Folder:
    """Return a folder with an image whose heap contains the model."""
    heap = ["-Wl,--defsym=__heap_start__=0x100", "-Wl,--defsym=__heap_end__=0x100000"]
    gcc = ["arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "-nostdlib", "-Wl,-Map=%.map", *heap]
    objects = ["main.o", "libmlf_alpha.a", "libhelper.a"]
    subprocess.run([*gcc, *objects, "-o", bare.root / "app.elf"], cwd=linked, check=True)
    return bare


def test_faults_of_the_link_end_with_status_1(faulty: Folder) -> None:
    ended = faulty.run("report", "--elf", "app.elf", "-o", "app.txt", "-o", "app.html", "-o", "app.json")
    assert ended.status == 1
    lines = [
        line for line in ended.out.splitlines() if line.startswith("  section-overlaps-heap: app.elf: model alpha: ")
    ]
    assert len(lines) == 3, "code, constants and workspace"
    for line in lines:
        assert line.removeprefix("  section-overlaps-heap: ") in ended.err
    (image,) = json.loads((faulty.root / "app.json").read_text())["images"]
    assert [(fault["code"], fault["place"]) for fault in image["faults"]] == [
        ("section-overlaps-heap", "app.elf: model alpha")
    ] * 3
    jsonschema.validate({"mlfbuild_report": 2, "images": [image]}, faulty.run("schema", "--report").json)
    assert (faulty.root / "app.html").read_text().count("<code>section-overlaps-heap</code>") == 3
    saved = faulty.run("report", "--from", "app.json")
    assert saved.status == 0, "nothing is checked"
    assert all(line in saved.out for line in lines) and lines[0] in (faulty.root / "app.txt").read_text()


def test_faults_as_events(faulty: Folder) -> None:
    ended = faulty.run("report", "-q", "--elf", "app.elf", "--format", "json")
    event = json.loads(ended.err.splitlines()[-1])
    assert (ended.status, event["exit_code"], event["kind"]) == (1, 1, "link-faults")
    assert [problem["code"] for problem in event["problems"]] == ["section-overlaps-heap"] * 3


def test_images_have_no_operators(bare: Folder) -> None:
    arguments = ("report", "--elf", "app.elf", "--operators")
    assert bare.refused(*arguments) == (2, "option-not-applicable", "--operators")


def test_quiet_report_prints_nothing(bare: Folder) -> None:
    ended = bare.run("report", "-q", "--elf", "app.elf")
    assert (ended.status, ended.out, ended.err) == (0, "", "")


def test_an_image_without_map(bare: Folder) -> None:
    (bare.root / "app.elf.map").unlink()
    assert bare.refused("report", "--elf", "app.elf") == (5, "linker-map-missing", "app.elf.map")
    assert bare.refused("report", "--elf", "app.elf", "--map", "none.map") == (5, "no-such-input", "none.map")


def test_an_image_without_symbols(bare: Folder) -> None:
    subprocess.run(["arm-none-eabi-strip", "app.elf"], check=True)
    assert bare.refused("report", "--elf", "app.elf") == (5, "image-stripped", "app.elf")


def test_other_files_are_refused(bare: Folder) -> None:
    assert bare.refused("report", "--elf", "none.elf") == (5, "no-such-input", "none.elf")
    assert bare.refused("report", "--elf", "app.elf.map") == (5, "not-an-elf-image", "app.elf.map")
    assert bare.refused("report", "--elf", "app.elf", "--map", "main.c") == (5, "not-a-gnu-ld-map", "main.c")


def test_a_map_of_another_image(bare: Folder, linked: Path) -> None:
    text = (linked / "app.elf.map").read_text()
    assert text.count("0x800 libmlf_alpha.a(alpha.o)") == 1
    bare.write("app.elf.map", text.replace("0x800 libmlf_alpha.a(alpha.o)", "0x400 libmlf_alpha.a(alpha.o)"))
    assert bare.refused("report", "--elf", "app.elf") == (5, "map-of-another-image", "app.elf.map")


@pytest.mark.parametrize(
    ("arguments", "code", "place"),
    [
        ("--elf app.elf --target m4", "option-not-applicable", "--target"),
        ("--elf app.elf -f mlfbuild.yml", "option-not-applicable", "--file"),
        ("--map app.elf.map", "option-needs-another", "--map"),
    ],
)
def test_usage_mistakes(bare: Folder, arguments: str, code: str, place: str) -> None:
    assert bare.refused("report", *arguments.split()) == (2, code, place)
