"""Print the rate of `mlfbuild evaluate` beside that of a bare C loop over the same archive, and its peak memory.

    python benchmarks/evaluate.py [--cases N] [--runs N] [MODEL ...]

Without models: the network of examples/digits, and the keyword network of ../shared/models if it is there. The C loop
reads no file and computes no metric: it calls the run function for inputs that are in memory. The rate of `evaluate` is
taken from the difference of two whole processes, with 1,000 cases and with N, so that it contains reading the test set,
quantising, running and measuring. Exits with 1 below 70 % of the loop, or if the memory grows with the cases.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from whole_process import mlfbuild

from mlfbuild.core import find_tool
from mlfbuild.verify.host import load

REPOSITORY = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("MLFBUILD_SHARED", REPOSITORY.parent / "shared"))
SHARE, GROWTH = 0.7, 8.0
"""The least part of the rate of the C loop, and the most MiB by which the memory may differ."""
FEW = 1000
# In a small process: Linux counts the memory of the one that forks as that of its child. The largest of all processes.
MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
"""
LOOP = """
#include <stdio.h>
#include <time.h>
#include "tvmgen_net.h"
static int8_t in[256][%(size)d] __attribute__((aligned(64))), out[%(result)d] __attribute__((aligned(64)));
int main(void)
{
    struct timespec begin, end;
    for (int i = 0; i < 256; i++)
        for (int k = 0; k < %(size)d; k++) in[i][k] = (int8_t)(i * 31 + k * 7);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    for (long i = 0; i < %(cases)d; i++) {
        struct tvmgen_net_inputs inputs = {in[i %% 256]};
        struct tvmgen_net_outputs outputs = {out};
        if (tvmgen_net_run(&inputs, &outputs) != 0) return 1;
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    printf("%%.9f", (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec));
    return 0;
}
"""


def loop_seconds(tree: Path, folder: Path, cases: int, size: int, result: int) -> float:
    """Return the seconds of CPU that a C loop over ``cases`` needs with the archive that is unpacked in ``tree``."""
    (folder / "loop.c").write_text(LOOP % {"cases": cases, "size": size, "result": result})
    sources = [*tree.glob("codegen/host/src/**/*.c"), folder / "loop.c"]
    includes = [f"-I{tree / 'codegen/host/include'}", f"-I{tree / 'codegen/host/src'}"]
    program = folder / "loop"
    command = [find_tool("gcc"), "-O2", "-w", "-fno-strict-aliasing", *includes, *sources, "-o", program, "-lm"]
    subprocess.run(command, check=True)
    return float(subprocess.run([program], check=True, capture_output=True, text=True).stdout)


def evaluate(folder: Path, inputs: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Return the seconds of CPU and the peak memory in MiB of `mlfbuild evaluate` with these cases."""
    np.savez(folder / "test.npz", in0=inputs, labels=labels)
    command = [sys.executable, "-c", MEASURE, mlfbuild(), "-f", str(folder / "mlfbuild.yml"), "evaluate", "-q"]
    seconds, kibibytes = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(seconds), int(kibibytes) / 1024


def line(model: Path, cases: int, runs: int) -> tuple[str, bool]:
    """Measure one model; return its row of the table, and whether it is within its limits."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "mlfbuild.yml").write_text(
            f"mlfbuild: 1\ntargets: [host]\nmodels:\n"
            f"  net: {{source: {model}, evaluate: {{data: test.npz, metric: top1}}}}\n"
        )
        network = load(model)
        tensor, output = network.inputs[0], network.outputs[0]
        random = np.random.default_rng(0)
        low, high = (float(tensor.dequantized(np.array(end, np.int8))) for end in (-128, 127))
        real = random.uniform(low, high, (cases, *(tensor.shape or ()))).astype(np.float32)
        labels = random.integers(0, output.size, cases)
        evaluate(folder, real[:FEW], labels[:FEW])  # compiles
        few, small = min(evaluate(folder, real[:FEW], labels[:FEW]) for _ in range(runs))
        many, large = min(evaluate(folder, real, labels) for _ in range(runs))
        (tree,) = folder.glob("build/mlf/*/net")
        bare = min(loop_seconds(tree, folder, cases, tensor.size, output.size) for _ in range(runs)) / cases
    own = (many - few) / (cases - FEW)
    part, growth = bare / own, large - small
    memory = f"{small:8.1f} {large:8.1f}"
    row = f"{model.stem:20} {1 / bare:12,.0f} {1 / own:12,.0f} {part:7.0%} {memory}"
    return row, part >= SHARE and growth <= GROWTH


def main() -> None:
    """Measure the models of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    found = [REPOSITORY / "examples/digits/models/digits.tflite", SHARED / "models/kws_int8.tflite"]
    print(f"{'model':20} {'C, cases/s':>12} {'evaluate':>12} {'part':>7} MiB {FEW:>4} {options.cases:>8}")
    good = True
    for model in options.models or [path for path in found if path.exists()]:
        row, fine = line(model.resolve(), options.cases, options.runs)
        print(row, flush=True)
        good = good and fine
    sys.exit(not good)


if __name__ == "__main__":
    main()
