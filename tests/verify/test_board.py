"""The guarantees of the board support, checked by running one image on every board."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from mlfbuild.core.errors import TimedOutError, UsageError
from mlfbuild.library import CodegenFile, Library, Module, ModuleTarget
from mlfbuild.targets import BOARDS, GCC, RUNTIME, Board, board_called, compiler_program, cpu_called, emulated_board
from mlfbuild.verify.emulator import EmulatorRun, run_elf
from mlfbuild.verify.emulator.board_image import fitting_cpu
from support.board_cases import Build, build_program
from support.errors import raises
from support.examples import first_on_push

SOURCE = Path(__file__).with_name("board_app.c")
FAULT_STATUS = 112

Run = Callable[..., EmulatorRun]


ON_PUSH = ("mps2-an385", "vexpress-a9", "virt")
"""A board of each architecture."""
PARAMS = [pytest.param(board, marks=[] if board.name in ON_PUSH else pytest.mark.sweep) for board in BOARDS.values()]


@pytest.fixture(scope="module", params=PARAMS, ids=lambda board: board.name)
def board(request: pytest.FixtureRequest) -> Board:
    return request.param


@pytest.fixture(scope="module")
def image(board: Board, build_firmware: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_firmware(tmp_path_factory.mktemp(board.name), board, {"main.c": SOURCE.read_text()})


@pytest.fixture(scope="module")
def run(board: Board, image: Path, tool: Callable[[str], str]) -> Run:
    tool(board.emulator)

    def on_board(*arguments: str, cwd: Path | None = None) -> EmulatorRun:
        return run_elf(image, board, arguments=arguments, cwd=cwd, timeout=60)

    return on_board


@pytest.mark.parametrize("status", first_on_push([42, 0, 1, 255]))
def test_result_of_main_is_the_exit_status(run: Run, status: int) -> None:
    assert run("status", str(status)) == EmulatorRun("", status)


def test_arguments_are_passed(run: Run) -> None:
    assert run("arguments", "a,b", "c=d").stdout == "0=firmware\n1=arguments\n2=a,b\n3=c=d\n"


def test_output_without_stdio(run: Run) -> None:
    assert run("puts") == EmulatorRun("least -2147483648 most 2147483647\n", 0)


def test_reset_initialises_all_memory_except_noinit(run: Run) -> None:
    assert run("reset").exit_status == 0


def test_large_constants_and_arenas_fit(run: Run) -> None:
    assert run("large").exit_status == 0


def test_fpu_and_vector_unit_are_enabled(run: Run) -> None:
    assert run("compute") == EmulatorRun("26.870 2\n", 0)


def test_files_of_the_host(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in.bin").write_bytes(bytes(range(256)) * 5)
    assert run("copy", "in.bin", "out.bin", cwd=tmp_path) == EmulatorRun("1280 bytes\n", 0)
    assert (tmp_path / "out.bin").read_bytes() == bytes(range(256)) * 5


def test_missing_file_is_an_error(run: Run, tmp_path: Path) -> None:
    assert run("copy", "missing.bin", "out.bin", cwd=tmp_path).exit_status == 1


def test_heap_has_the_remaining_memory(run: Run) -> None:
    assert run("heap").exit_status == 0


def test_makefiles_may_link_the_large_c_library(tmp_path: Path, tool: Callable[[str], str]) -> None:
    emulated, files = board_called("mps2-an386"), RUNTIME / "board"
    tool(emulated.emulator)
    compiler, cpu = tool("arm-none-eabi-gcc"), cpu_called(emulated.cpu)
    (tmp_path / "main.c").write_text('#include <stdio.h>\nint main(void) { return printf("%d\\n", 42) != 3; }\n')
    options = ["-nostartfiles", f"-I{files}", f"-L{files}", f"-T{files / emulated.name}.ld", "-Wl,--gc-sections"]
    sources = [tmp_path / "main.c", *files.glob("*.c")]
    subprocess.run([compiler, *cpu.flags, *options, *sources, "-o", tmp_path / "app.elf"], check=True)
    assert run_elf(tmp_path / "app.elf", emulated, timeout=60) == EmulatorRun("42\n", 0)


def binutils(board: Board) -> str:
    """Return what the names of the compiler's other programs begin with."""
    return compiler_program(cpu_called(board.cpu), GCC).removesuffix("gcc")


FAULTS = {
    "undefined": {"cortex-a9": "undefined instruction", "rv32imc": "illegal instruction"},
    "unmapped": {"cortex-a9": "data abort", "rv32imc": "store access fault"},
}
"""Names of faults, by core; that of all others is HardFault."""


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_prints_registers_and_ends_the_run(run: Run, image: Path, board: Board, fault: str) -> None:
    result = run(fault)
    assert result.exit_status == FAULT_STATUS
    assert f"mlf_board: stopped by {FAULTS[fault].get(board.cpu, 'HardFault')}\n" in result.stdout
    match = re.search(r"^  pc  (0x\w+)  (?:lr|ra)  0x", result.stdout, re.MULTILINE)
    assert match is not None
    function = subprocess.run(
        [f"{binutils(board)}addr2line", "-f", "-e", image, match[1]], capture_output=True, text=True, check=True
    ).stdout.splitlines()[0]
    assert function in {"dispatch", "main"}


def test_stack_overflow_ends_the_run(run: Run, board: Board) -> None:
    result = run("overflow")
    assert result.exit_status == FAULT_STATUS
    recognised = {
        "cortex-m33": "HardFault: stack overflow", "cortex-m55": "HardFault: stack overflow",
        "cortex-a9": "data abort: stack overflow", "rv32imc": "store access fault: stack overflow",
    }  # fmt: skip
    assert recognised.get(board.cpu, "the stack pointer is outside the stack") in result.stdout


UNALIGNED = """\
#include <stdint.h>
static uint32_t words[2];
int main(int argc, char **argv)
{
    (void)argv;
    uint32_t *volatile at = (uint32_t *)(void *)((char *)words + (argc > 1));
    *at = 7;
    return (int)*at;
}
"""


@pytest.mark.parametrize("cpu", first_on_push(["cortex-m0plus", "cortex-m0", "cortex-m23"]))
def test_unaligned_accesses_fault_as_on_the_smaller_core(tmp_path: Path, tool: Callable[[str], str], cpu: str) -> None:
    """The board's core supports them, so that code for a smaller core would only fail on the device."""
    tool("qemu-system-arm")
    image, board = build_program(UNALIGNED, cpu, tmp_path, tool, Build()), emulated_board(cpu_called(cpu))
    assert board is not None and board.cpu != cpu
    assert run_elf(image, board, timeout=60).exit_status == 7
    result = run_elf(image, board, arguments=["unaligned"], timeout=60)
    assert result.exit_status == FAULT_STATUS and "mlf_board: stopped by HardFault\n" in result.stdout


def test_segments_are_never_writable_and_executable(image: Path, board: Board) -> None:
    listing = subprocess.run(
        [f"{binutils(board)}readelf", "-lW", image], capture_output=True, text=True, check=True
    ).stdout
    flags = re.findall(r"^ +LOAD +(?:0x\w+ +){5}([RWE ]{3})", listing, re.MULTILINE)
    assert len(flags) >= 4
    assert not [flag for flag in flags if "W" in flag and "E" in flag]


@pytest.mark.sweep
@pytest.mark.parametrize("flags", ["-O2 -flto", "-O3 -fstack-protector-all", "-Os -flto -fstack-protector-all"])
def test_board_support_works_with_all_flags(
    build_firmware: Callable[..., Path], board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: str
) -> None:
    monkeypatch.setenv("CFLAGS", flags)
    path = build_firmware(tmp_path, board, {"main.c": SOURCE.read_text()})
    assert flags.rsplit(maxsplit=1)[-1] in (tmp_path / "build/build.ninja").read_text()
    assert run_elf(path, board, arguments=["compute"], timeout=60) == EmulatorRun("26.870 2\n", 0)
    assert run_elf(path, board, arguments=["reset"], timeout=60).exit_status == 0
    for fault in (*FAULTS, "overflow"):
        assert run_elf(path, board, arguments=[fault], timeout=60).exit_status == FAULT_STATUS


@pytest.mark.usefixtures("run")
def test_hanging_run_is_stopped_and_its_output_is_kept(image: Path, board: Board) -> None:
    with raises(TimedOutError, "run-timed-out", "app.elf") as caught:
        run_elf(image, board, arguments=["hang"], timeout=1)
    assert "about to hang" in str(caught.value)


def test_vector_instructions_are_used_if_available(build_firmware: Callable[..., Path], tmp_path: Path) -> None:
    image = build_firmware(tmp_path, board_called("mps3-an547"), {"main.c": SOURCE.read_text()})
    code = subprocess.run(["arm-none-eabi-objdump", "-d", image], capture_output=True, text=True, check=True).stdout
    assert re.search(r"\bvmul\.f32\s+q", code)


def test_stack_size_is_a_setting(build_firmware: Callable[..., Path], tmp_path: Path) -> None:
    source = "extern char __stack_limit[], __stack_top[];\n"
    source += "int main(void) { return __stack_top - __stack_limit == 3000 ? 0 : 1; }\n"
    board = board_called("mps2-an386")
    image = build_firmware(tmp_path, board, {"main.c": source}, "-DMLF_STACK_SIZE=3000")
    assert run_elf(image, board, timeout=60).exit_status == 0


@pytest.mark.usefixtures("cross_cxx")
def test_constructors_of_cxx_run_before_main(build_firmware: Callable[..., Path], tmp_path: Path) -> None:
    source = "struct Counter { int value; Counter() : value(41) {} ~Counter() { value = 0; } };\n"
    source += "static Counter counter;\nint main() { return counter.value + 1; }\n"
    board = board_called("mps2-an386")
    image = build_firmware(tmp_path, board, {"main.cpp": source})
    assert run_elf(image, board, timeout=60).exit_status == 42


SECTION = """\
__attribute__((section("%s"))) %s value[9] = {1, 2};
int main(int argc, char **argv) { (void)argv; volatile int i = argc; return value[i]; }
"""


@pytest.mark.parametrize("section", first_on_push([".mlf_weights", ".rodata.mlf", ".rodata.mlf.kws"]))
def test_constants_can_have_a_section_of_any_name(
    build_firmware: Callable[..., Path], tmp_path: Path, section: str
) -> None:
    board = board_called("mps3-an547")
    image = build_firmware(tmp_path, board, {"main.c": SECTION % (section, "const int")})
    assert run_elf(image, board, timeout=60).exit_status == 2


def test_writable_section_that_startup_does_not_initialise_is_rejected(
    build_firmware: Callable[..., Path], tmp_path: Path
) -> None:
    board = board_called("mps2-an386")
    image = build_firmware(tmp_path, board, {"main.c": SECTION % (".data.mine", "int")})
    assert run_elf(image, board, timeout=60).exit_status == 2
    with pytest.raises(
        AssertionError, match=r"a writable section has a name .* call it \.data\.<name> or \.bss\.<name>"
    ):
        build_firmware(tmp_path, board, {"main.c": SECTION % (".mine", "int")})


# The CPU of a board for which firmware is built around a module with objects.

Compiled = Callable[..., Library]


@pytest.fixture
def compiled(tmp_path: Path, tool: Callable[[str], str]) -> Compiled:
    """Return a function that returns a library with an object, compiled with given flags."""
    gcc = tool("arm-none-eabi-gcc")

    def make(*flags: str) -> Library:
        (tmp_path / "f.c").write_text("float f(float x) { return x + 1; }\n")
        subprocess.run([gcc, "-mthumb", *flags, "-c", tmp_path / "f.c", "-o", tmp_path / "f.o"], check=True)
        file = CodegenFile(PurePosixPath("host/lib/net_lib0.o"), (tmp_path / "f.o").read_bytes())
        return Library((Module("net", "graph", (ModuleTarget("llvm"),), (), (), (file,)),))

    return make


HARD = ("-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16")
SOFT = ("-mcpu=cortex-m4", "-mfloat-abi=soft")
M23 = ("-mcpu=cortex-m23", "-mfloat-abi=soft")


@pytest.mark.parametrize(
    ("flags", "board", "cpu"),
    [
        (HARD, "mps2-an386", "cortex-m4"),
        (SOFT, "mps2-an386", "cortex-m4+nofp"),
        (M23, "mps2-an505", "cortex-m33+nofp"),
        (("-mcpu=cortex-m0", "-mfloat-abi=soft"), "mps2-an385", "cortex-m3"),
    ],
)
def test_float_abi_of_objects_selects_the_cpu(compiled: Compiled, flags: tuple[str, ...], board: str, cpu: str) -> None:
    assert fitting_cpu(compiled(*flags), board_called(board), "net.tar").name == cpu


@pytest.mark.parametrize("board", BOARDS.values(), ids=lambda board: board.name)
def test_without_objects_the_cpu_is_that_of_the_board(board: Board) -> None:
    assert fitting_cpu(Library(()), board, "net.tar").name == board.cpu


@pytest.mark.parametrize(
    ("flags", "board", "reason"),
    [
        (HARD, "mps2-an385", "holds code for Armv7E-M, which cortex-m3 does not run"),
        (SOFT, "mps3-an547", "is soft-float, and code for cortex-m55 is hard-float"),
    ],
)
def test_objects_that_no_cpu_of_the_board_runs_are_rejected(
    compiled: Compiled, flags: tuple[str, ...], board: str, reason: str
) -> None:
    with pytest.raises(UsageError, match=rf"net.tar: codegen/host/lib/net_lib0\.o: {reason}"):
        fitting_cpu(compiled(*flags), board_called(board), "net.tar")
