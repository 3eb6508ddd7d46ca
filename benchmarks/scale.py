"""Print what SCons needs for many models: 200 small networks for 3 targets, beside as many C files without mlfbuild.

    python benchmarks/scale.py [--models N] [--targets N] [--jobs N] [--runs N] [--folder DIR]

A firmware of the models is linked with SCons' own Program for each target, for this machine, so that no cross compiler
is needed. Bare SCons compiles copies of the same C files into the same libraries and links the same programs. Times are
of the whole process, the best of the runs; memory is the largest of SCons and of each of its workers and compilers.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.tflite_builder import Network

TARGETS = {"board_a": "host", "board_b": "host", "simulator": "host"}
"""Their archives are equal, so that each model is compiled once; a library for another core needs its compiler."""
NULL_RATIO = 1.5
MEMORY = 500.0  # MiB

OURS = """\
for target in {targets}:
    env = Environment(tools=["default", "mlf"], CCFLAGS="-O1")
    models = env.MlfModels("mlfbuild.yml", target=target)
    models.apply(env)
    env.Program("build/" + target + "/app", env.Object("build/" + target + "/main.o", "main.c"))
"""
BARE = """\
for target in {targets}:
    env = Environment(CCFLAGS="-O1")
    libraries, folders = [], []
    for name in {models}:
        folder = "trees/" + target + "/" + name + "/codegen/host"
        folders.append(Dir(folder + "/include"))
        source = folder + "/src/" + name + "_lib0.c"
        made = env.StaticObject("build/" + target + "/" + name + ".o", source, CPPPATH=folders[-1:])
        libraries += env.StaticLibrary("build/" + target + "/" + name, made)
    env.Append(CPPPATH=folders, LIBS=libraries)
    env.Program("build/" + target + "/app", env.Object("build/" + target + "/main.o", "main.c"))
"""


@dataclass(frozen=True)
class Run:
    """One run of SCons, from fork to exit."""

    seconds: float
    mebibytes: float
    output: str


def network(seed: int) -> bytes:
    """Return a network of one layer whose weights ``seed`` decides."""
    random = np.random.default_rng(seed)
    made = Network()
    source = made.input((1, 8), scale=0.05, zero_point=3)
    weights = random.integers(-127, 128, (4, 8), np.int8)
    bias = random.integers(-500, 500, 4, np.int32)
    return made.build([made.fully_connected(source, weights, bias, weight_scales=[0.01], scale=0.1)])


def write_project(folder: Path, names: list[str]) -> None:
    """Write the project, its models and the firmware that runs each of them."""
    (folder / "models").mkdir(parents=True)
    for seed, name in enumerate(names):
        (folder / f"models/{name}.tflite").write_bytes(network(seed))
    targets = "".join(f"  {target}: {{cpu: {cpu}}}\n" for target, cpu in TARGETS.items())
    models = "".join(f"  {name}: {{source: models/{name}.tflite}}\n" for name in names)
    (folder / "mlfbuild.yml").write_text(f"mlfbuild: 1\ntargets:\n{targets}models:\n{models}")
    (folder / "SConstruct").write_text(OURS.format(targets=sorted(TARGETS)))
    tools = folder / "site_scons/site_tools"
    tools.mkdir(parents=True)
    (tools / "mlf.py").write_text("from mlfbuild.scons import exists, generate\n")
    includes = "".join(f'#include "tvmgen_{name}.h"\n' for name in names)
    calls = "".join(f"  status += tvmgen_{name}_run(0, 0);\n" for name in names)
    (folder / "main.c").write_text(f"{includes}\nint main(void) {{\n  int status = 0;\n{calls}  return status;\n}}\n")


def write_bare(folder: Path, project: Path, names: list[str]) -> None:
    """Copy the generated files of ``project``, and write the SConstruct of a user who committed them."""
    folder.mkdir()
    shutil.copytree(project / "build/mlf", folder / "trees")
    shutil.copy(project / "main.c", folder)
    (folder / "SConstruct").write_text(BARE.format(targets=sorted(TARGETS), models=names))


def scons(folder: Path, jobs: int) -> Run:
    """Run SCons in ``folder``; stops the benchmark where it fails."""
    command = [sys.executable, "-m", "SCons", "-Q", f"-j{jobs}", "--debug=explain"]
    with tempfile.TemporaryFile("w+") as output:
        begin = time.perf_counter()
        child = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if child.returncode:
        sys.exit(f"{folder}: SCons failed\n{text[-3000:]}")
    unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss counts bytes on macOS, KiB on Linux
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return Run(seconds, max(usage.ru_maxrss, children) * unit / 2**20, text)


def best_of_both(ours: Path, bare: Path, jobs: int, runs: int) -> tuple[Run, Run]:
    """Return the fastest of some runs of each, taken in turns, as what else the machine does changes all the time."""
    pairs = [(scons(ours, jobs), scons(bare, jobs)) for _ in range(runs)]
    fastest = [min(each, key=lambda run: run.seconds) for each in zip(*pairs, strict=True)]
    return fastest[0], fastest[1]


def made(run: Run) -> str:
    """Return what SCons made, counted by kind."""
    lines = [line.split("'")[0] for line in run.output.split("building `")[1:]]
    kinds = {"archives": ".tar", "trees": "RECORD.json", "objects": ".o", "libraries": ".a", "programs": "/app"}
    counts = {kind: sum(line.endswith(suffix) for line in lines) for kind, suffix in kinds.items()}
    return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count) or "nothing"


def row(name: str, run: Run) -> None:
    print(f"{name:28} {run.seconds:8.2f} {run.mebibytes:8.0f}   {made(run)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--targets", type=int, default=len(TARGETS), choices=range(1, len(TARGETS) + 1))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--runs", type=int, default=3, help="of each null build")
    parser.add_argument("--folder", type=Path, help="keep the project here, which must be empty")
    options = parser.parse_args()
    for target in sorted(TARGETS)[options.targets :]:
        del TARGETS[target]
    with tempfile.TemporaryDirectory() as temporary:
        measure(options.folder or Path(temporary), options.models, options.jobs, options.runs)


def measure(folder: Path, models: int, jobs: int, runs: int) -> None:
    """Print the table, and whether the figures hold that are promised."""
    names = [f"net{index:03}" for index in range(models)]
    project, bare = folder / "project", folder / "bare"
    write_project(project, names)
    print(f"{models} models, {len(TARGETS)} targets, -j{jobs}{'seconds':>19} {'MiB':>8}   made")
    cold = scons(project, jobs)
    row("cold", cold)
    write_bare(bare, project, names)
    row("cold, bare", scons(bare, jobs))
    null, null_bare = best_of_both(project, bare, jobs, runs)
    row("null", null)
    row("null, bare", null_bare)
    os.utime(project / f"models/{names[0]}.tflite")
    row("one model touched", scons(project, jobs))
    (project / f"models/{names[0]}.tflite").write_bytes(network(models))
    row("one model changed", scons(project, jobs))
    print(f"null build: {null.seconds / null_bare.seconds:.2f} of bare SCons (at most {NULL_RATIO})")
    print(f"memory: {cold.mebibytes:.0f} MiB (below {MEMORY:.0f})")


if __name__ == "__main__":
    main()
