"""Budgets of instructions: builds and `mlfbuild profile` check them on QEMU if something changed."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.jobs import load, target_jobs
from mlfbuild.usecases import unchecked_in_runs
from support.command import CALLS_ALPHA, Folder
from support.errors import assert_printed
from support.firmware_repo import tiny_network, two_layers
from support.schemas import validator

PROJECT = """\
mlfbuild: 1
targets: {m4: {cpu: cortex-m4, board: mps2-an386}, own: {cpu: cortex-m7}, pc: {cpu: host}}
models:
  alpha: {source: alpha.tflite, vectors: alpha.npz, budget: {ALPHA}}
  beta: {source: beta.tflite}
firmware:
  app: {sources: [main.c], targets: [m4], models: [alpha, beta], budget: {ALL}}
"""
MAIN = "int main(void) { return 0; }\n"
NO_BOARD = """\
mlfbuild: 1
targets: {m4: {cpu: cortex-m4}}
models: {alpha: {source: alpha.tflite}}
firmware: {app: {sources: [main.c]}}
"""


class Project(Folder):
    """A firmware with two models, and the number of QEMU's runs."""

    runs: Path

    def set_budgets(self, alpha: int | str = "", image: int | str = "") -> None:
        text = PROJECT
        for mark, limit in (("ALPHA", alpha), ("ALL", image)):
            text = text.replace(mark, f"instructions: {limit}" if limit else "")
        self.write("mlfbuild.yml", text)

    def new_runs(self) -> int:
        """Return the number of QEMU's runs since the last call."""
        count = len(self.runs.read_text().splitlines()) if self.runs.exists() else 0
        self.runs.unlink(missing_ok=True)
        return count

    def write_vectors_of(self, value: int) -> None:
        np.savez(self.root / "alpha.npz", in0=np.full((2, 1, 8), value, np.int8), out0=np.zeros((2, 1, 4), np.int8))


@pytest.fixture
def project(
    folder: Folder, tool: Callable[..., str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Project:
    tool("cmake", "ninja", "arm-none-eabi-gcc", "gcc")
    found = Project(folder.root, capsys)
    found.runs = folder.root / "runs.log"
    emulator = folder.write("qemu", f'#!/bin/sh\necho run >> "{found.runs}"\nexec "{tool("qemu-system-arm")}" "$@"\n')
    emulator.chmod(0o755)
    monkeypatch.setenv("MLFBUILD_QEMU_SYSTEM_ARM", str(emulator))
    for seed, name in enumerate(("alpha", "beta")):
        found.write(f"{name}.tflite", tiny_network(seed))
    found.write_vectors_of(1)
    found.write("main.c", MAIN)
    return found


def counts_of(project: Project) -> dict[str, int]:
    facts = project.run("profile", "--format", "json").json["profiles"]
    return {run["model"]: run["instructions"] for run in facts}


@pytest.mark.sweep
def test_models_run_only_if_something_changed(project: Project) -> None:
    project.set_budgets("1 M")
    ended = project.run("build", "--target", "m4", "--format", "json", status=0)
    assert project.new_runs() == 1, "beta has no budget"
    assert '"counting alpha"' in ended.err and '"counting beta"' not in ended.err
    (planned,) = project.run("plan", "--target", "m4", "--format", "json").json["firmware"]
    assert "alpha.npz" in planned["reads"]
    assert project.run("build", "--target", "m4").status == 0
    project.write("main.c", MAIN.replace("0", "1"))
    assert project.run("build", "--target", "m4").status == 0
    project.set_budgets("2 M")
    assert project.run("build", "--target", "m4").status == 0
    assert project.new_runs() == 0, "neither the firmware's own code nor the budget changes a run"
    project.write_vectors_of(2)
    assert project.run("build", "--target", "m4").status == 0
    assert project.new_runs() == 1, "another input is another run"
    project.set_budgets("2 M", "2 M")
    assert project.run("build", "--target", "m4").status == 0
    assert project.new_runs() == 1, "the budget of the image needs beta, too"
    first = counts_of(project)
    assert project.new_runs() == 0, "a profile takes what builds counted"
    shutil.rmtree(project.root / "build/profile")
    assert counts_of(project) == first and project.new_runs() == 2, "counts repeat"
    (project.root / "build/profile/m4/alpha/alpha/counts.json").write_text('{"key": "", "profile": []}')
    assert counts_of(project) == first and project.new_runs() == 1, "damaged counts are no counts"
    project.write("beta.tflite", tiny_network(7))
    assert project.run("build", "--target", "m4").status == 0
    assert project.new_runs() == 1


def test_a_model_over_its_budget(project: Project) -> None:
    project.set_budgets("1 M")
    assert project.run("build", "--target", "m4").status == 0
    taken = counts_of(project)["alpha"]
    project.new_runs()
    project.set_budgets(taken - 1)
    line = (
        f"model alpha: {taken:,} instructions for the first case of alpha.npz, 1 over the budget of "
        f"{taken - 1:,}, as in the last build: only the budget changed; reduce the largest parts ("
    )
    for verb in ("build", "build", "report"):
        ended = project.run(verb, "--target", "m4", status=1)
        assert ended.err.splitlines()[-1].startswith(f"mlfbuild: app.elf for m4: {line}"), ended.err
    assert re.search(r"largest parts \(\S+ \(FULLY_CONNECTED\) [\d,]+; `mlfbuild profile` lists all\)", ended.err)
    ended = project.run("profile", "--target", "m4", status=1)
    assert ended.err.splitlines()[-1].startswith(f"mlfbuild: m4 on mps2-an386: {line}")
    assert ended.out.startswith(f"alpha for m4 on mps2-an386: {taken:,} instructions"), "the profile explains it"
    assert project.new_runs() == 0
    project.set_budgets(taken)
    for verb in ("build", "profile"):
        assert project.run(verb, "--target", "m4").status == 0

    project.write("alpha.tflite", two_layers(64))
    ended = project.run("build", "--target", "m4", status=1)
    found = re.search(r"([\d,]+) instructions .*, ([\d,]+) over .*, ([\d,]+) more than in the last ", ended.err)
    assert found is not None, ended.err
    now, over, more = (int(number.replace(",", "")) for number in found.groups())
    assert over == more == now - taken > 1000
    assert ended.err.count(" (FULLY_CONNECTED) ") == 2


@pytest.mark.sweep
def test_models_together_over_the_budget_of_their_image(project: Project) -> None:
    project.set_budgets(image=100)
    ended = project.run("build", "--target", "m4", status=1)
    counts = counts_of(project)
    largest = ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items(), key=lambda item: -item[1]))
    total = sum(counts.values())
    place = "mlfbuild: app.elf for m4: the models of the image"
    facts = (f"{total:,}", f"{total - 100:,} over", largest)
    assert_printed(ended.err.splitlines()[-1], "instructions-over-budget", place, *facts)
    project.set_budgets(image=total)
    assert project.run("build", "--target", "m4").status == 0


def test_budgets_of_links_share_a_line(project: Project) -> None:
    """Runs do not check them."""
    project.write(
        "mlfbuild.yml",
        PROJECT.replace("{ALPHA}", "{flash: 1}")
        .replace("beta.tflite}", "beta.tflite, budget: {flash: 2}}")
        .replace(", budget: {ALL}", ""),
    )
    read = load(project.root / "mlfbuild.yml")
    (line,) = unchecked_in_runs(read, target_jobs(read))
    assert line.startswith("flash of models alpha, beta (")


def test_verify_checks_budgets_too(project: Project) -> None:
    project.write("alpha.tflite", tiny_network(0))
    project.write_vectors("alpha")
    project.set_budgets("1 M", "1 M")
    ended = project.run("verify", "--target", "m4", "--model", "alpha", status=0)
    (unchecked,) = [line for line in ended.err.splitlines() if line.startswith("not checked")]
    assert unchecked == (
        "not checked: instructions of firmware app (not all of its models are selected; "
        "run `mlfbuild profile --target m4`)"
    )
    project.set_budgets(1, 1)
    text = (project.root / "mlfbuild.yml").read_text()
    project.write("mlfbuild.yml", text.replace("instructions: 1}", "instructions: 1, flash: 1, stack: 1}", 1))
    ended = project.run("verify", "--target", "m4", "--model", "alpha", status=1)
    assert "3 cases right" in ended.out
    assert "not checked: flash, stack of model alpha (links check that, such as those of `mlfbuild build`)" in ended.err
    assert ended.err.splitlines()[-1].startswith("mlfbuild: m4 on mps2-an386: model alpha: ")
    ended = project.run("profile", "--target", "m4", "--format", "json", status=1)
    assert [(problem["code"], problem["place"]) for problem in ended.error["problems"]] == [
        ("instructions-over-budget", "m4 on mps2-an386: model alpha"),
        ("instructions-over-budget", "app for m4 on mps2-an386: the models of the image"),
    ]
    ended = project.run("verify", "--target", "pc", "--model", "alpha")
    assert (ended.status, ended.err.splitlines()[0]) == (
        0,
        "not checked: instructions of model alpha (no selected target has a board; run `mlfbuild profile --target m4`)",
    )


@pytest.mark.sweep
def test_a_report_with_a_run_of_each_model(project: Project) -> None:
    project.write("main.c", CALLS_ALPHA)
    project.set_budgets(1, "1 M")
    ended = project.run("report", "--target", "m4", "--profile")
    assert ended.status == 1, "alpha is over its budget"
    count = counts_of(project)["alpha"]
    _, _, run = ended.out.partition("\nalpha for m4 on mps2-an386: ")
    assert run.startswith(f"{count:,} instructions for the first case of alpha.npz\n")
    assert "beta for m4 on" not in ended.out, "it has no part of the image"
    assert run.endswith(
        f"\n\nbudgets of runs\n  model alpha: {count:,} of 1 instructions ({count}00 %)\n"
        f"  all models of the image: {count:,} of 1,000,000 instructions (0 %)\n"
    )
    project.new_runs()
    project.set_budgets()
    told = project.run("report", "--target", "m4", "--profile", "-o", "report.json").out
    assert project.new_runs() == 0, "what was counted is told"
    _, _, run = told.partition("\nalpha for m4 on mps2-an386: ")
    assert project.run("report", "--from", "report.json").out.endswith(f"\nalpha for m4 on mps2-an386: {run}")
    facts = json.loads((project.root / "report.json").read_text())
    validator(project.run("schema", "--report").json).validate(facts)
    (network,) = facts["images"][0]["models"][0]["networks"]
    stack = facts["images"][0]["models"][0]["stack"]
    assert 0 < stack["measured"] <= stack["worst_case"]
    line = f"\nmodel alpha, stack: {stack['worst_case']:,} bytes in the worst case, {stack['measured']:,} in a run\n"
    assert line in told and line in project.run("report", "--from", "report.json").out
    (operator,) = network["operators"]
    profile = network["profile"]
    assert (profile["board"], profile["inputs"], profile["instructions"]) == ("mps2-an386", "alpha.npz", count)
    assert operator["instructions"] + profile["rest"] == count
    assert (operator["macs"], operator["bound"]) == (32, 16)
    facts = project.run("report", "--target", "m4", "--format", "json").json
    (network,) = facts["images"][0]["models"][0]["networks"]
    assert "profile" not in network and network["operators"][0]["instructions"] is None


def test_reports_without_possible_runs_are_refused(project: Project) -> None:
    project.write("mlfbuild.yml", NO_BOARD)
    assert project.refused("report", "--profile") == (1, "nothing-to-profile", "")
    refused = project.refused("report", "--profile", "--elf", "build/m4/app/app.elf")
    assert refused == (2, "option-not-applicable", "--profile")


def test_missing_emulator_is_reported(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFBUILD_QEMU_SYSTEM_ARM", "/no/such/qemu")
    project.set_budgets("1 M")
    for verb in ("build", "profile"):
        assert project.refused(verb, "--target", "m4") == (3, "program-not-found", "/no/such/qemu")
    assert not (project.root / "build/profile").exists(), "said before anything is built for it"


def test_wrong_vectors_are_refused(project: Project) -> None:
    project.set_budgets("1 M")
    np.savez(project.root / "alpha.npz", in0=np.zeros((1, 3), np.int8))
    assert project.refused("build", "--target", "m4") == (5, "vectors-array-shape", "alpha.npz: in0")
