"""The runtime in an archive is used instead of mlfbuild's."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mlfbuild
from mlfbuild.archive import open_archive, write_archive
from mlfbuild.compilers import compiler_called
from mlfbuild.core.errors import InputFileError, UsageError
from mlfbuild.jobs.tree import unpack
from mlfbuild.library import CompileRequest, Library
from mlfbuild.library.bundling import CONFIGURATIONS
from mlfbuild.targets import CPUS, Board, board_called, cpu_called, toolchain_file
from mlfbuild.verify.module import VerifyReport, verify_module
from support.examples import first_on_push
from support.foreign_archives import OUT, A, B, Files, allocating, graph_archive, with_runtime, written

M4 = board_called("mps2-an386")


@pytest.fixture(scope="module", autouse=True)
def tools(tool: Callable[..., str]) -> None:
    tool("gcc", "arm-none-eabi-gcc", "cmake", "ninja", "qemu-system-arm")


def compiled(folder: Path, files: Files) -> Library:
    request = CompileRequest("add", written(folder, files), CPUS["cortex-m4"], options={"runtime": "bundled"})
    return compiler_called("archive").compile(request)


def verify(folder: Path, library: Library, board: Board | None) -> VerifyReport:
    np.savez(folder / "add.npz", in0=A, in1=B, out0=OUT)
    write_archive(library, folder / "made.tar")  # the archive records the option
    library = open_archive(folder / "made.tar")
    unpack(library, folder / "tree", archive_id="")
    toolchain = toolchain_file(cpu_called(board.cpu)) if board else None
    return verify_module(
        folder / "tree", library.modules[0], board, folder / "add.npz", folder / "work", toolchain=toolchain
    )


@pytest.mark.parametrize("board", first_on_push([M4, None]), ids=["m4", "host"])
@pytest.mark.parametrize("template", CONFIGURATIONS)
def test_its_functions_are_called(tmp_path: Path, board: Board | None, template: str) -> None:
    files = with_runtime(allocating(graph_archive(7)), tmp_path, most=24, template=template)
    report = verify(tmp_path, compiled(tmp_path, files), board)
    assert report.passed, report.text()
    fragment = (tmp_path / "tree/mlf.cmake").read_text()
    assert "executor/add_crt_backend_api.c" in fragment and "/runtime/include" in fragment
    assert "executor/runtime" not in fragment


@pytest.mark.parametrize("board", [None, M4], ids=["host", "m4"])
def test_abort_of_the_bundled_runtime_ends_the_run(tmp_path: Path, board: Board | None) -> None:
    files = with_runtime(allocating(graph_archive(7)), tmp_path, most=23)
    report = verify(tmp_path, compiled(tmp_path, files), board)
    assert not report.passed
    assert "add: case 0: the run function returned 4660, not 0" in report.text()


def test_module_run_alone_uses_the_runtime_of_mlfbuild(tmp_path: Path) -> None:
    library = compiled(tmp_path, with_runtime(allocating(graph_archive(7)), tmp_path, most=23))
    write_archive(library, tmp_path / "made.tar")
    (output,) = mlfbuild.load(tmp_path / "made.tar").run({"a": A, "b": B}).values()
    np.testing.assert_array_equal(output, OUT)


def test_archives_without_a_runtime_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^add: options\.runtime: "):
        compiled(tmp_path, graph_archive(7))
    whole = with_runtime(graph_archive(7), tmp_path, most=24)
    with pytest.raises(UsageError, match=r"^add: options\.runtime: "):
        compiled(tmp_path, {path: data for path, data in whole.items() if path not in CONFIGURATIONS})


def test_path_of_the_configuration_is_checked(tmp_path: Path) -> None:
    (module,) = compiled(tmp_path, with_runtime(graph_archive(7), tmp_path, most=24)).modules
    write_archive(Library((replace(module, runtime="../../etc/passwd"),)), tmp_path / "bad.tar")
    with pytest.raises(InputFileError) as caught:
        open_archive(tmp_path / "bad.tar")
    place = f"{tmp_path / 'bad.tar'}: metadata.json: modules.add.mlfbuild.runtime"
    assert (caught.value.code, caught.value.place) == ("json-value-invalid", place)
    assert "'../../etc/passwd'" in caught.value.reason
