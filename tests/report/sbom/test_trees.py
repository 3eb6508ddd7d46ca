"""Files of unpacked trees by kind."""

from pathlib import Path

from mlfbuild.archive import open_archive_with_id
from mlfbuild.jobs.tree import unpack
from mlfbuild.jobs.tree.library_folders import write_dependencies
from mlfbuild.library import ResolvedLibrary
from mlfbuild.native.kernels import kernel_headers
from mlfbuild.report.sbom.requirements import reached, read_dependencies, read_tree

KERNELS = {
    "a.h": b'#include "b.h"\n#include <stdint.h>\n',
    "b.h": b'  #  include "a.h"\n#ifdef __ARM_FEATURE_MVE\n#include "c.h"\n#endif\n', "c.h": b"", "d.h": b"",
}  # fmt: skip


def test_kernels_reached_from_the_code() -> None:
    code = {"x.c": b'#include "tvmgen_x.h"\n#include "mlfbuild-0/a.h"\n#include "mlfbuild-1/d.h"\n'}
    assert list(reached(code, "mlfbuild-0", KERNELS)) == ["a.h", "b.h", "c.h"]
    assert reached({"x.c": b'#include "mlfbuild-0/e.h"\n/*#include "mlfbuild-0/d.h"*/'}, "mlfbuild-0", KERNELS) == {}


def test_every_kernel_header_is_reached_by_its_name() -> None:
    headers = kernel_headers()
    code = {"x.c": "".join(f'#include "mlfbuild/{name}"\n' for name in headers).encode()}
    assert reached(code, "mlfbuild", headers) == headers


def test_code_of_tvm_with_the_runtime_of_mlfbuild(shared: Path, tmp_path: Path) -> None:
    library, digest = open_archive_with_id(shared / "archives/add-graph.tar")
    unpack(library, tmp_path, archive_id=digest)
    tree = read_tree(tmp_path)
    assert tree is not None
    assert (tree.archive, tree.kernels, tree.bundled, tree.damage) == (digest, {}, {}, ())
    assert {"codegen/host/src/add_lib0.c", "blobs/add_blobs.c", "blobs/add_blobs.S"} <= set(tree.code)
    assert "executor/runtime/mlf_executor.h" in tree.runtime
    assert not {"metadata.json", "mlf.cmake", "parameters/add.params", "README.md"} & set(tree.code)
    (tmp_path / "codegen/host/src/add_lib0.c").unlink()
    (tmp_path / "codegen/host/src/add_lib0.c").symlink_to("/etc/passwd")
    tree = read_tree(tmp_path)
    assert tree is not None
    assert tree.damage == (f"{tmp_path}/codegen/host/src/add_lib0.c: is missing",)
    assert "codegen/host/src/add_lib0.c" not in tree.code


def test_a_folder_without_a_tree(tmp_path: Path) -> None:
    assert read_tree(tmp_path / "nowhere") is None
    assert read_dependencies(tmp_path) == ({}, ())


def test_files_of_libraries(tmp_path: Path) -> None:
    files = {"Include/nn.h": b"int nn(void);\n", "Source/nn.c": b"int nn(void) { return 1; }\n", "LICENSE": b"terms"}
    write_dependencies(tmp_path, [ResolvedLibrary("nn", "1.0", files, ("Source/nn.c",), ("Include",), ("LICENSE",))])
    assert read_dependencies(tmp_path) == ({"nn": {path: files[path] for path in sorted(files)}}, ())
    (tmp_path / "nn/LICENSE").write_text("other terms")
    assert read_dependencies(tmp_path)[1] == (f"{tmp_path}/nn/LICENSE: was edited",)
