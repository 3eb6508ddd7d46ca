"""The stack of every kernel: the report's figures against the compiler's, and against what a run on a board takes."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.report.sizes.image import read_image
from mlfbuild.report.sizes.linker_map import read_map
from mlfbuild.report.stack.function import frame_of
from mlfbuild.report.stack.image import stacks_of
from mlfbuild.report.stack.pointers import read_program
from mlfbuild.targets import BOARDS, CPUS
from mlfbuild.verify.emulator import run_elf
from support.board_cases import BOARD_SUPPORT, Build, build_image
from support.host_c import launcher, run, write_tree
from support.kernel_networks import CORES, assembly_kernels, kernel_jobs

Tool = Callable[[str], str]

_MEASURE = r"""
#include "mlf_board.h"
extern uint32_t __stack_limit[];
static char memory[1 << 17] __attribute__((aligned(16)));

__attribute__((noinline)) static void measure(const char *name, void (*call)(void))
{
    volatile uint32_t *top;
    __asm__ volatile("mov %0, sp" : "=r"(top));
    for (volatile uint32_t *at = __stack_limit; at < top; at++) {
        *at = 0x5a5a5a5a;
    }
    call();
    const volatile uint32_t *deepest = __stack_limit;
    while (deepest < top && *deepest == 0x5a5a5a5a) {
        deepest++;
    }
    mlf_board_puts(name);
    mlf_board_put_decimal((top - deepest) * 4);
    mlf_board_puts("\n");
}
"""


def painted_and_known(cpu: str, level: str, folder: Path, tool: Tool, *, few: bool) -> dict[str, tuple[int, int]]:
    """Return the bytes of stack that each network took on the board, and its worst case in the report."""
    command = [tool("arm-none-eabi-gcc"), *CPUS[cpu].flags, level, "--specs=nano.specs", "-I", "host/include",
               "-I", BOARD_SUPPORT]  # fmt: skip
    main, calls, archives = [_MEASURE], [], []
    for library, inputs, outputs in kernel_jobs(cpu, few=few):
        name = library.modules[0].name
        write_tree(library, folder)
        run([*launcher(), *command, "-c", f"host/src/{name}_lib0.c", "-o", f"{name}.o"], folder)
        run([re.sub("gcc$", "ar", command[0]), "rcs", f"libmlf_{name}.a", f"{name}.o"], folder)
        archives.append(f"libmlf_{name}.a")
        values = [f"{{memory + {4096 * at}}}" for at in range(len(inputs))]
        assert len(outputs) == 1 and max(value.nbytes for value in (*inputs, *outputs)) < 1 << 16
        main.insert(0, f'#include "tvmgen_{name}.h"')
        main.append(f"static void call_{name}(void)\n{{\n    struct tvmgen_{name}_inputs in = {', '.join(values)};\n"
                    f"    struct tvmgen_{name}_outputs out = {{memory + (1 << 16)}};\n"
                    f"    (void)tvmgen_{name}_run(&in, &out);\n}}")  # fmt: skip
        calls.append(f'    measure("{name} ", call_{name});')
    (folder / "main.c").write_text("\n".join([*main, "int main(void)\n{", *calls, "    return 0;\n}\n"]))
    board = next(board for board in BOARDS.values() if board.cpu == cpu)
    run([*command, "main.c", *sorted(BOARD_SUPPORT.glob("*.c")), *archives, "-nostartfiles", "-L", BOARD_SUPPORT,
         "-T", BOARD_SUPPORT / f"{board.name}.ld", "-Wl,--gc-sections", "-Wl,-Map=app.elf.map", "-o", "app.elf"],
        folder)  # fmt: skip
    image = folder / "app.elf"
    painted = dict(line.split() for line in run_elf(image, board, timeout=120).stdout.splitlines())
    depths = stacks_of(
        read_image(image), read_map(folder / "app.elf.map").sections, dict(zip(painted, painted, strict=True))
    )
    unknown = {name: depth.reason for name, depth in depths.models.items() if depth.size is None}
    assert not unknown
    return {name: (int(taken), depths.models[name].size or 0) for name, taken in painted.items()}


def check_worst_case(cpu: str, level: str, folder: Path, tool: Tool, *, few: bool) -> None:
    found = painted_and_known(cpu, level, folder, tool, few=few)
    # What a run takes includes the frame of its caller in the test: a return address and two structs. Without
    # optimisation the worst case includes calls in branches that these networks never take.
    most = 2 if level == "-O0" else 1.25
    assert {name: pair for name, pair in found.items() if not pair[0] - 32 <= pair[1] <= most * pair[0]} == {}


def test_a_run_takes_no_more_than_the_worst_case(tmp_path: Path, tool: Tool) -> None:
    check_worst_case("cortex-m55", "-O2", tmp_path, tool, few=True)


@pytest.mark.sweep
@pytest.mark.parametrize("level", ["-O0", "-Og", "-Os", "-O2", "-O3"])
@pytest.mark.parametrize("cpu", CORES)
def test_a_run_of_any_kernel_takes_no_more_than_the_worst_case(
    cpu: str, level: str, tmp_path: Path, tool: Tool
) -> None:
    check_worst_case(cpu, level, tmp_path, tool, few=False)


@pytest.mark.parametrize(("cpu", "level"), [
    pytest.param(cpu, level, marks=[] if (cpu, level) == ("cortex-m4", "-O2") else pytest.mark.sweep)
    for cpu in CORES for level in ("-O0", "-Og", "-Os", "-O2", "-O3")
])  # fmt: skip
def test_every_kernel_takes_what_its_compiler_says(cpu: str, level: str, tmp_path: Path, tool: Tool) -> None:
    few = level == "-O2" and cpu == "cortex-m4"
    image = build_image(kernel_jobs(cpu, few=few), cpu, tmp_path, tool, Build((level, "-fstack-usage")))
    program = read_program(image)
    assert program is not None
    lines = (line.split("\t") for line in (tmp_path / "main.su").read_text().splitlines())
    said = {where.rsplit(":", 1)[1]: int(size) for where, size, _ in lines}
    frames = {
        symbol.name: frame_of(symbol.address, program.listing, program.decode, program.words)
        for symbol in read_image(image).symbols
        if symbol.function and symbol.name in said
    }
    assert len(frames) > 10
    assert [name for name, frame in frames.items() if frame.problem] == []
    assembly = assembly_kernels() & set(frames)
    assert all(said[name] == 0 < frames[name].size for name in assembly), "the compiler does not read assembly"
    assert {name: frame.size for name, frame in frames.items() if name not in assembly} == {
        name: said[name] for name in frames if name not in assembly
    }
