"""Which modules of mlfbuild a process loads."""

import os
import re
import subprocess
import sys
from pathlib import Path

from mlfbuild.jobs import CompileJob, compile_model

_LOADED = re.compile(r"^import time:.*\| *(\S+)$", re.MULTILINE)


def loaded(folder: Path, *arguments: str) -> list[str]:
    """Run Python with ``arguments`` in ``folder`` and return all modules that it imports."""
    command = [sys.executable, "-X", "importtime", *arguments]
    done = subprocess.run(command, cwd=folder, env=dict(os.environ), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    return _LOADED.findall(done.stderr)


def ours(modules: list[str]) -> list[str]:
    """Return those of ``modules`` that belong to mlfbuild."""
    return [module for module in modules if module.split(".")[0] == "mlfbuild"]


def compile_and_list(job: CompileJob) -> list[str]:
    """Compile the job's model and return all modules that this process, a worker, has loaded."""
    compile_model(job)
    return sorted(sys.modules)
