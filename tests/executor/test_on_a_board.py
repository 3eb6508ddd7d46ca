"""Modules of other compilers on an emulated Cortex-M4: the results are those on this machine, or an error code."""

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mlfbuild.archive import archive_files, open_archive
from mlfbuild.archive.merge import merge
from mlfbuild.core.errors import CheckFailedError, ProcessFailedError, UnsupportedModelError, UsageError
from mlfbuild.jobs.conflicts import check_models
from mlfbuild.jobs.tree import unpack
from mlfbuild.targets import cpu_called
from mlfbuild.usecases.run import run_archive
from support.errors import raises
from support.examples import first_on_push
from support.foreign_archives import (
    KERNEL,
    OUT,
    A,
    B,
    Files,
    allocating,
    graph_archive,
    linked_archive,
    names,
    operators_archive,
    with_objects,
    written,
)

Array = npt.NDArray[Any]
BOARD = "mps2-an386"
M4 = [*cpu_called("cortex-m4").flags, "-ffunction-sections"]


@pytest.fixture(autouse=True)
def tools(tool: Callable[..., str], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    tool("arm-none-eabi-gcc", "cmake", "ninja", "qemu-system-arm")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def on_board(
    folder: Path, files: Files, model: str | None = None, board: str = BOARD, **inputs: Array
) -> Mapping[str, Array]:
    """Return the outputs of one case by name."""
    np.savez(folder / "in.npz", **{f"in_{name}": value[None] for name, value in (inputs or {"a": A, "b": B}).items()})
    run_archive(written(folder, files), model, folder / "in.npz", folder / "out.npz", 60, board)
    return {name: value[0] for name, value in np.load(folder / "out.npz").items()}


def test_parameters_inside_the_code(tmp_path: Path) -> None:
    np.testing.assert_array_equal(on_board(tmp_path, linked_archive())["output"], OUT)


def test_operators_by_name(tmp_path: Path) -> None:
    files = operators_archive()
    x = np.array([1, -2, 3], np.int32)
    np.testing.assert_array_equal(on_board(tmp_path, files, "twice", x=x)["T_out"], 2 * x)
    both = on_board(tmp_path, files, "both", x=B[0], y=np.array([4], np.float32))
    np.testing.assert_array_equal(both["sum"], B[0] + 4)
    np.testing.assert_array_equal(both["product"], B[0] * 4)


@pytest.mark.parametrize("kind", first_on_push(["params", "linked"]))
def test_objects(tmp_path: Path, tool: Callable[..., str], kind: str) -> None:
    files = allocating(graph_archive(7)) if kind == "params" else linked_archive()
    objects = with_objects(files, tmp_path, tool("arm-none-eabi-gcc"), *M4)
    np.testing.assert_array_equal(on_board(tmp_path, objects)["output"], OUT)
    with raises(UsageError, "object-for-another-cpu", "codegen/host/lib/add_lib0.o"):
        on_board(tmp_path, objects, board="mps2-an385")


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        ("  return 0;\n}", "  return 7;\n}", "7"),
        ("(uint64_t)24", "(uint64_t)(24 + num_args)", "workspace-size-unknown"),
        ("(1, 0, (uint64_t)24, 2, 32);", "(1, 0, (uint64_t)24, 2, 32);\n  if (more() == NULL) return -1;", "-1"),
    ],
    ids=["returned", "computed", "memory"],
)
def test_errors_are_returned(tmp_path: Path, old: str, new: str, status: str) -> None:
    """``more`` allocates memory repeatedly, in a way that cannot be counted."""
    helper = (
        "static void* more(void)\n{\n  void* last = NULL;\n  for (int i = 0; i < 99; i++) {\n"
        "    last = TVMBackendAllocWorkspace(1, 0, 16, 0, 8);\n  }\n  return last;\n}\nTVM_DLL int32_t tvmgen"
    )
    files = graph_archive(7, kernel=("TVM_DLL int32_t tvmgen", helper))
    files = allocating(files) if old != "  return 0;\n}" else files
    text = files[KERNEL].decode()
    assert old in text
    files[KERNEL] = text.replace(old, new).encode()
    with pytest.raises(Exception, match="add: ") as caught:
        on_board(tmp_path, files)
    if status == "workspace-size-unknown":
        assert isinstance(caught.value, UnsupportedModelError)
        assert caught.value.code == status
    else:
        assert isinstance(caught.value, ProcessFailedError)
        assert f"add: case 0: the run function returned {status}, not 0" in str(caught.value)


# Several in one image -------------------------------------------------------------------------------------------------


MAKEFILE = f"""\
include tree/mlf.mk
CPPFLAGS += $(MLF_INCLUDES)
TARGET_ARCH := {" ".join(M4)}
CC := arm-none-eabi-gcc
AR := arm-none-eabi-ar
all: $(MLF_LIBRARIES)
"""


def test_objects_of_several_archives_share_no_symbol(tmp_path: Path, tool: Callable[..., str]) -> None:
    first = with_objects(graph_archive(7), tmp_path, tool("arm-none-eabi-gcc"), *M4)
    words = [("tvmgen_add", "tvmgen_sum"), ("add_lib", "sum_lib"), ("/add.", "/sum."), ('"add"', '"sum"')]
    second = with_objects(names(graph_archive(7), words), tmp_path, tool("arm-none-eabi-gcc"), *M4)
    compiled = {}
    for name, files in (("add", first), ("sum", second)):
        folder = tmp_path / f"{name}-build"
        folder.mkdir()
        unpack(open_archive(written(tmp_path, files)), folder / "tree", archive_id="a")
        (folder / "Makefile").write_text(MAKEFILE)
        subprocess.run([tool("make"), "-C", str(folder), "all"], check=True, capture_output=True)
        compiled[name] = sorted(folder.glob("build/mlf/*.a"))
    check_models(compiled, "app.elf")
    with pytest.raises(CheckFailedError, match="TVMSystemLibEntryPoint"):  # were they left as they are
        check_models({"add": [tmp_path / "add-build/tree/codegen/host/lib/add_lib0.o"],
                      "sum": [tmp_path / "sum-build/tree/codegen/host/lib/sum_lib0.o"]}, "app.elf")  # fmt: skip


def test_merged_archives_run(shared: Path, tmp_path: Path) -> None:
    """Objects of one archive and C code of the other have one table of functions."""
    conv = open_archive(shared / "archives/conv-llvm_graph_m4.tar")
    counted = ("\\001tvmgen", "\\001\\000tvmgen")  # in two bytes, since TVM 0.9
    add = open_archive(written(tmp_path, graph_archive(7, registry=counted)))
    files = archive_files(merge([("conv.tar", conv), ("add.tar", add)]))
    merged = {path: bytes(content) for path, content in files.items()}
    np.testing.assert_array_equal(on_board(tmp_path, merged, "add")["output"], OUT)
    vectors = np.load(shared / "archives/conv-llvm_graph_m4.npz")
    got = on_board(tmp_path, merged, "conv", data=vectors["in_data"][0])["output"]
    np.testing.assert_allclose(got, vectors["out0"][0], rtol=0, atol=1e-5 * float(np.abs(vectors["out0"]).max()))
