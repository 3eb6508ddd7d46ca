"""Print how builds of many models grow, what a cluster of Dask costs on one machine, and what its scheduler can carry.

    python benchmarks/fleet.py growth [--models 10,100,1000] [--targets 1,4] [-j N]
    python benchmarks/fleet.py farm [--models 200] [--targets 4] [-j 2] [--rounds 2] [--model kws_int8.tflite]
    python benchmarks/fleet.py replay [--workers 100] [--tasks 100000] [--mean 1.0]

``growth`` builds projects of small networks with ``mlfbuild build``: cold, with nothing to do, and after one model
changed. CPU time is that of the process and all its children; the figure per model and target shows whether it is
linear. ``farm`` builds one project in worker processes and on a ``LocalCluster`` of as many, compares all archives, and
writes the times of the tasks to ``--times``. ``replay`` starts Dask's own scheduler, and workers that only sleep for
such times, scaled to ``--mean`` seconds; workers share processes. Caches are off, so that everything is compiled.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from scale import network

CPUS = (
    "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55", "cortex-m0", "cortex-m3", "cortex-m0plus", "cortex-m4+nofp",
    "cortex-m23", "cortex-m85",
)  # fmt: skip
QUIET = {**os.environ, "MLFBUILD_CACHE_DISABLE": "1"}


@dataclass(frozen=True)
class Cost:
    """Time and memory that one command took."""

    seconds: float
    cpu: float
    mebibytes: float
    """The largest of its processes."""


def write_project(folder: Path, models: int, targets: int, copied: Path | None = None) -> None:
    """Write a project in ``folder``: of small networks, or of copies of one model file under other names."""
    (folder / "models").mkdir(parents=True)
    for seed in range(models):
        content = copied.read_bytes() if copied else network(seed)
        (folder / f"models/net{seed:05}.tflite").write_bytes(content)
    names = "".join(f"  {cpu.replace('+', '-')}: {{cpu: {cpu}}}\n" for cpu in CPUS[:targets])
    (folder / "mlfbuild.yml").write_text(f'mlfbuild: 1\ntargets:\n{names}models: ["models/*.tflite"]\n')


def mlfbuild(folder: Path, *words: str) -> Cost:
    """Run the command in ``folder``; stops the benchmark where it fails."""
    with tempfile.TemporaryFile("w+") as output:
        begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "mlfbuild", *words]
        ended = subprocess.run(command, cwd=folder, env=QUIET, stdout=output, stderr=output, check=False)
        seconds, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
        output.seek(0)
        if ended.returncode:
            sys.exit(f"{folder}: mlfbuild {' '.join(words)} failed\n{output.read()[-3000:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(seconds, cpu, after.ru_maxrss / 1024)


def measure_growth(options: argparse.Namespace) -> None:
    """Print a row for each number of models and targets."""
    print(f"{'models x targets':18}{'cold s':>8}{'CPU s':>8}{'ms each':>9}{'MiB':>6}{'null CPU':>10}{'ms each':>9}"
          f"{'one changed':>13}{'files':>9}{'MB':>8}")  # fmt: skip
    for models in options.models:
        for targets in options.targets:
            with tempfile.TemporaryDirectory() as temporary:
                folder = Path(temporary) / "project"
                write_project(folder, models, targets)
                cold = mlfbuild(folder, "build", f"-j{options.jobs}", "-q")
                null = mlfbuild(folder, "build", f"-j{options.jobs}", "-q")
                (folder / "models/net00000.tflite").write_bytes(network(models))
                one = mlfbuild(folder, "build", f"-j{options.jobs}", "-q")
                made = [path.stat() for path in (folder / "build").rglob("*") if path.is_file()]
            each, size = models * targets, sum(stat.st_size for stat in made) / 1e6
            print(
                f"{models:6} x {targets:<9}{cold.seconds:8.1f}{cold.cpu:8.1f}{1000 * cold.cpu / each:9.1f}"
                f"{cold.mebibytes:6.0f}{null.cpu:10.2f}{1000 * null.cpu / each:9.2f}{one.cpu:13.2f}"
                f"{len(made):9,}{size:8.1f}",
                flush=True,
            )


def archives(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each archive by its name from ``folder``."""
    found = sorted((folder / "build/mlf").rglob("*.tar"))
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def measure_farm(options: argparse.Namespace) -> None:
    """Print the cost of a cluster on this machine beside that of worker processes: the least of interleaved rounds."""
    models, targets = options.models[0], options.targets[0]
    costs: dict[str, list[Cost]] = {"here": [], "dask": []}
    hashes = []
    for place in options.rounds * [*costs]:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / "project"
            write_project(folder, models, targets, options.model)
            cost = mlfbuild(folder, "build", f"-j{options.jobs}", "-q", "--on", place)
            costs[place].append(cost)
            hashes.append(archives(folder))
            load = os.getloadavg()[0]
            print(f"--on {place} {cost.seconds:8.1f} s {cost.cpu:8.1f} s CPU (load {load:.1f})", flush=True)
            keys = (folder / "build/mlf").rglob(".*.tar.key")
            times = sorted(json.loads(path.read_bytes())["seconds"] for path in keys)
            options.times.write_text(json.dumps([each for each in times if each]))
    wall, cpu = ([min(getattr(cost, what) for cost in costs[place]) for place in costs] for what in ("seconds", "cpu"))
    same = all(one == hashes[0] for one in hashes)
    print(f"{len(hashes[0])} archives, {'the same bytes' if same else 'OTHER BYTES'}")
    print(f"time: {wall[1] / wall[0]:.2f} of the plain run (at most 1.15)")
    print(f"CPU: {1000 * (cpu[1] - cpu[0]) / len(hashes[0]):.1f} ms a task more (at most 20)")


def slept(seconds: float) -> dict[str, bytes]:
    """Sleep as long as a recorded task took; the function of a replayed task."""
    time.sleep(seconds)
    return {"slept": b""}


async def simulated_workers(scheduler: str, count: int) -> None:
    """Run ``count`` workers of one thread each in this process until it is killed."""
    from distributed import Worker

    workers = [Worker(scheduler, nthreads=1, dashboard=False, memory_limit=0) for _ in range(count)]
    await asyncio.gather(*workers)
    await asyncio.gather(*(worker.finished() for worker in workers))


def replay(options: argparse.Namespace) -> None:
    """Print the CPU time of the scheduler beside the makespan of the replayed tasks."""
    import psutil

    from mlfbuild.farm import FarmSettings, FarmTask, open_farm, program_versions

    recorded = json.loads(options.times.read_text()) if options.times.is_file() else [1.0]
    factor = options.mean * len(recorded) / sum(recorded)
    draw = random.Random(0)
    empty = Path(__file__)

    def tasks() -> Iterator[FarmTask]:
        for number in range(options.tasks):
            key = hashlib.sha256(str(number).encode()).hexdigest()
            seconds = factor * draw.choice(recorded)
            yield FarmTask(key, f"task {number}", "fleet:slept", seconds, empty.parent, [empty])

    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / "scheduler.json"
        command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"]
        started = [subprocess.Popen([*command, "--scheduler-file", str(file)], stderr=subprocess.DEVNULL)]
        try:
            while not file.is_file():
                time.sleep(0.1)
            address = json.loads(file.read_text())["address"]
            share = options.workers // options.processes
            code = f"import asyncio, fleet; asyncio.run(fleet.simulated_workers({address!r}, {share}))"
            path = os.pathsep.join(sys.path)
            environment = {**QUIET, "PYTHONPATH": path}
            started += [
                subprocess.Popen([sys.executable, "-c", code], env=environment, stderr=subprocess.DEVNULL)
                for _ in range(options.processes)
            ]
            with open_farm(FarmSettings(address), program_versions([])) as farm:
                while farm.threads() < share * options.processes:
                    time.sleep(0.5)
                scheduler = psutil.Process(started[0].pid)
                begin, cpu = time.perf_counter(), sum(scheduler.cpu_times()[:2])
                own = time.process_time()
                done = sum(1 for _, result in farm.run(tasks()) if getattr(result, "outputs", None))
                makespan, own = time.perf_counter() - begin, time.process_time() - own
                cpu = sum(scheduler.cpu_times()[:2]) - cpu
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        finally:
            for process in started:
                process.kill()
                process.wait()
    ideal = options.mean * options.tasks / options.workers
    print(f"{done:,} of {options.tasks:,} tasks of {options.mean} s on average, {options.workers} workers")
    load = os.getloadavg()[0]
    print(f"makespan {makespan:.0f} s (without any overhead {ideal:.0f} s), load {load:.1f}")
    print(f"scheduler: {cpu:.1f} s CPU, {100 * cpu / makespan:.1f} % of the makespan (at most 10 %), "
          f"{1000 * cpu / options.tasks:.2f} ms a task")  # fmt: skip
    print(f"driver: {own:.1f} s CPU, {1000 * own / options.tasks:.2f} ms a task, {peak:.0f} MiB")


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["growth", "farm", "replay"])
    parser.add_argument("--models", type=numbers, default=None)
    parser.add_argument("--model", type=Path, help="model file that all models of `farm` are copies of")
    parser.add_argument("--targets", type=numbers, default=None)
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=1, help="of `farm`")
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--processes", type=int, default=4, help="that share the workers of a replay")
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--mean", type=float, default=1.0, help="seconds of a replayed task")
    parser.add_argument("--times", type=Path, default=Path("fleet-times.json"), help="recorded seconds of tasks")
    options = parser.parse_args()
    many = options.what == "growth"
    options.models = options.models or ([10, 100, 1000] if many else [200])
    options.targets = options.targets or ([1, 4] if many else [4])
    {"growth": measure_growth, "farm": measure_farm, "replay": replay}[options.what](options)


if __name__ == "__main__":
    main()
