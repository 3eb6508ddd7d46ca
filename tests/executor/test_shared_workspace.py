"""Modules of every kind in the workspace that models share, and those that cannot use it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from mlfbuild.archive import open_archive
from mlfbuild.cli.output.invocation import run as command_line
from mlfbuild.compilers import compiler_called
from mlfbuild.core.errors import UsageError
from mlfbuild.core.files import sha256
from mlfbuild.executor.executables import executable
from mlfbuild.executor.pools import why_not_shared
from mlfbuild.jobs.tree import TreeSettings, unpack
from mlfbuild.library import CodegenFile, CompileRequest, Library, Module, Pool
from mlfbuild.library.keys import Placement
from mlfbuild.native.build import compile_graph
from mlfbuild.native.graph import ops
from mlfbuild.targets import CPUS
from support.aot_archives import POOLS, WORKSPACE_IO, aot_archive
from support.errors import assert_printed, raises
from support.foreign_archives import allocating, graph_archive, with_runtime, written
from support.host_c import SANITIZERS, WARNINGS, run
from support.native import request
from support.sketch import Sketch

SHARED = Placement(shares_workspace=1)
POOL = '__attribute__((section(".bss.noinit.tvm"), aligned({})))\nstatic uint8_t {}[{}];\n'


def module_of(shared: Path, name: str) -> Module:
    return open_archive(shared / f"archives/{name}.tar").modules[0]


def texts(module: Module) -> dict[str, str]:
    """Return the generated files of ``module`` by name, without the runtime's headers."""
    found = executable(module, SHARED)
    assert found is not None
    generated = {path: bytes(data) for path, data in found.generated.items() if "/runtime/" not in path}
    return {PurePosixPath(path).name: data.decode() for path, data in generated.items()}


def with_pools(shared: Path, *pools: tuple[int, str, int]) -> Module:
    """Return ``many-aotc``, which has a pool of 36 bytes, with ``pools`` of (alignment, name, size) in its kernels."""
    module = module_of(shared, "many-aotc")
    text = "".join(POOL.format(*pool) for pool in pools).encode()
    codegen = [
        CodegenFile(file.path, file.data + text) if file.path.name == "many_lib1.c" else file for file in module.codegen
    ]
    return replace(module, codegen=tuple(codegen))


def test_generated_files(shared: Path, golden: Callable[[str, str], None]) -> None:
    for name, text in texts(module_of(shared, "many-aotc")).items():
        assert all(len(line) <= 120 for line in text.splitlines()), name
        golden(text, name)


def test_concurrent_modules_have_another_workspace(shared: Path) -> None:
    module = module_of(shared, "many-aotc")
    found = executable(module, Placement(shares_workspace=2))
    assert found is not None
    (entry,) = (bytes(data).decode() for path, data in found.generated.items() if path.endswith("many_entry.c"))
    assert "mlf_many_place_pools_0(mlf_shared_workspace_2.uint8_elements);" in entry
    assert "volatile uint8_t mlf_shared_workspace_2_busy;" in entry
    # The workspace in the code of an archive is fixed when the native compiler makes it.
    s = Sketch("net")
    s.node(ops.FullyConnected(), s.tensor("x", 1, 4), s.weights("w", 6, 4), s.tensor("hidden", 1, 6, scale=0.5))
    s.node(ops.Add(), "hidden", "hidden", s.tensor("y", 1, 6, scale=1.0))
    wanted = request("net", Placement(shares_workspace=2))
    (native,) = compile_graph(s.graph(["x"], ["y"]), wanted, sha256(b"net")).modules
    assert why_not_shared(native, "mlf_shared_workspace_2") is None
    mistake = why_not_shared(native, "mlf_shared_workspace")
    assert mistake is not None and "mlf_shared_workspace_2" in mistake.reason


def test_pools_of_a_run_do_not_overlap(shared: Path) -> None:
    found = texts(with_pools(shared, (64, "far", 100), (16, "near", 1)))
    assert "(uint8_t (*)[36])(workspace + 0);" in found["many_lib0.c"]
    assert "(uint8_t (*)[100])(workspace + 64);" in found["many_lib1.c"]
    assert "(uint8_t (*)[1])(workspace + 176);" in found["many_lib1.c"]
    assert "aligned(64))) union {\n    uint8_t uint8_elements[192];\n" in found["many_entry.c"]
    calls = [line for line in found["many_entry.c"].splitlines() if line.startswith("    mlf_many_place_pools")]
    assert calls == [f"    mlf_many_place_pools_{number}(mlf_shared_workspace.uint8_elements);" for number in (0, 1)]


def test_workspace_of_kernels_is_behind_the_pools(shared: Path) -> None:
    module = with_pools(shared)
    kernel = b"int32_t tvmgen_many_more(void) {\n  TVMBackendAllocWorkspace(1, 0, (uint64_t)20, 2, 32);\n}\n"
    extra = CodegenFile(PurePosixPath("host/src/more.c"), kernel)
    entry = texts(replace(module, codegen=(*module.codegen, extra)))["many_entry.c"]
    assert "mlf_workspace_begin(mlf_shared_workspace.uint8_elements + 48, 32);" in entry
    assert "    float float_elements[20];\n} mlf_shared_workspace;" in entry


def test_modules_without_static_memory_share_none(shared: Path) -> None:
    for name in ("add-graph", "add-aotp", "add-aotc", "operator-add"):
        module = module_of(shared, name)
        assert executable(module, SHARED) == executable(module), name


# Runs ----------------------------------------------------------------------------------------------------------------

MAIN = """\
#include <stddef.h>
#include <stdint.h>
#include <string.h>
{includes}
static _Alignas(8) uint8_t data[400], results[3][400];
static int32_t calls;

static int32_t ask(void *context, uint32_t index);

static int32_t call(int which)
{{
    switch (which) {{
{cases}
    default: return -100;
    }}
}}

/* Called inside a run: no other module may run. */
static int32_t ask(void *context, uint32_t index)
{{
    (void)context, (void)index;
    for (int which = 0; which < {count}; which++) {{
        if (call(which) != -2) return 1000 + which;
    }}
    calls++;
    return calls % 3 == 0 ? 7 : 0;
}}

int main(void)
{{
    for (int round = 0; round < 3; round++) {{
        for (int which = 0; which < {count}; which++) {{
            if (call(which) != 0) return 1 + which;
        }}
        const int32_t status = call(-1), other = call(-2);
        if ((status != 0 && status != 7) || (other != 0 && other != 7)) return 50;
    }}
    return calls < 6;
}}
"""
CASE = """\
    case {which}: {{
        struct tvmgen_{name}_inputs in;
        struct tvmgen_{name}_outputs out;
        void *const from[] = {{data, data, data}}, *const to[] = {{results[0], results[1], results[2]}};
        memcpy(&in, from, sizeof in);
        memcpy(&out, to, sizeof out);
        return tvmgen_{name}_run{hooked};
    }}"""
HOOKED = "_hooked(&in, &out, ask, NULL)"
ARGUMENTS = {"passed": "(&in, &out, (struct tvmgen_passed_workspace_pools[]){mlf_passed_static_pools()})"}


def of_native(executor: str, name: str = "", **options: bool | str) -> Library:
    """Return a library of the native compiler that was made without a shared workspace."""
    s = Sketch(name or executor)
    s.node(ops.FullyConnected(), s.tensor("x", 1, 4), s.weights("w", 6, 4), s.tensor("hidden", 1, 6, scale=0.5))
    s.node(ops.Add(), "hidden", "hidden", s.tensor("y", 1, 6, scale=1.0))
    wanted = replace(request(name or executor), executor=executor, options=dict(options))
    return compile_graph(s.graph(["x"], ["y"]), wanted, sha256(b"net"))


def libraries(folder: Path, shared: Path) -> list[Library]:
    """Return archives with pools, with kernels that allocate, with their runtime, and with pools of the caller.

    Hooked ones follow.
    """
    (folder / "net.tar").write_bytes(aot_archive())
    found = [shared / f"archives/{name}.tar" for name in ("many-aotc", "byoc-aotp")]
    found += [folder / "net.tar", written(folder, allocating(graph_archive(7)))]
    libraries = [open_archive(path) for path in found]
    bundled = written(folder, with_runtime(allocating(graph_archive(7)), folder, most=24), "bundled.tar")
    options = {"runtime": "bundled", "module-name": "bundled"}
    libraries.append(compiler_called("archive").compile(CompileRequest("b", bundled, CPUS["host"], options=options)))
    (folder / "pools.tar").write_bytes(aot_archive(POOLS))
    wanted = CompileRequest("p", folder / "pools.tar", CPUS["host"], options={"module-name": "passed"})
    libraries.append(compiler_called("archive").compile(wanted))
    libraries.append(of_native("aot", "packed", **{"interface-api": "packed"}))
    return [*libraries, of_native("aot", hook=True), of_native("graph", hook=True)]


def test_module_of_any_kind_refuses_to_run_inside_another(
    tmp_path: Path, shared: Path, tool: Callable[[str], str]
) -> None:
    tool("gcc")
    sources, flags, names = [tmp_path / "main.c"], [], []
    for library in libraries(tmp_path, shared):
        (module,) = library.modules
        folder = tmp_path / module.name
        unpack(library, folder, archive_id="a", settings=TreeSettings(placement=SHARED))
        found = executable(module, SHARED)
        assert found is not None
        folders = [f"-I{folder / path}" for path in dict.fromkeys((*found.include_dirs, *found.private_include_dirs))]
        run(["gcc", *WARNINGS[:-1], *folders, "-c", folder / f"executor/{module.name}_entry.c", "-o", tmp_path / "x.o"])
        for path in found.files:
            made = folder / f"{PurePosixPath(path).name}.o"
            run(["gcc", "-std=c99", *SANITIZERS, *folders, "-c", folder / path, "-o", made])
            sources.append(made)
        flags += [f"-I{folder / path}" for path in found.include_dirs]
        names.append(module.name)
    count = len(names) - 2
    cases = [
        *(CASE.format(which=at, name=name, hooked=ARGUMENTS.get(name, "(&in, &out)")) for at, name in enumerate(names)),
        *(CASE.format(which=at, name=name, hooked=HOOKED) for at, name in ((-1, "aot"), (-2, "graph"))),
    ]
    includes = "\n".join(f'#include "{"mlf" if name in ARGUMENTS else "tvmgen"}_{name}.h"' for name in names)
    sources[0].write_text(MAIN.format(includes=includes, cases="\n".join(cases), count=count))
    run(["gcc", "-std=c11", *SANITIZERS, *flags, *sources, "-lm", "-o", tmp_path / "program"])
    run([tmp_path / "program"])


# What cannot be shared -----------------------------------------------------------------------------------------------


def test_reasons_why_a_workspace_cannot_be_shared(tmp_path: Path, shared: Path, tool: Callable[[str], str]) -> None:
    (tmp_path / "pool.c").write_text("#include <stdint.h>\n" + POOL.format(16, "inside", 400).replace("static ", ""))
    run([tool("gcc"), "-c", tmp_path / "pool.c", "-o", tmp_path / "pool.o"])
    compiled = CodegenFile(PurePosixPath("host/lib/pool.o"), (tmp_path / "pool.o").read_bytes())
    many, external = module_of(shared, "many-aotc"), module_of(shared, "conv-usmp_external")
    other = CodegenFile(PurePosixPath("host/src/other.c"), b"static uint8_t other[16];\n")
    refused = {
        "pool of unknown size": (replace(external, pools=(replace(external.pools[0], size=None),)), "sram"),
        "pool in an object": (replace(many, codegen=(*many.codegen, compiled)), "400 bytes"),
        "inputs in the pool": (replace(many, workspace_io=True), "global_workspace"),
        "pool in another form": (
            replace(many, codegen=(*many.codegen, other), pools=(Pool("other", "workspace", 16, external=False),)),
            "other of 16 bytes",
        ),
        "another version of mlfbuild": (replace(of_native("aot").modules[0], codegen=(other,), executor="aot"),
         "mlfbuild"),
    }  # fmt: skip
    for name, (module, fact) in refused.items():
        mistake = why_not_shared(module, "mlf_shared_workspace")
        assert mistake is not None and fact in mistake.reason, name
        with raises(UsageError, "workspace-cannot-be-shared", f"{module.name}: share-workspace"):
            executable(module, SHARED)
        if not module.model_id:
            with raises(UsageError, "placement-without-workspace", module.name) as caught:
                executable(module, Placement(workspace=".far"))
            assert fact in caught.value.reason, name


def test_error_has_the_place_in_the_project_file(
    tmp_path: Path, shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "io.tar").write_bytes(aot_archive(WORKSPACE_IO))
    (tmp_path / "mlfbuild.yml").write_text(
        f"mlfbuild: 1\ntargets: {{m4: {{cpu: cortex-m4}}}}\nmodels:\n"
        f"  many: {{source: {shared}/archives/many-aotc.tar}}\n"
        "  net: {source: io.tar}\nshare-workspace: [many, net]\n"
    )
    assert command_line(["-C", str(tmp_path), "check"]) == 2
    place = "mlfbuild.yml:6:25: share-workspace[1]"
    assert_printed(capsys.readouterr().err, "workspace-cannot-be-shared", place, "io.tar", "sram")
