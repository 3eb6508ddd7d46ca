"""Complete projects that only SCons builds, as users would write them (tests/projects/scons-*)."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.targets import board_called
from mlfbuild.verify.emulator import run_elf
from support import warm
from support.firmware_repo import tiny_network
from support.scons_versions import takes_deques

PROJECTS = Path(__file__).parents[1] / "projects"


@pytest.mark.sweep
@takes_deques
def test_variants_of_a_product_with_its_own_build(tmp_path: Path, tool: Callable[..., str]) -> None:
    tool("arm-none-eabi-gcc", "qemu-system-arm")
    root = tmp_path / "product"
    shutil.copytree(PROJECTS / "scons-variants", root)
    (root / "models").mkdir()
    for seed, name in enumerate(("alpha", "beta")):
        (root / f"models/{name}.tflite").write_bytes(tiny_network(seed))
    warm.run("SCons", "-Q", "-j4", "--debug=explain", cwd=root, status=0)
    for variant in ("debug", "release"):
        result = run_elf(root / f"build/{variant}/app.elf", board_called("mps2-an386"), timeout=60)
        assert (result.stdout, result.exit_status) == ("alpha and beta ran\n", 0)
    again = warm.run("SCons", "-Q", "-j4", "--debug=explain", cwd=root, check=True)
    assert again.stdout == "scons: `.' is up to date.\n"
