"""A network of TVM that requires CMSIS-NN without recording it: rejected, then built and exact with the library."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.cli.output.invocation import run as main
from mlfbuild.core import Diagnostic, ProjectFileError
from mlfbuild.jobs import load, target_jobs
from mlfbuild.jobs.libraries import target_dependencies
from mlfbuild.jobs.model_builds import finish_target
from mlfbuild.jobs.model_job import TargetJob
from mlfbuild.jobs.tree import read_record, tree_damage
from mlfbuild.library import CMSIS_NN, ResolvedLibrary
from mlfbuild.usecases.build import build_project as build
from mlfbuild.usecases.plan import plan_build as plan
from mlfbuild.usecases.verify import verify_job, verify_jobs
from support.cmsis_nn import real_cmsis_nn, write_cmsis_nn_repository

ARCHIVE = "kws_int8-cmsisnn_m4"
NEEDED = "Source/SoftmaxFunctions/arm_softmax_s8.c"


def write_project(folder: Path, shared: Path, dependency: str, models: tuple[str, ...] = ("kws",)) -> Path:
    source = shared / "archives" / ARCHIVE
    lines = [f"  {name}: {{source: {source}.tar, vectors: {source}.npz}}\n" for name in models]
    if len(models) > 1:  # one module in two archives clashes: the second gets another name
        lines[1] = lines[1].replace("}\n", ", options: {module-name: second}}\n")
    provided = f"dependencies:\n  cmsis-nn: {dependency}\n" if dependency else ""
    folder.mkdir(exist_ok=True)
    path = folder / "mlfbuild.yml"
    path.write_text(
        f"mlfbuild: 1\ntargets:\n  m4: {{cpu: cortex-m4, board: mps2-an386}}\nmodels:\n{''.join(lines)}{provided}"
    )
    return path


def only_target(path: Path) -> TargetJob:
    (target,) = target_jobs(load(path))
    return target


def copied(target: TargetJob) -> set[str]:
    record = read_record(target.dependencies_folder)
    return set(record.files) if record else set()


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory, stub_cmsis_nn_4: Path) -> Path:
    """A copy of the stand-in for CMSIS-NN that tests can change."""
    folder = tmp_path_factory.mktemp("library") / "CMSIS-NN"
    shutil.copytree(stub_cmsis_nn_4, folder)
    return folder


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, shared: Path, stub: Path) -> Path:
    """A project that has been built."""
    path = write_project(tmp_path_factory.mktemp("project"), shared, f"{{path: {stub}, version: v4.1.0}}")
    build([only_target(path)])
    return path


def test_missing_provider_is_rejected(
    tmp_path: Path, shared: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_project(tmp_path, shared, "")
    monkeypatch.chdir(tmp_path)
    for verb in ("build", "verify", "plan"):
        assert main([verb]) == 2
        error = capsys.readouterr().err.splitlines()[-1].removeprefix("mlfbuild: ")
        assert error.startswith("dependency cmsis-nn: kws (") and "CMSIS-NN v4.1.0" in error
        assert f"cmsis-nn: {{git: {CMSIS_NN.url}, version: v4.1.0}}" in error
    assert path.is_file() and not (tmp_path / "build/mlf/m4/dependencies").exists()


def test_other_version_is_rejected(tmp_path: Path, shared: Path, stub: Path) -> None:
    path = write_project(tmp_path, shared, f"{{path: {stub}, version: v7.0.0}}")
    with pytest.raises(ProjectFileError) as error:
        build([only_target(path)])
    (problem,) = error.value.problems
    assert isinstance(problem, Diagnostic) and problem.code == "provider-other-version"


def test_results_are_exact_on_the_board(project: Path, tool: Callable[..., str]) -> None:
    tool("cmake", "ninja", "arm-none-eabi-gcc", "qemu-system-arm")
    (job,) = verify_jobs(load(project), [only_target(project)], project.parent / "build")
    report = verify_job(job)
    assert report.passed, report.text()
    commands = (job.folder / "build/build.ninja").read_text()
    assert "dependencies/cmsis-nn/Source" in commands


def test_library_is_copied_completely(project: Path, stub: Path) -> None:
    target = only_target(project)
    files = copied(target)
    sources = {path.relative_to(stub).as_posix() for path in (stub / "Source").rglob("*.c")}
    assert {f"cmsis-nn/{path}" for path in sources} == {path for path in files if path.endswith(".c")}
    assert {"cmsis-nn/LICENSE.txt", "cmsis-nn.cmake", "cmsis-nn.mk"} <= files
    (dependency,) = target_dependencies(target)
    assert (dependency.version, dependency.license) == ("v4.1.0", "Apache-2.0")
    assert finish_target(target, target_dependencies(target)).written == ()


def test_copies_are_restored_and_updated(project: Path, stub: Path) -> None:
    target = only_target(project)
    copy, header = (target.dependencies_folder / f"cmsis-nn/{path}" for path in (NEEDED, "Include/arm_nn_types.h"))
    copy.write_text("edited")
    header.unlink()
    report = finish_target(target, target_dependencies(target))
    assert report.edited == (f"dependencies/cmsis-nn/{NEEDED}",) and len(report.written) == 2
    text = (stub / NEEDED).read_text()
    (stub / NEEDED).write_text(text + "/* changed */\n")
    report = finish_target(target, target_dependencies(target))
    assert {f"dependencies/cmsis-nn/{NEEDED}", "dependencies/cmsis-nn.cmake"} <= set(report.written)
    assert tree_damage(target.dependencies_folder) == []
    (stub / NEEDED).write_text(text)
    finish_target(target, target_dependencies(target))


def test_plan_has_every_file(project: Path, stub: Path) -> None:
    planned = plan(load(project))
    (target,) = planned["targets"]
    assert target["up_to_date"]
    assert target["dependencies"] == [{"dependency": "cmsis-nn", "version": "v4.1.0", "kind": "source"}]
    job = only_target(project)
    assert str(stub / NEEDED) in target["reads"] and str(stub / NEEDED) in target["watched"]
    assert {str((stub / NEEDED).parent), str(stub)} <= set(target["watched"]) - set(target["reads"])
    written = {path for path in target["writes"] if "/dependencies/" in path}
    assert written == {f"{job.dependencies_folder}/{path}" for path in (*copied(job), "RECORD.json")}


def test_two_models_share_the_library(tmp_path: Path, shared: Path, stub: Path) -> None:
    provided = f"{{path: {stub}, version: v4.1.0}}"
    path = write_project(tmp_path, shared, provided, ("kws", "second"))
    build([only_target(path)])
    both = copied(only_target(path))
    path = write_project(tmp_path, shared, provided)
    build([only_target(path)])
    assert copied(only_target(path)) == both
    path.write_text(re.sub(r"source: .*?\.tar", f"source: {shared}/archives/add-aotc.tar", path.read_text()))
    path.write_text(re.sub(r", vectors: .*?\.npz", "", path.read_text()))
    build([only_target(path)])
    assert not (tmp_path / "build/mlf/m4/dependencies").exists()


def test_from_git_and_from_a_package(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch, project: Path
) -> None:
    monkeypatch.setenv("MLFBUILD_CACHE", str(tmp_path / "cache"))
    repository = write_cmsis_nn_repository(tmp_path / "upstream")
    path = write_project(tmp_path / "git", shared, f"{{git: {repository}, version: v4.1.0}}")
    monkeypatch.chdir(path.parent)
    assert main(["build"]) == 2, "builds do not fetch"
    assert main(["lock"]) == 0
    assert main(["build"]) == 0
    assert copied(only_target(path)) == copied(only_target(project))
    nn = ResolvedLibrary("cmsis-nn", "", package="CMSISNN", target="cmsis-nn", wanted="v4.1.0")
    path = write_project(tmp_path / "package", shared, "{package: CMSISNN, target: cmsis-nn}")
    assert target_dependencies(only_target(path)) == (nn,)


def test_archives_without_a_project(
    tmp_path: Path, shared: Path, stub: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    archive, vectors = shared / f"archives/{ARCHIVE}.tar", shared / f"archives/{ARCHIVE}.npz"
    monkeypatch.chdir(tmp_path)
    for board in ([], ["--board", "mps2-an386"]):
        assert main(["run", str(archive), *board, "--inputs", str(vectors), "-o", "y.npz"]) == 4
        assert capsys.readouterr().err.startswith(f"mlfbuild: {archive}: module 'kws_int8': requires CMSIS-NN v4.1.0")
    path = write_project(tmp_path / "bundling", shared, f"{{path: {stub}, version: v4.1.0, bundle: true}}")
    build([only_target(path)])
    archive = only_target(path).models[0].archive
    for board in ([], ["--board", "mps2-an386"]):
        assert main(["run", str(archive), *board, "--inputs", str(vectors), "-o", "y.npz"]) == 0
        with np.load("y.npz") as outputs, np.load(vectors) as expected:
            assert np.array_equal(outputs["Identity"], expected["out0"])
    # Unpacked alone, and as the source of a project that provides nothing itself.
    assert main(["unpack", str(archive), "-o", "tree"]) == 0
    names = {each.name for each in Path("tree/dependencies").iterdir()}
    assert {"cmsis-nn.cmake", "cmsis-nn.mk", "cmsis-nn.SConscript"} < names
    second = write_project(tmp_path / "second", shared, "")
    second.write_text(second.read_text().replace(f"{shared}/archives/{ARCHIVE}.tar", str(archive)))
    build([only_target(second)])
    assert copied(only_target(second)) == copied(only_target(path))


def test_target_without_models_requires_nothing(tmp_path: Path, shared: Path, stub: Path) -> None:
    path = write_project(tmp_path, shared, f"{{path: {stub}, version: v4.1.0}}")
    path.write_text(path.read_text().replace("targets:\n", "targets:\n  m7: {cpu: cortex-m7}\n"))
    path.write_text(path.read_text().replace("vectors:", "targets: [m4], vectors:"))
    target, _ = target_jobs(load(path))
    assert (target.name, target.models) == ("m7", ())
    assert target_dependencies(target) == ()


def test_the_real_library(tmp_path: Path, shared: Path, tool: Callable[..., str]) -> None:
    library = real_cmsis_nn("MLFBUILD_CMSIS_NN_4", "v4.1.0")
    tool("cmake", "ninja", "arm-none-eabi-gcc", "qemu-system-arm")
    path = write_project(tmp_path, shared, f"{{path: {library}, version: v4.1.0}}")
    target = only_target(path)
    build([target])
    (job,) = verify_jobs(load(path), [target], tmp_path / "build")
    assert verify_job(job).passed
    assert len([path for path in copied(target) if path.endswith(".c")]) == 72
