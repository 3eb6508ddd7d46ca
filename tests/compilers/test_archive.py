"""The compiler ``archive`` accepts exported archives and rejects options that it cannot apply."""

from dataclasses import replace
from pathlib import Path

import pytest

from mlfbuild.archive import pack_archive
from mlfbuild.archive.tar import members
from mlfbuild.archive.validate import validate
from mlfbuild.compilers import compiler_called
from mlfbuild.compilers.archive import ARCHIVE
from mlfbuild.core.errors import InputFileError, UsageError
from mlfbuild.library import CompileRequest, Library
from mlfbuild.library.keys import Placement
from mlfbuild.targets import cpu_called
from support.errors import raises
from support.libraries import graph_library, native_library

HOST = cpu_called("host")


def request(tmp_path: Path, library: Library) -> CompileRequest:
    path = tmp_path / "model.tar"
    path.write_bytes(pack_archive(library))
    return CompileRequest("kws", path, HOST, executor=library.modules[0].executor)


@pytest.mark.parametrize("library", [native_library(), graph_library()], ids=["aot", "graph"])
def test_library_is_that_of_the_archive(tmp_path: Path, library: Library) -> None:
    assert ARCHIVE.compile(request(tmp_path, library)) == library


def test_archives_of_the_native_compiler_are_unchanged(tmp_path: Path, shared: Path) -> None:
    model = CompileRequest("kws", shared / "models" / "kws_int8.tflite", HOST)
    library = compiler_called("native").compile(model)
    assert ARCHIVE.compile(request(tmp_path, library)) == library


def test_requirements_are_recorded(tmp_path: Path, shared: Path) -> None:
    """The archive of a build records requirements that are only visible in the code of its source."""
    asked = CompileRequest("kws", shared / "archives/kws_int8-cmsisnn_m4.tar", cpu_called("cortex-m4"))
    (module,) = ARCHIVE.compile(asked).modules
    assert [(item.short_name, item.version_spec) for item in module.external_dependencies] == [
        ("tvm_standalone_crt", "0.14.0"), ("cmsis-nn", "v4.1.0"),
    ]  # fmt: skip
    again = request(tmp_path, Library((module,)))
    assert ARCHIVE.compile(replace(again, cpu=asked.cpu)).modules == (module,)
    found = validate(members((tmp_path / "model.tar").open("rb"), "model.tar"), "model.tar").findings
    assert not [each for each in found if each.code in {"MLF713", "MLF801"}]


def test_executor_must_be_that_of_the_archive(tmp_path: Path) -> None:
    asked_for_none = replace(request(tmp_path, graph_library()), executor=None)
    assert ARCHIVE.compile(asked_for_none).modules[0].executor == "graph"
    wrong = replace(request(tmp_path, graph_library()), executor="aot")
    with raises(UsageError, "archive-of-another-executor", at="kws: executor"):
        ARCHIVE.compile(wrong)


def test_unknown_options_are_rejected(tmp_path: Path) -> None:
    assert ARCHIVE.check_options({}) == []
    ((key, mistake),) = ARCHIVE.check_options({"memory": "small"})
    assert (key, mistake.code) == ("memory", "option-of-compiled-archive")
    assert ARCHIVE.check_options({"runtime": "bundled"}) == []
    ((key, mistake),) = ARCHIVE.check_options({"runtime": "own"})
    assert (key, mistake.code) == ("runtime", "invalid-option")
    with raises(UsageError, "option-of-compiled-archive", at="kws: options.memory"):
        ARCHIVE.compile(replace(request(tmp_path, native_library()), options={"memory": "small"}))


def test_placement_is_possible_for_data_of_graphs(tmp_path: Path) -> None:
    params = Placement(params=".rodata.qspi")
    assert ARCHIVE.compile(replace(request(tmp_path, graph_library()), placement=params)) == graph_library()
    with raises(UsageError, "archive-chooses-section", at="kws: placement.params"):
        ARCHIVE.compile(replace(request(tmp_path, native_library()), placement=params))
    with raises(UsageError, "archive-chooses-section", at="kws: placement.workspace"):
        ARCHIVE.compile(replace(request(tmp_path, native_library()), placement=Placement(workspace=".dtcm")))


def test_files_that_are_not_archives_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "model.tar"
    path.write_bytes(b"hello" * 200)
    with raises(InputFileError, "archive-not-tar", "model.tar"):
        ARCHIVE.compile(CompileRequest("kws", path, HOST))
