"""The options for other tools: ``layout: single-file`` and ``interface-api: packed``."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.archive import open_archive, pack_archive, read_archive, rename_modules, write_archive
from mlfbuild.archive.describe.facts import describe
from mlfbuild.archive.merge.archives import merge
from mlfbuild.archive.merge.registry import parse_registry
from mlfbuild.compilers import compiler_called
from mlfbuild.core.errors import UnsupportedModelError, UsageError
from mlfbuild.core.files import sha256
from mlfbuild.executor import executable
from mlfbuild.library import MERGED_SYSTEM_LIBRARY, TVM_RUNTIME, CompileRequest, Library, exporter_version
from mlfbuild.library.keys import Placement
from mlfbuild.native.build import compile_graph
from mlfbuild.native.graph import Array, Graph, State
from mlfbuild.native.graph.ops import Add, FullyConnected, Reshape, Softmax
from mlfbuild.targets import CPUS
from mlfbuild.usecases.validate import validate_archive
from mlfbuild.verify.host.model import load_library
from support.errors import raises
from support.graph_interpreter import Interpreter
from support.host_c import WARNINGS, run, run_on_host, write_tree
from support.native import request
from support.sketch import Sketch

Tool = Callable[[str], str]

SINGLE = {"layout": "single-file"}
PACKED = {"interface-api": "packed"}
CPU_NAMES = ["host", "cortex-m4", "cortex-m55"]


@cache
def network(name: str = "net") -> Graph:
    """Layers with kernels that differ between CPUs, an output that is an input, one that is a scalar, and seven
    dimensions."""
    random = np.random.default_rng(2)
    s = Sketch(name)
    s.tensor("x", 2, 16)
    s.node(
        FullyConnected(),
        "x",
        s.weights("w", data=random.integers(-127, 128, (12, 16), dtype=np.int8)),
        s.tensor("dense", 2, 12),
    )
    s.node(Softmax(), "dense", s.tensor("soft", 2, 12, scale=1 / 256, zero_point=-128))
    s.node(Reshape(), "soft", s.tensor("deep", 1, 2, 1, 3, 2, 1, 2, scale=1 / 256, zero_point=-128))
    s.node(Add(), s.tensor("y"), "y", s.tensor("sum"))
    return s.graph(["x", "y"], ["deep", "sum", "x"])


def compiled(
    options: dict[str, str], *, name: str = "net", cpu: str = "cortex-m4", executor: str | None = None
) -> Library:
    graph = network(name)
    return compile_graph(graph, replace(request(name, cpu=cpu), options=options, executor=executor), sha256(b"net"))


def files(library: Library) -> list[str]:
    return [str(file.path).removeprefix("host/") for file in library.modules[0].codegen]


def disassembled(objdump: str, file: Path) -> str:
    """Return the instructions and relocations of all functions but the main function."""
    text = run([objdump, "-d", "-r", "--no-show-raw-insn", file]).split(":", 1)[1]
    sections = text.split("\nDisassembly of section ")[1:]
    return "".join(section for section in sections if not section.startswith(".text.tvmgen_net_main"))


# One file ------------------------------------------------------------------------------------------------------------


def test_files_of_each_form() -> None:
    assert files(compiled(SINGLE)) == ["include/tvmgen_net.h", "src/net_lib0.c"]
    assert files(compiled({**SINGLE, **PACKED})) == ["include/mlf_net.h", "src/net_lib0.c"]
    assert files(compiled(SINGLE, executor="graph")) == ["include/mlf_net.h", "src/net_lib0.c"]
    several = [path for path in files(compiled(PACKED)) if "mlfbuild/" not in path]
    assert several == ["include/mlf_net.h", "src/net_lib0.c", "src/net_lib1.c", "src/net_lib2.c"]
    assert compiled({"layout": "standard", "interface-api": "c"}) == compiled({}), "these are the defaults"


@pytest.mark.parametrize("cpu", CPU_NAMES)
def test_single_file_is_compiled_to_the_same_code(cpu: str, tmp_path: Path, tool: Tool) -> None:
    gcc, objdump = ("gcc", "objdump") if cpu == "host" else ("arm-none-eabi-gcc", "arm-none-eabi-objdump")
    found = []
    for number, options in enumerate(({}, SINGLE)):
        folder = write_tree(compiled(options, cpu=cpu), tmp_path / str(number))
        include = [] if options else ["-I", "host/include"]
        command = [tool(gcc), *CPUS[cpu].flags, "-O2", *WARNINGS, *include, "-c", "host/src/net_lib0.c", "-o", "net.o"]
        run(command, folder)
        found.append(disassembled(objdump, folder / "net.o"))
    assert found[0] == found[1] and "mlf_net_run" in found[0]


def test_single_file_includes_no_file_of_the_archive() -> None:
    for options, executor in ((SINGLE, None), ({**SINGLE, **PACKED}, None), (SINGLE, "graph")):
        library = compiled(options, executor=executor)
        source = next(file.data.decode() for file in library.modules[0].codegen if file.path.suffix == ".c")
        lines = [line for line in source.splitlines() if "#include" in line]
        assert all(re.fullmatch(r"#include <[\w/]+\.h>", line) for line in lines), "TVM rewrites whole lines"
        guards = re.findall(r"^#define (\w+_H_)$", source, re.MULTILINE)
        assert len(guards) == len(set(guards)) > 5
        assert source.startswith("/* SPDX-License-Identifier: Apache-2.0 */\n")


@pytest.mark.parametrize("first", ["net_lib0.c", "tvmgen_net.h"])
def test_header_and_single_file_in_either_order(first: str, tmp_path: Path) -> None:
    folder = write_tree(compiled(SINGLE), tmp_path)
    second = {"net_lib0.c": "tvmgen_net.h", "tvmgen_net.h": "net_lib0.c"}[first]
    main = f'#include "{first}"\n#include "{second}"\nint main(void) {{ return tvmgen_net_run(NULL, NULL) + 1; }}\n'
    (folder / "main.c").write_text(main)
    run(["gcc", *WARNINGS, "-I", "host/include", "-I", "host/src", "main.c", "-o", "main"], folder)
    run([folder / "main"])


def test_single_files_link_into_one_program(tmp_path: Path) -> None:
    calls = []
    for name in ("first", "second"):
        write_tree(compiled(SINGLE, name=name), tmp_path)
        calls.append(f"tvmgen_{name}___tvm_main__")
    declared = "".join(f"int {name}(void *, void *, void *, void *, void *);\n" for name in calls)
    body = " + ".join(f"{name}(0, 0, 0, 0, 0)" for name in calls)
    (tmp_path / "main.c").write_text(f"{declared}int main(void) {{ return {body} + 2; }}\n")
    run(["gcc", "main.c", "host/src/first_lib0.c", "host/src/second_lib0.c", "-o", "main"], tmp_path)
    run([tmp_path / "main"])


def test_single_file_is_renamed_and_merged_like_other_code() -> None:
    library = rename_modules(compiled(SINGLE), {"net": "kws"})
    assert files(library) == ["include/tvmgen_kws.h", "src/kws_lib0.c"]
    assert not any(b"_net_" in file.data or b"_NET_" in file.data for file in library.modules[0].codegen)
    merged = merge([("a", library), ("b", compiled(PACKED)), ("c", compiled(SINGLE, name="g", executor="graph"))])
    assert [module.name for module in merged.modules] == ["g", "kws", "net"]
    codegen = {file.path.name: file.data.decode() for module in merged.modules for file in module.codegen}
    table = parse_registry(codegen[MERGED_SYSTEM_LIBRARY])
    assert table is not None
    assert {"tvmgen_net_run", "tvmgen_net_get_c_metadata"} < {name for name, _ in table.functions}


# Numbers -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [PACKED, {**PACKED, **SINGLE}], ids=["packed", "both"])
def test_packed_module_in_a_tree_computes_the_same(options: dict[str, str]) -> None:
    library = read_archive(pack_archive(compiled(options)), "net.tar")
    inputs = values()
    found = load_library(library, "net.tar").run(dict(zip(["x", "y"], inputs, strict=True)))
    right = run_on_host(compiled({}), inputs, sanitize=False)
    assert [value.tobytes() for value in found.values()] == [value.tobytes() for value in right]


def test_graph_in_one_file_computes_the_same(tmp_path: Path) -> None:
    library = compiled(SINGLE, executor="graph")
    write_archive(library, tmp_path / "net.tar")
    inputs = values()
    right = run_on_host(compiled({}), inputs, sanitize=False)
    found = Interpreter(tmp_path / "net.tar", tmp_path / "tree").run(inputs)
    assert [value.tobytes() for value in found] == [value.tobytes() for value in right]


def values() -> list[Array]:
    random = np.random.default_rng(11)
    return [random.integers(-128, 128, shape, dtype=np.int8) for shape in ((2, 16), ())]


# The packed interface ------------------------------------------------------------------------------------------------


def test_packed_archive_is_read_again(tmp_path: Path) -> None:
    library = compiled(PACKED)
    write_archive(library, tmp_path / "net.tar")
    assert validate_archive(tmp_path / "net.tar").findings == ()
    assert read_archive(pack_archive(library), "net.tar") == library
    assert library.modules[0].interface == "packed" and not library.modules[0].complete


def test_metadata_has_shapes_and_types_for_the_runtime() -> None:
    code = {file.path.name: file.data.decode() for file in compiled(PACKED).modules[0].codegen}
    text = code["net_lib1.c"]
    assert "kTvmgenMetadata_inputs_1_shape[1] = {1};" in text, "scalars have one element"
    assert "kTvmgenMetadata_outputs_0_shape[6] = {2, 1, 3, 2, 1, 2};" in text, "at most six dimensions"
    assert '{"x", kTvmgenMetadata_inputs_0_shape, 2, {0, 8, 1}}' in text
    assert '{"output2", kTvmgenMetadata_outputs_2_shape, 2, {0, 8, 1}}' in text


@pytest.mark.parametrize("options", [PACKED, {**PACKED, **SINGLE}], ids=["packed", "both"])
def test_packed_code_has_no_warnings_and_few_symbols(options: dict[str, str], tmp_path: Path, tool: Tool) -> None:
    library = compiled(options)
    folder = write_tree(library, tmp_path)
    found = executable(library.modules[0])
    assert found is not None
    for path, content in found.generated.items():
        (folder / "tree" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "tree" / path).write_bytes(bytes(content))
    flags = [*CPUS["cortex-m4"].flags, *WARNINGS, "-DMLF_MODULE=app", "-O2", "-I", "tree/executor/runtime"]
    sources = sorted(str(path.relative_to(folder)) for path in (folder / "host/src").glob("*.c"))
    run([tool("arm-none-eabi-gcc"), *flags, "-c", *sources], folder)
    objects = [Path(source).with_suffix(".o").name for source in sources]
    defined = run([tool("arm-none-eabi-nm"), "--defined-only", "--extern-only", *objects], folder)
    assert set(re.findall(r" [A-Z] (\w+)", defined)) == {
        "TVMSystemLibEntryPoint_app", "mlf_net_model_id", "tvmgen_net___tvm_main__", "tvmgen_net_get_c_metadata",
        "tvmgen_net_run",
    }  # fmt: skip


@pytest.mark.parametrize("options", [PACKED, {**PACKED, **SINGLE}], ids=["packed", "both"])
def test_packed_code_uses_the_shared_workspace_in_a_tree(options: dict[str, str], tmp_path: Path, tool: Tool) -> None:
    shared = Placement(shares_workspace=1)
    library = compile_graph(network(), replace(request("net", shared), options=options), sha256(b"net"))
    assert library == compiled(options)
    found = executable(library.modules[0], shared)
    assert found is not None
    folder = write_tree(library, tmp_path / "codegen").parent
    for path, content in found.generated.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(bytes(content))
    include = [word for name in (*found.include_dirs, *found.private_include_dirs) for word in ("-I", name)]
    run([tool("arm-none-eabi-gcc"), *CPUS["cortex-m4"].flags, "-O2", *include, "-c", *found.files], folder)
    size = library.modules[0].main[0].workspace_size
    symbols = run(
        [tool("arm-none-eabi-nm"), "-S", *(Path(name).with_suffix(".o").name for name in found.files)], folder
    )
    assert f"{size:08x} C mlf_shared_workspace" in symbols
    assert f"{size:08x} b" not in symbols


@pytest.mark.parametrize(("executor", "options"), [("graph", {}), (None, PACKED)], ids=["graph", "packed"])
def test_code_for_executors_of_tvm_names_the_runtime(executor: str | None, options: dict[str, str]) -> None:
    library = compiled(options, executor=executor)
    (module,) = library.modules
    assert module.external_dependencies == (TVM_RUNTIME,)
    (needed,) = describe(library)["modules"][0]["needs"]
    assert (needed["name"], needed["version"], needed["declared"]) == ("tvm_standalone_crt", "v0.14.0", True)
    assert exporter_version(module) == "", "TVM did not export it"
    assert compiled({}).modules[0].external_dependencies == ()


def test_merged_code_requires_the_runtime_of_the_other_archive(shared: Path) -> None:
    tvm = open_archive(shared / "archives/add-aotp.tar")
    merged = merge([("a", tvm), ("b", compiled({}, executor="graph"))])
    assert len({module.external_dependencies for module in merged.modules}) == 1
    assert merged.modules[0].external_dependencies[0].url_type == "mlf_path"


# What is refused -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "executor", "code", "place"),
    [
        ({"layout": "flat"}, None, "invalid-option", "options.layout"),
        ({"interface-api": "c++"}, None, "invalid-option", "options.interface-api"),
        (PACKED, "graph", "interface-of-graph", "options.interface-api"),
        ({"interface-api": "c"}, "graph", "interface-of-graph", "options.interface-api"),
        ({**PACKED, "hook": True}, None, "packed-without-c-interface", "options.hook"),
        ({**PACKED, "trace": True}, None, "packed-without-c-interface", "options.trace"),
    ],
)
def test_wrong_options_are_refused(
    options: dict[str, str | bool], executor: str | None, code: str, place: str, tmp_path: Path
) -> None:
    wanted = CompileRequest("net", tmp_path / "net.tflite", CPUS["host"], executor=executor, options=options)
    for method in (compiler_called("native").compile, compiler_called("native").outline):
        with raises(UsageError, code, at=f"net: {place}"):
            method(wanted)


def test_network_with_state_needs_the_c_interface() -> None:
    s = Sketch()
    s.node(Add(), s.tensor("x", 3), s.tensor("kept", 3), s.tensor("sum", 3))
    graph = Graph("net", s.tensors, s.nodes, ["x"], ["sum"], [State("kept", "sum", np.zeros(3, np.int8))])
    with raises(UnsupportedModelError, "packed-interface-without-state", at="net: 'kept'"):
        compile_graph(graph, replace(request("net"), options=PACKED), sha256(b"net"))
