"""Commands for a target with an Ethos-U, which QEMU does not emulate."""

import pytest

from support.command import Folder
from support.npu_models import require_vela

PROJECT = """\
mlfbuild: 1
targets:
  m55: {cpu: cortex-m55, board: mps3-an547, npu: {type: ethos-u55, macs: 128}}
models:
  alpha: {source: models/alpha.tflite, vectors: alpha.npz}
firmware:
  app: {sources: [main.c]}
"""
DRIVER = """\
dependencies:
  ethos-u-core-driver: {path: driver, version: "23.11"}
"""


@pytest.fixture
def npu(folder: Folder) -> Folder:
    require_vela()
    folder.write("mlfbuild.yml", PROJECT + DRIVER)
    for name in ("LICENSE.txt", "include/ethosu_driver.h", "src/ethosu_driver.c"):
        folder.write(f"driver/{name}", "")
    return folder


def test_the_profile_is_the_estimate_of_vela(npu: Folder) -> None:
    npu.run("check", status=0)
    found = npu.run("profile", "--format", "json", status=0).json
    assert found["profiles"] == []
    (estimate,) = found["vela"]
    assert (estimate["target"], estimate["model"], estimate["accelerator"]) == ("m55", "alpha", "ethos-u55-128")
    assert estimate["macs"] == 32 and estimate["cycles"] > 0 and estimate["layers"][0]["operator"] == "FullyConnected"
    assert estimate["compiler"].startswith("vela ")
    shown = npu.run("profile", status=0).out
    assert "estimated by vela " in shown and "no NPU has measured it" in shown


def test_an_emulator_runs_no_model_of_the_target(npu: Folder) -> None:
    assert npu.refused("verify") == (1, "nothing-to-verify", "mlfbuild.yml")


def test_firmware_needs_the_driver(npu: Folder) -> None:
    npu.write("mlfbuild.yml", PROJECT)
    assert npu.mistakes("build") == [("requirement-without-provider", "dependency ethos-u-core-driver")]


def test_check_and_doctor_know_the_operators_without_vela(folder: Folder) -> None:
    folder.write("mlfbuild.yml", PROJECT.replace("macs: 128", "macs: 128, keep-on-core: [SOFTMAX, SOFTMX]"))
    found = folder.mistakes("check", "--no-tools")
    assert ("unknown-tflite-operator", "mlfbuild.yml:3:103: targets.m55.npu.keep-on-core[1]") in found
    (state,) = folder.run("doctor", "--format", "json", status=3).json["targets"]
    assert any("SOFTMX" in reason for reason in state["missing"])
