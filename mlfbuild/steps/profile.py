"""Instructions of each model's operators on the boards of a project."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.archive import open_archive
from mlfbuild.emulator.exchange import SECONDS_A_CASE
from mlfbuild.emulator.vectors import load_inputs
from mlfbuild.errors import CheckFailedError
from mlfbuild.library import Module
from mlfbuild.library.numpy_types import dtype_called
from mlfbuild.manifest import Project
from mlfbuild.report.profile import Profile, profile_module
from mlfbuild.steps.jobs import CompileJob, TargetJob

__all__ = ["ModelProfile", "Profile", "profiles"]


@dataclass(frozen=True)
class ModelProfile:
    """One run of a module of a model on the board of a target."""

    target: str
    model: str
    inputs: str
    """The file whose first case was run; empty where it was zeros."""
    profile: Profile


def profiles(project: Project, targets: Sequence[TargetJob]) -> Iterator[ModelProfile]:
    """Yield the profile of each model of ``targets``, whose archives are there, on each board.

    A model runs the first case of its vectors, or zeros where it has none. Raises ``CheckFailedError`` where no target
    has a board, and as ``profile_module``.
    """
    if not any(target.board for target in targets):
        names = ", ".join(target.name for target in targets)
        raise CheckFailedError(f"{project.path}: nothing to profile: no board that QEMU emulates for {names}")
    for target in targets:
        for job in target.models if target.board else ():
            for module in open_archive(job.archive).modules:
                yield _profile(project, target, job, module)


def _profile(project: Project, target: TargetJob, job: CompileJob, module: Module) -> ModelProfile:
    vectors = project.models[job.model].vectors
    path = vectors.get("") or vectors.get(module.name)
    inputs: Sequence[npt.NDArray[Any]]
    if path is not None:
        _, inputs = load_inputs(path, module)
    else:
        types = [(dtype_called(tensor.dtype), tensor.size) for tensor in module.inputs]
        inputs = [np.zeros((1, size // dtype.itemsize), dtype) for dtype, size in types]
    assert target.board is not None
    found = profile_module(module, target.board, inputs, str(job.archive), SECONDS_A_CASE)
    return ModelProfile(target.name, job.model, path.name if path else "", found)
