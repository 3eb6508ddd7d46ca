"""scripts/setup.sh on machines that lack something; every program it calls is a stand-in."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PACKAGES = {
    "gcc": "gcc", "arm-none-eabi-gcc": "gcc-arm-none-eabi", "qemu-system-arm": "qemu-system-arm", "cmake": "cmake",
    "ninja": "ninja-build",
}  # fmt: skip
TEST_PACKAGES = {
    "git": "git", "ssh-keygen": "openssh-client", "bwrap": "bubblewrap", "cargo": "cargo",
    "gdb-multiarch": "gdb-multiarch", "cppcheck": "cppcheck",
    "clang": "clang", "riscv64-unknown-elf-gcc": "gcc-riscv64-unknown-elf", "qemu-system-riscv32": "qemu-system-misc",
    "chromium": "chromium", "chromedriver": "chromium-driver", "nginx": "nginx", "openssl": "openssl",
}  # fmt: skip
REAL_TOOLS = (
    "sh", "grep", "dirname", "cat", "echo", "true", "cksum", "xargs", "env", "mkdir", "chmod", "rm", "pwd", "id",
)  # fmt: skip


@dataclass(frozen=True)
class Machine:
    """A checkout and a PATH of its own."""

    root: Path

    @property
    def bin(self) -> Path:
        return self.root / "bin"

    def program(self, name: str, script: str = "exit 0") -> None:
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def setup(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.root / "scripts/setup.sh", *arguments],
            env={"PATH": str(self.bin), "PYTHON": "python3", "HOME": str(self.root)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def calls(self) -> list[str]:
        log = self.root / "calls"
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A Debian machine of user 1000 with every program there and the environment made."""
    machine = Machine(tmp_path)
    (tmp_path / "scripts").mkdir()
    machine.bin.mkdir()
    shutil.copy(REPOSITORY / "scripts/setup.sh", tmp_path / "scripts")
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    for tool in REAL_TOOLS:
        real = shutil.which(tool)
        assert real is not None
        (machine.bin / tool).symlink_to(real)
    for name in (*PACKAGES, *TEST_PACKAGES):
        machine.program(name)
    (tmp_path / "scripts/libc.a").touch()
    machine.program("arm-none-eabi-gcc", f"echo {tmp_path}/scripts/libc.a")
    machine.program("riscv64-unknown-elf-gcc", f"echo {tmp_path}/scripts/libc.a")
    machine.program("id", "echo 1000")
    machine.program("python3", f'exec {sys.executable} "$@"')
    machine.program("apt-get", f'echo "apt-get $*" >>{tmp_path}/calls')
    folder = machine.root / ".venv/bin"
    folder.mkdir(parents=True)
    python = folder / "python"
    python.write_text(f'#!/bin/sh\n[ "$1" = -m ] && echo "python $*" >>{machine.root}/calls\nexit 0\n')
    python.chmod(0o755)
    return machine


def test_second_run_calls_neither_apt_nor_pip(machine: Machine) -> None:
    assert machine.setup().returncode == 0
    assert any("pip install" in call and call.endswith(" --editable .") for call in machine.calls())
    (machine.root / "calls").unlink()
    done = machine.setup()
    assert (done.returncode, done.stdout, done.stderr, machine.calls()) == (0, "", "", [])


def test_changed_pyproject_installs_again(machine: Machine) -> None:
    machine.setup()
    (machine.root / "calls").unlink()
    (machine.root / "pyproject.toml").write_text("[project]\nname='x'\n")
    assert machine.setup().returncode == 0
    assert machine.calls()[-1].endswith("--editable .")


def test_the_test_suite_needs_more_than_the_demo(machine: Machine) -> None:
    machine.setup()
    assert machine.setup("test").returncode == 0
    assert machine.calls()[-1].endswith("--editable .[test]")
    (machine.root / "calls").unlink()
    assert machine.setup().returncode == 0
    assert machine.calls() == []  # the demo has everything then


@pytest.mark.parametrize("has_pip", [True, False])
def test_the_demo_uses_the_pip_of_the_python_that_made_the_environment(machine: Machine, has_pip: bool) -> None:
    own, log = machine.root / ".venv/bin/python", machine.root / "calls"
    there = machine.root / "pip"
    lacks = f'[ -e {there} ] || case "$*" in *"pip --version"*) exit 1;; *ensurepip*) touch {there};; esac'
    own.write_text(own.read_text().replace("exit 0", f"{lacks}\nexit 0"))
    (machine.bin / "touch").symlink_to(shutil.which("touch") or "")
    pip = f'case "$*" in *"-m pip"*) echo "host $*" >>{log}; exit {0 if has_pip else 1};; esac'
    machine.program("python3", f'{pip}\nexec {sys.executable} "$@"')
    assert machine.setup().returncode == 0
    installs = [call.split(" -m ")[0] for call in machine.calls() if " install " in call]
    assert installs == (["host"] if has_pip else ["python"])
    assert any("ensurepip" in call for call in machine.calls()) is not has_pip
    assert machine.setup("test").returncode == 0
    assert machine.calls()[-1] == "python -m pip install --quiet --no-compile --editable .[test]"


def test_without_root_it_says_what_to_install(machine: Machine) -> None:
    for name in (*PACKAGES, *TEST_PACKAGES):
        (machine.bin / name).unlink()
    done = machine.setup()
    packages = "gcc libc6-dev gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm cmake ninja-build"
    assert done.returncode == 3
    assert f"apt-get install --no-install-recommends {packages}\n" in done.stdout
    assert machine.calls() == []


def test_the_test_suite_needs_more_compilers_than_the_demo(machine: Machine) -> None:
    for name in TEST_PACKAGES:
        (machine.bin / name).unlink()
    assert machine.setup().returncode == 0
    done = machine.setup("test")
    assert done.returncode == 3
    compilers = (
        r"gdb-multiarch cppcheck clang(-16)? gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf qemu-system-misc"
    )
    first = "git openssh-client cargo bubblewrap"
    servers = "( nginx)? openssl"  # that of this machine is found in /usr/sbin, which users do not have in PATH
    assert re.search(rf"missing: {first} {compilers} chromium chromium-driver{servers}\n", done.stdout)


def test_a_clang_that_is_too_old_does_not_count(machine: Machine) -> None:
    machine.program("clang", 'case "$*" in *cortex-m85*) exit 1;; esac')
    assert re.search(r"missing: clang(-16)?\n", machine.setup("test").stdout)
    machine.program("clang-17")
    assert machine.setup("test").returncode == 0


def test_of_picolibc_only_what_is_tested_is_unpacked(machine: Machine) -> None:
    machine.program("id", "echo 0")
    machine.program("riscv64-unknown-elf-gcc", "echo picolibc.specs")
    machine.setup("test")
    (install,) = (call for call in machine.calls() if " install " in call and call.startswith("apt-get"))
    assert "--path-exclude=/usr/lib/picolibc/riscv64-unknown-elf/lib/* " in install
    assert "--path-include=/usr/lib/picolibc/riscv64-unknown-elf/lib/rv32im/* " in install
    assert install.endswith(" picolibc-riscv64-unknown-elf")


def test_ccache_comes_with_packages_that_tests_require(machine: Machine) -> None:
    machine.program("id", "echo 0")
    assert machine.setup("test").returncode == 0
    assert not [call for call in machine.calls() if call.startswith("apt-get")], "the tests pass without it"
    (machine.bin / "git").unlink()
    machine.setup("test")
    (install,) = (call for call in machine.calls() if call.startswith("apt-get") and " install " in call)
    assert install.endswith(" ccache git")


def test_without_a_usable_python_it_asks_for_debians(machine: Machine) -> None:
    machine.program("python3", "exit 1")
    done = machine.setup()
    assert done.returncode == 3
    assert done.stdout.startswith("setup: missing: python3-venv\n")


def test_newlib_is_a_package_of_its_own(machine: Machine) -> None:
    machine.program("arm-none-eabi-gcc", "echo libc.a")
    assert machine.setup().stdout.startswith("setup: missing: libnewlib-arm-none-eabi\n")


def test_without_apt_it_points_to_the_list_of_packages(machine: Machine) -> None:
    (machine.bin / "ninja").unlink()
    (machine.bin / "apt-get").unlink()
    done = machine.setup()
    assert done.returncode == 3
    assert done.stdout.startswith("setup: missing: ninja-build\n")
    assert "docs/tutorial.md" in done.stdout


@pytest.mark.parametrize("way", ["root", "sudo"])
def test_with_root_it_installs_only_what_is_missing(machine: Machine, way: str) -> None:
    if way == "root":
        machine.program("id", "echo 0")
    else:
        machine.program("sudo", '[ "$1" = -n ] && shift\nexec "$@"')
    (machine.bin / "qemu-system-arm").unlink()
    make = f"printf '#!/bin/sh\\n' >{machine.bin}/qemu-system-arm; chmod +x {machine.bin}/qemu-system-arm"
    machine.program("apt-get", f'echo "apt-get $*" >>{machine.root}/calls\ncase "$*" in *install*) {make};; esac')
    done = machine.setup()
    assert done.returncode == 0, done.stdout
    apt = [call for call in machine.calls() if call.startswith("apt-get")]
    assert apt == ["apt-get -qq update", "apt-get -qq install -y --no-install-recommends qemu-system-arm"]


def test_a_failed_installation_stops_it(machine: Machine) -> None:
    machine.program("id", "echo 0")
    (machine.bin / "cmake").unlink()
    machine.program("apt-get", 'case "$*" in *install*) exit 100;; esac')
    done = machine.setup()
    assert done.returncode == 3
    assert "apt-get could not install" in done.stdout


def test_an_environment_that_pip_left_half_made_is_finished(machine: Machine) -> None:
    python = machine.root / ".venv/bin/python"
    whole = python.read_text()
    python.write_text(whole.replace("exit 0", 'case "$*" in *install*) exit 1;; esac'))
    assert machine.setup().returncode != 0
    python.write_text(whole)
    assert machine.setup().returncode == 0
    assert machine.setup().stdout == ""


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_help_lists_every_target() -> None:
    environment = {**os.environ, "MAKEFLAGS": ""}
    done = subprocess.run(
        ["make", "--no-print-directory", "help"],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    listed = [line.split()[0] for line in done.stdout.splitlines()]
    assert listed == [
        "help", "setup", "demo", "test", "test-compiler", "lint", "generate", "new-operator", "docs", "lock",
        "benchmark", "figures", "onnx-tests", "screenshots", "sweep", "fuzz", "fuzz-coverage", "faults", "release",
        "clean",
    ]  # fmt: skip
