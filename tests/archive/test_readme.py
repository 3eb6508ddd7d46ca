"""The generated README.md of an archive."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np
import pytest

from mlfbuild.archive import archive_files, open_archive, pack_archive, read_archive, tar
from mlfbuild.archive.describe.readme import README, commands, is_derived, readme_text
from mlfbuild.library import (
    TVM_RUNTIME,
    ArchiveFile,
    CodegenFile,
    DeviceContext,
    ExternalDependency,
    LazyBytes,
    Library,
    Module,
    ModuleTarget,
    OperatorBuffer,
    Pool,
    TensorInfo,
)
from support.libraries import graph_library, native_library, native_module

CRT = ExternalDependency("tvm_standalone_crt", "./runtime", "mlf_path", "0.14.0")
PLANNED = replace(
    native_module("npu"),
    pools=(Pool("sram", "workspace", 4096, True), Pool("flash", "constant", None, False)),
    devices=("ethos-u",),
    external_dependencies=(CRT,),
    contexts=(DeviceContext("cpu"), DeviceContext("ethos-u", 1, "ethos-u", '{"macs": 128}', "ethos-u -fast|x")),
)
PACKED = replace(native_module("packed"), interface="packed", codegen=native_module("packed").codegen[1:])
OPERATOR = Module(
    name="add", executor="", style="operator", targets=(ModuleTarget("c"),), main=(), operator_functions=(), codegen=(),
    buffers=(OperatorBuffer("add", 2, (2,), "int8", "A"), OperatorBuffer("add", 4, (), "float32")), tir=((1, b"x"),),
)  # fmt: skip


@pytest.mark.parametrize(
    "library",
    [
        native_library("kws"), graph_library(), Library((PLANNED, PACKED)), Library((OPERATOR,), version=6),
        native_library(*(f"m{i}" for i in range(12))),
    ],
    ids=["native", "graph", "two", "operator", "many"],
)  # fmt: skip
def test_page_of_each_library(golden: Callable[[str, str], None], library: Library) -> None:
    text = readme_text(library)
    golden(text, "README.md")
    assert is_derived(text.encode())


def test_packed_module_with_unknown_inputs_has_no_order() -> None:
    text = readme_text(Library((replace(PACKED, inputs=()),)))
    assert "in this order: inputs, then outputs." in text


def test_constant_pools_are_passed_with_their_data() -> None:
    text = readme_text(Library((replace(PLANNED, pools=(Pool("flash", "constant", 24, True),)),)))
    assert (
        "static uint8_t flash[TVMGEN_NPU_FLASH_CONSTANT_POOL_SIZE] __attribute__((aligned(16))) = "
        "{TVMGEN_NPU_FLASH_CONSTANT_POOL_DATA};\n"
    ) in text


def test_inputs_and_outputs_in_pools_are_mapped() -> None:
    text = readme_text(Library((replace(PLANNED, workspace_io=True, devices=()),)))
    assert "struct tvmgen_npu_inputs inputs = tvmgen_npu_map_inputs(&workspace_pools);" in text
    assert "struct tvmgen_npu_outputs outputs = tvmgen_npu_map_outputs(&workspace_pools);" in text
    assert "tvmgen_npu_run(&workspace_pools);" in text and "static int8_t" not in text


def test_the_page_has_no_dates() -> None:
    module = native_module("kws")
    later = replace(module, export_datetime="2024-01-01 00:00:00Z")
    assert readme_text(Library((module,))) == readme_text(Library((later,))), "no dates in it"


@pytest.mark.parametrize(
    ("runtime", "version"), [(CRT, "`v4.1.0`"), (replace(CRT, version_spec="0.11.1"), "`unknown`")]
)
def test_requirements_that_are_not_in_the_metadata(runtime: ExternalDependency, version: str) -> None:
    source = CodegenFile(PurePosixPath("host/src/kws_lib0.c"), b"#include <arm_nnfunctions.h>\n")
    module = replace(native_module("kws"), model_id="", codegen=(source,), external_dependencies=(runtime,))
    text = readme_text(Library((module,)))
    assert f"| `cmsis-nn` | {version} | git `https://github.com/ARM-software/CMSIS-NN` |\n" in text
    assert "The metadata does not list `cmsis-nn`." in text
    own = replace(module, codegen=())
    assert "The metadata does not list" not in readme_text(Library((own,)))


def test_names_are_escaped() -> None:
    """Names are not parsed as Markdown, HTML, or the end of a table or code block."""
    tensor = TensorInfo("a|b`<script>\n```\n# x", "int8", 4)
    dependency = ExternalDependency("<b>|`", "x|y", "[z](http://w)", "1|2")
    module = replace(native_module(), inputs=(tensor,), external_dependencies=(dependency,))
    text = readme_text(Library((module,)))
    plain = replace(native_module(), external_dependencies=(ExternalDependency("b", "url", "path", "1"),))
    assert text.count("\n```") == readme_text(Library((plain,))).count("\n```")
    assert "| input | ````a\\|b`<script> ``` # x```` |" in text
    assert "| `` <b>\\|` `` | `1\\|2` | \\[z\\](http://w) `x\\|y` |" in text
    assert ".a_b__script________x = a_b__script________x" in text, "C has sanitised names"


def test_archive_has_the_page_and_readers_ignore_it() -> None:
    library = native_library("kws")
    files = archive_files(library)
    assert bytes(files[README]).decode() == readme_text(library)
    again = read_archive(pack_archive(library), "a.tar")
    assert again == library and again.other_files == ()


@pytest.mark.parametrize("version", range(1, 8))
def test_page_has_the_version_and_files_of_the_archive(version: int) -> None:
    files = archive_files(graph_library("kws"), version)
    text = bytes(files[README]).decode()
    assert f"in Model Library Format, version {version}," in text
    named = {line.split("`")[1].rstrip("/") for line in text.partition("## Files")[2].splitlines() if "`" in line}
    assert named == {path.split("/")[0] for path in files} - {README}


def commands_of(*modules: Module, files: tuple[ArchiveFile, ...] = ()) -> list[str]:
    return commands(Library(modules, other_files=files))


def with_code(module: Module, *names: str) -> Module:
    return replace(module, codegen=tuple(CodegenFile(PurePosixPath(name), b"") for name in names))


def test_recipe_has_the_flags_and_folders_of_the_code() -> None:
    module = with_code(native_module("kws"), "host/src/kws_lib0.c", "host/lib/kws_lib1.o")
    assert commands_of(module) == [
        "arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16 -O2 -c codegen/host/src/*.c",
        "arm-none-eabi-ar rcs libkws.a *.o codegen/host/lib/*.o",
    ]
    host = replace(native_module("kws"), targets=(ModuleTarget("c -keys=cpu"),))
    assert commands_of(host)[0] == "gcc -O2 -c -I codegen/host/include codegen/host/src/*.c"
    riscv = replace(host, targets=(ModuleTarget("c -keys=cpu -march=rv32imc"),))
    assert commands_of(riscv)[1] == "riscv64-unknown-elf-ar rcs libkws.a *.o"


def test_recipe_uses_the_runtime_in_the_archive_or_the_one_that_is_named() -> None:
    runtime = ArchiveFile(PurePosixPath("runtime/include/tvm/runtime/c_runtime_api.h"), b"")
    (compiling, _) = commands_of(PACKED, files=(runtime,))
    assert " -I runtime/include " in compiling
    (cloning, compiling, _) = commands_of(replace(PACKED, external_dependencies=(TVM_RUNTIME,)))
    assert "--branch v0.14.0 " in cloning and cloning.endswith(" https://github.com/apache/tvm")
    assert " -I tvm/include -I tvm/3rdparty/dlpack/include " in compiling
    assert commands_of(PACKED) == []


def test_nothing_from_the_archive_is_in_the_recipe() -> None:
    """Names of an archive may contain what a shell runs."""
    evil = replace(native_module("$(reboot)"), targets=(ModuleTarget("c -mcpu=cortex-m4;reboot"),))
    assert commands_of(evil) == []
    named = replace(evil, targets=(ModuleTarget("c -keys=cpu"),))
    assert commands_of(named)[1] == "ar rcs lib__reboot_.a *.o"
    remote = ExternalDependency("tvm_standalone_crt", "https://x/;reboot", "git", "v1")
    assert commands_of(replace(PACKED, external_dependencies=(remote,))) == []


@pytest.mark.parametrize(
    "module",
    [
        with_code(native_module("kws"), "host/src/kws_lib0.cc"),
        with_code(native_module("kws"), "host/src/kws_lib0.c", "npu/src/kws_lib1.c"),
        with_code(native_module("kws"), "host/lib/kws_lib0.o"),
        replace(native_module("kws"), targets=(ModuleTarget("c -mcpu=cortex-m4"), ModuleTarget("c -mcpu=cortex-m7"))),
        replace(native_module("kws"), external_dependencies=(ExternalDependency("b", "url", "path", "1"),)),
    ],
    ids=["C++", "device", "objects", "two CPUs", "requirement"],
)
def test_other_archives_have_no_recipe(module: Module) -> None:
    assert commands_of(module) == []
    assert "By hand: compile all files" in readme_text(Library((module,)))


def test_another_readme_is_kept() -> None:
    own = ArchiveFile(PurePosixPath(README), b"# Our keyword spotter\n")
    library = replace(native_library("kws"), other_files=(own,))
    again = read_archive(pack_archive(library), "a.tar")
    assert again == library
    assert bytes(archive_files(again)[README]) == own.data


@pytest.mark.parametrize("path", ["readme.md", "ReadMe.MD", "README.md/index.md"])
def test_a_readme_with_another_case_replaces_the_page(path: str) -> None:
    """Names that differ only in case are equal on some machines, and archives with both are refused."""
    own = ArchiveFile(PurePosixPath(path), b"# Our keyword spotter\n")
    library = replace(native_library("kws"), other_files=(own,))
    assert README not in archive_files(library)
    assert read_archive(pack_archive(library), "a.tar") == library


class Counted(LazyBytes):
    """A long content that counts the bytes that are read."""

    def __init__(self, start: bytes) -> None:
        self.start, self.most = start, 0

    def __len__(self) -> int:
        return 1 << 40

    def read(self, offset: int, size: int) -> bytes:
        self.most = max(self.most, size)
        return self.start[offset : offset + size]


def test_recognising_the_page_reads_only_its_start() -> None:
    derived, other = Counted(readme_text(native_library()).encode()), Counted(b"# Ours\n")
    assert is_derived(derived) and not is_derived(other) and not is_derived(b"")
    assert max(derived.most, other.most) < 200


def test_tvm_archives_get_the_page_and_keep_all_files(shared: Path) -> None:
    for path in sorted((shared / "archives").glob("*.tar")):
        library = open_archive(path)
        with path.open("rb") as file:
            before = dict(tar.members(file, path.name))
            written = archive_files(library, library.version)
            assert written.keys() - before.keys() == {README}, path
            same = [name for name in before if bytes(before[name]) == bytes(written[name])]
            assert set(before) - set(same) <= {"metadata.json"}, path
        for module in library.modules:
            assert f"## {module.name}\n" in bytes(written[README]).decode()


def test_the_page_is_kept_by_everything_but_the_values_of_parameters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (module,) = graph_library().modules
    zeros, ones = ({"p0": np.full(8, value, np.float32)} for value in (0, 1))
    for params, kept in ((zeros, 1), (ones, 1), ({"p0": np.zeros(9, np.float32)}, 2)):
        archive_files(Library((replace(module, params=params),)))
        assert len(list((tmp_path / "mlfbuild/text").iterdir())) == kept
    archive_files(Library((replace(module, params=ones, name="other"),)))
    assert len(list((tmp_path / "mlfbuild/text").iterdir())) == 3
