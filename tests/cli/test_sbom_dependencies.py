"""External dependencies in the bill of materials of a built project."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

from mlfbuild.archive import write_archive
from mlfbuild.core.files import sha256
from mlfbuild.library import Library
from mlfbuild.requirements.bundle import bundled
from support.cmsis_nn import git, write_cmsis_nn_repository
from support.cmsis_nn_source import TVM_ARCHIVE
from support.command import Folder
from support.dependent_models import FILES, dependent_module, tiny_source

PROJECT = """\
mlfbuild: 1
targets:
  pc: {cpu: host}
models:
  one: {source: one.tar, license: MIT}
"""
TINY = """\
dependencies:
  tiny: {path: tiny, version: v1.0, license: BSD-3-Clause, sources: [src/*.c], include-dirs: [inc, src],
         compile-options: [-DOFFSET=3]}
"""
TINY_SOURCE = tiny_source(compile_options=("-DOFFSET=3",))
LAID_OUT = "build/mlf/pc/dependencies"


def build(folder: Folder, project: str, *, bundle: bool = False, **changes: str) -> None:
    """Build a model whose code calls ``tiny``, a library in a folder of the project or in the archive."""
    tiny = replace(TINY_SOURCE, **changes)
    library = Library((dependent_module("one"),))
    write_archive(bundled(library, {"tiny": tiny}) if bundle else library, folder.root / "one.tar")
    for path, data in FILES.items():
        folder.write(f"tiny/{path}", data)
    folder.write("mlfbuild.yml", project)
    assert folder.run("build", "-q").status == 0


def bill_of(folder: Folder) -> tuple[Any, dict[str, Any]]:
    ended = folder.run("sbom", "--format", "json", status=0)
    return ended, {one["ref"]: one for one in ended.json["components"]}


def test_a_folder_with_the_files_that_are_built(folder: Folder) -> None:
    build(folder, PROJECT + TINY)
    ended, found = bill_of(folder)
    assert ended.err == ""
    tiny = found["dependency/tiny"]
    assert (tiny["version"], tiny["license"], tiny["purl"]) == ("v1.0", "BSD-3-Clause", "pkg:generic/tiny@v1.0")
    assert tiny["properties"] == {"provided-by": "path"}
    assert {file["path"]: file["sha256"] for file in tiny["files"]} == {
        f"tiny/{path}": sha256(data) for path, data in FILES.items()
    }
    needs = [one for one in ended.json["relations"] if one["target"] == "dependency/tiny"]
    assert needs == [{"source": "code/pc/one", "how": "depends on", "target": "dependency/tiny"}]
    (folder.root / LAID_OUT / "tiny/src/add.c").write_text("int other;\n")
    ended, _ = bill_of(folder)
    assert f"{LAID_OUT}/tiny/src/add.c: was edited; run `mlfbuild build` to restore it" in ended.err


def test_bundled_library(folder: Folder) -> None:
    build(folder, PROJECT, bundle=True)
    ended, found = bill_of(folder)
    assert ended.err == ""
    tiny = found["dependency/tiny"]
    assert (tiny["version"], tiny["license"], tiny["properties"]) == ("v1.0", "MIT", {"provided-by": "archive"})
    assert {file["path"] for file in tiny["files"]} == {f"tiny/{path}" for path in FILES}
    assert not [file for file in found["code/pc/one"]["files"] if "tiny" in file["path"]], "it is no generated code"


def test_bundle_without_a_licence(folder: Folder) -> None:
    build(folder, PROJECT, bundle=True, license="")
    ended, found = bill_of(folder)
    assert found["dependency/tiny"]["license"] == ""
    note = "tiny: an archive includes it without a licence; bundle it again with `license:`"
    assert [json.loads(line)["text"] for line in ended.err.splitlines()] == [note]


def test_a_package_of_the_firmware_has_no_files(folder: Folder) -> None:
    build(folder, PROJECT + "dependencies: {tiny: {package: Tiny, license: MIT, version: v1.0}}\n")
    ended, found = bill_of(folder)
    assert (ended.err, found["dependency/tiny"]["files"]) == ("", [])
    assert found["dependency/tiny"]["properties"] == {"provided-by": "package", "package": "Tiny"}


def test_missing_and_unbuilt_libraries_are_noted(folder: Folder) -> None:
    build(folder, PROJECT + TINY)
    (folder.root / LAID_OUT / "RECORD.json").unlink()
    ended, found = bill_of(folder)
    assert "tiny for pc: is not built, so its files are not in the bill; run `mlfbuild build` first" in ended.err
    assert found["dependency/tiny"]["files"] == []
    folder.write("mlfbuild.yml", PROJECT)
    ended, found = bill_of(folder)
    assert "one for pc: requires tiny v1.0, which the project does not provide; add it to `dependencies`" in ended.err
    assert "licence" not in ended.err, "that of what is not there yet is asked for later"
    assert found["dependency/tiny"]["version"] == "v1.0"


def test_a_repository_by_its_commit(folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFBUILD_CACHE", str(tmp_path / "cache"))
    repository = write_cmsis_nn_repository(tmp_path / "CMSIS-NN")
    folder.write("mlfbuild.yml", PROJECT + "dependencies: {cmsis-nn: {git: CMSIS-NN, version: v7.0.0}}\n")
    write_archive(Library((dependent_module("one"),)), folder.root / "one.tar")
    ended, found = bill_of(folder)
    assert "v7.0.0 of CMSIS-NN is not in mlfbuild.lock; " in ended.err
    assert found["dependency/cmsis-nn"]["commit"] == ""
    assert folder.run("lock", "-q").status == 0
    ended, found = bill_of(folder)
    assert "mlfbuild.lock" not in ended.err
    nn = found["dependency/cmsis-nn"]
    assert (nn["name"], nn["license"]) == ("CMSIS-NN", "Apache-2.0")
    assert nn["purl"] == "pkg:github/arm-software/cmsis-nn@v7.0.0"
    assert nn["commit"] == git(repository, "rev-parse", "v7.0.0^{commit}").strip()
    assert re.fullmatch("[0-9a-f]{64}", nn["properties"]["tree-sha256"])
    assert nn["url"] == "", "a folder of this machine has no address"


TVM = """\
mlfbuild: 1
targets:
  m4: {cpu: cortex-m4, board: mps2-an386}
models:
  kws_int8: {source: kws_int8.tar, license: MIT}
firmware:
  app: {sources: [main.c]}
dependencies:
  cmsis-nn: {git: CMSIS-NN, version: v4.1.0}
"""
MAIN = """\
#include "tvmgen_kws_int8.h"

int main(void) {
  static int8_t in[490], out[12];
  struct tvmgen_kws_int8_inputs inputs = {in};
  struct tvmgen_kws_int8_outputs outputs = {out};
  return tvmgen_kws_int8_run(&inputs, &outputs);
}
"""


@pytest.mark.sweep
def test_a_library_of_a_locked_repository_in_an_image(
    folder: Folder, shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: Callable[..., str]
) -> None:
    tool("cmake", "ninja", "arm-none-eabi-gcc")
    monkeypatch.setenv("MLFBUILD_CACHE", str(tmp_path / "cache"))
    repository = write_cmsis_nn_repository(tmp_path / "CMSIS-NN")
    shutil.copyfile(shared / "archives" / TVM_ARCHIVE, folder.root / "kws_int8.tar")
    folder.write("mlfbuild.yml", TVM)
    folder.write("main.c", MAIN)
    for verb in ("lock", "build"):
        assert folder.run(verb, "-q").status == 0
    ended = folder.run("sbom", "--strict", "-o", "app.spdx.json", "--format", "json", status=0)
    nn = next(one for one in ended.json["components"] if one["ref"] == "dependency/cmsis-nn")
    files = {file["path"]: file["sha256"] for file in nn["files"]}
    git(repository, "checkout", "--quiet", "v4.1.0")
    softmax = "Source/SoftmaxFunctions/arm_softmax_s8.c"
    assert files[f"cmsis-nn/{softmax}"] == sha256((repository / softmax).read_bytes())
    assert "cmsis-nn/LICENSE.txt" in files
    assert "cmsis-nn/Source/ConcatenationFunctions/arm_concatenation_s8_w.c" in files, "the whole library is built"
    assert nn["commit"] == git(repository, "rev-parse", "v4.1.0^{commit}").strip()
    how = {
        (one["source"], one["how"])
        for one in ended.json["relations"]
        if one["target"] in {nn["ref"], "code/m4/kws_int8"}
    }
    assert how == {("code/m4/kws_int8", "depends on"), ("firmware/m4/app", "contains")}
    assert validate_full_spdx_document(parse_file(str(folder.root / "app.spdx.json"))) == []
