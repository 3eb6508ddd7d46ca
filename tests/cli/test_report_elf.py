"""`mlfbuild report --elf`: sizes of an image from another build."""

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
    ended = faulty.run("report", "--elf", "app.elf", "-o", "app.txt", "-o", "app.html", "-o", "app.json", status=1)
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
    validator(faulty.run("schema", "--report").json).validate({"mlfbuild_report": 2, "images": [image]})
    assert (faulty.root / "app.html").read_text().count("<code>section-overlaps-heap</code>") == 3
    saved = faulty.run("report", "--from", "app.json")
    assert saved.status == 0, "nothing is checked"
    assert all(line in saved.out for line in lines) and lines[0] in (faulty.root / "app.txt").read_text()


def test_faults_and_budgets_are_both_reported(faulty: Folder) -> None:
    project = "mlfbuild: 1\ntargets: {m4: {cpu: cortex-m4}}\nmodels: {alpha: {source: models/alpha.tflite, budget: "
    faulty.write("mlfbuild.yml", project + "{flash: 1}}}\n")
    ended = faulty.run("report", "-q", "--elf", "app.elf", "--fail-over-budget", "--format", "json", status=1)
    first, last = (json.loads(line) for line in ended.err.splitlines()[-2:])
    assert (first["code"], last["code"]) == ("section-overlaps-heap", "size-over-budget")


def test_faults_as_events(faulty: Folder) -> None:
    ended = faulty.run("report", "-q", "--elf", "app.elf", "--format", "json")
    event = json.loads(ended.err.splitlines()[-1])
    assert (ended.status, event["exit_code"], event["kind"]) == (1, 1, "link-faults")
    assert [problem["code"] for problem in event["problems"]] == ["section-overlaps-heap"] * 3


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


def test_a_map_of_another_image(bare: Folder, linked: Path) -> None:
    text = (linked / "app.elf.map").read_text()
    assert text.count("0x800 libmlf_alpha.a(alpha.o)") == 1
    bare.write("app.elf.map", text.replace("0x800 libmlf_alpha.a(alpha.o)", "0x400 libmlf_alpha.a(alpha.o)"))
    assert bare.refused("report", "--elf", "app.elf") == (5, "map-of-another-image", "app.elf.map")


@pytest.mark.parametrize(
    ("arguments", "status", "code", "place"),
    [
        ("--elf app.elf --target m4", 2, "option-not-applicable", "--target"),
        ("--elf app.elf -f mlfbuild.yml", 2, "option-not-applicable", "--file"),
        ("--elf app.elf --operators", 2, "option-not-applicable", "--operators"),
        ("--map app.elf.map", 2, "option-needs-another", "--map"),
        ("--elf none.elf", 5, "no-such-input", "none.elf"),
        ("--elf app.elf.map", 5, "not-an-elf-image", "app.elf.map"),
        ("--elf app.elf --map main.c", 5, "not-a-gnu-ld-map", "main.c"),
    ],
)
def test_mistakes_without_budgets(bare: Folder, arguments: str, status: int, code: str, place: str) -> None:
    assert bare.refused("report", *arguments.split()) == (status, code, place)


BUDGETED = """\
mlfbuild: 1
targets:
  m4: {cpu: cortex-m4, board: mps2-an386}
  m7: {cpu: cortex-m7}
  pc: {cpu: host}
models:
  alpha: {source: models/alpha.tflite, budget: {flash: 1100, stack: 1k, instructions: 1 M}}
  beta: {source: models/beta.tflite, budget: {ram: 64}}
firmware:
  app: {sources: [main.c], models: [alpha], budget: {ram: 4k, instructions: 2 M}}
  boot: {sources: [main.c], models: [beta]}
budget-file: sizes.json
"""
CHECK = ("report", "-q", "--elf", "app.elf", "--fail-over-budget", "--target", "m4")


def test_an_image_within_its_budgets(bare: Folder) -> None:
    bare.write("mlfbuild.yml", BUDGETED)
    ended = bare.run(*CHECK)
    assert (ended.status, ended.out) == (0, "")
    assert ended.err.splitlines() == [
        f"mlfbuild: app.elf: not checked: {line}"
        for line in (
            "instructions of model alpha: run `mlfbuild profile --target m4 --model alpha`",
            "instructions of all models: run `mlfbuild profile --target m4`",
            "model beta: the image has no code of it (the map lists none of its files)",
            "growth since sizes.json: run `mlfbuild build --target m4`",
        )
    ]
    ended = bare.run(*CHECK[:1], *CHECK[2:], "--model", "alpha")
    assert re.search(r"^  model alpha: 1,\d\d\d of 1,100 bytes of flash \(9\d %\)$", ended.out, re.MULTILINE), ended.out
    assert re.search(r"^  the image: [\d,]+ of 4,096 bytes of RAM", ended.out, re.MULTILINE)
    assert "model beta" not in ended.err
    ended = bare.run("report", "--elf", "app.elf")
    note = "app.elf: not compared with the budgets in mlfbuild.yml; add --fail-over-budget\n"
    assert (ended.status, ended.err) == (0, note)


def test_an_image_over_its_budgets(bare: Folder) -> None:
    bare.write("mlfbuild.yml", BUDGETED.replace("flash: 1100", "flash: 1000").replace("ram: 4k", "ram: 2k"))
    ended = bare.run(*CHECK, "--model", "alpha", status=1)
    first, second = ended.err.splitlines()[-2:]
    assert re.match(
        r"mlfbuild: app.elf for m4: model alpha: takes 1,0\d\d bytes .* over its budget of 1,000 bytes", first
    )
    assert second.startswith("app.elf for m4: the image: takes ")
    (bare.root / "app.elf").rename(bare.root / "product.elf")
    ended = bare.run("report", "--elf", "product.elf", "--map", "app.elf.map", "--fail-over-budget", "--target", "m4")
    assert ended.status == 1
    assert "the image: takes" not in ended.err
    assert "not checked: budget of firmware app: the image has another name; add --firmware" in ended.err
    arguments = ("--elf", "product.elf", "--map", "app.elf.map", "--fail-over-budget", "--target", "m4")
    ended = bare.run("report", *arguments, "--firmware", "app", "--model", "beta", "--format", "json")
    assert (ended.status, ended.error["code"], ended.json["images"][0]["budget"]["ram"]) == (
        1, "size-over-budget", 2048,
    )  # fmt: skip


def test_an_image_whose_stack_is_not_known(bare: Folder) -> None:
    bare.write("mlfbuild.yml", BUDGETED.replace("ram: 4k", "stack: 4"))
    ended = bare.run(*CHECK, "--format", "json")
    assert (ended.status, ended.error["code"], ended.error["place"]) == (1, "stack-not-known", "app.elf for m4: main")


def test_an_image_that_no_budget_applies_to(bare: Folder) -> None:
    bare.write("mlfbuild.yml", BUDGETED.partition("models:")[0] + "models: {alpha: {source: models/alpha.tflite}}\n")
    ended = bare.run(*CHECK)
    assert (ended.status, ended.err) == (
        0,
        "mlfbuild: app.elf: not checked: target m4 has no budget that applies to this image\n",
    )
    (bare.root / "app.elf.map").unlink()
    assert bare.run(*CHECK).status == 0, "no budget needs the map"
    bare.write("mlfbuild.yml", BUDGETED)
    assert bare.refused(*CHECK) == (5, "linker-map-missing", "app.elf.map")


def test_a_model_whose_module_has_another_name(bare: Folder) -> None:
    model = '"net": {"budget": {"flash": 1}, "modules": ["alpha"]}'
    bare.write("b.json", f'{{"mlfbuild_budgets": 1, "target": "m4", "models": {{{model}}}, "firmware": {{}}}}')
    ended = bare.run(
        "report", "-q", "--elf", "app.elf", "--fail-over-budget", "--budgets", "b.json", "--model", "alpha"
    )
    assert ended.status == 1
    assert ended.err.startswith("mlfbuild: app.elf for m4: model net: takes 1,0")


@pytest.mark.parametrize(
    ("arguments", "status", "code", "place"),
    [
        ("--fail-over-budget", 2, "option-needs-another", "--fail-over-budget"),
        ("--elf app.elf --budgets b.json", 2, "option-needs-another", "--budgets"),
        ("--elf app.elf --firmware app", 2, "option-needs-another", "--firmware"),
        ("--model alpha", 2, "option-needs-another", "--model"),
        ("--elf app.elf --fail-over-budget", 2, "target-of-image-unknown", "mlfbuild.yml"),
        ("--elf app.elf --fail-over-budget --target pc", 2, "budgets-of-this-machine", "target pc"),
        ("--elf app.elf --fail-over-budget --target m4 --model gamma", 2, "unknown-model", "--model"),
        ("--elf app.elf --fail-over-budget --target m4 --firmware ap", 2, "unknown-firmware", "--firmware"),
        ("--elf app.elf --fail-over-budget --budgets b.json --target m4", 2, "options-exclude-each-other",
         "--budgets and --target"),
        ("--elf app.elf --fail-over-budget --budgets none.json", 5, "no-such-input", "none.json"),
        ("--elf app.elf --fail-over-budget --budgets b.json", 5, "not-a-file-of-budgets", "b.json"),
        ("--elf app.elf --fail-over-budget --budgets main.c", 5, "json-invalid", "main.c"),
        ("--elf app.elf --fail-over-budget --budgets new.json", 5, "json-value-invalid",
         "new.json: firmware.app.power"),
    ],
)  # fmt: skip
def test_mistakes_with_budgets(bare: Folder, arguments: str, status: int, code: str, place: str) -> None:
    bare.write("mlfbuild.yml", BUDGETED)
    bare.write("b.json", "{}\n")
    bare.write("new.json", '{"mlfbuild_budgets": 1, "target": "m4", "models": {}, "firmware": {"app": {"power": 1}}}')
    assert bare.refused("report", *arguments.split()) == (status, code, place)
