"""`mlfbuild report` and budgets, with a linked image."""

import json
import re
import subprocess
from collections.abc import Callable
from hashlib import sha256

import pytest

from mlfbuild import __version__
from support.command import Folder
from support.errors import assert_printed
from support.firmware_repo import tiny_network, two_layers
from support.markdown import rows
from support.schemas import validator

PROJECT = """\
mlfbuild: 1
targets: {m4: {cpu: cortex-m4, board: mps2-an386}}
models:
  alpha: {source: alpha.tflite, budget: {flash: FLASH, ram: 1 KiB}}
  beta: {source: beta.tflite}
firmware:
  app: {sources: [main.c], budget: {flash: 64 KiB}}
"""
MAIN = """\
#include "tvmgen_alpha.h"
#include "tvmgen_beta.h"
int main(void)
{
    int8_t x[8] = {0}, y[4];
    struct tvmgen_alpha_inputs a = {x};
    struct tvmgen_alpha_outputs b = {y};
    struct tvmgen_beta_inputs c = {x};
    struct tvmgen_beta_outputs d = {y};
    return tvmgen_alpha_run(&a, &b) + tvmgen_beta_run(&c, &d);
}
"""


@pytest.fixture
def project(folder: Folder, tool: Callable[..., str]) -> Folder:
    """Return a project whose image is within its budgets."""
    tool("cmake", "ninja", "arm-none-eabi-gcc")
    folder.write("alpha.tflite", tiny_network(1))
    folder.write("beta.tflite", tiny_network(2))
    folder.write("main.c", MAIN)
    set_budget(folder, "16 KiB")
    return folder


def set_budget(folder: Folder, flash: str) -> None:
    folder.write("mlfbuild.yml", PROJECT.replace("FLASH", flash))


def test_report_and_exceeded_budget(project: Folder) -> None:
    ended = project.run("report", status=0)
    elf = project.root / "build/m4/app/app.elf"
    printed = subprocess.run(["arm-none-eabi-size", str(elf)], capture_output=True, text=True, check=True).stdout
    text, data, bss = map(int, printed.splitlines()[1].split()[:3])
    assert ended.out.startswith(
        f"app for m4: {text + data:,} bytes of flash, {data + bss:,} of RAM (build/m4/app/app.elf)\n"
    )
    total = re.search(r"^total +([\d,]+) .* ([\d,]+)$", ended.out, re.MULTILINE)
    assert total is not None
    assert [int(number.replace(",", "")) for number in total.groups()] == [text + data, data + bss]
    assert "model alpha, largest in flash\n" in ended.out and "tvmgen_alpha_fully_connected_0_packed" in ended.out
    assert re.search(r"^  model alpha: [\d,]+ of 16,384 bytes of flash \(\d+ %\)$", ended.out, re.MULTILINE)
    ended = project.run("report", "--operators")
    (row,) = re.findall(
        r"^ *0  FULLY_CONNECTED .* 32 +[\d,]+ +[\d,]+ +0 +4$",
        ended.out.partition("model beta, 1 operator")[2],
        re.MULTILINE,
    )
    assert len(row) <= 80
    facts = project.run("report", "--format", "json").json
    (image,) = facts["images"]
    assert image["size"] == {"text": text, "data": data, "bss": bss}
    owners = [*image["models"], *image["others"]]
    assert [owner["name"] for owner in image["models"]] == ["alpha", "beta"]
    assert sum(owner["flash"] for owner in owners) == text + data
    assert sum(piece["size"] for owner in owners for piece in owner["pieces"] if piece["flash"]) == text + data
    taken = image["models"][0]["flash"]

    raw = elf.with_name("app.bin")
    subprocess.run(["arm-none-eabi-objcopy", "-O", "binary", str(elf), str(raw)], check=True)
    for path in (elf, raw):
        ended = project.run("inspect", str(path))
        assert (ended.status, ended.err) == (0, "")
        hashes = {
            name: sha256((project.root / f"{name}.tflite").read_bytes()).hexdigest() for name in ("alpha", "beta")
        }
        assert ended.out == f"2 models in {path}\n" + "".join(
            f"  {name:5}  sha256 {digest}  compiled by mlfbuild {__version__}\n" for name, digest in hashes.items()
        )
    facts = project.run("inspect", str(raw), "--format", "json").json
    assert [model["model"] for model in facts["models"]] == ["alpha", "beta"]
    (project.root / "none.elf").write_bytes(elf.read_bytes().replace(b"mlf:", b"mlf;"))
    assert project.refused("inspect", "none.elf") == (5, "image-without-models", "none.elf")

    set_budget(project, str(taken - 1))
    for verb in ("build", "build", "report"):
        ended = project.run(verb, status=1)
        assert ended.err.splitlines()[-1].startswith(f"mlfbuild: app.elf for m4: model alpha: takes {taken:,} bytes"), (
            ended.err
        )
        assert "1 byte over its budget of" in ended.err and "only the budget changed" in ended.err
        assert ("model alpha, largest in flash" in ended.out) == (verb == "report"), "the report is what explains it"
    set_budget(project, str(taken))
    assert project.run("build").status == 0
    (elf.with_name("app.elf.map")).unlink()
    assert project.refused("report") == (5, "linker-map-missing", "build/m4/app/app.elf.map")


def with_baseline(folder: Folder, rest: str = "budget-growth: 2 %\n", models: str = "") -> None:
    text = PROJECT.replace(", budget: {flash: FLASH, ram: 1 KiB}", "").replace(", budget: {flash: 64 KiB}", "")
    folder.write(
        "mlfbuild.yml", text.replace("  beta: {source: beta.tflite}\n", models) + "budget-file: sizes.json\n" + rest
    )


def test_baseline_is_created_and_updated(project: Folder) -> None:
    beta = "  beta: {source: beta.tflite}\n"
    with_baseline(project, models=beta)
    sizes = project.root / "sizes.json"
    for verb in ("report", "build"):
        assert project.refused(verb) == (2, "baseline-missing", "sizes.json")
    ended = project.run("report", "--update-baseline")
    assert (ended.status, ended.err.splitlines()[-1]) == (0, "sizes.json: written; commit it")
    assert ended.out.endswith("\nnot in sizes.json yet\n")
    elf = project.root / "build/m4/app/app.elf"
    printed = subprocess.run(["arm-none-eabi-size", str(elf)], capture_output=True, text=True, check=True).stdout
    text, data, bss = map(int, printed.splitlines()[1].split()[:3])
    first = sizes.read_text()
    taken = json.loads(first)["images"]["app for m4"]
    assert taken[""] == {"flash": text + data, "ram": data + bss}
    assert sorted(taken) == ["", "alpha", "beta"]
    assert project.run("build").status == 0
    ended = project.run("report", "--update-baseline")
    assert ended.err.splitlines()[-1] == "sizes.json: has these sizes already"
    assert ended.out.endswith(
        "since sizes.json\n  model alpha: the same\n  model beta: the same\n  the image: the same\n"
    )

    image = f'"": {{"flash": {text + data}, '
    smaller = (text + data) * 100 // 102 - 1
    project.write("sizes.json", first.replace(image, f'"": {{"flash": {smaller}, '))
    for verb in ("build", "build", "report"):
        ended = project.run(verb, status=1)
        facts = (f"{text + data:,} bytes", f"{smaller:,} in sizes.json (+2.", "2 %: all else +", "--update-baseline`")
        assert_printed(ended.err.splitlines()[-1], "size-grew", "mlfbuild: app.elf for m4: the image", *facts)
        assert ("since sizes.json\n" in ended.out) == (verb == "report"), "the report is what explains it"
    with_baseline(project, "budget-growth: 3 %\n", models=beta)
    assert project.run("build").status == 0, "what is allowed counts as soon as it changes"
    facts = project.run("report", "--format", "json").json
    assert facts["images"][0]["baseline"][""]["flash"] == smaller
    validator(project.run("schema", "--report").json).validate(facts)
    with_baseline(project, models=beta)
    project.write("sizes.json", first.replace('"app for m4"', '"old for m4"'))
    ended = project.run("report", status=5)
    assert_printed(ended.err, "baseline-outdated", "mlfbuild: sizes.json", "image old for m4")
    assert project.run("report", "--update-baseline").status == 0
    assert sizes.read_text() == first

    main = MAIN.replace('#include "tvmgen_beta.h"\n', "").replace(" + tvmgen_beta_run(&c, &d)", "")
    project.write("main.c", re.sub("^ *struct tvmgen_beta.*\n", "", main, flags=re.MULTILINE))
    with_baseline(project)
    for verb in ("report", "build"):
        ended = project.run(verb, status=5)
        line = ended.err.splitlines()[-1]
        assert_printed(line, "baseline-outdated", "mlfbuild: sizes.json", "model beta of app for m4")
    assert project.run("report", "--update-baseline").status == 0
    assert sorted(json.loads(sizes.read_text())["images"]["app for m4"]) == ["", "alpha"]

    for content, code in (("{}", "not-a-baseline"), (first.replace('sizes": 1', 'sizes": 9'), "baseline-version")):
        project.write("sizes.json", content)
        for arguments in (("build",), ("report",), ("report", "--update-baseline")):
            assert project.refused(*arguments) == (5, code, "sizes.json")
            assert sizes.read_text() == content


def test_larger_model_must_be_accepted(project: Folder) -> None:
    with_baseline(project, "", models="  beta: {source: beta.tflite}\n")
    assert project.run("report", "--update-baseline", "-q").status == 0
    (planned,) = project.run("plan", "--format", "json").json["firmware"]
    assert "sizes.json" in planned["reads"]
    before = json.loads((project.root / "sizes.json").read_text())["images"]["app for m4"]
    project.write("alpha.tflite", two_layers(256))
    ended = project.run("build", status=1)
    lines = ended.err.splitlines()
    model = next(line for line in lines if "model alpha: takes " in line and " of flash, " in line)
    assert f" more than the {before['alpha']['flash']:,} in sizes.json (+" in model
    assert "which allows 1 %" in model
    assert re.search(r"\(tvmgen_alpha_fully_connected_0_packed [\d,]+ \(weights\), ", model)
    image = next(line for line in lines if "the image: takes " in line and " of flash, " in line)
    ended = project.run("report", "--update-baseline", status=0)
    after = json.loads((project.root / "sizes.json").read_text())["images"]["app for m4"]
    more = {name: after[name]["flash"] - before[name]["flash"] for name in before}
    assert more["alpha"] > 3072 and f": alpha +{more['alpha']:,}" in image and "beta" not in image.split(";")[0]
    assert f"\n  model alpha: +{more['alpha']:,} bytes of flash (+" in ended.out
    assert f"\n  the image: +{more['']:,} bytes of flash (+" in ended.out
    assert project.run("build").status == 0


def test_an_image_over_its_budget_is_not_accepted(project: Folder) -> None:
    project.write("mlfbuild.yml", PROJECT.replace("FLASH", "1") + "budget-file: sizes.json\n")
    ended = project.run("report", "--update-baseline", status=1)
    assert "of flash, " in ended.err and "over its budget of 1 byte; reduce its largest parts (" in ended.err
    assert not (project.root / "sizes.json").exists()


def test_the_baseline_of_other_targets_is_kept(project: Folder) -> None:
    with_baseline(project, models="  beta: {source: beta.tflite}\n")
    other = (
        '"app for m7": {"": {"flash": 7, "ram": 7}, "alpha": {"flash": 1, "ram": 1}, "gone": {"flash": 1, "ram": 1}}'
    )
    project.write(
        "sizes.json", '{"mlfbuild_sizes": 1, "images": {"x for m4": {"": {"flash": 1, "ram": 1}}, ' + other + "}}"
    )
    text = (project.root / "mlfbuild.yml").read_text()
    project.write("mlfbuild.yml", text.replace("targets: {", "targets: {m7: {cpu: cortex-m7, board: mps2-an500}, "))
    assert project.run("report", "--target", "m4", "--update-baseline").status == 0
    images = json.loads((project.root / "sizes.json").read_text())["images"]
    assert list(images) == ["app for m4", "app for m7"]
    assert images["app for m7"] == {"": {"flash": 7, "ram": 7}, "alpha": {"flash": 1, "ram": 1}}
    assert not (project.root / "build/m7").exists()


def test_update_baseline_requires_a_project_with_a_budget_file(folder: Folder) -> None:
    assert folder.run("report", "--update-baseline").status == 2
    arguments = ("report", "--elf", "app.elf", "--update-baseline")
    assert folder.refused(*arguments) == (2, "option-not-applicable", "--update-baseline")


def test_a_project_without_firmware_has_nothing_to_report(folder: Folder) -> None:
    folder.write("net.tflite", tiny_network(1))
    folder.write("mlfbuild.yml", "mlfbuild: 1\ntargets: {pc: {cpu: host}}\nmodels: {net: {source: net.tflite}}\n")
    assert folder.refused("report") == (1, "nothing-to-report", "")


def test_sizes_and_budgets_in_markdown(project: Folder) -> None:
    ended = project.run("report", "--format", "markdown", "-o", "old.json", status=0)
    table = {row[0]: row for row in rows(ended.out, 7)}
    report = json.loads((project.root / "old.json").read_text())["images"][0]
    sizes = {model["name"]: (model["flash"], model["ram"]) for model in report["models"]}
    assert {name: (table[f"model {name}"][1], table[f"model {name}"][3]) for name in sizes} == {
        name: (f"{flash:,}", f"{ram:,}") for name, (flash, ram) in sizes.items()
    }
    assert table["model alpha"][2] == f"{100 * sizes['alpha'][0] / 16384:.0f} % of 16 KiB"
    assert (table["the image"][1], table["model beta"][2]) == (f"{report['flash']:,}", "")
    built = rows(project.run("build", "--format", "markdown").out, 4)
    assert [(row[0], row[1]) for row in built[-2:]] == [("app for m4", "flash"), ("app for m4", "RAM")]
    assert built[-2][2:] == [f"{report['flash']:,}", f"{100 * report['flash'] / 65536:.0f} % of the budget (64 KiB)"]

    project.write("alpha.tflite", two_layers(1))
    set_budget(project, "100")
    ended = project.run("report", "--format", "markdown", "--compare", "old.json")
    changes = {row[0]: row[1:] for row in rows(ended.out, 4)}
    assert ended.status == 1 and changes["model alpha, flash"][0] == f"{sizes['alpha'][0]:,}"
    (excess,) = [line for line in ended.out.splitlines() if re.match("- `+app.elf for m4: model alpha: ", line)]
    assert "over its budget of 100 bytes" in excess
