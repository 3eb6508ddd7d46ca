"""Modules that a process loads: most of the time of a build with nothing to do is imports."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.jobs import in_worker, load, target_jobs
from support.firmware_repo import FirmwareRepo
from support.start_up import compile_and_list, loaded, ours

LARGE = {"numpy", "jinja2", "elftools", "pygments", "rich", "email", "importlib.metadata", "onnx", "flatbuffers"}


@pytest.fixture
def repo(tmp_path: Path, tool: Callable[..., str]) -> FirmwareRepo:
    tool("arm-none-eabi-gcc", "cmake", "ninja")
    return FirmwareRepo(tmp_path)


def test_help_loads_at_most_14_modules(tmp_path: Path) -> None:
    modules = loaded(tmp_path, "-m", "mlfbuild", "--help")
    assert len(ours(modules)) <= 14, ours(modules)
    assert not LARGE & {*modules}


def test_check_loads_at_most_145_modules(repo: FirmwareRepo) -> None:
    modules = loaded(repo.root, "-m", "mlfbuild", "check")
    assert len(ours(modules)) <= 145, ours(modules)
    assert not (LARGE - {"rich"}) & {*modules}


@pytest.mark.parametrize("command", [("SCons", "-Q"), ("SCons", "-Q", "-n"), ("mlfbuild", "-q", "build")], ids=" ".join)
def test_builds_with_nothing_to_do_load_at_most_165_modules(repo: FirmwareRepo, command: tuple[str, ...]) -> None:
    repo.build()
    loaded(repo.root, "-m", *command)  # the first one may render build files that SCons does not need
    modules = loaded(repo.root, "-m", *command)
    assert len(ours(modules)) <= 165, ours(modules)
    assert not LARGE & {*modules}


def test_a_worker_that_compiles_a_model_loads_at_most_374_modules(repo: FirmwareRepo) -> None:
    (target,) = target_jobs(load(repo.root / "mlfbuild.yml"))
    modules = ours(in_worker(compile_and_list, target.models[0], 1))
    assert len(modules) <= 374, modules
