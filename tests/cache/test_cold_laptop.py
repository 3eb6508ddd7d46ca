"""A cold laptop with a warm cache: it builds examples/ without compiling a model. ``-s`` shows times and bytes."""

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.nginx import serving_nginx

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/mlfbuild.yml"))
CONFIG = """
    log_format sent '$request_method $status $bytes_sent';
    server {
        listen 127.0.0.1:{port};
        client_max_body_size 1m;
        root {folder}/data;
        dav_methods PUT;
        create_full_put_path on;
        access_log access.log requests;
        access_log sent.log sent;
    }
"""
BUILD = """
import json
from pathlib import Path
from mlfbuild.jobs import load, target_jobs
from mlfbuild.usecases import build_project
built = build_project(target_jobs(load(Path("mlfbuild.yml"))))
print(json.dumps([[each.job.title, str(each.job.archive), each.origin] for each in built.models]))
"""


@dataclass
class Machine:
    """A folder with all examples, and a home with caches of its own."""

    folder: Path
    cache: str
    seconds: float = 0
    cpu: float = 0
    """Seconds of processors, which other work on this machine changes less."""

    def __post_init__(self) -> None:
        for name in NAMES:
            shutil.copytree(EXAMPLES / name, self.folder / name, ignore=shutil.ignore_patterns("build"))
            with (self.folder / name / "mlfbuild.yml").open("a") as file:
                file.write(f"\ncache: {{remote: {self.cache}, push: always}}\n")

    def build(self, name: str) -> tuple[dict[str, str], dict[str, bytes]]:
        """Build the models of an example in a process; return the origin of each, and each archive."""
        home = {"HOME": self.folder, "XDG_CACHE_HOME": self.folder / "xdg", "MLFBUILD_CACHE": self.folder / "cache"}
        environment = {name: value for name, value in os.environ.items() if name != "MLFBUILD_CACHE_DISABLE"}
        begin, used = time.perf_counter(), _used()
        done = subprocess.run(
            [sys.executable, "-c", BUILD],
            cwd=self.folder / name,
            env={**environment, **{name: str(path) for name, path in home.items()}},
            capture_output=True,
            text=True,
            check=True,
        )
        self.seconds += time.perf_counter() - begin
        self.cpu += _used() - used
        assert done.stderr == ""
        models = json.loads(done.stdout)
        archives = {title: (self.folder / name / path).read_bytes() for title, path, _ in models}
        return {title: origin for title, _, origin in models}, archives


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.sweep
def test_a_cold_laptop_compiles_no_model_of_the_examples(tmp_path: Path, nginx: str) -> None:
    (tmp_path / "server/data").mkdir(parents=True)
    with serving_nginx(nginx, tmp_path / "server", CONFIG) as server:
        first, second = (Machine(tmp_path / name, f"{server.url}/team") for name in ("first", "second"))
        compiled = {name: first.build(name) for name in NAMES}
        server.requests()
        (tmp_path / "server/sent.log").write_text("")
        found = {name: second.build(name) for name in NAMES}
        server.requests()
        log = [line.split() for line in (tmp_path / "server/sent.log").read_text().splitlines()]
    assert len(NAMES) >= 5
    # Two examples have the same model for the same processor: what the first one brought is local for the second.
    renamed = {"compiled": "remote", "local": "local"}
    for name in NAMES:
        origins, archives = compiled[name]
        assert found[name] == ({title: renamed[origin] for title, origin in origins.items()}, archives)
    fetched = [line for line in log[:-1] if line[0] == "GET"]  # the last one is that of ``requests``
    models = sum(len(origins) for origins, _ in found.values())
    results = list((tmp_path / "second/cache/results").glob("ac/*/*"))
    assert [origin for origins, _ in found.values() for origin in origins.values()].count("remote") == len(results)
    assert {status for _, status, _ in fetched} == {"200"}
    assert len(fetched) == 2 * len(results)  # a result and its archive
    sent = sum(int(size) for _, _, size in fetched)
    assert sent > sum(path.stat().st_size for path in (tmp_path / "second/cache/results/cas").glob("*/*"))
    print(
        f"\n{len(NAMES)} examples, {models} models for targets, {len(results)} archives: "
        f"{first.seconds:.1f} s ({first.cpu:.1f} s of CPU) without a cache, "
        f"{second.seconds:.1f} s ({second.cpu:.1f} s) with that of the server, which sent {sent:,} bytes"
    )
