"""AOT archives of TVM with ``system-lib``, whose own C code does not compile: the numbers are those of TVM."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.archive import read_archive, read_files
from mlfbuild.archive.describe import describe
from mlfbuild.c_analysis import repeated_declarations
from mlfbuild.core.errors import ProcessFailedError
from mlfbuild.executor import executable
from mlfbuild.jobs.tree import unpack
from mlfbuild.library import corrected_sources
from mlfbuild.usecases.run import run_archive
from support.examples import first_on_push
from support.foreign_archives import Files, written
from support.packed_archives import packed_archive, unpacked_archive, with_system_lib
from support.tvm_archives import tvm_files

OLD = {
    "v5-many-graphlink many": {},
    "v5-kws_int8-graph kws_int8": {},
    "v5-add-graph add": {},
    "v5-many-graphlink many without": {"system_lib": False},
    "v5-many-graphlink many swapped": {"swapped": True},
}
"""Graph archives of TVM 0.8 that become AOT archives with the packed interface."""
OTHER = ["many-aotc many", "v5-add-aotc add", "conv-aotc conv", "kws_int8-aotc kws_int8"]


@pytest.fixture(autouse=True)
def cache(tool: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool("gcc")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def old_archive(shared: Path, which: str) -> Files:
    archive, module = which.split()[:2]
    return packed_archive(tvm_files(shared, archive), module, **OLD[which])


def check(shared: Path, vectors: str, files: Files, folder: Path, board: str | None = None) -> None:
    """Run ``files`` with the vectors of an archive in the test data; numbers and shapes must be theirs."""
    path = shared / "archives" / f"{vectors}.npz"
    result = run_archive(written(folder, files), None, path, folder / "y.npz", 60, board)
    repeated = any(path.endswith(".c") and repeated_declarations(text.decode()) for path, text in files.items())
    assert len(result.notes) == repeated
    expected = np.load(path)
    with np.load(folder / "y.npz") as outputs:
        assert len(outputs.files) == sum(name.startswith("out") for name in expected.files)
        for at, name in enumerate(outputs.files):
            assert outputs[name].shape == expected[f"out{at}"].shape
            np.testing.assert_array_equal(outputs[name], expected[f"out{at}"])


@pytest.mark.parametrize("which", first_on_push([*OLD]))
def test_tvm_8_with_the_packed_interface(shared: Path, tmp_path: Path, which: str) -> None:
    check(shared, which.split(maxsplit=1)[0], old_archive(shared, which), tmp_path)


@pytest.mark.parametrize("which", first_on_push(OTHER))
@pytest.mark.parametrize("packed", [False, True], ids=["c", "unpacked"])
def test_real_parameters_instead_of_packed_ones(shared: Path, tmp_path: Path, which: str, packed: bool) -> None:
    archive, module = which.split()
    files = tvm_files(shared, archive)
    if packed:
        files = unpacked_archive(files, module)
    check(shared, archive, with_system_lib(files, module), tmp_path)


def test_two_outputs_on_a_board(shared: Path, tmp_path: Path, tool: Callable[..., str]) -> None:
    tool("arm-none-eabi-gcc", "cmake", "ninja", "qemu-system-arm")
    files = old_archive(shared, "v5-many-graphlink many")
    check(shared, "v5-many-graphlink", files, tmp_path, "mps2-an386")


def test_only_the_unit_is_corrected(shared: Path, tmp_path: Path) -> None:
    files = old_archive(shared, "v5-many-graphlink many")
    library = read_archive(written(tmp_path, files).read_bytes(), "many.tar")
    unpack(library, tmp_path / "tree", archive_id="")
    source = "codegen/host/src/many_lib0.c"
    assert (tmp_path / "tree" / source).read_bytes() == files[source]
    unit = (tmp_path / "tree/executor/many_lib0.c").read_text()
    assert unit.count(f'#line 1 "{source}"') == 1
    assert repeated_declarations(unit) == ()
    assert "many_lib0.c" not in (tmp_path / "tree/executor/many_lib1.c").read_text()
    (found,) = repeated_declarations(files[source].decode())
    (module,) = describe(library)["modules"]
    (note,) = corrected_sources(library.modules[0])
    assert note.startswith("many_lib0.c: ")
    assert corrected_sources(read_files({**files, source: b"int x;"}, "many.tar").modules[0]) == ()
    assert module["repeated_declarations"] == [{"path": source, "line": found.line, "function": found.name}]


def test_messages_of_compilers_name_the_lines_of_the_archive(shared: Path, tmp_path: Path) -> None:
    files = old_archive(shared, "v5-many-graphlink many")
    source = "codegen/host/src/many_lib0.c"
    lines = files[source].decode().splitlines()
    wrong = next(at for at, line in enumerate(lines) if line.startswith("return tvmgen_many_run_model("))
    lines[wrong] = "return unknown_name;"
    with pytest.raises(ProcessFailedError) as failed:
        check(shared, "v5-many-graphlink", {**files, source: "\n".join(lines).encode()}, tmp_path)
    assert f"{source}:{wrong + 1}:" in failed.value.output


def test_bytes_that_are_not_text_are_copied(shared: Path) -> None:
    files = old_archive(shared, "v5-many-graphlink many")
    source = "codegen/host/src/many_lib0.c"
    code = files[source] + b"\n// \xff\xc3\xa9\n"
    (module,) = read_files({**files, source: code}, "many.tar").modules
    named = tuple(
        replace(each, path=each.path.with_name("名_lib0.c")) if each.path.name == "many_lib0.c" else each
        for each in module.codegen
    )
    found = executable(replace(module, codegen=named))
    assert found is not None
    unit = bytes(found.generated["executor/名_lib0.c"])
    assert b"// \xff\xc3\xa9\n" in unit
    assert '#line 1 "codegen/host/src/名_lib0.c"\n'.encode() in unit
