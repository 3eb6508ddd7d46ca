"""``bundle: true`` in the project file: the libraries in archives, and when archives are rebuilt."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.archive import open_archive, pack_archive
from mlfbuild.cli.output.invocation import run
from mlfbuild.jobs import load, target_jobs
from mlfbuild.jobs.model_builds import compile_action, compile_if_needed
from mlfbuild.jobs.model_job import CompileJob
from mlfbuild.library import bundles
from mlfbuild.project import Provider
from mlfbuild.requirements.resolution import public_address
from support.cmsis_nn import git, write_cmsis_nn_repository
from support.firmware_repo import tiny_network
from support.libraries import native_library

PROJECT = """\
mlfbuild: 1
targets: {m4: {cpu: cortex-m4, board: mps2-an386}}
models: {kws: {source: kws.tar}}
"""
BUNDLED = f"{PROJECT}dependencies:\n  cmsis-nn: {{path: cmsis-nn, version: v4.1.0, bundle: true}}\n"


@pytest.fixture
def folder(tmp_path: Path, shared: Path, stub_cmsis_nn_4: Path) -> Path:
    """Return the folder of a project with a network that TVM compiled for CMSIS-NN, and with the library."""
    shutil.copyfile(shared / "archives" / "kws_int8-cmsisnn_m4.tar", tmp_path / "kws.tar")
    shutil.copytree(stub_cmsis_nn_4, tmp_path / "cmsis-nn")
    return tmp_path


def job_of(folder: Path, project: str = BUNDLED) -> CompileJob:
    (folder / "mlfbuild.yml").write_text(project)
    (target,) = target_jobs(load(folder / "mlfbuild.yml"))
    return target.models[0]


def test_the_archive_contains_the_library(folder: Path) -> None:
    job = job_of(folder)
    assert compile_if_needed(job) and not compile_if_needed(job)
    (source,) = bundles(open_archive(job.archive), "archive").values()
    assert (source.name, source.version, source.license, source.url) == ("cmsis-nn", "v4.1.0", "Apache-2.0", "")
    assert len(source.sources) == 26 and source.license_files == ("LICENSE.txt",)
    assert str(folder).encode() not in job.archive.read_bytes()


def test_a_library_from_git_has_its_commit(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLFBUILD_CACHE", str(folder / "cache"))
    repository = write_cmsis_nn_repository(folder / "repository")
    job = job_of(folder, BUNDLED.replace("path: cmsis-nn", "git: repository"))
    assert run(["-C", str(folder), "build"]) == 2
    assert "run `mlfbuild lock`" in capsys.readouterr().err
    assert run(["-C", str(folder), "lock", "-q"]) == 0
    assert run(["-C", str(folder), "build"]) == 0
    (source,) = bundles(open_archive(job.archive), "archive").values()
    assert (source.commit, source.url) == (git(repository, "rev-parse", "v4.1.0"), "")
    assert str(folder).encode() not in job.archive.read_bytes()


def test_archive_needs_no_provider_in_another_project(folder: Path, tmp_path: Path) -> None:
    job = job_of(folder)
    compile_if_needed(job)
    other = tmp_path / "other"
    other.mkdir()
    shutil.copyfile(job.archive, other / "kws.tar")
    again = job_of(other, PROJECT)
    compile_if_needed(again)
    assert again.archive.read_bytes() == job.archive.read_bytes()


def test_archive_runs_without_a_project(folder: Path, shared: Path) -> None:
    check_alone(job_of(folder), shared)


def test_archive_with_real_library_runs_without_a_project(folder: Path, shared: Path, cmsis_nn_4: Path) -> None:
    check_alone(job_of(folder, BUNDLED.replace("path: cmsis-nn", f"path: {cmsis_nn_4}")), shared)


def check_alone(job: CompileJob, shared: Path) -> None:
    """Check the results of the job's archive on a board, built only from the archive."""
    compile_if_needed(job)
    vectors, outputs = shared / "archives" / "kws_int8-cmsisnn_m4.npz", job.archive.with_name("out.npz")
    arguments = ["--board", "mps2-an386", "--inputs", str(vectors), "-o", str(outputs)]
    assert run(["run", str(job.archive), *arguments]) == 0
    with np.load(vectors) as expected, np.load(outputs) as got:
        assert np.array_equal(got["Identity"], expected["out0"])


def test_build_key_includes_a_bundled_library(folder: Path) -> None:
    key = compile_action(job_of(folder))
    plain = compile_action(job_of(folder, PROJECT))
    assert key != plain
    assert plain == compile_action(job_of(folder, BUNDLED.replace("bundle: true", "bundle: false")))
    assert key != compile_action(job_of(folder, BUNDLED.replace("bundle", "compile-options: [-O3], bundle")))
    file = folder / "cmsis-nn" / "Source" / "SoftmaxFunctions" / "arm_softmax_s8.c"
    file.write_text(file.read_text() + "\n")
    assert key != compile_action(job_of(folder))


def test_models_without_requirements_ignore_it(folder: Path) -> None:
    (folder / "kws.tar").write_bytes(pack_archive(native_library("kws")))
    job = job_of(folder)
    assert job.bundles and compile_action(job) == compile_action(replace(job, bundles=()))
    (folder / "net.tflite").write_bytes(tiny_network(1))
    assert job_of(folder, BUNDLED.replace("kws.tar", "net.tflite")).bundles == ()


def test_a_wrong_version_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "mlfbuild.yml").write_text(BUNDLED.replace("v4.1.0", "v7.0.0"))
    assert run(["-C", str(folder), "build"]) == 2
    assert "dependencies.cmsis-nn: is v7.0.0, but kws (kws.tar) requires v4.1.0, " in capsys.readouterr().err


def test_unsafe_options_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "mlfbuild.yml").write_text(BUNDLED.replace("bundle", "compile-options: [-fplugin=x.so], bundle"))
    assert run(["-C", str(folder), "build"]) == 2
    error = capsys.readouterr().err
    assert "dependency cmsis-nn: " in error and "'-fplugin=x.so'" in error


def test_a_folder_without_a_description_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = job_of(folder)
    compile_if_needed(job)
    library = open_archive(job.archive)
    bare = [file for file in library.other_files if file.path.suffix != ".json"]
    (folder / "kws.tar").write_bytes(pack_archive(replace(library, other_files=tuple(bare))))
    (folder / "mlfbuild.yml").write_text(PROJECT)
    assert run(["-C", str(folder), "build"]) == 5
    assert "kws (kws.tar): dependency 'cmsis-nn': " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("place", "url"),
    [
        ("https://example.org/lib", "https://example.org/lib"),
        ("https://user:secret@example.org/lib", "https://example.org/lib"),
        ("file:///home/somebody/lib", ""),
    ],
)
def test_the_origin_of_a_library_in_an_archive(place: str, url: str) -> None:
    assert public_address(Provider("lib", git=place, version="1")) == url
    assert public_address(Provider("lib", git=place, folder=Path("lib"), version="1")) == ""
