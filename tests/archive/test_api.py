"""``mlfbuild.open_archive`` and ``mlfbuild.write_archive``, the functions for scripts."""

import gzip
import os
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path, PurePosixPath

import ml_dtypes
import numpy as np
import pytest

import mlfbuild
from mlfbuild.archive import open_archive_with_id, pack_archive
from mlfbuild.core.errors import InputFileError, StorageError, UsageError
from mlfbuild.core.files import sha256
from mlfbuild.jobs.tree import unpack
from mlfbuild.library import ArchiveFile, LazyBytes, Library
from support.errors import raises
from support.libraries import graph_library, native_library


def test_script_reads_and_writes_archives(tmp_path: Path) -> None:
    path = tmp_path / "new" / "kws.tar"
    mlfbuild.write_archive(native_library("kws"), str(path))
    library = mlfbuild.open_archive(path)
    assert library == native_library("kws")
    (tensor,) = library.module("kws").inputs
    assert (tensor.name, tensor.dtype, tensor.shape, tensor.size) == ("x", "int8", (1, 4), 4)
    assert path.stat().st_mode & 0o777 == 0o644
    assert path.read_bytes() == pack_archive(library)


def test_archive_can_be_overwritten_with_itself(tmp_path: Path) -> None:
    path = tmp_path / "net.tar"
    mlfbuild.write_archive(graph_library(), path)
    before = path.read_bytes()
    library = mlfbuild.open_archive(path)
    mlfbuild.write_archive(library, path, version=5)
    assert mlfbuild.open_archive(path).version == 5
    assert pack_archive(library) == before, "what was opened is still the old file"


def test_versions(tmp_path: Path) -> None:
    for version in range(1, 8):
        mlfbuild.write_archive(graph_library(), tmp_path / "net.tar", version)
        assert mlfbuild.open_archive(tmp_path / "net.tar").version == version
    for version in (-1, 0, 8):
        with raises(UsageError, "format-version-not-written"):
            mlfbuild.write_archive(graph_library(), tmp_path / "no.tar", version)
    assert not (tmp_path / "no.tar").exists()


def test_importing_the_package_is_cheap() -> None:
    heavy = "{'numpy', 'pathlib', 'mlfbuild.archive'}"
    script = f"import mlfbuild, sys; mlfbuild.open_archive; assert not {heavy} & set(sys.modules)"
    source = str(Path(mlfbuild.__file__).parents[1])
    subprocess.run([sys.executable, "-S", "-c", script], check=True, env={**os.environ, "PYTHONPATH": source})


def test_ml_dtypes_is_imported_only_when_needed(tmp_path: Path) -> None:
    (module,) = graph_library().modules
    odd = {**module.params, "b": np.ones(3, ml_dtypes.bfloat16)}
    mlfbuild.write_archive(graph_library(), tmp_path / "plain.tar")
    mlfbuild.write_archive(Library((replace(module, params=odd),)), tmp_path / "odd.tar")
    script = (
        "import sys, mlfbuild; mlfbuild.open_archive('plain.tar').modules[0].params['p0']\n"
        "assert 'ml_dtypes' not in sys.modules\n"
        "print(mlfbuild.open_archive('odd.tar').modules[0].params['b'].dtype)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("bfloat16\n", "")


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gzip"])
def test_large_archives_need_little_memory(tmp_path: Path, compressed: bool) -> None:
    (module,) = graph_library().modules
    weights = {name: np.full(4 << 20, index, np.int32) for index, name in enumerate("abcdef")}
    path = tmp_path / "large.tar"
    mlfbuild.write_archive(Library((replace(module, params=weights),)), path)
    if compressed:
        path.write_bytes(gzip.compress(path.read_bytes(), 1))
    tracemalloc.start()
    library = mlfbuild.open_archive(path)
    for name, value in library.modules[0].params.items():
        assert value[0] == value[-1] == "abcdef".index(name)
        del value
    mlfbuild.write_archive(library, tmp_path / "copy.tar")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * (16 << 20) + (16 << 20)
    assert mlfbuild.open_archive(tmp_path / "copy.tar").modules[0].params["f"][-1] == 5


def test_archive_id_is_its_hash(tmp_path: Path) -> None:
    mlfbuild.write_archive(graph_library(), tmp_path / "net.tar")
    library, identity = open_archive_with_id(tmp_path / "net.tar")
    assert library == graph_library()
    assert identity == sha256((tmp_path / "net.tar").read_bytes())


# Errors


def test_files_that_are_not_archives(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("no.tar", ".", "pipe"):
        with pytest.raises(InputFileError) as caught:
            mlfbuild.open_archive(tmp_path / name)
        assert str(caught.value).startswith(f"{tmp_path / name}: ")


def test_an_unsupported_type_writes_nothing(tmp_path: Path) -> None:
    (module,) = graph_library().modules
    with raises(UsageError, "parameter-dtype-unsupported", at="parameter 'p'"):
        mlfbuild.write_archive(Library((replace(module, params={"p": np.zeros(1, np.complex64)}),)), tmp_path / "a.tar")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "place"), [("../x", "'../x'"), ("/x", "'/x'"), ("a\nb", r"'a\nb'"), ("METADATA.json", "'METADATA.json'")]
)
def test_invalid_paths_are_not_written(tmp_path: Path, path: str, place: str) -> None:
    library = replace(native_library(), other_files=(ArchiveFile(PurePosixPath(path), b"x"),))
    with raises(UsageError, "archive-path-invalid", at=place):
        mlfbuild.write_archive(library, tmp_path / "a.tar")
    with raises(UsageError, "archive-path-invalid", at=place):
        unpack(library, tmp_path / "tree", archive_id="a")
    assert list(tmp_path.iterdir()) == []


class Broken(LazyBytes):
    """Bytes of a truncated file."""

    def __len__(self) -> int:
        return 10

    def read(self, offset: int, size: int) -> bytes:  # noqa: ARG002 - the signature of LazyBytes
        raise InputFileError("file-truncated", place="b.tar", reason="was truncated")


def test_unreadable_content_leaves_the_old_archive(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(b"old")
    library = replace(native_library(), other_files=(ArchiveFile(PurePosixPath("x"), Broken()),))
    with pytest.raises(InputFileError, match=r"b\.tar"):
        mlfbuild.write_archive(library, tmp_path / "a.tar")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


def test_a_full_disk_leaves_the_old_archive(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(b"old")
    script = "\n".join(
        [
            "import resource, numpy",
            "from dataclasses import replace",
            "import mlfbuild",
            "from mlfbuild.core.errors import StorageError",
            "library = mlfbuild.open_archive('net.tar')",
            "module = replace(library.modules[0], params={'w': numpy.zeros(9 << 20, numpy.int8)})",
            f"resource.setrlimit(resource.RLIMIT_FSIZE, ({4 << 20}, {4 << 20}))",
            "try:",
            "    mlfbuild.write_archive(replace(library, modules=(module,)), 'a.tar')",
            "except StorageError as error:",
            "    print(error.exit_code, error)",
        ]
    )
    mlfbuild.write_archive(graph_library(), tmp_path / "net.tar")
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "8 a.tar: cannot write: File too large; check free space and permissions\n", done.stderr
    assert StorageError.exit_code == 8
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar", "net.tar"]
    assert (tmp_path / "a.tar").read_bytes() == b"old"
