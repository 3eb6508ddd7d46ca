"""Archives for another CPU than the requested one are rejected with the reason, unless their code runs on it."""

import contextlib
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from mlfbuild.archive import open_archive
from mlfbuild.c_analysis.attributes import object_facts
from mlfbuild.compilers.abi_check import check_fit
from mlfbuild.core.errors import InputFileError, UsageError
from mlfbuild.library import CodegenFile, Library, ModuleTarget
from mlfbuild.targets import CPUS, cpu_called
from support.errors import raises
from support.libraries import graph_library, native_library

SOURCE = "float half(float x) { return x / 2.0f; }\n"


def with_object(data: bytes) -> Library:
    library = graph_library()
    file = CodegenFile(PurePosixPath("host/lib/kws_lib1.o"), data)
    module = replace(library.modules[0], codegen=(*library.modules[0].codegen, file))
    return replace(library, modules=(module,))


@pytest.fixture(scope="module")
def compiled(tool: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], bytes]:
    """A function that compiles a function with floats for a CPU of the table."""

    def compile_for(name: str) -> bytes:
        cpu = cpu_called(name)
        host = name == "host"
        compiler = "gcc" if host else "arm-none-eabi-gcc" if cpu.is_arm else "riscv64-unknown-elf-gcc"
        source = tmp_path_factory.mktemp("object") / "half.c"
        source.write_text(SOURCE)
        output = source.with_suffix(".o")
        subprocess.run([tool(compiler), *cpu.flags, "-c", source, "-o", output], check=True)
        return output.read_bytes()

    return compile_for


FITS = [
    ("cortex-m0plus", "cortex-m3"), ("cortex-m0plus", "cortex-m23"), ("cortex-m3", "cortex-m4+nofp"),
    ("cortex-m4", "cortex-m7"), ("cortex-m4", "cortex-m55"), ("cortex-m33", "cortex-m85"), ("rv32imc", "rv32imc"),
    ("cortex-a9", "cortex-a9"), ("host", "host"),
]  # fmt: skip


@pytest.mark.parametrize(("made", "wanted"), FITS)
def test_object_that_runs_on_the_cpu_is_accepted(compiled: Callable[[str], bytes], made: str, wanted: str) -> None:
    check_fit(with_object(compiled(made)), cpu_called(wanted), "kws.tar")


CODE, PLACE = "object-for-another-cpu", "kws.tar: codegen/host/lib/kws_lib1.o"
REGISTERS = "their functions pass floats in different registers"
REFUSED = [
    ("cortex-m4+nofp", "cortex-m4", f"is soft-float, and code for cortex-m4 is hard-float: {REGISTERS}"),
    ("cortex-m4", "cortex-m4+nofp", f"is hard-float, and code for cortex-m4+nofp is soft-float: {REGISTERS}"),
    ("cortex-m7", "cortex-m3", "holds code for Armv7E-M, which cortex-m3 does not run"),
    ("cortex-m3", "cortex-m0plus", "holds code for Armv7-M, which cortex-m0plus does not run"),
    ("cortex-m3", "cortex-a9", "holds code for Armv7-M, which cortex-a9 does not run"),
    ("cortex-a9", "cortex-m7", "holds code for Armv7-A, which cortex-m7 does not run"),
    ("cortex-m23", "cortex-m0plus", "holds code for Armv8-M Baseline, which cortex-m0plus does not run"),
    ("cortex-m55", "cortex-m33", "holds code for Armv8.1-M Mainline, which cortex-m33 does not run"),
    ("cortex-m4", "rv32imc", "is an object for ARM (32 bits), not for rv32imc"),
    ("rv32imc", "cortex-m4", "is an object for RISCV (32 bits), not for cortex-m4"),
]  # fmt: skip


@pytest.mark.parametrize(("made", "wanted", "reason"), REFUSED, ids=lambda text: text[:14])
def test_object_for_another_cpu_is_rejected(
    compiled: Callable[[str], bytes], made: str, wanted: str, reason: str
) -> None:
    with raises(UsageError, CODE, at=PLACE) as caught:
        check_fit(with_object(compiled(made)), cpu_called(wanted), "kws.tar")
    assert caught.value.reason == reason


def test_object_for_this_machine_is_rejected_for_firmware(compiled: Callable[[str], bytes]) -> None:
    with raises(UsageError, CODE, at=PLACE):
        check_fit(with_object(compiled("host")), cpu_called("cortex-m4"), "kws.tar")


def test_softfp_code_needs_an_fpu(tool: Callable[[str], str], tmp_path: Path) -> None:
    (tmp_path / "half.c").write_text(SOURCE)
    flags = ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=softfp", "-mfpu=fpv4-sp-d16"]
    output = tmp_path / "half.o"
    subprocess.run([tool("arm-none-eabi-gcc"), *flags, "-c", tmp_path / "half.c", "-o", output], check=True)
    with raises(UsageError, CODE, at=PLACE):
        check_fit(with_object(output.read_bytes()), cpu_called("cortex-m4+nofp"), "kws.tar")


def test_object_with_only_data_fits_every_arm_cpu(tool: Callable[[str], str], tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(b"weights")
    words = ["-I", "binary", "-O", "elf32-littlearm", "-B", "arm", "data.bin", "data.o"]
    subprocess.run([tool("arm-none-eabi-objcopy"), *words], cwd=tmp_path, check=True)
    for name in ("cortex-m0plus", "cortex-m4", "cortex-a9"):
        check_fit(with_object((tmp_path / "data.o").read_bytes()), cpu_called(name), "kws.tar")


def test_objects_that_tvm_wrote_are_read(shared: Path) -> None:
    library = open_archive(shared / "archives" / "conv-llvm_graph_m4.tar")
    check_fit(library, cpu_called("cortex-m4"), "conv.tar")
    with raises(UsageError, CODE, at="conv.tar: codegen/host/lib/conv_lib0.o"):
        check_fit(library, cpu_called("cortex-m3"), "conv.tar")


@pytest.mark.parametrize("name", CPUS)
def test_target_without_cpu_fits(name: str) -> None:
    library = graph_library()
    assert library.modules[0].targets[0].text.split()[0] == "c"
    plain = replace(library, modules=(replace(library.modules[0], targets=(ModuleTarget("c -keys=cpu"),)),))
    check_fit(plain, cpu_called(name), "kws.tar")


@pytest.mark.parametrize(
    ("target", "wanted", "missing"),
    [
        ("c -keys=arm_cpu,cpu -mcpu=cortex-m7", "cortex-m3", "DSP"),
        ("c -keys=arm_cpu,cpu -mcpu=cortex-m4", "rv32imc", "DSP"),
        ("c -keys=arm_cpu,cpu -mcpu=cortex-m55", "cortex-m33", "MVE (Helium)"),
        ("c -keys=arm_cpu,cpu -mcpu=cortex-m55", "cortex-m55", None),
        ("c -keys=arm_cpu,cpu -mcpu=cortex-m4", "cortex-m4+nofp", None),
        ("c -keys=arm_cpu,cpu -mcpu=cortex-m4", "host", None),
        ("c -keys=arm_cpu,cpu -mcpu=cortex-m33+nodsp", "cortex-m0plus", None),
        ("c -keys=arm_cpu,cpu -mcpu=cortex-r82", "cortex-m3", None),
    ],
)
def test_target_string_determines_the_instructions(target: str, wanted: str, missing: str | None) -> None:
    library = graph_library()
    module = replace(library.modules[0], targets=(ModuleTarget(target),), model_id="")
    changed = replace(library, modules=(module,))
    if missing is None:
        check_fit(changed, cpu_called(wanted), "kws.tar")
        return
    with raises(UsageError, "module-for-another-cpu", at=f"kws.tar: module {module.name}") as caught:
        check_fit(changed, cpu_called(wanted), "kws.tar")
    assert f"with {missing} instructions" in caught.value.reason


@pytest.mark.parametrize("name", CPUS)
def test_code_of_the_native_compiler_is_portable(name: str) -> None:
    library = native_library()
    module = replace(
        library.modules[0], targets=(ModuleTarget("c -keys=arm_cpu,cpu -mcpu=cortex-m55"),), model_id="0" * 64
    )
    check_fit(replace(library, modules=(module,)), cpu_called(name), "kws.tar")


def test_damaged_objects_are_rejected_and_never_hang(compiled: Callable[[str], bytes]) -> None:
    whole = compiled("cortex-m4")
    start = whole.index(b"aeabi\0") - 5
    for position in range(start, start + 60):
        for byte in (0, 0x7F, 0x80, 0xFF):
            damaged = whole[:position] + bytes([byte]) + whole[position + 1 :]
            with contextlib.suppress(InputFileError):  # whatever else is raised fails the test
                object_facts(damaged, "kws.o")
    with raises(InputFileError, "object-not-elf", at="kws.o"):
        object_facts(b"!<arch>\n", "kws.o")
