"""Kernels under the flags of a compiler: right on the board at every level and with every instrumentation."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.native.kernels import kernel_headers
from mlfbuild.targets import BOARDS, CPUS
from mlfbuild.verify.emulator import run_elf
from support.board_cases import Build, build_image, build_program, clang_command, wrong_on_board
from support.examples import first_on_push
from support.host_c import WARNINGS, run, write_tree
from support.kernel_networks import CORES, assembly_kernels, kernel_jobs

Tool = Callable[[str], str]

SSP = "-fstack-protector-all"


def check(cpu: str, folder: Path, tool: Tool, how: Build, *, few: bool = True) -> Path:
    """Build the networks of the core's kernels, run them, and return the image."""
    image = build_image(kernel_jobs(cpu, few=few), cpu, folder, tool, how)
    assert wrong_on_board(image, cpu, tool) == []
    return image


def functions(image: Path) -> set[str]:
    return {line.split()[0].split(".")[0] for line in run(["nm", "--format=posix", image]).splitlines()}


@pytest.mark.parametrize("cpu", first_on_push(["cortex-m55", "cortex-m4"]))
def test_canaries_leave_assembly_alone(cpu: str, tmp_path: Path, tool: Tool) -> None:
    image = check(cpu, tmp_path, tool, Build(("-O2", SSP)))
    assert "__stack_chk_fail" in functions(image)
    assert len(functions(image) & assembly_kernels()) > 10


def test_a_compiler_that_puts_canaries_into_assembly_gets_kernels_in_c(tmp_path: Path, tool: Tool) -> None:
    """GCC before 11 lacks the attribute, and here so does the macro that asks for it."""
    old = ("-O2", "-U__has_attribute")
    check("cortex-m4", tmp_path, tool, Build((*old, SSP)))
    source = write_tree(kernel_jobs("cortex-m4", few=True)[0][0], tmp_path / "alone") / "host/src/net0_lib0.c"
    command = [tool("arm-none-eabi-gcc"), *CPUS["cortex-m4"].flags, *old, "-I", source.parents[1] / "include", "-S",
               "-o", "-", source]  # fmt: skip
    with_canaries, without = (
        subprocess.run([*command, *flags], capture_output=True, text=True, check=True) for flags in ([SSP], [])
    )
    assert with_canaries.stderr.count("note: '#pragma message: mlfbuild: slower kernels in C") == 1
    assert "smmlar" not in with_canaries.stdout
    assert "smmlar" in without.stdout
    assert "#pragma" not in without.stderr


def code(file: Path) -> str:
    """Disassemble ``file``; registers are called r0 to r15."""
    return run(["arm-none-eabi-objdump", "-d", "-M", "reg-names-raw", file])


@pytest.mark.parametrize("cpu", first_on_push(["cortex-m55", "cortex-m4", "cortex-m0plus"]))
def test_kernels_need_neither_r9_nor_a_frame_pointer(cpu: str, tmp_path: Path, tool: Tool) -> None:
    image = check(cpu, tmp_path, tool, Build(("-O0", "-fno-omit-frame-pointer", "-ffixed-r9")), few=False)
    assert len(functions(image) & assembly_kernels()) >= {"cortex-m0plus": 7, "cortex-m4": 15, "cortex-m55": 48}[cpu]
    assert not re.search(r"\br9\b", code(tmp_path / "main.o"))


def compile_all(cpu: str, folder: Path, command: list[str | Path], *flags: str) -> None:
    """Compile the networks of the core's kernels as one file ``all.c`` in ``folder``, without warnings."""
    networks = [library for library, _, _ in kernel_jobs(cpu, few=True)]
    for library in networks:
        write_tree(library, folder)
    (folder / "all.c").write_text("".join(f'#include "host/src/net{at}_lib0.c"\n' for at in range(len(networks))))
    run([*command, *flags, "-I", "host/include", "all.c"], folder)


@pytest.mark.parametrize("flag", ["-ffixed-r9", "-frwpi"])
def test_clang_reserves_r9(flag: str, tmp_path: Path, newest_clang: dict[str, str], tool: Tool) -> None:
    clang = clang_command(newest_clang["MLFBUILD_CLANG"], "cortex-m55", tool)
    compile_all("cortex-m55", tmp_path, [*clang], "-O2", flag, "-c")
    for line in re.findall(r".*\br9\b.*", code(tmp_path / "all.o")):
        assert flag == "-frwpi" and re.search(r"\t(ldr|str|add)[a-z.]*\t.*,.*\br9\b", line), "r9 is the base of data"


@pytest.mark.parametrize("cpu", first_on_push(["cortex-m4", "cortex-m55"]))
def test_kernels_leave_the_base_of_position_independent_data_alone(cpu: str, tmp_path: Path, tool: Tool) -> None:
    """With -msingle-pic-base, the loader sets r9 once, and GCC's own code only loads addresses with it."""
    flags = ("-O1", "-fpic", "-msingle-pic-base", "-mpic-register=r9", "-mno-pic-data-is-text-relative")
    compile_all(cpu, tmp_path, [tool("arm-none-eabi-gcc"), *CPUS[cpu].flags], *flags, "-c")
    uses = re.findall(r".*\br9\b.*", code(tmp_path / "all.o"))
    assert uses, "the data has a base"
    for line in uses:
        assert re.search(r"\tldr(\.w)?\tr(?!9)\d+, \[r9, ", line), line


def test_code_that_only_executes_holds_no_data(tmp_path: Path, tool: Tool) -> None:
    check("cortex-m55", tmp_path, tool, Build(("-O2", "-mpure-code"), unity=False))
    for made in [tmp_path / "main.o", *tmp_path.glob("net*.o")]:
        assert not re.search(r"\t(\.word|\.short|\.byte|tb[bh])\b|\[r15", code(made)), made


LEVELS = ("-O0", "-Og", "-Os", "-O2", "-O3", "-Ofast", "-O2 -flto")
EXTRAS = {
    "no flag": "", "stack protector": SSP, "frame pointer": "-fno-omit-frame-pointer",
    "undefined behaviour": "-fsanitize=undefined -fsanitize-undefined-trap-on-error", "short enums": "-fshort-enums",
    "unsigned char": "-funsigned-char", "aligned access": "-mno-unaligned-access", "pure code": "-mpure-code",
    "fixed r9": "-ffixed-r9",
}  # fmt: skip
FOR_CLANG = {
    "-mpure-code": "-mexecute-only",
    "-fsanitize=undefined -fsanitize-undefined-trap-on-error": "-fsanitize=undefined -fsanitize-trap=undefined",
}


def build_with(compiler: str, level: str, extra: str, clang: str, *, unity: bool) -> Build | None:
    """Return how to build with these flags, or ``None`` if that needs a linker that is not installed."""
    if compiler == "gcc":
        return Build((*level.split(), *extra.split()), unity=unity)
    lld = next(filter(None, map(shutil.which, [Path(clang).name.replace("clang", "ld.lld"), "ld.lld"])), "")
    flags = (*level.split(), *FOR_CLANG.get(extra, extra).split())
    return None if "-flto" in flags and not lld else Build(flags, clang=clang, lld=lld, unity=unity)


@pytest.mark.sweep
@pytest.mark.parametrize("unity", [True, False], ids=["unity", "separate"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("extra", EXTRAS.values(), ids=EXTRAS)
@pytest.mark.parametrize("cpu", CORES)
def test_all_flags(
    cpu: str, extra: str, compiler: str, unity: bool, tmp_path: Path, tool: Tool, newest_clang: dict[str, str]
) -> None:
    for level in LEVELS:
        how = build_with(compiler, level, extra, newest_clang["MLFBUILD_CLANG"], unity=unity)
        if how is not None:
            folder = tmp_path / level.replace(" ", "")
            folder.mkdir()
            check(cpu, folder, tool, how, few=cpu not in ("cortex-m4", "cortex-m55"))
            shutil.rmtree(folder)


@pytest.mark.parametrize(("cpu", "compiler", "level", "extra", "unity"), [
    ("cortex-m3", "clang", "-Os", "aligned access", False),
    ("cortex-m33", "gcc", "-Og", "undefined behaviour", True),
])  # fmt: skip
def test_representatives_of_all_flags(
    cpu: str, compiler: str, level: str, extra: str, unity: bool, tmp_path: Path, tool: Tool,
    newest_clang: dict[str, str],
) -> None:  # fmt: skip
    how = build_with(compiler, level, EXTRAS[extra], newest_clang["MLFBUILD_CLANG"], unity=unity)
    assert how is not None
    check(cpu, tmp_path, tool, how)


def test_main_in_cxx(tmp_path: Path, tool: Tool) -> None:
    warnings = ("-Wall", "-Wextra", "-Wpedantic", "-Wcast-qual", "-Werror")
    check("cortex-m4", tmp_path, tool, Build(("-O1", *warnings), unity=False, cxx=True))


def test_casts_keep_qualifiers(tmp_path: Path, tool: Tool) -> None:
    for cpu in ("cortex-m0plus", "cortex-m4", "cortex-m55"):
        compiler = [tool("arm-none-eabi-gcc"), *CPUS[cpu].flags]
        compile_all(cpu, tmp_path / cpu, compiler, *WARNINGS, "-Wcast-qual", "-fsyntax-only")


_PRINTS = r"""
#include <stdio.h>
int main(void)
{
    FILE *const file = fopen("lines.txt", "r");
    char line[16];
    if (file == NULL || fgets(line, sizeof line, file) == NULL || fclose(file) != 0) {
        return 1;
    }
    printf("read %s", line);
    return 0;
}
"""


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_board_support_links_with_link_time_optimisation(
    compiler: str, tmp_path: Path, tool: Tool, newest_clang: dict[str, str]
) -> None:
    how = build_with(compiler, "-O2 -flto", SSP, newest_clang["MLFBUILD_CLANG"], unity=True)
    if how is None:
        pytest.skip("clang needs lld for link-time optimisation, and lld is not installed")
    (tmp_path / "lines.txt").write_text("first\nsecond\n")
    image = build_program(_PRINTS, "cortex-m4", tmp_path, tool, how)
    assert run_elf(image, BOARDS["mps2-an386"], timeout=60, cwd=tmp_path).stdout == "read first\n"


@pytest.mark.parametrize("assumption", ["-1 >> 1", "(int32_t)UINT32_MAX", "sizeof(int)"])
def test_compilation_stops_if_the_compiler_breaks_an_assumption(assumption: str, tmp_path: Path) -> None:
    source, header = tmp_path / "assumptions.c", kernel_headers()["compiler.h"].decode()
    check = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", source]
    source.write_text(header)
    subprocess.run(check, check=True)
    assert header.count(assumption) == 1
    source.write_text(header.replace(assumption, "12345"))
    assert subprocess.run(check, capture_output=True, check=False).returncode != 0
