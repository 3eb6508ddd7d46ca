"""Modelled cycles: the keys of a target decide the figure and rebuild nothing, and budgets fail builds."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlfbuild.jobs import ProfileJob, load, target_jobs
from mlfbuild.library import Module
from mlfbuild.project import load_project
from mlfbuild.report import ModelRun
from mlfbuild.report.operators import runs
from mlfbuild.report.operators.profile import Profile, profile_module
from mlfbuild.report.operators.runs import with_measured
from mlfbuild.usecases import unchecked_in_runs, verified_state, verify_jobs
from mlfbuild.verify import CycleRuns, Spread
from support.command import Folder
from support.firmware_repo import two_layers
from support.schemas import validator

PROJECT = """\
mlfbuild: 1
targets:
  nucleo: {TARGET}
models:
  alpha: {source: alpha.tflite, placement: {params: .mlf_w, workspace: .mlf_a}, budget: {BUDGET}}
"""
PLACED = "regions: {.mlf_w: OSPI}, timing: {memories: {ospi: {size: 8 MiB, waits: 40, width: 1}}}"


class Project(Folder):
    """A project with one model and one target without a board."""

    def set_target(self, target: str, budget: str = "") -> None:
        self.write("mlfbuild.yml", PROJECT.replace("TARGET", target).replace("BUDGET", budget))

    def profile(self, *arguments: str) -> dict[str, Any]:
        (found,) = self.run("profile", "--format", "json", *arguments).json["profiles"]
        return dict(found)

    def built(self) -> dict[Path, int]:
        """Return the time of each file that compiling and linking write."""
        folders = (self.root / "build/mlf", self.root / "build/profile/nucleo/alpha/alpha/build")
        suffixes = {".tar", ".c", ".a", ".elf"}
        found = [path for folder in folders for path in folder.rglob("*") if path.suffix in suffixes]
        assert {path.suffix for path in found} == suffixes
        return {path: path.stat().st_mtime_ns for path in found}


@pytest.fixture
def project(folder: Folder, tool: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> Project:
    tool("cmake", "ninja", "arm-none-eabi-gcc", "gcc", "qemu-system-arm")
    found = Project(folder.root, capsys)
    found.write("alpha.tflite", two_layers(64))
    return found


def test_clock_and_memories_change_the_figure_but_build_nothing(project: Project) -> None:
    project.set_target("mcu: stm32l4r5")
    fast = project.profile()
    modelled = fast["modelled"]
    assert fast["board"] == "mps2-an386", "chosen for the CPU of the microcontroller"
    assert (modelled["mcu"], modelled["clock"]) == ("stm32l4r5", 120_000_000)
    assert modelled["error"] > 0
    parts = [operator["cycles"] for operator in fast["operators"]]
    assert sum(parts) + sum(modelled["rest"].values()) == modelled["cycles"] == sum(modelled["by_kind"].values())
    assert modelled["latency"] == -(-modelled["cycles"] * 1000 // 120)
    assert modelled["by_kind"]["waiting"] > 0
    before = project.built()
    project.set_target("mcu: stm32l4r5, clock: 16 MHz")
    slow = project.profile()["modelled"]
    assert slow["cycles"] < modelled["cycles"], "flash has no wait states"
    assert slow["latency"] > 4 * modelled["latency"]
    assert slow["by_kind"]["arithmetic"] == modelled["by_kind"]["arithmetic"]
    assert project.built() == before
    project.set_target("mcu: stm32l4r5")
    assert project.profile() == fast, "figures are repeatable"
    assert project.built() == before
    place = "mlfbuild.yml:3:11: targets.nucleo: "
    warnings = project.run("check", "--format", "json").json["warnings"]
    assert [line.partition(";")[0] for line in warnings] == [
        f"{place}.mlf_w has no region, so cycles are modelled as if it were in flash",
        f"{place}.mlf_a has no region, so cycles are modelled as if it were in sram",
    ]
    text = project.run("profile").out
    assert f"{modelled['cycles']:,} cycles, " in text
    assert f"(modelled, +-{modelled['error']} %)" in text
    project.set_target("cpu: cortex-m4, mcu: stm32l4r5", f"cycles: {modelled['cycles'] - 1}, latency: 1 us")
    ended = project.run("profile", "--format", "json", status=1)
    assert [(problem["code"], problem["place"]) for problem in ended.error["problems"]] == [
        ("cycles-over-budget", "nucleo on mps2-an386: model alpha"),
        ("latency-over-budget", "nucleo on mps2-an386: model alpha"),
    ]
    assert all("(modelled, +-" in problem["reason"] for problem in ended.error["problems"])
    assert project.built() == before
    project.set_target("cpu: cortex-m4, mcu: stm32l4r5", f"cycles: {modelled['cycles']}, latency: 1 s")
    assert project.run("profile").status == 0
    project.set_target("cpu: cortex-m4, board: mps2-an386", "cycles: 1 M")
    (problem,) = project.run("profile", "--format", "json").error["problems"]
    assert problem["code"] == "cycles-without-mcu"
    assert problem["place"].endswith(": models.alpha.budget.cycles")


def test_budgets_that_no_selected_target_checks_name_the_command_that_does(folder: Folder) -> None:
    text = """\
mlfbuild: 1
targets: {nucleo: {mcu: stm32l4r5}, plain: {cpu: cortex-m4, board: mps2-an386}}
models:
  alpha: {source: models/alpha.tflite, budget: {latency: 1 ms}}
  beta: {source: models/beta.tflite}
firmware: {app: {sources: [main.c], budget: {instructions: 1 M, cycles: 1 M}}}
"""
    folder.write("mlfbuild.yml", text)
    project = load_project(folder.root / "mlfbuild.yml")
    command = "no selected target has an mcu; run `mlfbuild profile --target nucleo`"
    assert unchecked_in_runs(project, target_jobs(project, ["plain"])) == [
        f"latency of model alpha ({command})",
        f"cycles of firmware app ({command})",
    ]
    command = "not all of its models are selected; run `mlfbuild profile --target nucleo`"
    assert unchecked_in_runs(project, target_jobs(project, ["nucleo"], ["alpha"])) == [
        f"instructions of firmware app ({command})",
        f"cycles of firmware app ({command})",
    ]
    assert unchecked_in_runs(project, target_jobs(project)) == []


def test_profile_reports_what_it_omits(folder: Folder) -> None:
    targets = "targets: {nucleo: {mcu: stm32l4r5}, plain: {cpu: cortex-m4, board: mps2-an386}, bare: {cpu: cortex-m4}}"
    models = "models: {alpha: {source: missing.tflite, budget: {cycles: 1 M}}}"
    folder.write("mlfbuild.yml", f"mlfbuild: 1\n{targets}\n{models}\n")
    folder.write("missing.tflite", b"no model")
    notes = [line for line in folder.run("profile").err.splitlines() if line.startswith("not ")]
    assert notes == ["not profiled: target bare has no board that QEMU emulates, and no mcu (add one)"]
    notes = [line for line in folder.run("profile", "--target", "plain").err.splitlines() if line.startswith("not ")]
    assert notes == [
        "not checked: cycles of model alpha (no selected target has an mcu; run `mlfbuild profile --target nucleo`)"
    ]
    assert not folder.run("profile", "--target", "plain", "-q").err.startswith("not ")


def test_verify_runs_on_the_board_that_profile_uses(folder: Folder, tool: Callable[..., str]) -> None:
    tool("cmake", "ninja", "arm-none-eabi-gcc", "qemu-system-arm")
    folder.write(
        "mlfbuild.yml",
        "mlfbuild: 1\ntargets: {nucleo: {mcu: stm32l4r5, regions: {.mlf_w: OSPI}, "
        "timing: {memories: {ospi: {size: 8 MiB}}}}}\nmodels:\n  alpha: {source: models/alpha.tflite, "
        "vectors: alpha.npz, placement: {params: .mlf_w, workspace: .mlf_a}}\n",
    )
    ended = folder.run("verify", status=0)
    assert ended.out.startswith("alpha: 3 cases right on mps2-an386")
    found = load(folder.root / "mlfbuild.yml")
    (job,) = verify_jobs(found, target_jobs(found), folder.root / "build")
    assert verified_state(job)["state"] == "passed"


@pytest.mark.sweep
def test_placement_in_a_slow_memory_costs_cycles(project: Project) -> None:
    project.set_target("mcu: stm32l4r5")
    internal = project.profile()["modelled"]
    project.set_target(f"mcu: stm32l4r5, {PLACED}")
    external = project.profile()["modelled"]
    assert external["mcu"] == "stm32l4r5 with own timing"
    assert external["by_kind"]["waiting"] > internal["by_kind"]["waiting"] + 40 * 64
    project.set_target(f"mcu: stm32l4r5, {PLACED.replace('OSPI', 'FLASH')}")
    assert project.profile()["modelled"]["by_kind"]["waiting"] < 2 * internal["by_kind"]["waiting"]
    fast = PLACED.replace("{memories: {", "{memories: {fast: {size: 8 MiB, width: 1}, ")
    for region in ("OSPI", "FAST"):  # the same image, because no board has either region
        project.set_target(f"mcu: stm32l4r5, {fast.replace('OSPI', region)}")
        external = project.profile()["modelled"]
    assert external["by_kind"]["waiting"] < internal["by_kind"]["waiting"] + 40 * 64
    project.set_target("mcu: stm32l4r5, timing: {memories: {flash: {size: 64}}}")
    assert project.refused("profile") == (4, "microcontroller-too-small", "alpha for nucleo")


@pytest.mark.sweep
def test_code_in_a_section_that_the_firmware_copies_to_ram_costs_fewer_cycles(project: Project) -> None:
    """The script of a board copies only .ramfunc; start-up code of the product also copies .RamFunc."""
    found = []
    for section in (".text.model", ".ramfunc", ".RamFunc"):
        project.set_target("mcu: stm32l4r5")
        text = (project.root / "mlfbuild.yml").read_text()
        project.write("mlfbuild.yml", text.replace("workspace: .mlf_a", f"code: {section}"))
        found.append(project.profile()["modelled"]["by_kind"]["waiting"])
        small = "mcu: stm32l4r5, timing: {memories: {sram: {size: 600}}}"
        project.write(
            "mlfbuild.yml", text.replace("workspace: .mlf_a", f"code: {section}").replace("mcu: stm32l4r5", small)
        )
        ended = project.run("profile", "--format", "json")
        refused = "" if ended.status == 0 else ended.error["code"]
        assert refused == ("" if section == ".text.model" else "microcontroller-too-small")
    assert found[0] > 1.3 * max(found[1:]), found
    assert found[2] == pytest.approx(found[1], rel=0.2)


@pytest.mark.sweep
@pytest.mark.parametrize("mcu", ["stm32g0b1", "stm32f746", "stm32u575", "mps3-an547"])
def test_microcontrollers_of_other_cores(project: Project, mcu: str) -> None:
    project.set_target(f"mcu: {mcu}")
    found = project.profile()
    assert found["modelled"]["cycles"] > found["instructions"] / 4


@pytest.mark.sweep
def test_builds_and_reports_check_budgets_of_cycles(project: Project) -> None:
    project.write("main.c", "int main(void) { return 0; }\n")
    text = PROJECT.replace("TARGET", "mcu: stm32l4r5, board: mps2-an386").replace("BUDGET", "cycles: 10")
    firmware = "firmware: {app: {sources: [main.c], budget: {latency: 1 us}}}\n"
    project.write("mlfbuild.yml", text.replace("placement: {params: .mlf_w, workspace: .mlf_a}, ", "") + firmware)
    ended = project.run("build", "--format", "json", status=1)
    assert [(problem["code"], problem["place"]) for problem in ended.error["problems"]] == [
        ("cycles-over-budget", "app.elf for nucleo: model alpha"),
        ("latency-over-budget", "app.elf for nucleo: the models of the image"),
    ]
    assert project.run("report", "--profile", "-o", "report.json").status == 1
    saved = project.run("report", "--from", "report.json", "--format", "json").json
    validator(project.run("schema", "--report").json).validate(saved)
    ended = project.run("report", "--elf", "build/nucleo/app/app.elf", "--fail-over-budget")
    assert "not checked: cycles of model alpha: run `mlfbuild profile --target nucleo --model alpha`" in ended.err
    assert "not checked: latency of all models: run `mlfbuild profile --target nucleo`" in ended.err


def test_a_profile_in_a_report_needs_firmware(folder: Folder) -> None:
    models = "models: {alpha: {source: models/alpha.tflite}}"
    folder.write("mlfbuild.yml", f"mlfbuild: 1\ntargets: {{nucleo: {{mcu: stm32l4r5}}}}\n{models}\n")
    ended = folder.run("report", "--profile", "--format", "json")
    assert (ended.status, ended.error["code"]) == (1, "nothing-to-profile")
    assert "mlfbuild profile" in ended.error["hint"]


def test_settings_of_a_device_are_modelled_once(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.set_target("mcu: stm32l4r5")
    described = project.profile()["modelled"]["cycles"]
    counted = []

    def measured_before(run: ModelRun, _job: ProfileJob) -> ModelRun:
        words = {0x40022000: 0x603}  # FLASH_ACR: 3 wait states and both caches, no prefetch
        return with_measured(run, CycleRuns("gdb", "dwt", False, 5, Spread(1, 1, 1), (), 0, words))

    def counting(module: Module, *rest: Any) -> Profile:
        counted.append(module.name)
        return profile_module(module, *rest)

    monkeypatch.setattr(runs, "last_measured", measured_before)
    monkeypatch.setattr(runs, "profile_module", counting)
    first = project.profile()["modelled"]["cycles"]
    assert first < described, "fewer wait states"
    assert project.profile()["modelled"]["cycles"] == first
    assert counted == ["alpha"], "the counts of both settings are kept"
