"""Budgets of programs that SCons links itself."""

from collections.abc import Callable
from pathlib import Path

import pytest

from support.firmware_repo import FirmwareRepo

PROJECT = """\
mlfbuild: 1
targets: {m4: {cpu: cortex-m4, board: mps2-an386}, pc: {cpu: host}}
models:
  alpha: {source: models/alpha.tflite, budget: {flash: LIMIT, stack: 1k, instructions: 1 M}}
firmware:
  app: {sources: [src/main.c], budget: {flash: LIMIT}}
"""
SCONSTRUCT = """\
env = Environment(
    tools=["default", "mlf"], CC="arm-none-eabi-gcc", AR="arm-none-eabi-ar", RANLIB="arm-none-eabi-ranlib",
    CCFLAGS=["-mcpu=cortex-m4", "-O1", "-ffunction-sections"],
    LINKFLAGS=["-mcpu=cortex-m4", "-nostartfiles", "-Wl,-e,main", "-Wl,--gc-sections"],
)
models = env.MlfModels("mlfbuild.yml", target="m4")
models.apply(env)
main = env.Object("build/main.o", "src/main.c")
env.Program("build/app.elf", main)
env.Program("build/other.elf", main, LINKFLAGS="$LINKFLAGS -Wl,--cref,-Map=build/own.map")
env.Program("build/none.elf", env.Object("build/none.o", "src/none.c"), LIBS=[])
"""
MAIN = '#include "tvmgen_alpha.h"\nint main(void) { return tvmgen_alpha_run(0, 0); }\n'
UNCHECKED = "not checked: instructions of model alpha: run `mlfbuild profile --target m4 --model alpha`"


@pytest.fixture
def repo(tmp_path: Path, tool: Callable[[str], str]) -> FirmwareRepo:
    tool("arm-none-eabi-gcc")
    repo = FirmwareRepo(tmp_path)
    repo.write("SConstruct", SCONSTRUCT)
    repo.write("src/main.c", MAIN)
    repo.write("src/none.c", "int main(void) { return 0; }\n")
    return repo


def test_every_program_is_checked(repo: FirmwareRepo) -> None:
    repo.write("mlfbuild.yml", PROJECT.replace("LIMIT", "64"))
    ran = repo.scons("-Q", "-k", status=2)
    assert "Traceback" not in ran.output
    for name in ("app", "other"):
        assert f"{name}.elf for m4: model alpha: takes " in ran.output, ran.output
        assert (repo.root / f"build/{name}.failed.elf").is_file()
        assert not (repo.root / f"build/{name}.elf").exists(), "it is linked again, even if a change is undone"
    assert ran.output.count(": the image: takes ") == 1, "only app is that firmware"
    assert "app.elf for m4: the image: takes " in ran.output
    assert (repo.root / "build/none.elf").is_file()
    repo.write("mlfbuild.yml", PROJECT.replace("LIMIT", "10 KiB"))
    ran = repo.build("-Q")
    assert {path for path in ran.written if path.endswith(".elf")} == {"build/app.elf", "build/other.elf"}
    assert {line for line in ran.output.splitlines() if line.startswith("mlfbuild:")} == {
        f"mlfbuild: {name}.elf: {UNCHECKED}" for name in ("app", "other")
    }
    maps = {path.name for path in (repo.root / "build").glob("*.map")}
    assert maps == {"app.elf.map", "own.map"}, "no second map, and none of a program without models"
    assert "`.' is up to date" in repo.build("-Q").output


@pytest.mark.parametrize("flags", ["-T app.ld", "-Wl,-Ttext=0x8000,--script=app.ld"])
def test_a_changed_linker_script_links_and_checks_again(flags: str, repo: FirmwareRepo) -> None:
    repo.write("mlfbuild.yml", PROJECT.replace("LIMIT", "10 KiB"))
    repo.replace("SConstruct", '"-Wl,-e,main"', ", ".join(f'"{flag}"' for flag in ["-Wl,-e,main", *flags.split()]))
    script = (
        "SECTIONS { .text : { *(.text*) *(.rodata*) } .bss : { *(.bss*) } _Min_Stack_Size = 4096; _estack = 8192; }\n"
    )
    repo.write("app.ld", script)
    repo.build("-Q", "build/app.elf")
    assert "is up to date" in repo.build("-Q", "build/app.elf").output
    repo.write("app.ld", script.replace("4096", "4"))
    assert "app.elf: model alpha: needs " in repo.scons("-Q", "build/app.elf", status=2).output
