"""Archives that cannot be built: the same line and exit status for every verb."""

import subprocess
from collections.abc import Callable
from hashlib import sha256

import numpy as np
import pytest

from mlfbuild import __version__
from support.command import Folder
from support.foreign_archives import A, B, Files, graph_archive, operators_archive, with_runtime, written
from support.old_archives import EMPTY_PARAMS

BAD: dict[str, tuple[Files, int, str]] = {
    "function": (graph_archive(7, kernel=("fused_cast", "fused_other")), 1, "function-not-defined"),
    "runtime": (graph_archive(7, kernel=("  return 0;", "  return TVMFuncCall(0, 0, 0, 0, 0, 0);")), 1,
     "runtime-function-not-defined"),
    "parameter": ({**graph_archive(7), "parameters/add.params": EMPTY_PARAMS}, 5, "graph-argument-missing"),
}  # fmt: skip
VERBS = {
    "compile": ["compile", "add.tar", "--cpu", "cortex-m4", "-o", "out.tar"],
    "unpack": ["unpack", "add.tar", "-o", "tree"],
    "run": ["run", "add.tar", "--inputs", "x.npz", "-o", "out.npz"],
    "run on a board": ["run", "add.tar", "--board", "mps2-an386", "--inputs", "x.npz", "-o", "out.npz"],
    "build": ["build"],
    "plan": ["plan"],
    "init": ["init", "repo", "--archive", "add.tar"],
}


@pytest.fixture
def project(folder: Folder) -> Folder:
    folder.write("mlfbuild.yml", b"mlfbuild: 1\ntargets: {m4: {cpu: cortex-m4}}\nmodels: {add: {source: add.tar}}\n")
    np.savez(folder.root / "x.npz", in0=A[None], in1=B[None])
    return folder


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("kind", BAD)
def test_unbuildable_archives_are_refused_by_every_verb(project: Folder, kind: str, verb: str) -> None:
    files, status, code = BAD[kind]
    written(project.root, files)
    before = {path.name for path in project.root.iterdir()}
    assert project.refused(*VERBS[verb]) == (status, code, "add")
    left = {path.name for path in project.root.iterdir() if path.is_file() or any(path.rglob("*.c"))}
    assert left <= before


def test_runtime_option_must_match_the_archive(project: Folder) -> None:
    written(project.root, graph_archive(7))
    arguments = ("compile", "add.tar", "--cpu", "cortex-m4", "-o", "out.tar", "-O")
    assert project.refused(*arguments, "runtime=bundled") == (2, "archive-without-runtime", "add: options.runtime")
    written(project.root, with_runtime(graph_archive(7), project.root, most=24))
    assert project.refused(*arguments, "runtime=own") == (2, "invalid-option", "option 'runtime'")
    assert project.run(*arguments, "runtime=bundled").status == 0
    assert project.run("inspect", "out.tar", "--format", "json").json["modules"][0]["runtime"]


def test_operators_of_an_archive_need_a_name(project: Folder) -> None:
    written(project.root, operators_archive())
    np.savez(project.root / "x.npz", in0=np.array([[1, 2, 3]], np.int32))
    words = ["run", "add.tar", "--inputs", "x.npz", "-o", "out.npz"]
    assert project.refused(*words) == (2, "module-not-chosen", "add.tar")
    assert project.run("run", "add.tar", "--model", "twice", "--inputs", "x.npz", "-o", "out.npz").status == 0
    np.testing.assert_array_equal(np.load(project.root / "out.npz")["T_out"], [[2, 4, 6]])


MAIN = """\
#include "tvmgen_add.h"
int main(void) { return tvmgen_add_run(0, 0); }
"""


def test_image_has_the_id_of_the_archive(project: Folder, tool: Callable[..., str]) -> None:
    tool("cmake", "ninja", "arm-none-eabi-gcc")
    written(project.root, graph_archive(7))
    project.write(
        "mlfbuild.yml",
        "mlfbuild: 1\ntargets: {m4: {cpu: cortex-m4, board: mps2-an386}}\nmodels: {add: {source: add.tar}}\n"
        "firmware: {app: {sources: [main.c]}}\n",
    )
    project.write("main.c", MAIN)
    assert project.run("build", "-q").status == 0
    digest = sha256((project.root / "add.tar").read_bytes()).hexdigest()
    elf, raw = project.root / "build/m4/app/app.elf", project.root / "app.bin"
    subprocess.run(["arm-none-eabi-objcopy", "-O", "binary", elf, raw], check=True)
    for path in (elf, raw):
        ended = project.run("inspect", str(path))
        assert (ended.status, ended.err) == (0, "")
        assert ended.out == f"1 model in {path}\n  add  sha256 {digest}  compiled by mlfbuild {__version__}\n"
    (model,) = project.run("report", "--format", "json").json["images"][0]["models"]
    assert [piece["kind"] for piece in model["pieces"] if piece["name"] == "mlf_add_model_id"] == ["tables"]

    project.write("main.c", "int main(void) { return 0; }\n")
    assert project.run("build", "-q").status == 0
    assert project.refused("inspect", str(elf)) == (5, "image-without-models", str(elf))


@pytest.mark.parametrize("archive", [graph_archive(7), operators_archive()], ids=["graph", "operators"])
def test_unpacked_model_has_the_id_of_its_archive(archive: Files, project: Folder) -> None:
    written(project.root, archive)
    digest = sha256((project.root / "add.tar").read_bytes()).hexdigest()
    for path in ("add.tar", "again.tar"):
        assert project.run("unpack", path, "-o", f"tree-{path}").status == 0
        sources = [file.read_text() for file in (project.root / f"tree-{path}").rglob("*_entry.c")]
        assert sum(text.count(f":{digest}:{__version__}") for text in sources) == 1, "whichever command read it first"
        assert all(text.count("_model_id;") == text.count("_run(struct ") for text in sources)
        project.run("compile", "add.tar", "--cpu", "cortex-m4", "-o", "again.tar")
