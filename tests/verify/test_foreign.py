"""Modules of other compilers on this machine: objects, operators, parameters in the code."""

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import mlfbuild
from mlfbuild.archive import archive_files
from mlfbuild.core.errors import CheckFailedError, InputFileError, MlfError, ProcessFailedError, UsageError
from support.errors import raises
from support.foreign_archives import (
    KERNEL,
    OUT,
    A,
    B,
    Files,
    graph_archive,
    linked_archive,
    names,
    operators_archive,
    with_objects,
    without,
    written,
)
from support.old_archives import EMPTY_PARAMS, MODELS, model_archive, operator_archive, params

Tool = Callable[[str], str]


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, tool: Tool) -> None:
    tool("gcc")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def result(path: Path) -> np.ndarray:
    (output,) = mlfbuild.load(path).run({"a": A, "b": B}).values()
    return output


@pytest.mark.parametrize("version", range(1, 8))
def test_graphs_of_every_version(tmp_path: Path, version: int) -> None:
    np.testing.assert_array_equal(result(written(tmp_path, model_archive(version))), OUT)


def test_objects_of_this_machine(tmp_path: Path, tool: Tool) -> None:
    path = written(tmp_path, with_objects(model_archive(7), tmp_path, tool("gcc"), "-fPIC"))
    np.testing.assert_array_equal(result(path), OUT)


def test_parameters_inside_the_code(tmp_path: Path) -> None:
    path = written(tmp_path, linked_archive())
    assert [tensor.name for tensor in mlfbuild.load(path).inputs] == ["a", "b"]
    np.testing.assert_array_equal(result(path), OUT)


def test_parameters_inside_objects(tmp_path: Path, tool: Tool) -> None:
    np.testing.assert_array_equal(
        result(written(tmp_path, with_objects(linked_archive(), tmp_path, tool("gcc"), "-fPIC"))), OUT
    )


def test_parameter_that_the_code_does_not_have(tmp_path: Path) -> None:
    files = linked_archive()
    files[KERNEL] = files[KERNEL].replace(b"    case 2:", b"    case 9:")
    with raises(ProcessFailedError, "run-failed", "add"):
        result(written(tmp_path, files))


# Operators ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objects", [False, True], ids=["C", "objects"])
def test_operators_by_name(tmp_path: Path, tool: Tool, objects: bool) -> None:
    files = operators_archive()
    if objects:  # objects do not show which arguments they write, so the last one is the output
        files = with_objects(operator_archive(7), tmp_path, tool("gcc"), "-fPIC")
        assert [tensor.name for tensor in mlfbuild.load(written(tmp_path, files)).outputs] == ["c"]
        return
    path = written(tmp_path, files, "ops.tar")
    with raises(UsageError, "module-not-chosen", "ops.tar"):
        mlfbuild.load(path)
    x = np.array([1, -2, 3], np.int32)
    np.testing.assert_array_equal(mlfbuild.load(path, "twice").run({"x": x})["T_out"], 2 * x)
    both = mlfbuild.load(path, "both").run({"x": B[0], "y": np.array([4], np.float32)})
    assert list(both) == ["sum", "product"]
    np.testing.assert_array_equal(both["sum"], B[0] + 4)
    np.testing.assert_array_equal(both["product"], B[0] * 4)


# Names ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["KeyWords", "Net_2"])
@pytest.mark.parametrize("kind", ["graph", "aotp", "aotc"])
def test_names_with_capitals(shared: Path, tmp_path: Path, kind: str, name: str) -> None:
    """TVM's header has them in lower case, but its code does not, and it includes a header that does not exist."""
    library = mlfbuild.open_archive(shared / f"archives/add-{kind}.tar")
    files = {path: bytes(data) for path, data in archive_files(library).items()}
    words = [(f"tvmgen_add{end}", f"tvmgen_{name}{end}") for end in ("_", ".h")]
    lower = {path: data for path, data in files.items() if path.endswith(".h")}
    assert bool(lower) == (kind == "aotc")
    changed = names(without(files, *lower), [*words, ("add_lib", f"{name}_lib"), ('"add"', f'"{name}"')])
    moved = {path.replace("/add.", f"/{name}."): data for path, data in changed.items()}
    headers = names(lower, [("tvmgen_add", f"tvmgen_{name.lower()}"), ("TVMGEN_ADD", f"TVMGEN_{name.upper()}")])
    vectors = np.load(shared / f"archives/add-{kind}.npz")
    model = mlfbuild.load(written(tmp_path, {**moved, **headers}))
    assert model.name == name
    (got,) = model.run({tensor.name: vectors[f"in_{tensor.name}"][0] for tensor in model.inputs}).values()
    np.testing.assert_array_equal(got, vectors["out0"][0].reshape(got.shape))


# What cannot be run ---------------------------------------------------------------------------------------------------

EXTENTS = struct.pack("<qqq", 1, 2, 8)  # the last is their bytes
TURNED = params().replace(EXTENTS, struct.pack("<qqq", 2, 1, 8))
BAD: dict[str, tuple[Files, type[MlfError], str]] = {
    "function": (graph_archive(kernel=("fused_cast", "fused_other")), CheckFailedError, "function-not-defined"),
    "runtime": (
        graph_archive(kernel=("  return 0;", "  return TVMFuncCall(0, 0, 0, 0, 0, 0);")),
        CheckFailedError,
        "runtime-function-not-defined",
    ),
    "environment": (
        graph_archive(kernel=("  return 0;", '  void* f; return TVMBackendGetFuncFromEnv(0, "g", &f);')),
        CheckFailedError,
        "runtime-function-not-defined",
    ),
    "entry": (
        {**model_archive(7, "aot"), "codegen/host/src/add_lib0.c": b";"},
        CheckFailedError,
        "function-not-defined",
    ),
    "between functions": (
        graph_archive(kernel=("  return 0;", "  return tvmgen_add_more(args);")),
        CheckFailedError,
        "runtime-function-not-defined",
    ),
    "operator": ({**operators_archive(), "codegen/host/src/lib0.c": b";"}, CheckFailedError, "function-not-defined"),
    "unknown type": (
        {**operators_archive(), "metadata.json": operators_archive()["metadata.json"].replace(b"int32", b"int_32")},
        InputFileError,
        "tensor-type-unknown",
    ),
    "missing": ({**model_archive(7), "parameters/add.params": EMPTY_PARAMS}, InputFileError, "graph-argument-missing"),
    "missing of an old archive": (
        {**model_archive(5), "parameters/add.params": EMPTY_PARAMS},
        InputFileError,
        "graph-argument-missing",
    ),
    "shape": ({**model_archive(7), "parameters/add.params": TURNED}, InputFileError, "parameter-mismatch"),
    "type": (
        {**model_archive(7), "parameters/add.params": params().replace(b"\x02 \x01\x00", b"\x00 \x01\x00")},
        InputFileError,
        "parameter-mismatch",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_modules_that_cannot_run_are_rejected(tmp_path: Path, kind: str) -> None:
    files, error, code = BAD[kind]
    name = "twice" if kind in {"operator", "unknown type"} else "add"
    with raises(error, code) as caught:
        mlfbuild.load(written(tmp_path, files), None if name == "add" else name)
    assert caught.value.place.startswith(name)
    assert "\n" not in str(caught.value)


def test_objects_with_unresolved_symbols_are_rejected(tmp_path: Path, tool: Tool) -> None:
    calls = graph_archive(kernel=("  return 0;", "  return TVMFuncCall(0, 0, 0, 0, 0, 0);"))
    objects = with_objects(calls, tmp_path, tool("gcc"), "-fPIC")
    with raises(CheckFailedError, "runtime-function-not-defined", "add") as caught:
        result(written(tmp_path, objects))
    assert "add_lib1.o" in caught.value.reason and "TVMFuncCall" in caught.value.reason
    missing = without(
        with_objects(model_archive(5), tmp_path, tool("gcc"), "-fPIC"), KERNEL.replace("src", "lib")[:-2] + ".o"
    )
    with raises(CheckFailedError, "runtime-function-not-defined", "add") as caught:
        result(written(tmp_path, missing))
    assert "add_lib0.o" in caught.value.reason and "tvmgen_add_fused_cast" in caught.value.reason


def test_words_that_are_not_calls_are_ignored(tmp_path: Path) -> None:
    """Comments, strings, macros and local functions are not calls of TVM's runtime."""
    own = (
        "static int TVMOwnHelper(int x) { return x; }\n#define TVMOwnMacro(x) (x)\n"
        '// TVMFuncCall(never)\nstatic const char *said = "TVMFuncCall(never)";\n'
    )
    files = graph_archive(
        kernel=("  return 0;", "  (void)said; return TVMOwnMacro(0) + TVMOwnHelper(0) /* TVMFuncCall(0) */;")
    )
    files[KERNEL] = own.encode() + files[KERNEL]
    np.testing.assert_array_equal(result(written(tmp_path, files)), OUT)


# What fails while it runs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("statement", "status"), [("return 7;", 7), ("return helper();", -1)])
def test_errors_of_kernels(tmp_path: Path, statement: str, status: int) -> None:
    """A kernel returns an error; a helper allocates memory repeatedly, in an amount that is not known in advance."""
    helper = (
        "static int helper(void)\n{\n  void *last = NULL;\n  for (int i = 0; i < 99; i++) {\n"
        "    last = TVMBackendAllocWorkspace(1, 0, 4096, 0, 8);\n  }\n  return last == NULL ? -1 : 0;\n}\n"
        "TVM_DLL int32_t tvmgen"
    )
    files = graph_archive(kernel=("TVM_DLL int32_t tvmgen", helper))
    files[KERNEL] = files[KERNEL].replace(b"  return 0;\n}", f"  {statement}\n}}".encode())
    with raises(ProcessFailedError, "run-failed", "add") as caught:
        result(written(tmp_path, files))
    assert f"returned {status}," in caught.value.reason


@pytest.mark.parametrize(("version", "executor"), [model for model in MODELS if model[1] == "aot"])
def test_entries_of_every_version(tmp_path: Path, version: int, executor: str) -> None:
    """The main function does nothing: the outputs do not change."""
    np.testing.assert_array_equal(result(written(tmp_path, model_archive(version, executor))), np.zeros((1, 2)))
