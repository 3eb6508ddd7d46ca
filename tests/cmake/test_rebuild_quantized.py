"""A model that the build quantises, through the CMake package: what runs again after which change."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from support.cmake_repo import MOSTLY_NINJA, PROJECT, CMakeRepo
from support.float_networks import calibration, float_tflite
from support.snapshot import keep

pytestmark = pytest.mark.sweep
MADE = "quantized/alpha.tflite"


@pytest.fixture(scope="module", params=MOSTLY_NINJA)
def shared_repo(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, tool: Callable[..., str]
) -> CMakeRepo:
    tool("gcc", "cmake", "ninja", "make")
    repo = CMakeRepo(tmp_path_factory.mktemp("repo"), request.param)
    repo.write("mlfbuild.yml", PROJECT.replace("alpha.tflite}", "alpha.tflite, quantize: {calibration: data.npz}}"))
    repo.write("models/alpha.tflite", float_tflite())
    calibration(repo.root / "data.npz")
    repo.build()
    repo.build()
    keep(repo.folder)
    return repo


def data(repo: CMakeRepo) -> None:
    calibration(repo.root / "data.npz", seed=1)


def keys(repo: CMakeRepo) -> None:
    repo.replace("mlfbuild.yml", "data.npz}", "data.npz, method: mse}")


@pytest.mark.parametrize("change", [data, keys])
def test_changes_quantise_and_compile(repo: CMakeRepo, change: Callable[[CMakeRepo], None]) -> None:
    assert repo.build().steps == []
    change(repo)
    ran = repo.build()
    assert MADE in ran.written
    assert (ran.archives, ran.linked) == ({"alpha"}, True)
    assert repo.build().steps == []


def test_equal_ranges_compile_nothing(repo: CMakeRepo) -> None:
    with np.load(repo.root / "data.npz") as known:
        np.savez(repo.root / "data.npz", in0=known["in0"][::-1])
    ran = repo.build()
    assert MADE in ran.written
    assert (ran.archives, ran.trees, ran.objects) == (set(), set(), set())
    assert repo.build().steps == []


def test_a_deleted_product_is_made_again(repo: CMakeRepo) -> None:
    before = Path(repo.build_dir / MADE).read_bytes()
    shutil.rmtree(repo.build_dir / "quantized")
    ran = repo.build()
    assert MADE in ran.written
    assert ran.archives == set()
    assert Path(repo.build_dir / MADE).read_bytes() == before
