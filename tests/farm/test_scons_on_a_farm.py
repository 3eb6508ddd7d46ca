"""SCons compiles models one by one on the farm that the project file names."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.dask_cluster import IMPATIENT, DaskCluster, FarmProject, dask_cluster

pytest.importorskip("distributed")
pytestmark = pytest.mark.sweep

_SCONSTRUCT = """\
import os
env = Environment(ENV=os.environ, tools=["default", "mlf"])
env.MlfModels("mlfbuild.yml", target="cortex-m4")
"""


def _scons(project: FarmProject, cluster: DaskCluster) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "SCons", "-j", "2", "-Q"]
    environment = {**cluster.environment, **IMPATIENT}
    return subprocess.run(command, cwd=project.root, env=environment, capture_output=True, text=True, check=False)


def test_scons_on_a_farm(tmp_path: Path) -> None:
    here = FarmProject(tmp_path / "here", cpus=["cortex-m4"])
    here.build().check()
    archives = {name: digest for name, digest in here.digests().items() if name.endswith(".tar")}
    with dask_cluster(tmp_path / "cluster") as cluster:
        jobs = f'jobs: {{engine: dask, scheduler: "{cluster.scheduler()}"}}\n'
        project = FarmProject(tmp_path / "p", cpus=["cortex-m4"], jobs=jobs)
        (project.root / "SConstruct").write_text(_SCONSTRUCT)
        (project.root / "site_scons/site_tools").mkdir(parents=True)
        (project.root / "site_scons/site_tools/mlf.py").write_text("from mlfbuild.scons import exists, generate\n")
        for name in ("a", "b"):
            cluster.worker(name, fault="compile")
        done = _scons(project, cluster)
        assert (done.returncode, done.stderr) == (0, "")
        assert (cluster.marked("compile"), cluster.marked("compiled")) == (1, project.count)
        assert archives.items() <= project.digests().items()
        cluster.kill("scheduler")
        assert "is up to date" in _scons(project, cluster).stdout
        shutil.rmtree(project.root / "build")
        done = _scons(project, cluster)
        assert done.returncode == 2
        assert f"{cluster.address}: no scheduler of Dask answers: " in done.stderr
        assert "Traceback" not in done.stderr
