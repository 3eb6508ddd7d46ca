"""A file that describes the microcontroller: a new core in it rebuilds the models, a wait state does not."""

import json

import pytest

from support.firmware_repo import FirmwareRepo
from support.snapshot import keep

PART = """\
title = "Our part"
cpu = "cortex-m4"
clock = "100 MHz"
[memories]
flash = {size = "512 KiB", waits = 3}
sram = {size = "128 KiB"}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> FirmwareRepo:
    repo = FirmwareRepo(tmp_path_factory.mktemp("built"))
    (repo.root / "CMakeLists.txt").unlink()
    repo.write(
        "mlfbuild.yml", "mlfbuild: 1\ntargets: {t: {mcu: part.toml}}\nmodels: {alpha: {source: models/alpha.tflite}}\n"
    )
    repo.write("SConstruct", 'env = Environment(tools=["default", "mlf"])\nenv.MlfModels("mlfbuild.yml")\n')
    repo.write("part.toml", PART)
    assert repo.build("-Q").steps
    keep(repo.root)
    return repo


def core_of(repo: FirmwareRepo) -> str:
    """The core that the archive was compiled for."""
    metadata = json.loads(repo.read("build/mlf/t/alpha/metadata.json"))
    return next(word for word in ("cortex-m3", "cortex-m4") if word in json.dumps(metadata))


def test_new_core_rebuilds_the_model(repo: FirmwareRepo) -> None:
    assert core_of(repo) == "cortex-m4"
    repo.write("part.toml", PART.replace("cortex-m4", "cortex-m3"))
    assert repo.build("-Q").written_below("build/mlf/t/alpha")
    assert core_of(repo) == "cortex-m3"


def test_wait_states_rebuild_nothing(repo: FirmwareRepo) -> None:
    repo.write("part.toml", PART.replace("waits = 3", "waits = 5"))
    assert repo.build("-Q").steps == []


def test_mistake_stops_the_build_at_its_line(repo: FirmwareRepo) -> None:
    repo.write("part.toml", PART.replace('"128 KiB"', '"128 KiBy"'))
    ran = repo.scons("-Q")
    assert ran.status != 0
    assert "part.toml:6: memories.sram.size" in ran.output
