"""Models that a command of the project compiles: on a worker if their inputs are listed, and here if one was not."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.archive import pack_archive
from support.dask_cluster import dask_cluster, run
from support.libraries import native_library

pytest.importorskip("distributed")
COPY = f'[{sys.executable}, tools/copy.py, "{{source}}", "{{output}}"'
PROJECT = f"""\
mlfbuild: 1
targets: {{pc: {{cpu: host}}}}
models:
  alpha: {{source: models/alpha.bin, compiler: command, command: {COPY}], inputs: [tools]}}
  beta: {{source: models/beta.bin, compiler: command, command: {COPY}]}}
  gamma:
    source: models/gamma.bin
    compiler: command
    command: [tools/copy.sh, "{{source}}", "{{output}}"]
    inputs: [tools]
  delta: {{source: models/delta.bin, compiler: command, command: {COPY}, data.txt], inputs: [tools]}}
"""


@pytest.mark.sweep
def test_commands_run_on_workers(tmp_path: Path, tool: Callable[..., str]) -> None:
    tool("cp")
    project = tmp_path / "project"
    for folder in ("models", "tools"):
        (project / folder).mkdir(parents=True)
    for name in ("alpha", "beta", "gamma", "delta"):
        (project / f"models/{name}.bin").write_bytes(pack_archive(native_library(name)))
    (project / "tools/copy.py").write_text(
        "import pathlib, sys\n_, source, output, *others = map(pathlib.Path, sys.argv)\n"
        "[one.read_bytes() for one in others]\noutput.write_bytes(source.read_bytes())\n"
    )
    (project / "tools/copy.sh").write_text('#!/bin/sh\nexec cp "$1" "$2"\n')
    (project / "tools/copy.sh").chmod(0o755)
    (project / "data.txt").write_text("not listed\n")
    (project / "mlfbuild.yml").write_text(f"{PROJECT}jobs: {{engine: dask}}\n")
    with dask_cluster(tmp_path / "cluster") as cluster:
        cluster.scheduler()
        cluster.worker("one")
        _, events = run(project, "build", DASK_SCHEDULER_ADDRESS=cluster.address)
        there = f"compiled on {cluster.address_of('one')}"
    found = [json.loads(line) for line in events.splitlines()]
    models = {one["job"]: one["model"] for one in found if one["event"] == "job-started"}
    ended = [(models[one["job"]], one["result"].split(",")[0]) for one in found if one["event"] == "job-finished"]
    assert {("alpha", there), ("gamma", there), ("beta", "compiled"), ("delta", "compiled")} < {*ended}
    assert [result for name, result in ended if name == "delta" and "left to this machine" in result]
    for name in ("alpha", "beta", "gamma", "delta"):
        assert (project / f"build/mlf/pc/{name}.tar").read_bytes() == (project / f"models/{name}.bin").read_bytes()
    why = {one["title"]: one for one in run(project, "why", "alpha", "beta")[0]["results"]}
    assert (why["alpha for pc"]["here"], bool(why["beta for pc"]["here"])) == ("", True)
