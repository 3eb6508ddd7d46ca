"""The generated code around modules of other compilers."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from mlfbuild import open_archive
from mlfbuild.c_analysis.objects import object_symbols
from mlfbuild.core.errors import CheckFailedError, InputFileError, UnsupportedModelError
from mlfbuild.executor.executables import executable
from mlfbuild.executor.kernel_workspace import kernel_workspace
from mlfbuild.executor.kernels import Kernels
from mlfbuild.jobs.tree import unpack
from mlfbuild.library import CodegenFile, Module, TensorInfo
from support.errors import raises
from support.libraries import native_module


def module_of(shared: Path, archive: str, name: str | None = None) -> Module:
    library = open_archive(shared / "archives" / f"{archive}.tar")
    return library.modules[0] if name is None else library.module(name)


def test_modules_of_the_native_compiler_need_nothing() -> None:
    assert executable(native_module("net")) is None


@pytest.mark.parametrize("archive", ["add-graph", "add-aotp", "v5-many-graphlink"])
def test_generated_files(shared: Path, archive: str, golden: Callable[[str, str], None]) -> None:
    found = executable(module_of(shared, archive))
    assert found is not None
    texts = {path: bytes(data).decode() for path, data in found.generated.items() if "/runtime/" not in path}
    for path, text in texts.items():
        assert all(len(line) <= 120 for line in text.splitlines()), path
        golden(text, path.rpartition("/")[2])


def test_storage_of_a_graph_is_smaller_than_its_ids_require(shared: Path) -> None:
    found = executable(module_of(shared, "kws_int8-graph"))
    assert found is not None
    text = bytes(found.generated["executor/kws_int8_entry.c"]).decode()
    assert "mlf_workspace_begin(tvmgen_kws_int8_workspace.uint8_elements + 48000, 56192);" in text  # of 102,950 bytes


SOURCE = """
TVM_DLL int32_t tvmgen_net_fused_a(void* args) {
  void* pad = TVMBackendAllocWorkspace(1, dev_id, (uint64_t)100, 2, 32);
  void* cast = TVMBackendAllocWorkspace(1, dev_id, (uint64_t)16, 2, 32);
  return 0;
}
TVM_DLL int32_t tvmgen_net_fused_b(void* args) {
  void* pad = TVMBackendAllocWorkspace(1, dev_id, (uint64_t)300, 2, 32);
  return 0;
}
TVM_DLL int32_t tvmgen_net___tvm_main__(void* args) {
  void* sid_1 = TVMBackendAllocWorkspace(1, 0, (uint64_t)1000, 0, 8);
  return 0;
}
"""


def taken(*texts: str) -> int:
    files = (CodegenFile(PurePosixPath(f"host/src/net_lib{at}.c"), text.encode()) for at, text in enumerate(texts))
    return kernel_workspace(Kernels(replace(native_module("net"), codegen=tuple(files))))


def test_workspace_of_kernels() -> None:
    assert taken(SOURCE) == 1008 + 304
    assert taken(SOURCE.replace("300", "20")) == 1008 + 128
    assert taken(";", "int x;") == 0
    helper = "static void *more(void) { return TVMBackendAllocWorkspace(1, 0, 40, 0, 8); }\n"
    assert taken(helper + SOURCE) == taken(SOURCE, helper) == 1008 + 304 + 48
    with raises(UnsupportedModelError, "workspace-size-unknown"):
        taken(SOURCE.replace("(uint64_t)300", "n * 4"))


def test_tensor_names_that_become_equal_in_c(shared: Path) -> None:
    module = module_of(shared, "add-aotp")
    clash = (replace(module.inputs[0], name="a.b"), replace(module.inputs[1], name="a/b"))
    with raises(InputFileError, "tensor-names-equal-in-c", at="add"):
        executable(replace(module, inputs=clash))


def test_a_packed_module_without_known_tensors_is_refused(shared: Path) -> None:
    module = module_of(shared, "add-aotp")
    for unknown in ({"inputs": ()}, {"outputs": ()}, {"inputs": (), "outputs": ()}):
        with raises(UnsupportedModelError, "module-without-ports", at="add") as refused:
            executable(replace(module, **unknown))
        assert all(key in refused.value.reason for key in unknown)
    assert executable(replace(module, codegen=())) is None


def test_sizes_without_shapes(shared: Path) -> None:
    module = module_of(shared, "add-aotp")
    plain = tuple(TensorInfo(tensor.name, tensor.dtype, tensor.size) for tensor in module.inputs)
    found = executable(replace(module, inputs=plain))
    assert found is not None
    assert "mlf_shape_2, " in bytes(found.generated["executor/add_entry.c"]).decode()


def test_units_name_their_module(shared: Path) -> None:
    module = module_of(shared, "add-aotp")
    other = CodegenFile(PurePosixPath("host/src/more.c"), b"int more;\n")
    found = executable(replace(module, codegen=(*module.codegen, other)))
    assert found is not None
    assert "executor/more.c" in found.files
    lines = bytes(found.generated["executor/more.c"]).decode().splitlines()
    assert lines[3:7] == [
        "#define MLF_MODULE add", "#define tvmgen_add_run mlf_add_packed_run",
        '#include "runtime/tvm/runtime/crt/module.h"', '#include "runtime/tvm/runtime/metadata_types.h"',
    ]  # fmt: skip
    assert lines[-1] == '#include "../codegen/host/src/more.c"'


def test_objects_have_symbols_of_their_module(shared: Path) -> None:
    found = executable(module_of(shared, "conv-llvm_graph_m4"))
    assert found is not None
    assert found.files == ("executor/conv_entry.c", "executor/conv_lib0.o", "executor/conv_lib1.o")
    registry, kernels = (object_symbols(bytes(found.generated[path]), path) for path in found.files[1:])
    assert registry.defined == {"TVMSystemLibEntryPoint_conv"}
    assert {name for name in kernels.declared if name.endswith("_conv")} == {
        "TVMAPISetLastError_conv", "TVMBackendAllocWorkspace_conv", "TVMBackendFreeWorkspace_conv",
        "TVMBackendParallelLaunch_conv", "mlf_no_unwinding_conv",
    }  # fmt: skip
    assert kernels.declared - registry.declared - {"expf"} == {
        name for name in kernels.declared if name.endswith("_conv")
    }
    entry = bytes(found.generated["executor/conv_entry.c"]).decode()
    assert (
        "mlf_workspace_begin(tvmgen_conv_workspace.uint8_elements + 40960, 110864);" in entry
    )  # of the metadata, and 16 pieces


@pytest.mark.parametrize("compiler", ["arm-none-eabi-gcc", "gcc", "clang"])
@pytest.mark.parametrize("archive", ["byoc-aotp", "operator-add"])
def test_recent_compilers_accept_code_of_tvm(
    shared: Path, tmp_path: Path, tool: Callable[[str], str], newest_clang: dict[str, str], archive: str, compiler: str
) -> None:
    """GCC 14 and clang 16 report errors that were warnings when TVM's code generator was written."""
    unpack(open_archive(shared / f"archives/{archive}.tar"), tmp_path, archive_id="a")
    errors = [f"-Werror={name}" for name in ("incompatible-pointer-types", "implicit-function-declaration")]
    command = [newest_clang["MLFBUILD_CLANG"] if compiler == "clang" else tool(compiler), "-std=c99", *errors]
    folders = [f"-I{tmp_path / folder}" for folder in ("executor/runtime", "executor/include")]
    units = sorted((tmp_path / "executor").glob("*.c"))
    assert len(units) >= 3
    subprocess.run([*command, *folders, "-fsyntax-only", *units], check=True)


def of_text(text: str) -> Kernels:
    code = CodegenFile(PurePosixPath("host/src/net_lib1.c"), text.encode())
    return Kernels(replace(native_module("net"), model_id="", codegen=(code,)))


def test_functions_of_a_required_library_need_not_be_in_the_archive() -> None:
    calls = "int32_t f(void) {\n  return TVMEthosULaunch(0, 0, 0, 0, 0, 0);\n}\n"
    of_text(f"#include <tvm_ethosu_runtime.h>\n{calls}").require_called()
    of_text("#include <arm_nnfunctions.h>\nint32_t f(void) {\n  return arm_softmax_s8();\n}\n").require_called()
    others = f"#include <tvm_ethosu_runtime.h>\n{calls.replace('TVMEthosULaunch', 'TVMFuncCall')}"
    for text, function in ((calls, "TVMEthosULaunch"), (others, "TVMFuncCall")):
        with raises(CheckFailedError, "runtime-function-not-defined") as error:
            of_text(text).require_called()
        assert function in error.value.reason
