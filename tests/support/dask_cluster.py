"""A cluster of Dask on loopback: a scheduler and workers as processes of their own, each with folders of its own."""

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.firmware_repo import tiny_network
from support.processes import wait_for

FAULTS = Path(__file__).with_name("dask_faults.py")
CPUS = ("cortex-m4", "cortex-m55", "cortex-m0", "cortex-m33")
_ENVIRONMENT = {
    # Dask waits ten heartbeats at least, of half a second each.
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "1s",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__GIL__ENABLED": "False",
    "MLFBUILD_CACHE_DISABLE": "1",
}
SITE = sysconfig.get_path("purelib")
WITHOUT_MLFBUILD = [sys.executable, "-S"]
"""With ``PYTHONPATH=SITE``, a Python with all packages but those of .pth files, such as a checkout of mlfbuild."""


@dataclass(frozen=True)
class Built:
    """How a build ended."""

    status: int
    out: str
    err: str

    @property
    def workers(self) -> dict[str, str]:
        """The worker of each model that was compiled on the farm."""
        lines = [line.split(" (")[0] for line in self.err.splitlines() if ": compiled on " in line]
        return {
            title.removeprefix("compile "): worker for title, worker in (one.split(": compiled on ") for one in lines)
        }

    def check(self, status: int = 0) -> "Built":
        """Fail if the build ended otherwise, or if Dask or Python printed anything."""
        # The last are tables of sizes.
        ours = ("compile ", "unpack ", "link ", "mlfbuild: ", "note: ", "nothing to build", "  ")
        other = [line for line in self.err.splitlines() if line and not line.startswith(ours)]
        assert (self.status, other) == (status, []), self.err
        return self


class FarmProject:
    """A project of a few models and targets in ``root``."""

    def __init__(self, root: Path, models: int = 2, cpus: Sequence[str] = CPUS, jobs: str = "") -> None:
        self.root = root
        self.count = models * len(cpus)
        (root / "models").mkdir(parents=True)
        for seed in range(models):
            # The first is too large to be carried by a call, and travels as a task of Dask's own.
            (root / f"models/m{seed}.tflite").write_bytes(tiny_network(seed) + bytes(0 if seed else 1 << 20))
        targets = "".join(f"  {cpu}: {{cpu: {cpu}}}\n" for cpu in cpus)
        sources = "".join(f"  m{seed}: {{source: models/m{seed}.tflite}}\n" for seed in range(models))
        (root / "mlfbuild.yml").write_text(f"mlfbuild: 1\ntargets:\n{targets}models:\n{sources}{jobs}")

    def start(self, *options: str, **environment: str) -> subprocess.Popen[str]:
        """Start a build in a session of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "mlfbuild", "build", *options],
            cwd=self.root, env={**os.environ, **_ENVIRONMENT, **environment}, text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def build(self, *options: str, **environment: str) -> Built:
        """Build to the end."""
        return ended(self.start(*options, **environment))

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of every file of archives and trees; without the records of when they were made."""
        return {
            path.relative_to(self.root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted((self.root / "build/mlf").rglob("*"))
            if path.is_file() and not path.name.endswith((".key", ".lock"))
        }

    def archives(self) -> set[str]:
        """Return the archives that were made and kept, such as ``cortex-m4/m0``."""
        folder = self.root / "build/mlf"
        keys = {path.parent / path.name[1:].removesuffix(".tar.key") for path in folder.glob("*/.*.tar.key")}
        return {path.relative_to(folder).as_posix() for path in keys}


IMPATIENT = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s"}
"""Environment of a build that soon gives up; the others wait for a worker that starts on a busy machine."""


def ended(process: subprocess.Popen[str]) -> Built:
    """Wait for the end of a build."""
    out, err = process.communicate(timeout=300)
    return Built(process.returncode, out, err)


class DaskCluster:
    """Processes of Dask that were started here; each is the leader of its own group."""

    def __init__(self, root: Path, **environment: str) -> None:
        self.root = root
        self.address = ""
        self.environment = {**os.environ, **_ENVIRONMENT, **environment}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def scheduler(
        self, port: int = 0, protocol: str = "tcp", python: Sequence[str] = (sys.executable,), **environment: str
    ) -> str:
        """Start the scheduler and return its address."""
        file = self.root / "scheduler.json"
        file.unlink(missing_ok=True)
        words = [
            "scheduler", "--host", "127.0.0.1", "--port", str(port), "--protocol", protocol, "--dashboard-address",
            ":0",
        ]  # fmt: skip
        self._start("scheduler", [*python, "-m", "dask", *words, "--scheduler-file", str(file)], environment)
        self.address = wait_for(lambda: _address_in(file))
        return self.address

    def worker(
        self,
        name: str,
        *options: str,
        fault: str = "",
        python: Sequence[str] = (sys.executable,),
        **environment: str,
    ) -> subprocess.Popen[bytes]:
        """Start a worker; ``fault`` is one of dask_faults.py. It has joined the scheduler at the end."""
        temporary = self.root / name / "tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        words = [
            "worker", self.address, "--name", name, "--nthreads", "1", "--host", "127.0.0.1", "--no-dashboard",
            "--local-directory", str(self.root / name), *(options or ("--no-nanny",)),
            *(["--preload", str(FAULTS)] if fault else []),
        ]  # fmt: skip
        environment = {"TMPDIR": str(temporary), "FAULT": fault, "MARKS": str(self.root), **environment}
        process = self._start(name, [*python, "-m", "dask", *words], environment)
        wait_for(lambda: "Registered to" in self.log(name) or process.poll() is not None)
        assert process.poll() is None, self.log(name)
        return process

    def _start(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
    ) -> subprocess.Popen[bytes]:
        (self.root / name).mkdir(parents=True, exist_ok=True)
        with (self.root / f"{name}.log").open("wb") as log:
            self.processes[name] = process = subprocess.Popen(
                command, cwd=self.root / name, env={**self.environment, **environment}, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        return process

    def log(self, name: str) -> str:
        """What a process printed."""
        return (self.root / f"{name}.log").read_text(errors="replace")

    def address_of(self, name: str) -> str:
        """Return the address of a worker."""
        return next(line.split()[-1] for line in self.log(name).splitlines() if "Start worker at:" in line)

    def marked(self, mark: str) -> int:
        """Return how often a fault has happened, such as ``compile``."""
        return len([*self.root.glob(f"{mark}.*.mark")])

    def wait_marked(self, mark: str) -> None:
        """Wait until a fault has happened."""
        wait_for(lambda: self.marked(mark))

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to a process and those that it started, and wait for its end if it is killed."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.processes[name].pid, number)
        if number == signal.SIGKILL:
            self.processes.pop(name).wait()

    def wait_end(self, name: str) -> None:
        """Wait until a process ends by itself."""
        self.processes.pop(name).wait(300)

    def close(self) -> None:
        """Kill all processes."""
        for name in [*self.processes]:
            self.kill(name)


@contextlib.contextmanager
def dask_cluster(root: Path, **environment: str) -> Iterator[DaskCluster]:
    """A cluster without processes, which are killed at the end."""
    root.mkdir(parents=True, exist_ok=True)
    cluster = DaskCluster(root, **environment)
    try:
        yield cluster
    finally:
        cluster.close()


def run(project: Path, *words: str, status: int = 0, **environment: str) -> tuple[Any, str]:
    """Run the command; return the JSON that it prints, and its events."""
    command = [sys.executable, "-m", "mlfbuild", *words, "--format", "json"]
    own = {"MLFBUILD_CACHE": str(project / "cache"), **environment}
    kept = {name: value for name, value in os.environ.items() if name != "MLFBUILD_CACHE_DISABLE"}
    done = subprocess.run(command, cwd=project, env={**kept, **own}, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout or "null"), done.stderr


def _address_in(file: Path) -> str:
    with contextlib.suppress(OSError, ValueError, KeyError):
        return str(json.loads(file.read_text())["address"])
    return ""
