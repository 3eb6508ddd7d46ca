"""`mlfbuild report` and budgets, on an image that is linked for real."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from hashlib import sha256

import pytest

from mlfbuild import __version__
from support.command import Folder
from support.firmware_repo import tiny_network

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
def project(folder: Folder, tool: Callable[[str], str]) -> Folder:
    """A repo whose image has room for all."""
    for name in ("cmake", "ninja", "arm-none-eabi-gcc"):
        tool(name)
    folder.write("alpha.tflite", tiny_network(1))
    folder.write("beta.tflite", tiny_network(2))
    folder.write("main.c", MAIN)
    set_budget(folder, "16 KiB")
    return folder


def set_budget(folder: Folder, flash: str) -> None:
    folder.write("mlfbuild.yml", PROJECT.replace("FLASH", flash))


def test_a_report_and_a_budget_that_is_exceeded(project: Folder) -> None:
    ended = project.run("report")
    assert ended.status == 0, ended.err
    elf = project.root / "build/m4/app/app.elf"
    printed = subprocess.run(["arm-none-eabi-size", str(elf)], capture_output=True, text=True, check=True).stdout
    text, data, bss = map(int, printed.splitlines()[1].split()[:3])
    assert ended.out.startswith(
        f"app for m4: {text + data:,} bytes of flash, {data + bss:,} of RAM (build/m4/app/app.elf)\n"
    )
    total = re.search(r"^total +([\d,]+) .* ([\d,]+)$", ended.out, re.MULTILINE)
    assert total is not None
    assert [int(number.replace(",", "")) for number in total.groups()] == [text + data, data + bss]
    assert "model alpha, largest in flash\n" in ended.out and "tvmgen_alpha_fully_connected_0_filter" in ended.out
    assert re.search(r"^  model alpha: [\d,]+ of 16,384 bytes of flash \(\d+ %\)$", ended.out, re.MULTILINE)
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
    ended = project.run("inspect", "none.elf")
    assert (ended.status, ended.err) == (5, "mlfbuild: none.elf: calls no model that mlfbuild compiled\n")

    set_budget(project, str(taken - 1))
    for verb in ("build", "build", "report"):
        ended = project.run(verb)
        assert ended.status == 1
        assert ended.err.splitlines()[-1].startswith(f"mlfbuild: app.elf for m4: model alpha takes {taken:,} bytes"), (
            ended.err
        )
        assert (
            "1 byte over its budget of" in ended.err and "as many as in the last build that was within it" in ended.err
        )
        assert ("model alpha, largest in flash" in ended.out) == (verb == "report"), "the report is what explains it"
    set_budget(project, str(taken))
    assert project.run("build").status == 0
    (elf.with_name("app.elf.map")).unlink()
    ended = project.run("report")
    assert ended.status == 5
    assert ended.err.splitlines()[-1] == (
        "mlfbuild: build/m4/app/app.elf.map: no such linker map; let the linker write it: "
        "target_link_options(app PRIVATE LINKER:-Map=%.map)"
    )


def test_a_project_without_firmware_has_nothing_to_report(folder: Folder) -> None:
    folder.write("net.tflite", tiny_network(1))
    folder.write("mlfbuild.yml", "mlfbuild: 1\ntargets: {pc: {cpu: host}}\nmodels: {net: {source: net.tflite}}\n")
    ended = folder.run("report")
    assert ended.status == 1
    assert ended.err.splitlines()[-1] == (
        "mlfbuild: nothing to report of: the project has no firmware for a target with a toolchain"
    )
