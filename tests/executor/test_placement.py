"""Sections of modules of other compilers: generated data and pools can be placed, constants in their code cannot."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from mlfbuild.archive import write_archive
from mlfbuild.compilers import compiler_called
from mlfbuild.core.errors import OverBudgetError, UsageError
from mlfbuild.executor.graph_source import class_of
from mlfbuild.jobs import firmware_jobs, load, target_jobs
from mlfbuild.jobs.tree.target_tree import TreeSettings, unpack
from mlfbuild.library import CompileRequest
from mlfbuild.library.keys import Placement
from mlfbuild.targets import BOARDS, CPUS
from mlfbuild.usecases.build import build_project as build
from mlfbuild.usecases.verify import verify_job, verify_jobs
from support.errors import raises
from support.firmware_repo import tiny_network
from support.host_c import run
from support.native import compile_bytes

PROJECT = """\
mlfbuild: 1
targets:
  m4: {{cpu: cortex-m4, board: mps2-an386, regions: {{{regions}}}}}
models:
  net:
    source: {archives}/{name}.tar
    vectors: {archives}/{name}.npz
    placement: {{{placement}}}
"""
PSRAM = BOARDS["mps2-an386"].regions["PSRAM"]


def placed(shared: Path, name: str, placement: Placement, folder: Path) -> Path:
    """A tree of an archive of TVM with its generated code in sections."""
    request = CompileRequest("net", shared / f"archives/{name}.tar", CPUS["cortex-m4"], placement=placement)
    unpack(
        compiler_called("archive").compile(request),
        folder / "tree",
        archive_id="a",
        settings=TreeSettings(placement=placement),
    )
    return folder / "tree"


def sections_of_entry(tree: Path, compiler: str) -> dict[str, str]:
    """Return the section of every variable of the generated entry."""
    (entry,) = (tree / "executor").glob("*_entry.c")
    folders = [tree / "executor/include", tree / "executor", tree / "executor/runtime", *tree.glob("codegen/*/include")]
    includes = [f"-I{folder}" for folder in folders]
    run([compiler, *CPUS["cortex-m4"].flags, "-O1", *includes, "-c", entry, "-o", tree / "entry.o"])
    with (tree / "entry.o").open("rb") as file:
        elf = ELFFile(file)
        symbols = elf.get_section_by_name(".symtab").iter_symbols()
        return {
            symbol.name: elf.get_section(symbol["st_shndx"]).name
            for symbol in symbols
            if symbol["st_info"]["type"] == "STT_OBJECT"
        }


def test_parameters_of_a_graph_are_classified_by_shape(shared: Path, tmp_path: Path, tool: Callable[..., str]) -> None:
    placement = Placement(weights=".far", biases=".near", workspace=".bss.ws")
    tree = placed(shared, "kws_int8-graph", placement, tmp_path)
    found = sections_of_entry(tree, tool("arm-none-eabi-gcc"))
    parameters = {section for name, section in found.items() if name.startswith("mlf_parameter")}
    assert parameters == {".far", ".near"}
    (workspace,) = (section for name, section in found.items() if name.endswith("_workspace"))
    assert workspace == ".bss.ws"


def test_one_section_for_all_parameters(shared: Path, tmp_path: Path, tool: Callable[..., str]) -> None:
    tree = placed(shared, "conv-graph", Placement(params=".far"), tmp_path)
    found = sections_of_entry(tree, tool("arm-none-eabi-gcc"))
    assert {section for name, section in found.items() if name.startswith("mlf_parameter")} == {".far"}
    assert {section for name, section in found.items() if name.endswith("_workspace")} == {".bss.noinit.tvm"}


@pytest.mark.parametrize(("shape", "name"), [
    ((64,), "biases"), ((1, 64, 1, 1), "biases"), ((), "biases"), ((1,), "biases"),
    ((3, 3), "weights"), ((1, 3, 1, 64), "weights"),
])  # fmt: skip
def test_classes_of_parameters(shape: tuple[int, ...], name: str) -> None:
    assert class_of(np.zeros(shape, np.int32)) == name


POOLS = {"conv-aotc": False, "conv-usmp_external": False, "conv-aotp": True, "byoc-aotp": True, "kws_int8-aotc": True}
"""Archives with a pool in the code or of the caller, and whether they are tested in the sweep."""


@pytest.mark.parametrize(
    ("name", "regions", "placement"),
    [
        ("conv-graph", ".mlf_params: PSRAM, .far: PSRAM", "params: .mlf_params, workspace: .far"),
        ("conv-llvm_graph_m4", ".mlf_params: PSRAM, .far: PSRAM", "params: .mlf_params, workspace: .far"),
        *(
            pytest.param(name, ".far: PSRAM", "workspace: .far", marks=[pytest.mark.sweep] if swept else [])
            for name, swept in POOLS.items()
        ),
    ],
)
def test_results_do_not_depend_on_sections(
    shared: Path, tmp_path: Path, tool: Callable[..., str], name: str, regions: str, placement: str
) -> None:
    tool("cmake", "ninja", "arm-none-eabi-gcc", "qemu-system-arm")
    text = PROJECT.format(archives=shared / "archives", name=name, regions=regions, placement=placement)
    (tmp_path / "mlfbuild.yml").write_text(text)
    project = load(tmp_path / "mlfbuild.yml")
    targets = target_jobs(project)
    build(targets)
    (job,) = verify_jobs(project, targets, tmp_path / "build")
    assert verify_job(job).passed
    with (job.folder / "build/verify.elf").open("rb") as file:
        found = {section.name: section for section in ELFFile(file).iter_sections()}
    for section in (entry.split(":")[0].strip() for entry in regions.split(",")):
        assert PSRAM.origin <= found[section]["sh_addr"] < PSRAM.origin + PSRAM.size
        assert found[section]["sh_size"] > 0


@pytest.mark.parametrize(
    ("name", "size", "pools", "memory"),
    [
        ("conv-aotc", 58928, False, "ddr"),
        ("conv-usmp_external", 47408, True, "ddr"),
        pytest.param("conv-usmp_external", 47408, True, "sram", marks=pytest.mark.sweep),
    ],
)
def test_pool_of_an_archive_is_in_the_memory_of_its_model(
    shared: Path, tmp_path: Path, tool: Callable[..., str], name: str, size: int, pools: bool, memory: str
) -> None:
    tool("cmake", "ninja", "arm-none-eabi-gcc")
    (tmp_path / "mlfbuild.yml").write_text(
        "mlfbuild: 1\ntargets:\n  m55:\n    cpu: cortex-m55\n    board: mps3-an547\n"
        "    memories: {dtcm: {}, sram: {}, ddr: {size: 1 MiB}}\n"
        f"models:\n  conv: {{source: {shared}/archives/{name}.tar, memories: [{memory}],"
        f" budget: {{{memory}: {size}}}}}\n"
        "firmware: {app: {sources: [main.c]}}\n"
    )
    passed = "struct tvmgen_conv_workspace_pools pools = mlf_conv_static_pools();" if pools else ""
    (tmp_path / "main.c").write_text(
        f'#include "{"mlf" if pools else "tvmgen"}_conv.h"\nint main(void) {{\n    struct tvmgen_conv_inputs in;\n'
        f"    struct tvmgen_conv_outputs out;\n    {passed}\n"
        f"    return tvmgen_conv_run(&in, &out{', &pools' if pools else ''});\n}}\n"
    )
    project = load(tmp_path / "mlfbuild.yml")
    targets = target_jobs(project)
    build(targets, firmware_jobs(project, targets))
    with (tmp_path / "build/m55/app/app.elf").open("rb") as file:
        symbols = {each.name: each for each in ELFFile(file).get_section_by_name(".symtab").iter_symbols()}
    place = BOARDS["mps3-an547"].regions["DDR" if memory == "ddr" else "RAM"]
    assert place.origin <= symbols["tvmgen_conv_workspace"]["st_value"] < place.origin + place.size
    assert symbols["tvmgen_conv_workspace"]["st_size"] == size and "global_workspace" not in symbols
    (tmp_path / "mlfbuild.yml").write_text((tmp_path / "mlfbuild.yml").read_text().replace(f"{size}", f"{size - 1}"))
    project = load(tmp_path / "mlfbuild.yml")
    targets = target_jobs(project)
    with pytest.raises(OverBudgetError) as caught:
        build(targets, firmware_jobs(project, targets))
    (problem,) = caught.value.problems
    assert problem.code == "memory-over-budget" and f"{size:,}" in problem.reason


CANNOT = [
    ("conv-aotc", Placement(params=".far"), "conv"),
    ("conv-aotp", Placement(weights=".far"), "conv"),
    ("conv-graphlink", Placement(params=".far"), "conv"),
    ("multi-mixed", Placement(params=".far"), "mod1"),
    ("many-graph", Placement(params=".far"), "many"),
]


@pytest.mark.parametrize(("name", "placement", "module"), CANNOT)
def test_constants_in_the_code_of_an_archive_cannot_be_placed(
    shared: Path, tmp_path: Path, name: str, placement: Placement, module: str
) -> None:
    with raises(UsageError, "archive-chooses-section", at="net: placement.params") as caught:
        placed(shared, name, placement, tmp_path)
    assert f"{shared}/archives/{name}.tar" in caught.value.reason
    assert f"*libmlf_{module}.a:*(.rodata.tvm)" in caught.value.hint
    assert not (tmp_path / "tree").exists()


@pytest.mark.parametrize(
    ("placement", "code", "key"),
    [
        (Placement(state=".far"), "archive-without-state", "state"),
        (Placement(params=".bss.x"), "section-cannot-hold-constants", "params"),
        (Placement(params=".x", workspace=".x"), "mixed-section", "workspace"),
    ],
)
def test_data_that_cannot_be_placed_is_rejected(
    shared: Path, tmp_path: Path, placement: Placement, code: str, key: str
) -> None:
    with raises(UsageError, code, at=f"net: placement.{key}") as caught:
        placed(shared, "kws_int8-graph", placement, tmp_path)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "tree").exists()


@pytest.mark.parametrize("name", ["add-aotc", "operator-add"])
def test_module_without_static_workspace_has_none_to_place(shared: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        placed(shared, name, Placement(workspace=".far"), tmp_path)
    module = name.rpartition("-")[2] if name.startswith("operator") else name.partition("-")[0]
    assert (caught.value.code, caught.value.place) == ("placement-without-workspace", module)
    assert "linker script" not in caught.value.hint, "there is nothing to place"
    assert not (tmp_path / "tree").exists()


def test_archive_of_the_native_compiler_is_already_compiled(tmp_path: Path) -> None:
    archive = tmp_path / "net.tar"
    write_archive(compile_bytes(tiny_network(1)), archive)
    for placement, section in (
        (Placement(params=".far"), ".rodata.tvm"),
        (Placement(workspace=".x"), ".bss.noinit.tvm"),
    ):
        request = CompileRequest("net", archive, CPUS["cortex-m4"], placement=placement)
        with raises(UsageError, "archive-chooses-section") as caught:
            compiler_called("archive").compile(request)
        assert f"*libmlf_net.a:*({section})" in caught.value.hint
