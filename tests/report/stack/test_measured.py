"""The measured stack of runs on boards never exceeds the computed worst case, and mostly equals it."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.archive import open_archive
from mlfbuild.jobs.tree.record import Record
from mlfbuild.jobs.tree.target_tree import tree_files
from mlfbuild.jobs.tree.tree import write_tree
from mlfbuild.library import CompileRequest, Library, Module
from mlfbuild.native import NATIVE
from mlfbuild.report.sizes.image import read_image
from mlfbuild.report.sizes.linker_map import read_map
from mlfbuild.report.stack.image import stacks_of
from mlfbuild.targets import BOARDS, CPUS, toolchain_file
from mlfbuild.verify.module import verify_module
from support.examples import first_on_push


@pytest.fixture(autouse=True)
def tools(tool: Callable[..., str]) -> None:
    tool("arm-none-eabi-gcc", "qemu-system-arm", "cmake", "ninja")


def measured_and_known(
    module: Module, board: str, vectors: Path, folder: Path, compiler: str = "gcc"
) -> tuple[int, int]:
    """Return the measured stack of the runs of all vectors, and the worst case of the same image, in bytes."""
    files = tree_files(Library((module,)))
    write_tree(folder / "tree", files, Record.of(files, archive=""))
    toolchain = toolchain_file(CPUS[BOARDS[board].cpu], compiler)
    ran = verify_module(folder / "tree", module, BOARDS[board], vectors, folder / "work", toolchain=toolchain)
    assert ran.passed and ran.stack_used is not None, ran.text()
    elf = folder / "work/build/verify.elf"
    placed = read_map(elf.with_name("verify.elf.map")).sections
    depth = stacks_of(read_image(elf), placed, {module.name: "model"}).models["model"]
    assert depth.size is not None, depth
    return ran.stack_used, depth.size


def native(shared: Path, name: str, board: str, executor: str, **options: bool) -> Module:
    source = shared / f"models/{name}_int8.tflite"
    return NATIVE.compile(CompileRequest(name, source, CPUS[BOARDS[board].cpu], executor, options)).modules[0]


@pytest.mark.parametrize(
    ("board", "executor", "compiler"),
    first_on_push([("mps3-an547", "aot", "gcc"), ("mps2-an386", "aot", "clang"), ("mps3-an547", "graph", "gcc")]),
)
def test_network_uses_worst_case_stack(shared: Path, board: str, executor: str, compiler: str, tmp_path: Path) -> None:
    module = native(shared, "kws", board, executor)
    measured, known = measured_and_known(module, board, shared / "golden/kws_int8.npz", tmp_path, compiler)
    assert 0 < measured == known


@pytest.mark.parametrize("options", first_on_push([{"hook": True}, {"trace": True}]))
def test_unused_hook_uses_worst_case_stack(shared: Path, options: dict[str, bool], tmp_path: Path) -> None:
    module = native(shared, "kws", "mps2-an386", "aot", **options)
    measured, known = measured_and_known(module, "mps2-an386", shared / "golden/kws_int8.npz", tmp_path)
    assert 0 < measured == known
    elf = tmp_path / "work/build/verify.elf"
    main = stacks_of(read_image(elf), read_map(elf.with_name("verify.elf.map")).sections, {"kws": "kws"}).main
    assert re.fullmatch(r"mlf_kws_run_(hooked|traced) calls a function through a pointer, at 0x[0-9a-f]+", main.reason)


@pytest.mark.parametrize(
    ("name", "more"), first_on_push([("conv-graph", 0), ("add-aotp", 0), ("conv-llvm_graph_m4", 32)])
)
def test_tvm_archive_uses_worst_case_stack(shared: Path, name: str, more: int, tmp_path: Path) -> None:
    (module,) = open_archive(shared / f"archives/{name}.tar").modules
    measured, known = measured_and_known(module, "mps2-an386", shared / f"archives/{name}.npz", tmp_path)
    assert 0 < measured <= known <= measured + more


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["kws", "ad", "ic", "vww"])
@pytest.mark.parametrize("executor", ["aot", "graph"])
@pytest.mark.parametrize(
    ("board", "compiler"), [(board.name, each) for board in BOARDS.values() for each in CPUS[board.cpu].compilers]
)
def test_measured_stack_is_close_to_worst_case(
    shared: Path, board: str, compiler: str, executor: str, name: str, tmp_path: Path
) -> None:
    module = native(shared, name, board, executor)
    measured, known = measured_and_known(module, board, shared / f"golden/{name}_int8.npz", tmp_path, compiler)
    assert 0 < measured <= known <= measured + 80
