"""Print the time and the peak memory of `mlfbuild compile`, whole process, one line a model.

    python benchmarks/compile.py [--runs N] [--cpu CPU] [MODEL.tflite ...]

Without models: the int8 networks of ../shared/models beside the repository. What TVM 0.14 needs for the same model
stands beside it where it was measured, once, on a two-core machine (import, compile and export of an archive).
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from pathlib import Path

from whole_process import measure, mlfbuild

SHARED = Path(os.environ.get("MLFBUILD_SHARED", Path(__file__).resolve().parents[2] / "shared"))
TVM = {"kws_int8": (5.9, 249), "vww_int8": (13.0, 252)}
"""Seconds and MiB."""


def line(model: Path, cpu: str, runs: int, folder: str) -> str:
    """Measure one model; return its row of the table."""
    command = [mlfbuild(), "compile", str(model), "--cpu", cpu, "-o", f"{folder}/{model.stem}.tar", "-q"]
    results = [measure(command) for _ in range(runs)]
    seconds = [result.seconds for result in results]
    peak = max(result.mebibytes for result in results)
    row = f"{model.stem:16} {min(seconds):8.2f} {statistics.median(seconds):8.2f} {peak:8.1f}"
    if model.stem in TVM:
        tvm_seconds, tvm_memory = TVM[model.stem]
        ratios = f"time 1/{tvm_seconds / min(seconds):.0f}, memory 1/{tvm_memory / peak:.1f}"
        row += f"   TVM 0.14: {tvm_seconds:.1f} s, {tvm_memory} MiB ({ratios})"
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--cpu", default="cortex-m4")
    options = parser.parse_args()
    models = options.models or sorted((SHARED / "models").glob("*_int8.tflite"))
    if not models:
        parser.error(f"{SHARED}/models has no models; name some")
    print(f"{'model':16} {'min s':>8} {'median s':>8} {'peak MiB':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for model in models:
            print(line(model, options.cpu, options.runs, folder), flush=True)


if __name__ == "__main__":
    main()
