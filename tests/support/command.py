"""Run the command `mlfbuild` in a folder with a small project, in this process (fast) or in a new one."""

import functools
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlfbuild.cli.output.invocation import run
from support import warm
from support.firmware_repo import EditedFolder, tiny_network
from support.oracle import tflite_micro_run

PROJECT = """\
mlfbuild: 1
targets:
  pc: {cpu: host}
models:
  alpha: {source: models/alpha.tflite, vectors: alpha.npz}
  beta: {source: models/beta.tflite}
firmware:
  app: {sources: [main.c], models: [alpha, beta]}
"""

INTERRUPTED = "mlfbuild: interrupted; run the command again to continue\n"

MAIN_C = """\
#include <stdio.h>
#include "tvmgen_alpha.h"
#include "tvmgen_beta.h"

int main(void) {
  printf("arenas of %u and %u bytes\\n", (unsigned)TVMGEN_ALPHA_WORKSPACE_SIZE, (unsigned)TVMGEN_BETA_WORKSPACE_SIZE);
  return 0;
}
"""
CALLS_ALPHA = """\
#include "tvmgen_alpha.h"
int main(void)
{
    int8_t x[8] = {0}, y[4];
    struct tvmgen_alpha_inputs inputs = {x};
    struct tvmgen_alpha_outputs outputs = {y};
    return tvmgen_alpha_run(&inputs, &outputs);
}
"""

_INPUTS = np.random.default_rng(7).integers(-128, 128, (3, 1, 8), np.int8)


@functools.cache
def _recorded(model: bytes) -> np.ndarray:
    return np.stack([tflite_micro_run(model, [case])[0] for case in _INPUTS])


@dataclass(frozen=True)
class Ended:
    """The result of a command."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The JSON on stdout."""
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """The event of the error that ended a command with ``--format json``."""
        return json.loads(self.err.splitlines()[-1])


class Folder(EditedFolder):
    """A folder with the project above; ``run`` and ``spawn`` run the command there."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self._capsys = capsys
        self.write("mlfbuild.yml", PROJECT)
        self.write("main.c", MAIN_C)
        for seed, name in enumerate(("alpha", "beta")):
            self.write(f"models/{name}.tflite", tiny_network(seed))
        self.write_vectors("alpha")

    def write_vectors(self, name: str, *, wrong: bool = False) -> None:
        """Write three cases with the outputs of TensorFlow Lite Micro; ``wrong`` changes one element of case 1."""
        model = (self.root / f"models/{name}.tflite").read_bytes()
        outputs = _recorded(model).copy()
        if wrong:
            outputs[1].flat[2] ^= 1
        np.savez(self.root / f"{name}.npz", in0=_INPUTS, out0=outputs)

    def run(self, *arguments: str, status: int | None = None) -> Ended:
        """Run the command in this process, and check the exit status if ``status`` is given."""
        self._capsys.readouterr()
        ended = Ended(run(arguments), *self._capsys.readouterr())
        assert status in {None, ended.status}, ended
        return ended

    def refused(self, *arguments: str) -> tuple[int, str, str]:
        """Run a command that fails and writes no result; return its exit status and the code and place of its error."""
        ended = self.run(*arguments, "--format", "json")
        assert ended.out == ""
        return ended.status, ended.error["code"], ended.error.get("place", "")

    def mistakes(self, *arguments: str) -> list[tuple[str, str]]:
        """Run a command that fails because of the project file; return code and place of each mistake."""
        ended = self.run(*arguments, "--format", "json")
        assert ended.status == 2
        return [(problem["code"], problem["place"]) for problem in ended.error["problems"]]

    def spawn(self, *arguments: str, prepare: Callable[[], None] | None = None, **options: Any) -> Ended:
        """Run the command in a new process, in which ``prepare`` runs first."""
        if prepare is None and options.keys() <= {"env"}:
            done = warm.run("mlfbuild", *arguments, cwd=self.root, **options)
            return Ended(done.returncode, done.stdout, done.stderr)
        command = [sys.executable, "-m", "mlfbuild", *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        done = subprocess.run(command, cwd=self.root, preexec_fn=prepare, text=True, timeout=120, check=False, **pipes)
        return Ended(done.returncode, done.stdout or "", done.stderr or "")

    def files(self) -> set[str]:
        """Return every file below the folder."""
        return {path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if not path.is_dir()}
