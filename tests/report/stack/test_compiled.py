"""Worst-case stacks of compiled C, compared with the compilers' figures."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.core.errors import InputFileError, ToolNotFoundError
from mlfbuild.report.sizes.image import read_image
from mlfbuild.report.sizes.linker_map import read_map
from mlfbuild.report.stack.deepest_stack import StackDepth, StackFrame
from mlfbuild.report.stack.function import frame_of
from mlfbuild.report.stack.image import stacks_of
from mlfbuild.report.stack.pointers import read_program
from mlfbuild.targets import CPUS, Cpu
from support.errors import raises

MODEL = """\
typedef int function(volatile int *);
extern int in_the_library(volatile int *);
__attribute__((noinline)) static int small(volatile int *x) { return x[0] + 1; }
__attribute__((noinline)) static int large(volatile int *x)
{
    volatile int own[300];
    for (int i = 0; i < 300; i++) own[i] = x[i % 4];
    return own[x[1] % 300];
}
__attribute__((noinline)) static int five(int a, int b, int c, int d, volatile int *e) { return a + b * c - d + e[1]; }
__attribute__((noinline)) static int choose(int which, volatile int *x)
{
    volatile double d = x[0];
    switch (which) {
    case 0: return small(x) + (int)d;
    case 1: return large(x + 1);
    case 2: return in_the_library(x);
    case 3: x[2] = 5; return small(x) * x[3];
    case 4: return five(x[0], x[1], x[2], x[3], x);
    case 5: x[1] = x[2] / x[3]; break;
    case 6: return small(x + 2) + large(x + 1);
    case 7: d = d * x[1]; break;
    }
    return (int)d;
}
static function *const chosen[2] = {small, large};
__attribute__((noinline)) int through(volatile int *x) { return chosen[x[3] & 1](x) + 1; }
int32_t tvmgen_alpha_run(volatile int *x);
int32_t tvmgen_alpha_run(volatile int *x) { return choose(x[0], x) + through(x); }
"""
MAIN = """\
#include <stdint.h>
int32_t tvmgen_alpha_run(volatile int *);
int in_the_library(volatile int *x);
__attribute__((noinline)) int in_the_library(volatile int *x) { volatile int own[20]; own[x[0]] = 1; return own[x[1]]; }
static volatile int x[8];
int main(void) { return tvmgen_alpha_run(x); }
void _exit(int status);
void _exit(int status) { (void)status; for (;;) { } }
"""
Linker = Callable[..., Path]


def compiler(cpu: Cpu, family: str, tool: Callable[[str], str]) -> list[str]:
    if not cpu.is_arm:
        return [tool("riscv64-unknown-elf-gcc"), "--specs=picolibc.specs", *cpu.flags]
    if family == "gcc":
        return [tool("arm-none-eabi-gcc"), *cpu.flags]
    clang = next(name for name in ("clang", "clang-16", "clang-15") if name == "clang-15" or _knows(name, cpu))
    return [tool(clang), "--target=arm-none-eabi", *cpu.flags, "-fshort-enums", "-ffreestanding"]


def _knows(name: str, cpu: Cpu) -> bool:
    try:
        command = [name, "--target=arm-none-eabi", *cpu.flags, "-xc", "-fsyntax-only", "/dev/null"]
        return subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        return False


@pytest.fixture
def link(tmp_path: Path, tool: Callable[[str], str]) -> Linker:
    """Return a function that links a model's library, given as C, into an image with ``MAIN`` or another main."""

    def linked(model: str, cpu_name: str, *flags: str, main: str = MAIN, family: str = "gcc") -> Path:
        cpu = CPUS[cpu_name]
        (tmp_path / "alpha_lib0.c").write_text(f"#include <stdint.h>\n{model}")
        (tmp_path / "main.c").write_text(main)
        command = [*compiler(cpu, family, tool), "-ffunction-sections", "-fstack-usage", *flags]
        for name in ("alpha_lib0", "main"):
            subprocess.run([*command, "-c", f"{name}.c", "-o", f"{name}.o"], cwd=tmp_path, check=True)
        gcc = compiler(cpu, "gcc", tool)
        subprocess.run(
            [re.sub("gcc$", "ar", gcc[0]), "rcs", "libmlf_alpha.a", "alpha_lib0.o"], cwd=tmp_path, check=True
        )
        options = ["-nostartfiles", "-Wl,-e,main", "-Wl,--gc-sections", "-Wl,-Map=%.map"]
        subprocess.run([*gcc, *options, "main.o", "libmlf_alpha.a", "-o", "app.elf"], cwd=tmp_path, check=True)
        return tmp_path / "app.elf"

    return linked


def depth(elf: Path) -> StackDepth:
    return stacks_of(read_image(elf), read_map(elf.with_name("app.elf.map")).sections, {"alpha": "alpha"}).models[
        "alpha"
    ]


def figures(folder: Path) -> dict[str, int]:
    """Return the compiler's figures by function (``-fstack-usage``)."""
    lines = [line.split("\t") for path in folder.glob("*.su") for line in path.read_text().splitlines()]
    return {where.rsplit(":", 1)[1].partition(".")[0]: int(size) for where, size, _ in lines}


ROWS = [
    ("cortex-m0plus", "gcc"), ("cortex-m0plus", "clang"), ("cortex-m4", "gcc"), ("cortex-m4", "clang"),
    ("cortex-m55", "gcc"), ("cortex-a9", "gcc"), ("rv32imc", "gcc"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("cpu", "family", "level"),
    [
        pytest.param(*row, level, marks=[] if level == "-O2" or row == ("cortex-m4", "gcc") else pytest.mark.sweep)
        for row in ROWS
        for level in ("-O0", "-O2", "-Os")
    ],
)
def test_stack_of_every_function_equals_compiler_figure(link: Linker, cpu: str, family: str, level: str) -> None:
    elf = link(MODEL, cpu, level, family=family)
    program, said = read_program(elf), figures(elf.parent)
    assert program is not None
    found = {}
    for symbol in read_image(elf).symbols:
        name = symbol.name.partition(".")[0]
        if symbol.function and name in said:
            frame = frame_of(symbol.address, program.listing, program.decode, program.words)
            assert not frame.problem, f"{name}: {frame.problem}"
            found[name] = frame.size
    assert {"choose", "large", "tvmgen_alpha_run", "main"} <= set(found)
    assert found == {name: said[name] for name in found}
    worst = depth(elf)
    assert worst.size == sum(part.size for part in worst.path) > 1200, worst
    names = [part.function for part in worst.path if not part.function.startswith("__")]  # a division may be a call
    assert names[0] == "tvmgen_alpha_run" and names[-1] == "large"


def test_pushes_in_assembler_count(link: Linker) -> None:
    model = """
        int32_t tvmgen_alpha_run(volatile int *x)
        {
            __asm__ volatile("push {r4-r11}\\n sub sp, #24\\n add sp, #24\\n pop {r4-r11}" ::: "memory");
            return x[0];
        }
    """
    elf = link(model, "cortex-m4", "-O2")
    assert figures(elf.parent)["tvmgen_alpha_run"] == 0, "GCC does not look inside"
    assert depth(elf) == StackDepth(56, (StackFrame("tvmgen_alpha_run", 56),))


UNKNOWN = {
    "array": (
        """
        int g(volatile char *);
        __attribute__((noinline)) int g(volatile char *x) { return x[3]; }
        int32_t tvmgen_alpha_run(volatile int *x) { volatile char own[x[0]]; own[2] = 1; return g(own) + 1; }
        """,
        r"tvmgen_alpha_run changes its stack pointer by an amount known only at run time, at 0x[0-9a-f]+ \(.*\): .*",
    ),
    "recursion": (
        """
        __attribute__((noinline)) int g(volatile int *x) { return x[0] ? g(x + 1) * 3 + g(x + 2) : 1; }
        int32_t tvmgen_alpha_run(volatile int *x) { return g(x) + 1; }
        """,
        "g calls itself: recursion",
    ),
    "recursion of two": (
        """
        __attribute__((noinline)) static int g(volatile int *x);
        __attribute__((noinline)) static int h(volatile int *x) { return x[0] ? g(x + 1) * 3 : 1; }
        static int g(volatile int *x) { return x[1] ? h(x + 1) * 5 : 2; }
        int32_t tvmgen_alpha_run(volatile int *x) { return g(x) + 1; }
        """,
        "h calls g, which is already running: recursion",
    ),
    "pointer": (
        """
        typedef int function(volatile int *);
        int32_t tvmgen_alpha_run(volatile int *x) { return ((function *)(uintptr_t)x[3])(x) + 1; }
        """,
        r"tvmgen_alpha_run calls a function through a pointer, at 0x[0-9a-f]+",
    ),
    "ROM": (
        """
        typedef int function(volatile int *);
        int32_t tvmgen_alpha_run(volatile int *x) { return ((function *)0x40001235)(x) + 1; }
        """,
        "tvmgen_alpha_run calls 0x40001234, which is not code",
    ),
    "entry": ("int32_t tvmgen_alpha_other(void) { return 1; }", "the image has no function tvmgen_alpha_run"),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_unknown_stacks_have_a_reason(link: Linker, case: str) -> None:
    model, reason = UNKNOWN[case]
    main = MAIN if "alpha_run" in model else MAIN.replace("tvmgen_alpha_run(x)", "0")
    found = depth(link(f"{model}\n", "cortex-m4", "-O2", "-Wno-vla", main=main))
    assert found.size is None and re.fullmatch(reason, found.reason), found


def test_the_end_of_a_program_whose_stack_was_overwritten_does_not_count(link: Linker) -> None:
    model = """
        int32_t tvmgen_alpha_run(volatile int *x) { volatile char own[40]; own[x[0]] = 1; return own[x[1]]; }
    """
    ending = "void *__stack_chk_guard; void __stack_chk_fail(void) { ((void (*)(void))__stack_chk_guard)(); }\n"
    found = depth(link(model, "cortex-m4", "-O2", "-fstack-protector-strong", main=MAIN + ending))
    assert [part.function for part in found.path] == ["tvmgen_alpha_run"], found.reason


def test_executor_calls_the_functions_of_its_table(link: Linker) -> None:
    model = """
        typedef int packed(volatile int *);
        __attribute__((noinline)) static int step(volatile int *x) { return x[0]; }
        static packed *const steps[2] = {step, 0};
        __attribute__((noinline)) static int first(volatile int *x)
        {
            volatile int own[8];
            own[x[0]] = 1;
            return own[x[1]];
        }
        __attribute__((noinline)) static int second(volatile int *x)
        {
            volatile int own[50];
            own[x[0]] = 1;
            return own[x[1]] + steps[x[2] & 1](x) + 1;
        }
        struct mlf_call { packed *function; int count; };
        static const struct mlf_call mlf_calls[2] = {{first, 1}, {second, 2}};
        int32_t tvmgen_alpha_run(volatile int *x)
        {
            int32_t sum = 0;
            for (volatile int i = 0; i < 2; i++) sum += mlf_calls[i].function(x);
            return sum;
        }
    """
    found = depth(link(model, "cortex-m4", "-Os"))
    assert [part.function for part in found.path] == ["tvmgen_alpha_run", "second"], "an operator calls no other one"
    assert found.size is not None and 200 < found.size < 260


def test_a_pointer_does_not_lead_to_a_running_function(link: Linker) -> None:
    model = """
        typedef int function(volatile int *);
        __attribute__((noinline)) static int first(volatile int *x);
        __attribute__((noinline)) static int second(volatile int *x);
        static function *const both[2] = {first, second};
        static int first(volatile int *x)
        {
            volatile int own[10];
            own[x[0]] = 1;
            return both[x[1] & 1](x + own[2]) + 1;
        }
        static int second(volatile int *x) { volatile int own[90]; own[x[0]] = 1; return own[x[2]] + 1; }
        int32_t tvmgen_alpha_run(volatile int *x) { return first(x) + both[x[3] & 1](x); }
    """
    found = depth(link(model, "cortex-m4", "-O1"))
    assert [part.function for part in found.path] == ["tvmgen_alpha_run", "first", "second"]
    assert found.size is not None and 400 < found.size < 480


def test_main_includes_its_callees(link: Linker) -> None:
    elf = link(MODEL, "cortex-m4", "-O2")
    image = read_image(elf)
    found = stacks_of(image, read_map(elf.with_name("app.elf.map")).sections, {"alpha": "kws"})
    (depth,) = found.models.values()
    assert list(found.models) == ["kws"] and depth.size is not None and found.main.size is not None
    assert found.main.size >= depth.size and found.main.path[0].function == "main"


def test_the_processor_of_an_image(tmp_path: Path, tool: Callable[[str], str]) -> None:
    (tmp_path / "host.c").write_text(
        "int tvmgen_alpha_run(void) { return 1; }\nint main(void) { return tvmgen_alpha_run(); }\n"
    )
    subprocess.run([tool("gcc"), "host.c", "-o", "app.elf", "-Wl,-Map=%.map"], cwd=tmp_path, check=True)
    found = depth(tmp_path / "app.elf")
    assert (found.size, found.reason) == (None, "mlfbuild decodes only instructions of 32-bit Arm and RISC-V")


def test_objdump_is_found_beside_the_compiler(
    link: Linker, tmp_path: Path, tool: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    elf = link(MODEL, "cortex-m4", "-O2")
    tools = tmp_path / "toolchain"
    tools.mkdir()
    for name in ("gcc", "objdump"):
        (tools / f"arm-none-eabi-{name}").symlink_to(tool(f"arm-none-eabi-{name}"))
    monkeypatch.setenv("MLFBUILD_ARM_NONE_EABI_GCC", str(tools / "arm-none-eabi-gcc"))
    monkeypatch.setenv("PATH", "")
    assert depth(elf).size is not None
    (tools / "arm-none-eabi-objdump").unlink()
    with pytest.raises(
        ToolNotFoundError,
        match=r"^arm-none-eabi-objdump: program not found; install it \(Debian: apt-get install binutils-arm-none-"
        r"eabi\) or set MLFBUILD_ARM_NONE_EABI_OBJDUMP to its path$",
    ):
        depth(elf)


def test_a_damaged_image_is_refused(tmp_path: Path) -> None:
    (tmp_path / "app.elf").write_bytes(b"\x7fELF\x01\x01\x01" + bytes(30))
    with raises(InputFileError, "image-damaged", "app.elf"):
        read_program(tmp_path / "app.elf")
