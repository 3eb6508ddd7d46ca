"""The outline of a compiler has the names of its output files, without compiling."""

import re
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from mlfbuild.archive import write_archive
from mlfbuild.compilers import compiler_called
from mlfbuild.core.errors import InputFileError, UsageError
from mlfbuild.jobs.tree import TreeSettings, tree_files
from mlfbuild.jobs.tree.build_text import FRAGMENT
from mlfbuild.library import CompileRequest, Library, is_kernel_header
from mlfbuild.native.kernels import kernel_headers
from mlfbuild.targets import CPUS
from support.errors import raises
from support.firmware_repo import tiny_network
from support.libraries import graph_library, native_library

EXAMPLES = Path(__file__).parents[2] / "examples"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def same_names(compiler: str, request: CompileRequest, model: str) -> None:
    """Assert that outline and compiled library unpack to the same files with the same fragment."""
    outlined = tree_files(compiler_called(compiler).outline(request), settings=TreeSettings(model=model))
    compiled = tree_files(compiler_called(compiler).compile(request), settings=TreeSettings(model=model))
    assert list(outlined) == list(compiled)
    assert bytes(outlined[FRAGMENT]) == bytes(compiled[FRAGMENT])


def is_kernel(path: str) -> bool:
    return is_kernel_header(path.removeprefix("codegen/"))


@pytest.mark.parametrize("name", ["digits/models/digits", "two-models/models/iris", "two-models/models/wine"])
@pytest.mark.parametrize("executor", ["aot", "graph"])
def test_every_native_model_has_the_same_files(name: str, executor: str) -> None:
    request = CompileRequest("net", EXAMPLES / f"{name}.tflite", CPUS["cortex-m4"], executor=executor)
    native = compiler_called("native")
    outlined = tree_files(native.outline(request), settings=TreeSettings(model="net"))
    compiled = tree_files(native.compile(request), settings=TreeSettings(model="net"))
    assert [path for path in outlined if not is_kernel(path)] == [path for path in compiled if not is_kernel(path)]
    assert bytes(outlined[FRAGMENT]) == bytes(compiled[FRAGMENT])


@pytest.mark.parametrize("executor", ["aot", "graph"])
@pytest.mark.parametrize(
    "options",
    [{"layout": "single-file"}, {"interface-api": "packed"}, {"interface-api": "packed", "layout": "single-file"}],
    ids=["single", "packed", "both"],
)
def test_every_form_of_code_has_the_same_files(executor: str, options: dict[str, str]) -> None:
    if executor == "graph":
        options = {key: value for key, value in options.items() if key == "layout"}
    source = EXAMPLES / "two-models/models/wine.tflite"
    request = CompileRequest("net", source, CPUS["cortex-m4"], executor=executor, options=options)
    outlined, compiled = (
        tree_files(made, settings=TreeSettings(model="net"))
        for made in (compiler_called("native").outline(request), compiler_called("native").compile(request))
    )
    assert [path for path in outlined if not is_kernel(path)] == [path for path in compiled if not is_kernel(path)]
    assert bytes(outlined[FRAGMENT]) == bytes(compiled[FRAGMENT])


@pytest.mark.parametrize("name", ["digits/models/digits", "two-models/models/iris", "two-models/models/wine"])
@pytest.mark.parametrize("executor", ["aot", "graph"])
def test_archives_contain_the_kernel_headers_that_their_sources_include(name: str, executor: str) -> None:
    native = compiler_called("native")
    request = CompileRequest("net", EXAMPLES / f"{name}.tflite", CPUS["cortex-m4"], executor=executor)
    outlined = {
        path for path in tree_files(native.outline(request), settings=TreeSettings(model="net")) if is_kernel(path)
    }
    compiled = {
        path: bytes(data)
        for path, data in tree_files(native.compile(request), settings=TreeSettings(model="net")).items()
    }
    folder = "codegen/host/src/mlfbuild"
    assert outlined == {f"{folder}/{header}" for header in kernel_headers()}
    reached: set[str] = set()
    waiting = [path for path in compiled if path.endswith(".c")]
    while waiting:
        path = waiting.pop()
        for include in INCLUDE.findall(compiled[path].decode()):
            header = f"{folder}/{PurePosixPath(include).name}"
            if header in outlined and header not in reached:
                reached.add(header)
                waiting.append(header)
    kernels = {path for path in compiled if is_kernel(path)}
    assert kernels == reached
    assert kernels
    assert kernels < outlined
    assert all(compiled[path] == kernel_headers()[PurePosixPath(path).name] for path in kernels)


@pytest.mark.parametrize("library", [native_library("tiny"), graph_library("big")], ids=["aot", "graph"])
def test_outline_of_an_archive_is_read_from_its_index(library: Library, tmp_path: Path) -> None:
    source = tmp_path / "archive.tar"
    write_archive(library, source)
    same_names("archive", CompileRequest("mine", source, CPUS["cortex-m4"]), "mine")


def test_native_outline_does_not_read_the_model(tmp_path: Path) -> None:
    request = CompileRequest("net", tmp_path / "missing.tflite", CPUS["host"])
    (module,) = compiler_called("native").outline(request).modules
    paths = [str(file.path) for file in module.codegen if not is_kernel_header(file.path)]
    assert sorted(paths) == ["host/include/tvmgen_net.h", "host/src/net_lib0.c"]
    with raises(InputFileError, "no-such-input", at=str(tmp_path / "missing.tflite")):
        compiler_called("native").compile(request)


def test_native_outline_rejects_what_compiling_rejects(tmp_path: Path) -> None:
    request = CompileRequest("net", tmp_path / "net.tflite", CPUS["host"], executor="vm")
    with raises(UsageError, "unknown-executor", at="net: executor"):
        compiler_called("native").outline(request)


def test_outline_imports_no_compiler(tmp_path: Path) -> None:
    (tmp_path / "net.tflite").write_bytes(tiny_network(0))
    script = (
        "import sys; from pathlib import Path; from mlfbuild.targets import CPUS\n"
        "from mlfbuild.compilers import compiler_called\nfrom mlfbuild.library import CompileRequest\n"
        "compiler_called('native').outline(CompileRequest('net', Path('net.tflite'), CPUS['host']))\n"
        "print(*(name for name in ('tflite', 'mlfbuild.native.frontends', 'mlfbuild.native.passes')\n"
        "        if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
