"""The MLPerf Tiny networks on every board: each vector and each output element, in a built image."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mlfbuild.jobs import load, target_jobs
from mlfbuild.usecases.build import build_project as build
from mlfbuild.usecases.verify import verify_job, verify_jobs

BOARDS = {
    "cortex-m4": "mps2-an386", "cortex-m7": "mps2-an500", "cortex-m33": "mps2-an505", "cortex-m55": "mps3-an547",
}  # fmt: skip

BEST_ARENAS = {"kws_int8": 17_152, "ic_int8": 49_728, "ad_int8": 768, "vww_int8": 55_296}
"""Bytes without the caller's inputs and outputs: the least that another compiler needs."""

ON_EVERY_BOARD = [(model, cpu) for model in BEST_ARENAS for cpu in BOARDS]
FLOAT = [(model, cpu) for model in ("ad_f32", "ic_f32", "vww_f32") for cpu in ("cortex-m4", "cortex-m55")]
ON_PUSH = {
    ("ad_int8", "cortex-m4"), ("kws_int8", "cortex-m55"), ("ad_f32", "cortex-m55"),
}  # fmt: skip
"""Networks of integers and of floats; ``test_models`` has all on this machine, ``test_dsp`` kernels on each board."""
CASES = [pytest.param(*case, marks=[] if case in ON_PUSH else pytest.mark.sweep) for case in (*ON_EVERY_BOARD, *FLOAT)]


@pytest.mark.parametrize(("model", "cpu"), CASES)
def test_every_vector_on_the_board(
    shared: Path, tool: Callable[..., str], tmp_path: Path, model: str, cpu: str
) -> None:
    tool("arm-none-eabi-gcc", "cmake", "ninja", "qemu-system-arm")
    files = {"source": str(shared / "models" / f"{model}.tflite"), "vectors": str(shared / "golden" / f"{model}.npz")}
    target = {"cpu": cpu, "board": BOARDS[cpu]}
    project = tmp_path / "mlfbuild.yml"
    project.write_text(json.dumps({"mlfbuild": 1, "targets": {"board": target}, "models": {model: files}}))
    targets = target_jobs(load(project))
    build(targets)
    (job,) = verify_jobs(load(project), targets, tmp_path / "build")
    report = verify_job(job)
    assert report.passed, report.text()
    assert report.cases == 8
    # Of rows that kernels copy the last may be shorter than their room.
    assert 0.96 * report.workspace_size <= report.workspace_used <= report.workspace_size
    assert report.workspace_used <= BEST_ARENAS.get(model, report.workspace_used)
    assert report.stack_used is not None
    assert report.stack_used < 1024
