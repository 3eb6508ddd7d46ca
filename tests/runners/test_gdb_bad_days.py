"""Failures of GDB servers: each has an exit code, one line with the next step, and leaves nothing running."""

import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mlfbuild.core import MlfError, UnsupportedModelError
from mlfbuild.project import RunnerKeys
from mlfbuild.runners import Runner, check_fpu, open_runner
from mlfbuild.runners.gdb import Gdb
from mlfbuild.targets import CPUS, DeviceMemoryKeys, RegionKeys
from support.device_firmware import device_firmware, symbols
from support.device_server import device_server, free_port, qemu
from support.processes import wait_for
from support.rsp_device import ScriptedDevice

pytestmark = pytest.mark.usefixtures("debugger")
PLACE = "mlfbuild.yml: targets.desk.runner"


def failure(keys: RunnerKeys, work: Callable[[Runner], object] = id) -> MlfError:
    with pytest.raises(MlfError) as error, open_runner(keys, PLACE) as runner:
        work(runner)
    assert "\n" not in error.value.message
    return error.value


def facts(error: MlfError) -> tuple[int, str]:
    return error.exit_code, error.code


# Connecting ----------------------------------------------------------------------------------------------------------


def test_no_server_listens() -> None:
    error = failure(RunnerKeys(gdb=f"localhost:{free_port()}", server="openocd"))
    assert facts(error) == (3, "gdb-server-not-running")
    assert facts(failure(RunnerKeys(gdb="/dev/ttyNoProbe"))) == (3, "gdb-server-not-running")


def test_gdb_or_its_library_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = RunnerKeys(qemu="mps2-an385")
    monkeypatch.setenv("MLFBUILD_GDB_MULTIARCH", "no-such-gdb")
    assert facts(failure(keys)) == (3, "program-not-found")
    monkeypatch.setitem(sys.modules, "pygdbmi", None)
    error = failure(keys)
    assert facts(error) == (3, "extra-not-installed")
    assert error.hint == "pip install 'pygdbmi>=0.11'"


@pytest.mark.sweep
def test_the_program_of_the_server_is_missing() -> None:
    assert facts(failure(RunnerKeys(gdb=":3333", start=("openocd-of-yours",), server="openocd"))) == (
        3,
        "program-not-found",
    )


@pytest.mark.sweep
def test_the_kind_of_the_server_is_not_known() -> None:
    assert facts(failure(RunnerKeys(gdb=":5555"))) == (2, "gdb-server-unknown")
    assert facts(failure(RunnerKeys(gdb=":3333", start=("my-script",)))) == (2, "gdb-server-unknown")


@pytest.mark.sweep
def test_a_probe_is_used_but_not_given() -> None:
    assert facts(failure(RunnerKeys(gdb=":3333", start=("openocd", "{probe}")))) == (2, "probe-not-chosen")


def test_the_server_ends_at_once() -> None:
    script = "echo 'Info : starting'; echo 'Error: open failed: no device found' >&2; exit 1"
    error = failure(RunnerKeys(gdb=f"localhost:{free_port()}", start=("sh", "-c", script), server="openocd"))
    assert facts(error) == (7, "gdb-server-failed")
    assert "exit status 1" in error.reason
    assert "no device found" in str(error)


@pytest.mark.sweep
def test_the_server_never_listens() -> None:
    keys = RunnerKeys(gdb=f"localhost:{free_port()}", start=("sleep", "100"), server="openocd", timeout=1_000_000_000)
    error = failure(keys)
    assert facts(error) == (7, "gdb-server-failed")


@pytest.mark.sweep
def test_another_program_has_the_port_of_the_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        error = failure(RunnerKeys(gdb=f"localhost:{port}", start=tuple(qemu(port))))
    assert facts(error) == (6, "gdb-port-in-use")


@pytest.mark.parametrize(
    "answer",
    [
        b"+$nonsense#00$x#zz",
        pytest.param(b"", marks=pytest.mark.sweep),
        pytest.param(random.Random(7).randbytes(3000), marks=pytest.mark.sweep),
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", marks=pytest.mark.sweep),  # GDB tries again for 10 s
    ],
    ids=["packets", "closed", "bytes", "http"],
)
def test_a_program_that_is_no_gdb_server_listens(answer: bytes) -> None:
    def serve(listener: socket.socket) -> None:
        with contextlib.suppress(OSError), listener.accept()[0] as connection:
            while answer and connection.recv(4096):
                connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        error = failure(RunnerKeys(gdb=f"localhost:{listener.getsockname()[1]}", server="openocd"))
    assert facts(error) == (7, "gdb-server-failed")


HELP = "Supported Commands:\n\n    info - print session information\n    reset - reset target\n"
KINDS: dict[str, dict[str, str | None]] = {
    "openocd": {"version": "Open On-Chip Debugger 0.12.0 (2023-01-14)\n"},
    "openocd that loses results": {"version": "", "echo [version]": "Open On-Chip Debugger 0.12.0+dev\n"},
    "pyocd": {"version": "Error: unrecognized command 'version'\n"},
    "jlink": {"version": None, "echo [version]": None, "help": "SEGGER J-Link GDB Server V7.94e\n"},
    "probe-rs": {"version": HELP},
    "blackmagic": {"version": "Black Magic Probe v1.10.2, Hardware Version 3\n"},
}
"""Answers to monitor commands, as the sources of each server have them."""


def scripted(answers: dict[str, str | None], server: str) -> MlfError | None:
    """Return the error of connecting to and resetting a device whose server gives ``answers``."""
    device = ScriptedDevice(lambda _: 0)
    device.monitor = answers
    with device.serving():
        try:
            with open_runner(RunnerKeys(gdb=f"localhost:{device.port}", server=server), PLACE) as runner:
                runner.reset()
        except MlfError as error:
            return error
    return None


@pytest.mark.parametrize("kind", [*(name for name in KINDS if name != "blackmagic")])
def test_a_server_of_the_declared_kind_is_accepted(kind: str) -> None:
    assert scripted(KINDS[kind], kind.partition(" ")[0]) is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_of_another_kind_is_refused(kind: str) -> None:
    error = scripted(KINDS[kind], "stlink")
    assert error is not None
    assert (*facts(error), error.place) == (2, "gdb-server-of-another-kind", f"{PLACE}.server")
    name = kind.partition(" ")[0]
    assert f" is {name}, " in error.reason and error.reason.endswith(" stlink")
    assert error.hint.startswith(f"write server: {name}")


def test_qemu_is_recognised_whatever_it_is_taken_for() -> None:
    port = free_port()
    for server in ("openocd", "jlink", "blackmagic"):
        error = failure(RunnerKeys(gdb=f"localhost:{port}", start=tuple(qemu(port)), server=server))
        assert (*facts(error), error.place) == (2, "gdb-server-of-another-kind", f"{PLACE}.server")
        assert f"is qemu, but it is taken for {server}" in error.reason


@pytest.mark.parametrize("answer", ["unknown command: 'reset'\n", 'invalid command name "reset"\n', None])
def test_a_reset_that_the_server_does_not_know_is_an_error(answer: str | None) -> None:
    unknown = dict.fromkeys(("version", "echo [version]", "help"), None)
    error = scripted({**unknown, "reset": answer}, "stlink")
    assert error is not None
    assert (*facts(error), error.place) == (7, "device-not-reset", f"{PLACE}.server")
    assert scripted({**unknown, "reset": "Resetting target\n"}, "stlink") is None


@pytest.mark.sweep
def test_the_console_cannot_be_opened() -> None:
    port = free_port()
    keys = RunnerKeys(gdb=f"localhost:{port}", start=tuple(qemu(port)), console="/dev/ttyNoSuchPort")
    assert facts(failure(keys)) == (3, "serial-port-not-found")


def test_another_process_has_the_device() -> None:
    port = free_port()
    with open_runner(RunnerKeys(gdb=f"localhost:{port}", start=tuple(qemu(port)), probe="066D"), PLACE):
        error = failure(RunnerKeys(gdb=f"localhost:{free_port()}", server="qemu", probe="066D"))
    assert facts(error) == (6, "device-in-use")
    assert f"process {os.getpid()}" in error.reason
    with open_runner(RunnerKeys(gdb=f"localhost:{port}", start=tuple(qemu(port)), probe="066D"), PLACE) as runner:
        assert runner.read(0, 4) == bytes(4)


# Loading -------------------------------------------------------------------------------------------------------------


def test_the_image_is_for_another_cpu(tmp_path: Path) -> None:
    def refused(image: Path) -> MlfError:
        return failure(RunnerKeys(qemu="mps2-an385"), lambda runner: runner.load(image))

    def changed(name: str, **fields: tuple[int, bytes]) -> Path:
        data = bytearray((tmp_path / "m3" / "app.elf").read_bytes())
        for at, value in fields.values():
            data[at : at + len(value)] = value
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    device_firmware(tmp_path / "m3")
    newer = refused(device_firmware(tmp_path / "m33", cpu="cortex-m33"))
    big = refused(device_firmware(tmp_path / "big", "-mbig-endian"))
    risc_v = refused(changed("riscv.elf", machine=(18, b"\xf3\0")))
    for error, words in ((newer, "Armv8-M.mainline"), (big, "big-endian"), (risc_v, "RISCV")):
        assert facts(error) == (4, "image-for-another-device")
        assert words in error.reason
    (tmp_path / "app.bin").write_bytes(bytes(100))
    assert facts(refused(tmp_path / "app.bin")) == (5, "not-an-elf-image")
    assert facts(refused(tmp_path / "none.elf")) == (5, "no-such-input")


def test_the_image_is_for_a_larger_fpu(tmp_path: Path) -> None:
    double = device_firmware(tmp_path / "m7", "-mfloat-abi=hard", "-mfpu=fpv5-d16", cpu="cortex-m7")
    single = device_firmware(tmp_path / "m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16", cpu="cortex-m4")
    error = failure(RunnerKeys(qemu="mps2-an386"), lambda runner: runner.load(double))
    assert facts(error) == (4, "image-for-another-device")
    assert "double precision" in error.reason
    with open_runner(RunnerKeys(qemu="mps2-an386"), PLACE) as runner:
        runner.load(single)

    check_fpu(single, CPUS["cortex-m4+nofp"])  # the device may have the FPU that the models do not use
    check_fpu(double, CPUS["cortex-m55"])
    for image, cpu in ((single, "cortex-m3"), (double, "cortex-m33")):
        with pytest.raises(UnsupportedModelError) as refused:
            check_fpu(image, CPUS[cpu])
        assert facts(refused.value) == (4, "image-for-another-device")


@pytest.mark.sweep
def test_the_image_is_larger_than_the_memory_of_the_project_file(image: Path) -> None:
    flash, ram = RegionKeys(origin=0, size=256), RegionKeys(origin=0x20000000, size=4096)
    keys = RunnerKeys(qemu="mps2-an385", memory=DeviceMemoryKeys(ram=ram, flash=flash))
    error = failure(keys, lambda runner: runner.load(image))
    assert facts(error) == (4, "image-too-large")
    assert "FLASH of qemu mps2-an385 ends after 256 bytes" in error.reason

    whole = RegionKeys(origin=0, size=4096)
    keys = RunnerKeys(qemu="mps2-an385", memory=DeviceMemoryKeys(ram=ram, flash=whole))
    error = failure(keys, lambda runner: runner.load(image))
    assert facts(error) == (4, "image-too-large")
    assert "RAM of qemu mps2-an385 ends after" in error.reason


@pytest.mark.sweep
def test_the_image_is_larger_than_the_memory_map_of_the_server(image: Path) -> None:
    def load(runner: Runner, *regions: str) -> None:
        assert isinstance(runner, Gdb)
        for region in regions:
            runner._say(f"mem {region} rw")
        runner.load(image)

    keys = RunnerKeys(qemu="mps2-an385")
    error = failure(keys, lambda runner: load(runner, "0 0x80", "0x80 0x100"))
    assert facts(error) == (4, "image-too-large")
    assert "ends after 256 bytes" in error.reason
    error = failure(keys, lambda runner: load(runner, "0x08000000 0x08080000"))
    assert facts(error) == (4, "image-too-large")
    assert "has no memory" in error.reason
    with open_runner(keys, PLACE) as runner:
        load(runner, "0 0x400000", "0x20000000 0x21000000")


def test_the_device_does_not_keep_what_is_written(tmp_path: Path) -> None:
    """Like a write-protected flash: the board has no memory there."""
    image = device_firmware(tmp_path, flash=0x50000000)
    error = failure(RunnerKeys(qemu="mps2-an385"), lambda runner: runner.load(image))
    assert facts(error) == (7, "device-not-written")


# Running -------------------------------------------------------------------------------------------------------------


def test_the_server_is_killed_while_the_firmware_runs(image: Path) -> None:
    at = symbols(image)

    def run(runner: Runner) -> None:
        assert isinstance(runner, Gdb)
        runner.load(image)
        server = runner._client._server
        assert server is not None
        threading.Timer(0.3, server.process.kill).start()
        runner.go([at["for_ever"]], 60)

    assert facts(failure(RunnerKeys(qemu="mps2-an385"), run)) == (7, "connection-lost")


@pytest.mark.sweep
def test_a_server_of_somebody_else_is_killed_between_two_commands() -> None:
    port = free_port()
    with device_server(port) as process:

        def read(runner: Runner) -> None:
            process.kill()
            process.wait()
            runner.read(0, 4)

        assert facts(failure(RunnerKeys(gdb=f"localhost:{port}", server="qemu"), read)) == (7, "connection-lost")


@pytest.mark.sweep
def test_a_server_that_does_not_answer_any_more_is_given_up() -> None:
    def run(runner: Runner) -> None:
        assert isinstance(runner, Gdb)
        server = runner._client._server
        assert server is not None
        server.process.send_signal(signal.SIGSTOP)
        try:
            runner.read(0x20000000, 4)
        finally:
            server.process.send_signal(signal.SIGCONT)

    assert facts(failure(RunnerKeys(qemu="mps2-an385", timeout=500_000_000), run)) == (7, "device-silent")


# The end -------------------------------------------------------------------------------------------------------------

RUN_FOR_EVER = """
import sys
from pathlib import Path
from mlfbuild.project import RunnerKeys
from mlfbuild.runners import open_runner

with open_runner(eval(sys.argv[1]), "here") as runner:
    if sys.argv[2]:
        runner.load(Path(sys.argv[2]))
    print("running", flush=True)
    runner.go([0x1000], 100)
"""


@contextlib.contextmanager
def running_for_ever(keys: RunnerKeys, image: str) -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-c", f"from mlfbuild.project import *\n{RUN_FOR_EVER}", repr(keys), image]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        try:
            yield process
        finally:
            process.kill()


def processes_with(word: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().decode(errors="replace").replace("\0", " ")
            if word in words:
                found.append(words)
    return found


def test_nothing_is_left_running_if_mlfbuild_is_killed() -> None:
    port = free_port()
    with running_for_ever(RunnerKeys(gdb=f"localhost:{port}", start=tuple(qemu(port))), "") as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        names = {Path(f"/proc/{child}/comm").read_text().strip() for child in children}
        assert {"gdb-multiarch", "qemu-system-arm"} <= {re.sub("qemu-system-ar$", "qemu-system-arm", n) for n in names}
        process.kill()
        process.wait()
    wait_for(lambda: not processes_with(f"127.0.0.1:{port}"))
    wait_for(lambda: not any(Path(f"/proc/{child}/exe").exists() for child in children))


def test_the_device_runs_on_after_ctrl_c(image: Path) -> None:
    port = free_port()
    keys = RunnerKeys(gdb=f"localhost:{port}", server="qemu")
    with device_server(port):
        with running_for_ever(keys, str(image)) as process:
            process.send_signal(signal.SIGINT)
            assert process.wait(20) != 0
        time.sleep(0.1)
        with open_runner(keys, PLACE) as runner:
            assert runner.read(symbols(image)["rounds"], 4) != bytes(4)
            assert runner.read(symbols(image)["starts"], 4) == (42).to_bytes(4, "little")
