"""The image for workers: what can be checked without an engine for containers."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from mlfbuild.core.extras import EXTRAS
from support.dask_cluster import FarmProject, dask_cluster

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "examples/worker-image/Containerfile").read_text()
COMMANDS = re.findall(r"^RUN (?:--mount=\S+ )?(.*)$", re.sub(r"\\\n\s*", "", TEXT), re.MULTILINE)


def test_its_packages_are_those_of_the_setup_script() -> None:
    script = (ROOT / "scripts/setup.sh").read_text()
    (body,) = re.findall(r"^missing_packages\(\) \{(.*?)^\}", script, re.MULTILINE | re.DOTALL)
    (packages,) = re.findall(r"--no-install-recommends (.*?) &&", COMMANDS[0])
    assert {*packages.split()} == {*re.findall(r"echo (\S+)", body), "ca-certificates"}


def test_its_libraries_are_those_of_the_extra() -> None:
    assert {f"'{one}'" for extra in ("distributed", "onnx") for one in EXTRAS[extra].values()} <= {*COMMANDS[1].split()}


@pytest.mark.parametrize("command", COMMANDS)
def test_its_commands_have_no_mistakes_of_syntax(command: str) -> None:
    subprocess.run(["sh", "-n"], input=command, text=True, check=True)


@pytest.mark.sweep
def test_a_worker_with_the_wheel_serves_this_checkout(tmp_path: Path) -> None:
    words = ["-m", "pip", "install", "-q", "--no-deps", "--target", tmp_path / "wheel", ROOT]
    subprocess.run([sys.executable, *words], check=True)
    with dask_cluster(tmp_path / "cluster", PYTHONPATH=str(tmp_path / "wheel")) as cluster:
        project = FarmProject(tmp_path / "p", jobs=f'jobs: {{engine: dask, scheduler: "{cluster.scheduler()}"}}\n')
        cluster.worker("a")
        assert len(project.build().check().workers) == project.count
