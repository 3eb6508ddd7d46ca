"""TLS by Dask's own options: certificates of its variables, and nothing without them."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.dask_cluster import IMPATIENT, FarmProject, dask_cluster

pytest.importorskip("distributed")
pytestmark = pytest.mark.sweep

_PREFIX = "DASK_DISTRIBUTED__COMM__TLS__"


def _certificate(folder: Path, openssl: str) -> dict[str, str]:
    """Make a certificate that signs itself; return the variables that let every process of Dask use it."""
    folder.mkdir()
    key, cert = folder / "key.pem", folder / "cert.pem"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=farm"]
    subprocess.run([openssl, *words, "-keyout", key, "-out", cert], check=True, capture_output=True)
    variables = {f"{_PREFIX}{who}__{what}": str(path) for who in ("SCHEDULER", "WORKER", "CLIENT")
                 for what, path in (("KEY", key), ("CERT", cert))}  # fmt: skip
    return {f"{_PREFIX}CA_FILE": str(cert), **variables}


def test_tls(tmp_path: Path, tool: Callable[[str], str]) -> None:
    ours, other = (_certificate(tmp_path / name, tool("openssl")) for name in ("ours", "other"))
    here = FarmProject(tmp_path / "here")
    here.build().check()
    with dask_cluster(tmp_path / "cluster", **ours) as cluster:
        address = cluster.scheduler(protocol="tls")
        assert address.startswith("tls://127.0.0.1:")
        cluster.worker("a")
        project = FarmProject(tmp_path / "p", jobs=f'jobs: {{engine: dask, scheduler: "{address}"}}\n')
        missing = {**ours, f"{_PREFIX}CA_FILE": str(tmp_path / "missing.pem")}
        for variables in ({}, other, missing):
            assert f"{address}: no scheduler of Dask answers: " in project.build(**variables, **IMPATIENT).check(7).err
        assert len(project.build(**ours).check().workers) == project.count
        assert project.digests() == here.digests()
