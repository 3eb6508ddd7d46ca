"""The machines on which a network is evaluated: this one, an emulated board, a device."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.compilers import compiler_called
from mlfbuild.core import ProcessFailedError
from mlfbuild.library import Library, Module, ResolvedLibrary
from mlfbuild.targets import CPUS
from mlfbuild.usecases.evaluate.jobs import THIS_MACHINE, EvaluateJob
from mlfbuild.verify import SECONDS_A_CASE

Array = npt.NDArray[Any]
Run = Callable[[Sequence[Array], int], Sequence[Array]]
"""Inputs (cases, *shape) as stored, and the number of the first case -> outputs (cases, *shape) as stored."""


@dataclass(frozen=True)
class EvaluationMachine:
    """The machine that runs a network, and the function that runs it there."""

    name: str
    run: Run


@contextlib.contextmanager
def opened(
    job: EvaluateJob, library: Library, module: Module, libraries: Sequence[ResolvedLibrary]
) -> Iterator[EvaluationMachine]:
    """Yield the machine of ``job`` for ``module`` of ``library``, which requires ``libraries``.

    On this machine, the code runs in a process of its own, compiled with the model's optimisation level. Raises as
    ``verify.host.load_library``, ``run_on_board`` and ``run_on_device``.
    """
    where, timeout = str(job.model.archive), job.timeout or SECONDS_A_CASE
    toolchain, board = job.target.toolchain, job.target.run_board
    if not job.on_target:
        from mlfbuild.verify.host import load_library

        level = job.model.optimize
        with load_library(
            library, where, module.name, isolated=True, timeout=timeout, optimize=level, libraries=libraries
        ) as network:
            yield EvaluationMachine(THIS_MACHINE, network.run_cases)
    elif job.target.runner is not None and toolchain is not None:  # this machine is not a device
        from mlfbuild.verify import connected, device_of
        from mlfbuild.verify.device import run_on_device

        with connected(device_of(job.target, job.runner_place)) as connection:
            yield _in_firmware(
                connection.name,
                lambda inputs: run_on_device(module, connection, toolchain, inputs, where, timeout, libraries),
            )
    elif board is not None:
        from mlfbuild.verify.emulator import run_on_board

        yield _in_firmware(board.name, lambda inputs: run_on_board(module, board, inputs, where, timeout, libraries))


@contextlib.contextmanager
def opened_source(job: EvaluateJob, source: Path) -> Iterator[tuple[Module, Run]]:
    """Yield the float network ``source``, from which the model of ``job`` was quantised, compiled for this machine.

    It has the names and choices of the model. Raises as the native compiler and ``verify.host.load_library``.
    """
    from mlfbuild.verify.host import load_library

    request = replace(job.model.request, source=source, cpu=CPUS["host"])
    library = compiler_called("native").compile(request)
    (module,) = library.modules
    where, timeout, level = str(source), job.timeout or SECONDS_A_CASE, job.model.optimize
    with load_library(library, where, isolated=True, timeout=timeout, optimize=level) as network:
        yield module, network.run_cases


def _in_firmware(name: str, run: Callable[[Sequence[Array]], Sequence[Array]]) -> EvaluationMachine:
    def run_batch(inputs: Sequence[Array], first: int) -> Sequence[Array]:
        try:
            # Firmware reads (cases, elements).
            return run([np.ascontiguousarray(array.reshape(len(array), -1)) for array in inputs])
        except ProcessFailedError as error:
            raise error.within(f"cases from {first}") from None

    return EvaluationMachine(name, run_batch)
