"""`mlfbuild verify` of archives with several modules, each with its vectors, and of modules that fail."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.jobs import load, target_jobs
from mlfbuild.usecases.verify import verify_jobs
from support.aot_archives import OWN, A, B, Y, aot_archive
from support.command import Folder
from support.errors import assert_printed
from support.examples import first_on_push

BOTH = "both: {{source: {archives}/multi-mixed.tar, vectors: {vectors}}}"


@pytest.fixture
def project(folder: Folder, shared: Path, tool: Callable[..., str]) -> Callable[..., Folder]:
    """Return a function that writes a project with the model ``both`` of two modules and vectors ``{mod1: ...}``."""
    tool("gcc", "cmake", "ninja")

    def write(**vectors: str) -> Folder:
        archives = shared / "archives"
        named = ", ".join(f"{module}: {archives}/multi-mixed.{of}.npz" for module, of in vectors.items())
        model = BOTH.format(archives=archives, vectors=f"{{{named}}}")
        folder.write("mlfbuild.yml", f"mlfbuild: 1\ntargets: {{pc: {{cpu: host}}}}\nmodels:\n  {model}\n")
        return folder

    return write


def test_each_module_is_checked(project: Callable[..., Folder]) -> None:
    folder = project(mod1="mod1", mod2="mod2")
    ended = folder.run("verify")
    both = "both (module mod1): 1 case right on host\nboth (module mod2): 1 case right on host\n"
    assert (ended.status, ended.out) == (0, both)
    assert "verify both (module mod2) for pc: passed" in ended.err
    reports = folder.run("verify", "--format", "json").json
    found = [(report["model"], report["module"], report["passed"]) for report in reports]
    assert found == [("both", "mod1", True), ("both", "mod2", True)]
    assert {"build/verify/pc/both/mod1/report.txt", "build/verify/pc/both/mod2/report.txt"} <= folder.files()
    (model,) = folder.run("plan", "--format", "json").json["models"]
    assert list(model["vectors"]) == ["mod1", "mod2"]


def test_wrong_module_is_named(project: Callable[..., Folder], shared: Path) -> None:
    folder = project(mod1="mod1")
    with np.load(shared / "archives/multi-mixed.mod1.npz") as right:
        arrays = {name: right[name] for name in right.files}
    arrays["out0"] = arrays["out0"] + 1
    np.savez(folder.root / "wrong.npz", **arrays)
    text = (folder.root / "mlfbuild.yml").read_text()
    folder.write("mlfbuild.yml", text.replace(f"{shared}/archives/multi-mixed.mod1.npz", "wrong.npz"))
    ended = folder.run("verify", status=1)
    assert ended.out.startswith("both (module mod1): case 0, output 0 (output), element 0: expected ")
    assert ended.err.startswith('not verified: module mod2 of model both has no vectors (add "mod2: <file>.npz" ')
    assert_printed(ended.err.splitlines()[-1], "verify-failed", "mlfbuild: verify: both (module mod1) for pc")


def test_vectors_of_an_unknown_module_are_refused(project: Callable[..., Folder]) -> None:
    ((code, place),) = project(mod1="mod1", mod3="mod2").mistakes("verify")
    assert code == "vectors-of-unknown-module" and place.endswith(": models.both.vectors.mod3")


def test_one_file_for_several_modules(project: Callable[..., Folder], shared: Path) -> None:
    folder = project(mod1="mod1")
    text = (folder.root / "mlfbuild.yml").read_text()
    path = f"{shared}/archives/multi-mixed.mod1.npz"
    folder.write("mlfbuild.yml", text.replace(f"{{mod1: {path}}}", path))
    ((code, place),) = folder.mistakes("verify")
    assert code == "vectors-not-by-module" and place.endswith(": models.both.vectors")


def test_missing_vectors_file_is_refused(project: Callable[..., Folder]) -> None:
    ((code, place),) = project(mod1="mod1", mod2="none").mistakes("check")
    assert code == "no-such-file" and place.endswith(": models.both.vectors.mod2")


def test_a_model_of_one_module_may_name_it(folder: Folder, tool: Callable[..., str]) -> None:
    tool("gcc", "cmake", "ninja")
    text = (folder.root / "mlfbuild.yml").read_text()
    assert "vectors: alpha.npz" in text
    folder.write("mlfbuild.yml", text.replace("vectors: alpha.npz", "vectors: {alpha: alpha.npz}"))
    project = load(folder.root / "mlfbuild.yml")
    (job,) = verify_jobs(project, target_jobs(project), folder.root / "build")
    assert (job.module, job.folder) == ("alpha", folder.root / "build/verify/pc/alpha/alpha")
    assert folder.run("verify").out.startswith("alpha: 3 cases right on host")


LEAKS = (
    "for (int i = 0; b[3] == 4.0f && i < 2; i++) if (!TVMBackendAllocWorkspace(1, 0, (uint64_t)16, 2, 32)) return -1;"
)


HOST, M4 = "{cpu: host}", "{cpu: cortex-m4, board: mps2-an386}"
FAILS = "if (b[3] == 3.0f) return 5;"


@pytest.mark.parametrize(
    ("target", "statement", "case"),
    first_on_push([(HOST, FAILS, 1), (M4, LEAKS, 2), (M4, FAILS, 1), (HOST, LEAKS, 2)], 2),
    ids=["host, a kernel fails", "m4, no more workspace", "m4, a kernel fails", "host, no more workspace"],
)
def test_error_code_of_the_run_function_is_one_line(
    folder: Folder, tool: Callable[..., str], target: str, statement: str, case: int
) -> None:
    tool("gcc", "arm-none-eabi-gcc", "cmake", "ninja", "qemu-system-arm")
    folder.write("net.tar", aot_archive(OWN, statement))
    np.savez(folder.root / "net.npz", in0=A, in1=B, out0=Y)
    folder.write(
        "mlfbuild.yml",
        f"mlfbuild: 1\ntargets: {{device: {target}}}\nmodels: {{net: {{source: net.tar, vectors: net.npz}}}}\n",
    )
    ended = folder.run("verify")
    assert (ended.status, ended.out) == (1, f"net: case {case}: the run function returned -1, not 0\n")


def test_module_of_another_name_stands_in_brackets(folder: Folder, tool: Callable[..., str]) -> None:
    tool("gcc", "cmake", "ninja")
    assert folder.run("compile", "models/alpha.tflite", "--cpu", "host", "-o", "many.tar").status == 0
    model = "filter: {source: many.tar, vectors: alpha.npz}"
    folder.write("mlfbuild.yml", f"mlfbuild: 1\ntargets: {{pc: {{cpu: host}}}}\nmodels: {{{model}}}\n")
    ended = folder.run("verify")
    assert (ended.status, ended.out) == (0, "filter (module alpha): 3 cases right on host, arena 0 of 0 bytes used\n")
    (report,) = folder.run("verify", "--format", "json").json
    assert (report["model"], report["module"]) == ("filter", "alpha")
