"""A change that makes a model larger, from the failing build to the accepted review, in a real repository.

The golden files contain only words, for review; numbers are checked here, because the size of code depends on the
compiler.
"""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.command import Folder
from support.firmware_repo import tiny_network, two_layers

PROJECT = """\
mlfbuild: 1
targets: {m4: {cpu: cortex-m4, board: mps2-an386}}
models:
  kws: {source: models/kws.tflite}
  wake: {source: models/wake.tflite}
firmware:
  app: {sources: [main.c]}
budget-file: sizes.json
"""
MAIN = """\
#include "tvmgen_kws.h"
#include "tvmgen_wake.h"
int main(void)
{
    int8_t x[8] = {0}, y[4];
    struct tvmgen_kws_inputs a = {x};
    struct tvmgen_kws_outputs b = {y};
    struct tvmgen_wake_inputs c = {x};
    struct tvmgen_wake_outputs d = {y};
    return tvmgen_kws_run(&a, &b) + tvmgen_wake_run(&c, &d);
}
"""


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Dev", "-c", "user.email=dev@example.org", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def main_branch(folder: Folder, tool: Callable[..., str]) -> Folder:
    """Return a repository whose main branch has a baseline, and the report that CI kept of it."""
    tool("git", "cmake", "ninja", "arm-none-eabi-gcc")
    git(folder.root, "init", "-q")
    folder.write(".gitignore", "build/\n")
    folder.write("mlfbuild.yml", PROJECT)
    folder.write("main.c", MAIN)
    folder.write("models/kws.tflite", two_layers(256))
    folder.write("models/wake.tflite", tiny_network(2))
    ended = folder.run("report", "--update-baseline", "-q", "-o", "build/main.json")
    assert (ended.status, ended.out) == (0, ""), ended.err
    git(folder.root, "add", "-A")
    git(folder.root, "commit", "-q", "-m", "Firmware with two models")
    return folder


def words(text: str) -> str:
    """Return the text without figures, which depend on the compiler, and without the steps of the build."""
    lines = [line for line in text.splitlines() if not line.startswith(("compile ", "build "))]
    return re.sub(r"(?<![A-Za-z_])[+-]?\d+([.,]\d+)*", "#", re.sub(r" {2,}", "  ", "\n".join(lines))) + "\n"


def number(pattern: str, text: str) -> int:
    found = re.search(pattern, text, re.MULTILINE)
    assert found is not None, f"{pattern}: {text}"
    return int(found[1].replace(",", ""))


def test_from_the_failing_build_to_the_accepted_change(main_branch: Folder, golden: Callable[[str, str], None]) -> None:
    git(main_branch.root, "checkout", "-q", "-b", "better-kws")
    main_branch.write("models/kws.tflite", two_layers(512))

    failed = main_branch.run("build", status=1)
    golden(words(failed.err), "build.txt")
    model = next(line for line in failed.err.splitlines() if "model kws: takes " in line and " of flash, " in line)
    before = json.loads((main_branch.root / "sizes.json").read_text())["images"]["app for m4"]
    grown = number(r"of flash, ([\d,]+) bytes", model)
    assert grown >= 256 * 16, "weights and biases of 256 more values"
    assert number(r"model kws: takes ([\d,]+) bytes", model) == before["kws"]["flash"] + grown
    assert number(r"more than the ([\d,]+) in sizes\.json", model) == before["kws"]["flash"]

    reviewed = main_branch.run("report", "--compare", "build/main.json", "-o", "build/change.json")
    assert reviewed.status == 1, "it is still not accepted"
    golden(words(reviewed.out.partition("\nlargest changes")[0]), "compare.txt")
    assert number(r"^model kws, flash +[\d,]+ +[\d,]+ +\+([\d,]+) ", reviewed.out) == grown
    (first, second) = re.findall(r"^ *\+([\d,]+) +[\d,]+ +[\d,]+  weights +(\w+)$", reviewed.out, re.MULTILINE)
    assert first[1] == "tvmgen_kws_fully_connected_0_packed" and second[1] == "tvmgen_kws_fully_connected_1_packed"
    assert all(int(size.replace(",", "")) % 256 == 0 for size, _ in (first, second)), "as many for each more value"
    assert all(len(line) <= 80 for line in reviewed.out.splitlines()), "fits a terminal and a comment"
    (image,) = json.loads((main_branch.root / "build/change.json").read_text())["compared"]["images"]
    assert (image["owners"][0]["name"], image["owners"][0]["model"]) == ("kws", True)

    main_branch.run("report", "--update-baseline", "-q", status=0)
    assert main_branch.run("build", "-q").status == 0
    changed = git(main_branch.root, "diff", "--stat=80", "--", "sizes.json")
    assert "1 file changed, 1 insertion(+), 1 deletion(-)" in changed, "a line an image"
    git(main_branch.root, "commit", "-q", "-a", "-m", "Train kws on more noise")
    assert git(main_branch.root, "status", "--porcelain") == ""

    main_branch.write("models/kws.tflite", two_layers(16))
    assert main_branch.run("build", "-q").status == 0, "what shrinks passes"
    ended = main_branch.run("report", "--compare", "build/change.json", status=0)
    assert number(r"^model kws, flash +[\d,]+ +[\d,]+ +-([\d,]+) ", ended.out) > grown
