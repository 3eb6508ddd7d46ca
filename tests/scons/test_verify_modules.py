"""``MlfVerify``: a report for each module of an archive, and an evaluation for each model."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from support.errors import assert_printed
from support.firmware_repo import FirmwareRepo, tiny_network

SCONSTRUCT = """\
env = Environment(tools=["default", "mlf"])
env.MlfVerify(env.MlfModels("mlfbuild.yml", target="pc"))
"""


@pytest.fixture
def repo(tmp_path: Path, shared: Path, tool: Callable[..., str]) -> FirmwareRepo:
    tool("gcc", "cmake", "ninja")
    repo = FirmwareRepo(tmp_path)
    archives = shared / "archives"
    vectors = ", ".join(f"mod{number}: mod{number}.npz" for number in (1, 2))
    for number in (1, 2):
        repo.write(f"mod{number}.npz", (archives / f"multi-mixed.mod{number}.npz").read_bytes())
    model = f"both: {{source: {archives}/multi-mixed.tar, vectors: {{{vectors}}}}}"
    repo.write("mlfbuild.yml", f"mlfbuild: 1\ntargets: {{pc: {{cpu: host}}}}\nmodels:\n  {model}\n")
    repo.write("SConstruct", SCONSTRUCT)
    return repo


@pytest.mark.sweep
def test_each_module_has_a_report(repo: FirmwareRepo, shared: Path) -> None:
    first = repo.build().output
    assert all(f"both (module {name}): 1 case right on host" in first for name in ("mod1", "mod2"))
    assert "right on host" not in repo.build().output
    repo.write("mod2.npz", (shared / "archives/multi-aotc.mod2.npz").read_bytes())
    again = repo.scons().output
    assert "mod1" not in again, "its vectors are as before"
    assert "(module mod2): " in again


def test_unknown_module_stops_scons(repo: FirmwareRepo) -> None:
    repo.replace("mlfbuild.yml", "mod2: ", "mod3: ")
    ran = repo.scons(status=2)
    assert_printed(ran.output, "vectors-of-unknown-module", "", "mlfbuild.yml:4:", "multi-mixed.tar", "'mod3'")
    assert "Traceback" not in ran.output


def test_accuracy_is_measured_once_and_again_after_a_change(tmp_path: Path, tool: Callable[..., str]) -> None:
    tool("gcc", "cmake", "ninja")
    repo = FirmwareRepo(tmp_path)
    repo.write("net.tflite", tiny_network(0))
    np.savez(tmp_path / "test.npz", in0=np.zeros((3, 8), np.int8), out0=np.zeros((3, 4), np.float32))
    model = "net: {source: net.tflite, evaluate: {data: test.npz, metric: mae, at-most: 1000}}"
    targets = "{pc: {cpu: host}, m4: {cpu: cortex-m4}}"
    repo.write("mlfbuild.yml", f"mlfbuild: 1\ntargets: {targets}\nmodels:\n  {model}\n")
    verify = 'for name in ("pc", "m4"):\n    env.MlfVerify(env.MlfModels("mlfbuild.yml", target=name))\n'
    repo.write("SConstruct", f'env = Environment(tools=["default", "mlf"])\n{verify}')
    assert repo.build().output.count("net: mae") == 1
    assert "net: mae" not in repo.build().output
    repo.replace("mlfbuild.yml", "at-most: 1000", "at-most: 0")
    ran = repo.scons(status=2)
    assert_printed(ran.output, "evaluation-short", "evaluate: net")
    assert "Traceback" not in ran.output
