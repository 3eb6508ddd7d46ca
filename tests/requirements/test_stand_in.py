"""The stand-in for CMSIS-NN, on which all other tests of dependencies rely, is bit-exact."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.cli.output.invocation import run
from support.cmsis_nn import VERSIONS, Version, git, write_cmsis_nn, write_cmsis_nn_repository
from support.cmsis_nn_source import CORES, TVM_ARCHIVE, cmsis_nn_source, self_contained

WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror")


@pytest.mark.sweep
@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("version", VERSIONS)
def test_compiles_without_warnings(version: Version, core: str, tmp_path: Path, tool: Callable[[str], str]) -> None:
    folder = write_cmsis_nn(tmp_path / "stub", version)
    sources = sorted(map(str, (folder / "Source").rglob("*.c")))
    compiler = [tool("arm-none-eabi-gcc"), "-mthumb", *CORES[core], *WARNINGS, f"-I{folder / 'Include'}"]
    subprocess.run([*compiler, "-fsyntax-only", *sources], check=True)
    assert len(sources) > 25


def test_stand_in_versions_differ_like_the_real_ones(stub_cmsis_nn_4: Path, stub_cmsis_nn_7: Path) -> None:
    old, new = ((folder / "Include" / "arm_nnfunctions.h").read_text() for folder in (stub_cmsis_nn_4, stub_cmsis_nn_7))
    assert "upscale_dims" in new and "upscale_dims" not in old
    assert "arm_vector_sum_s8" in new and "arm_vector_sum_s8" not in old
    assert (stub_cmsis_nn_4 / "LICENSE.txt").is_file() and (stub_cmsis_nn_7 / "LICENSE").is_file()
    assert not (stub_cmsis_nn_4 / "Source" / "TransposeFunctions").exists()


def test_a_network_of_tvm_is_exact_with_it(shared: Path, stub_cmsis_nn_4: Path, tmp_path: Path) -> None:
    """The stand-in is added to the files of the archive, which makes it self-contained."""
    archive = self_contained(shared / "archives" / TVM_ARCHIVE, cmsis_nn_source(stub_cmsis_nn_4), tmp_path / "kws.tar")
    vectors, outputs = shared / "archives" / "kws_int8-cmsisnn_m4.npz", tmp_path / "out.npz"
    assert run(["run", str(archive), "--board", "mps2-an386", "--inputs", str(vectors), "-o", str(outputs)]) == 0
    with np.load(vectors) as expected, np.load(outputs) as got:
        assert np.array_equal(got["Identity"], expected["out0"])


def test_repository_is_reproducible(tmp_path: Path) -> None:
    first, second = (write_cmsis_nn_repository(tmp_path / name) for name in ("a", "b"))
    assert git(first, "rev-parse", "v4.1.0", "v7.0.0") == git(second, "rev-parse", "v4.1.0", "v7.0.0")
    assert git(first, "tag").split() == list(VERSIONS)
    assert git(first, "status", "--porcelain") == ""
