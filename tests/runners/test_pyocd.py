"""Devices that pyOCD drives, as a library and as a GDB server; the probe and the part behind it are emulated."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from mlfbuild.cli.output.invocation import run
from mlfbuild.core import MlfError, TimedOutError
from mlfbuild.project import RunnerKeys
from mlfbuild.runners import describe_fault, open_runner, read_firmware
from mlfbuild.targets import DeviceMemoryKeys, RegionKeys
from support.device_firmware import device_firmware, symbols
from support.device_server import free_port

if TYPE_CHECKING:
    from support.emulated_probe import EmulatedProbe

pytestmark = pytest.mark.usefixtures("debugger")
PLACE = "mlfbuild.yml: targets.desk.runner"
KEYS = RunnerKeys(pyocd="emulated")
SERVER = Path(__file__).parents[1] / "support" / "pyocd_command.py"


@pytest.fixture(scope="module")
def probe(image: Path) -> Iterator[EmulatedProbe]:
    from support.emulated_probe import emulated_probe  # imports pyOCD, for which each process of pytest would wait

    with emulated_probe() as probe:
        probe.board.load(image)  # a core without firmware locks up, which ends QEMU
        yield probe


@pytest.fixture(autouse=True)
def connected(probe: EmulatedProbe, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyocd.core.helpers import ConnectHelper

    from support.emulated_probe import EmulatedFlash

    monkeypatch.setattr(ConnectHelper, "get_all_connected_probes", lambda **_: [probe])
    probe.unplugged = False
    EmulatedFlash.protected = ()


def load(keys: RunnerKeys, image: Path | None) -> None:
    with open_runner(keys, PLACE) as runner:
        assert image is not None
        runner.load(image)


def failure(keys: RunnerKeys, image: Path | None = None) -> tuple[int, str]:
    with pytest.raises(MlfError) as error:
        load(keys, image)
    assert "\n" not in error.value.message
    return error.value.exit_code, error.value.code


def test_firmware_is_loaded_and_runs_from_stop_to_stop(image: Path, probe: EmulatedProbe) -> None:
    at = symbols(image)
    reported: list[tuple[str, int, int]] = []
    with open_runner(KEYS, PLACE) as runner:
        runner.load(image, lambda *step: reported.append(step))
        total = reported[0][2]
        assert reported[0] == ("loading", 0, total)
        assert reported[-1] == ("loading", total, total)
        assert [done for _, done, _ in reported] == sorted(done for _, done, _ in reported)
        assert runner.registers()["pc"] == at["Reset_Handler"]
        stops = [at["stop_here"], at["weighted"], at["sum"]]
        names = [at["stop_here"], at["weighted"], at["sum"], at["stop_here"]]
        assert [runner.go(stops, 10) for _ in names] == names
        assert runner.read(at["starts"], 4) == (42).to_bytes(4, "little")
        runner.write(0x20008001, bytes(range(256)))
        assert runner.read(0x20008000, 258)[1:257] == bytes(range(256))
        runner.set_registers({"r7": 0xFFFFFFFF})
        assert runner.registers()["r7"] == 0xFFFFFFFF
    assert probe.board._client.stop is None  # the firmware runs
    assert not probe.is_open


@pytest.mark.sweep
def test_functions_are_called_and_faults_described(image: Path) -> None:
    at = symbols(image)
    with open_runner(KEYS, PLACE) as runner:
        runner.load(image)
        runner.go([at["stop_here"]], 10)
        before = runner.registers()
        assert runner.call(at["weighted"], [1, 2, 3, 4, 5, 6], 10) == 654321
        assert runner.registers() == before
        with pytest.raises(TimedOutError):
            runner.call(at["for_ever"], [], 0.2)
        runner.reset()
        runner.go([at["stop_here"]], 10)
        with pytest.raises(MlfError) as fault:
            runner.call(at["write_to"], [0xE0100000], 10)
        assert fault.value.code == "call-faulted"
        assert "in write_to" in describe_fault(runner, read_firmware(image))


@pytest.mark.sweep
def test_a_probe_that_is_unplugged_is_a_lost_connection(image: Path, probe: EmulatedProbe) -> None:
    with open_runner(KEYS, PLACE) as runner:
        probe.unplugged = True
        with pytest.raises(MlfError) as error:
            runner.read(0, 4)
    assert (error.value.exit_code, error.value.code) == (7, "connection-lost")
    probe.unplugged = False
    with open_runner(KEYS, PLACE) as runner:
        runner.load(image)


@pytest.mark.sweep
def test_what_is_wrong_with_probe_part_or_image(
    image: Path, probe: EmulatedProbe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyocd.core.helpers import ConnectHelper

    assert failure(RunnerKeys(pyocd="no_such_part")) == (2, "pyocd-target-unknown")
    assert failure(KEYS, device_firmware(tmp_path / "m33", cpu="cortex-m33")) == (4, "image-for-another-device")
    assert failure(KEYS, device_firmware(tmp_path / "else", flash=0x08000000)) == (4, "image-too-large")
    small = DeviceMemoryKeys(ram=RegionKeys(origin=0x20000000, size=4096))
    assert failure(RunnerKeys(pyocd="emulated", memory=small), image) == (4, "image-too-large")
    from support.emulated_probe import EmulatedFlash

    EmulatedFlash.protected = (0,)
    probe.halt()
    probe.board.write(symbols(image)["weighted"], bytes(4))
    assert failure(KEYS, image) == (7, "device-not-written")
    monkeypatch.setattr(ConnectHelper, "get_all_connected_probes", lambda **_: [])
    assert failure(RunnerKeys(pyocd="emulated", probe="066D")) == (3, "probe-not-found")
    monkeypatch.setattr(ConnectHelper, "get_all_connected_probes", lambda **_: [probe, probe])
    assert failure(KEYS) == (2, "several-probes")
    monkeypatch.setitem(sys.modules, "pyocd", None)
    assert failure(KEYS) == (3, "extra-not-installed")


@pytest.mark.sweep
def test_a_probe_has_one_user() -> None:
    with open_runner(KEYS, PLACE):
        assert failure(KEYS) == (6, "device-in-use")


# pyOCD as a GDB server ------------------------------------------------------------------------------------------------


def server_keys() -> RunnerKeys:
    port = free_port()
    words = [sys.executable, SERVER, "gdbserver", "--target", "emulated", "--port", port, "--telnet-port", 0]
    return RunnerKeys(gdb=f"localhost:{port}", start=tuple(map(str, words)), server="pyocd")


@pytest.mark.sweep
def test_gdb_loads_flash_through_the_gdb_server_of_pyocd(image: Path) -> None:
    at = symbols(image)
    with open_runner(server_keys(), PLACE) as runner:
        runner.load(image)
        assert runner.registers()["pc"] == at["Reset_Handler"]
        assert runner.go([at["stop_here"]], 10) == at["stop_here"]
        assert runner.go([at["stop_here"], at["sum"]], 10) == at["sum"]
        assert runner.call(at["weighted"], [1, 2, 3, 4, 5, 6], 10) == 654321
        with pytest.raises(TimedOutError):
            runner.call(at["for_ever"], [], 0.2)


@pytest.mark.sweep
def test_the_gdb_server_of_pyocd_knows_its_part(tmp_path: Path, image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = device_firmware(tmp_path, flash=0x08000000)
    assert failure(server_keys(), elsewhere) == (4, "image-too-large")
    monkeypatch.setitem(os.environ, "PROTECTED_FLASH", "0")
    assert failure(server_keys(), image) == (7, "device-not-written")


# Models on such a device ----------------------------------------------------------------------------------------------

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
PROJECT = """\
mlfbuild: 1
targets:
  device:
    cpu: cortex-m3
    runner:
      {way}
      memory: {{flash: {{origin: 0, size: 32 KiB}}, ram: {{origin: 0x20000000, size: 64 KiB}}}}
models:
  digits: {{source: {folder}/models/digits.tflite, vectors: {folder}/tests/digits.npz}}
"""


@pytest.mark.sweep
@pytest.mark.parametrize("way", ["pyocd", "gdb"])
def test_a_model_is_verified(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    keys = server_keys()
    words = json.dumps(list(keys.start))
    chosen = f'gdb: "{keys.gdb}"\n      server: pyocd\n      start: {words}' if way == "gdb" else "pyocd: emulated"
    (tmp_path / "mlfbuild.yml").write_text(PROJECT.format(way=chosen, folder=DIGITS))
    monkeypatch.chdir(tmp_path)
    assert run(["verify", "--jobs", "1"]) == 0
    assert "24 cases right" in capfd.readouterr().out
